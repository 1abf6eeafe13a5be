// SPDX-License-Identifier: Apache-2.0
// A split-K GEMM whose partial sums lie in memory until a later step adds them.
#pragma once
#include <functional>

#include "ir/graph.hpp"
#include "kernels/contracts/gemm.hpp"
#include "plan/plan.hpp"

namespace bertcl::plan {

struct PartialGemm {
  const ir::Value* result = nullptr;
  kernels::GemmS8Reduce<Argument> arguments;
  std::int64_t up_to_rows = 0;  // with split-K
  ir::Dim rows{0};
  std::function<void()> reduce;  // appends gemm_s8_reduce, the step that writes `result`
};

}  // namespace bertcl::plan
