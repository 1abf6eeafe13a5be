// SPDX-License-Identifier: Apache-2.0
// The choice between a MatMul by work-items and by work-groups.
#include "plan/matmul_kernel.hpp"

#include <fmt/format.h>

#include "kernels/variants.hpp"
#include "plan/variants.hpp"

namespace bertcl::plan {

MatMulKernel matmul_kernel(Builder& b, const ir::Node& node, const std::string& type,
                           const MatMulShape& shape) {
  constexpr std::int32_t panel = 32;  // columns of a work-item of matmul_*_batched.cl
  constexpr std::int32_t side = 64;   // of the tile of matmul_group.clh
  constexpr std::int32_t items = 256;
  const auto choice = choose(b, node, kernels::matmul_variants());
  MatMulKernel kernel{
      .variant = choice.variant->name.c_str(),
      .program = fmt::format("matmul_{}_{}", type, choice.variant->name),
      .global = {Size{shape.n, panel}, Size{shape.m, kMatMulBlockRows}, Size{shape.batches}},
      .why_not_faster = choice.why_not_faster};
  if (!choice.variant->groups) return kernel;
  kernel.global = {Size{shape.n, side, items}, Size{shape.m, side}, Size{shape.batches}};
  kernel.local[0] = items;
  return kernel;
}

}  // namespace bertcl::plan
