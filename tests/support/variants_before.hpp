// SPDX-License-Identifier: Apache-2.0
// Lists for disabled kernels, whatever variants there are.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/variants.hpp"

namespace bertcl::tests {

/// The int8 GEMMs that are preferred to variant `name`, joined by commas; of all for "".
inline std::string s8_variants_before(std::string_view name) {
  std::string list;
  for (const kernels::GemmVariant& variant : kernels::gemm_s8_variants()) {
    if (variant.name == name) return list;
    list += (list.empty() ? "" : ",") + std::string(variant.name);
  }
  if (!name.empty()) throw std::invalid_argument("no variant " + std::string(name));
  return list;
}

}  // namespace bertcl::tests
