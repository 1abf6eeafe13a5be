// SPDX-License-Identifier: Apache-2.0
// What a run is given, checked against what the plan takes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/dim.hpp"
#include "ops/packing.hpp"
#include "plan/plan.hpp"
#include "runtime/session.hpp"

namespace bertcl::runtime {

/// Extents of inputs by name.
using Shapes = std::map<std::string, ir::Sizes, std::less<>>;
Shapes shapes_of(const Tensors& inputs);

/// Throws Error if an input is missing that has no default, or one is unknown to the model.
void check_names(const plan::Plan& plan, const Tensors& inputs);

/// Gives every symbol of the input shapes its size. Throws Error where a shape is another than the
/// model's, or two inputs disagree. The names have to be checked.
ir::Bindings bind_shapes(const plan::Plan& plan, const Shapes& inputs);

/// Ids, token types or positions as integers; empty where the input is absent. An input that the
/// file declares as float, because its graph casts or compares it, may hold whole numbers; anything
/// else is an Error.
std::vector<std::int64_t> integers_of(const plan::Plan& plan, const Tensors& inputs,
                                      const std::string& name);

/// The mask, likewise. What a graph makes of other numbers than 0 and 1 is not what a mask says:
/// they are an Error.
std::vector<std::int64_t> mask_of(const plan::Plan& plan, const Tensors& inputs);

/// Throws Error if a sequence is longer than the model's table of positions, or than integer
/// attention can sum up.
void check_length(const plan::Plan& plan, const ops::Packing& packing);

}  // namespace bertcl::runtime
