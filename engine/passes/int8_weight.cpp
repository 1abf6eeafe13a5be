// SPDX-License-Identifier: Apache-2.0
// Quantized weights in the form that int8 GEMMs take.
#include "passes/int8_weight.hpp"

#include <algorithm>

namespace bertcl::passes {
namespace {

ir::Tensor minus_128(const ir::Tensor& u8) {
  const auto bytes = u8.as<std::uint8_t>();
  std::vector<std::int8_t> shifted(bytes.size());
  std::transform(bytes.begin(), bytes.end(), shifted.begin(),
                 [](std::uint8_t b) { return static_cast<std::int8_t>(b - 128); });
  return ir::Tensor::of(u8.shape(), std::move(shifted));
}

}  // namespace

Int8Weight to_int8(ir::Graph& graph, ir::Value* weight, ir::Value* zero_point) {
  Int8Weight made{weight, zero_point};
  if (weight->type.dtype == ir::DType::u8) {
    const ir::Tensor zeros =
        zero_point ? *zero_point->constant : ir::Tensor::scalar(std::uint8_t{0});
    made.values = graph.add_constant(weight->name, minus_128(*weight->constant));
    made.zero_point = graph.add_constant(weight->name + ".zero_point", minus_128(zeros));
  }
  if (!made.zero_point) return made;
  const auto zeros = made.zero_point->constant->to_ints();
  if (std::ranges::all_of(zeros, [](std::int64_t z) { return z == 0; })) made.zero_point = nullptr;
  return made;
}

}  // namespace bertcl::passes
