// SPDX-License-Identifier: Apache-2.0
// What the files that lower products with constant weights share.
#pragma once
#include <string>

#include "plan/builder.hpp"

namespace bertcl::plan {

/// Two operations for each of rows * n * k.
void count_operations(Step& step, const ir::Dim& rows, std::int64_t n, std::int64_t k);

/// "" where the op has none.
std::string activation_of(const ir::Node& node);

/// y = activation(x w + bias) by CLBlast: the bias goes into the result first, the product adds to
/// it. In half, x is cast before and the result after.
void lower_clblast(Builder& b, const ir::Node& node, TunableProduct tunable);

}  // namespace bertcl::plan
