// SPDX-License-Identifier: Apache-2.0
// Nodes and constants that nothing reads disappear, as passes leave them.
//
//   x -> Relu -> a (output);  a -> Exp -> b      becomes      x -> Relu -> a
#include "passes/pass.hpp"

namespace bertcl::passes {

Pass dead_code() {
  return {"dead_code", [](ir::Graph& g) { return g.remove_dead(); }};
}

}  // namespace bertcl::passes
