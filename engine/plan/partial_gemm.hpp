// SPDX-License-Identifier: Apache-2.0
// An int8 GEMM whose sums over the parts of K lie in memory, and are to be added up by a step after
// it.
#pragma once
#include <functional>

#include "ir/graph.hpp"
#include "kernels/contracts/gemm.hpp"
#include "plan/plan.hpp"

namespace bertcl::plan {

struct PartialGemm {
  const ir::Value* result = nullptr;
  kernels::GemmS8Finish<Argument> arguments;
  std::int64_t up_to_rows = 0;  // where K is divided
  ir::Dim rows{0};
  std::function<void()> finish;  // appends gemm_s8_finish, the step that writes `result`
};

}  // namespace bertcl::plan
