// SPDX-License-Identifier: Apache-2.0
// FusedMatMul in plain operators: values, names, and what stays whole.
#include <fmt/format.h>

#include "quant/graph/expand_fused.hpp"
#include "tests/quant/fused_graph.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

using ir::Sizes;

TEST(ExpandFusedMatMul, OfEveryForm) {
  for (const std::int64_t a : {0, 1})
    for (const std::int64_t b : {0, 1})
      for (const float alpha : {1.0f, 0.25f}) {
        SCOPED_TRACE(fmt::format("transA {}, transB {}, alpha {}", a, b, alpha));
        Fused f(3);
        f.input("a", a ? Sizes{2, 3, 5, 7} : Sizes{2, 3, 7, 5});
        f.input("b", b ? Sizes{2, 3, 4, 5} : Sizes{2, 3, 5, 4});
        f.node("FusedMatMul", {"a", "b"}, "y")
            .set("transA", a)
            .set("transB", b)
            .set("alpha", alpha)
            .output("y");
        expect_same(f);
      }
}

TEST(ExpandFusedMatMul, GetsItsNameBack) {
  Fused f(3);
  f.input("a", {2, 3, 4});
  f.node("FusedMatMul", {"a", f.weight("w", {4, 4})}, "y").set("alpha", 0.5f);
  f.name("/layer/MatMul/MatmulTransposeFusion//MatMulScaleFusion/");
  f.builder().output("y");
  Model model = f.model();
  expand_fused(model);
  EXPECT_THAT(names_of(model), ElementsAre("/layer/MatMul", "/layer/MatMul_Mul"));
}

TEST(ExpandFusedMatMul, HalvesStayWhole) {
  Fused f(1);
  f.input("x", {3, 4});
  f.node("Cast", {"x"}, "half", "").set("to", onnx::TensorProto::FLOAT16);
  f.builder().half_weight("w", {4, 4}, std::vector<float>(16, 1.0f));
  f.node("FusedMatMul", {"half", "w"}, "y").output("y");
  EXPECT_THAT(whole(f), ElementsAre(Pair("y_node", HasSubstr("f32"))));
}

}  // namespace
}  // namespace bertcl::quant::tests
