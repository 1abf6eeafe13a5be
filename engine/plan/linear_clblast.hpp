// SPDX-License-Identifier: Apache-2.0
// Launch steps of a linear whose GEMM runs in CLBlast.
#pragma once
#include "plan/builder.hpp"

namespace bertcl::plan {

/// y = activation(x w + bias) by CLBlast: the bias is written to the result first, and the GEMM
/// adds to it. In fp16, x is cast before and the result after.
void lower_clblast(Builder& b, const ir::Node& node, TunableGemm tunable);

}  // namespace bertcl::plan
