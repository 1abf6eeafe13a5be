// SPDX-License-Identifier: Apache-2.0
// Named sets of quantizer options: bertcl's own, and those of other systems.
#pragma once
#include <span>
#include <string_view>

#include "quant/quantizer.hpp"

namespace bertcl::quant {

struct Preset {
  std::string_view name;
  std::string_view summary;  ///< one line
  Options (*options)();      ///< without model, output and device
};

/// All presets, the default first.
std::span<const Preset> presets();
/// The preset of that name. Throws Error with the list of names if there is none.
const Preset& preset(std::string_view name);

}  // namespace bertcl::quant
