// SPDX-License-Identifier: Apache-2.0
// The choice between a MatMul by work-items and by work-groups.
#include "plan/matmul_kernel.hpp"

#include <fmt/format.h>

#include "kernels/shared_numbers.hpp"
#include "kernels/variants.hpp"
#include "plan/variants.hpp"

namespace bertcl::plan {

MatMulKernel matmul_kernel(Builder& b, const ir::Node& node, const std::string& type,
                           const MatMulShape& shape) {
  using kernels::kMatMulItems, kernels::kMatMulPanel, kernels::kMatMulSide;
  const auto choice = choose(b, node, kernels::matmul_variants());
  MatMulKernel kernel{.variant = choice.variant->name.c_str(),
                      .program = fmt::format("matmul_{}_{}", type, choice.variant->name),
                      .global = {SizeExpr{shape.n, kMatMulPanel},
                                 SizeExpr{shape.m, kMatMulBlockRows}, SizeExpr{shape.batches}},
                      .why_not_faster = choice.why_not_faster};
  if (!choice.variant->uses_work_groups) return kernel;
  kernel.global = {SizeExpr{shape.n, kMatMulSide, kMatMulItems}, SizeExpr{shape.m, kMatMulSide},
                   SizeExpr{shape.batches}};
  kernel.local[0] = kMatMulItems;
  return kernel;
}

}  // namespace bertcl::plan
