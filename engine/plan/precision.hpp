// SPDX-License-Identifier: Apache-2.0
// The arithmetic of float linear and attention.
#pragma once
#include <string>

#include "passes/pass.hpp"
#include "plan/options.hpp"

namespace bertcl::plan {

/// The closest to `asked` (f32, f16 or bf16) that the device supports. Throws bertcl::Error for
/// another type.
passes::Precision precision_on(opencl::Context& context, ir::DType asked, const Options& options);

/// The reasons why a float node does not run faster: those found by passes, then `refusals` of
/// variants.
std::string why_not_faster(const ir::Node& node, const std::string& refusals);

}  // namespace bertcl::plan
