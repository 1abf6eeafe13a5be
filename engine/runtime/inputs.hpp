// SPDX-License-Identifier: Apache-2.0
// The inputs of a run, checked against the plan.
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

/// Throws Error if an input without a default is missing, or one is unknown to the model.
void check_names(const plan::Plan& plan, const Tensors& inputs);

/// Throws Error if the model has no output of one of these names.
void check_outputs(const plan::Plan& plan, const OutputNames& names);

/// [batch, seq] of `source`, which packing reads; of the ids where it is left out.
const ir::Sizes& batch_shape(const plan::Plan& plan, const Shapes& inputs,
                             const std::string& source);

/// Gives every symbol of the input shapes its size. Throws Error where a shape is another than the
/// model's or has an extent beyond kMaxElements, or two inputs disagree. The names have to be
/// checked.
ir::Bindings bind_shapes(const plan::Plan& plan, const Shapes& inputs);

/// Extents of an input for a run on synthetic values. Symbols that `sizes` lacks are added to it:
/// those of the first axis as 1, others as `tokens`.
ir::Sizes synthetic_extents(const ir::Shape& shape, std::int64_t tokens, ir::Bindings& sizes);

/// The values of an input in the model's type. Throws Error for floats in place of integers, and
/// for integers that the type cannot hold.
ir::Tensor without_loss(const ir::Tensor& given, ir::DType wanted, const std::string& name);

/// Ids, token types or positions as integers; empty where the input is absent. An input that the
/// file declares as float, because its graph casts or compares it, may hold integers; anything
/// else is an Error.
std::vector<std::int64_t> integers_of(const plan::Plan& plan, const Tensors& inputs,
                                      const std::string& name);

/// The mask, likewise. Numbers other than 0 and 1 are an Error: a graph would not treat them as a
/// mask.
std::vector<std::int64_t> mask_of(const plan::Plan& plan, const Tensors& inputs);

/// Throws Error if a sequence is longer than the model's position table, or than int8 attention can
/// sum.
void check_length(const plan::Plan& plan, const ops::Packing& packing);

}  // namespace bertcl::runtime
