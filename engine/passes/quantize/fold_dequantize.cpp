// SPDX-License-Identifier: Apache-2.0
// Weights of 8 bits that no integer op has taken become float, and so does all else that
// fold_constants left for these.
//
//   w i8 -> DQ(scale, zero_point) -> linear(x, w)      becomes      linear(x, w' f32)
#include "passes/evaluate_constants.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {

Pass fold_dequantize(const ir::Limits& limits) {
  return {"fold_dequantize", [limits](ir::Graph& g) {
            return evaluate_constants(g, limits, [](const ir::Node&) { return true; });
          }};
}

}  // namespace bertcl::passes
