// SPDX-License-Identifier: Apache-2.0
// Where Q/DQ goes, on small graphs.
#include "quant/placement/placement.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

const std::vector<float> kSixteen(16, 0.5f);
const PlacementOptions kResidual{.op_types = {"MatMul", "Add"}};

enum class Norm { whole, axes_attribute, axes_input, squared_by_mul };

/// x -> MatMul(W1) -> + b -> + x -> LayerNorm -> MatMul(Wqa) -> out, Adds without names.
GraphBuilder block(Norm norm) {
  GraphBuilder g(norm == Norm::whole ? 17 : norm == Norm::axes_input ? 18 : 13);
  g.input("x", {1, 3, 4});
  g.node("MatMul", {"x", g.weight("w1", {4, 4}, kSixteen)}, "matmul");
  g.node("Add", {"matmul", g.weight("b1", {4}, {1, 2, 3, 4})}, "biased", true);
  g.node("Add", {"biased", "x"}, "residual", true);
  std::string normed;
  if (norm == Norm::whole)
    normed =
        g.node("LayerNormalization", {"residual", g.weight("gamma", {4}, {1, 1, 1, 1})}, "normed");
  else
    normed = g.decomposed_layer_norm("residual", "ln_", norm == Norm::axes_input,
                                     norm == Norm::squared_by_mul);
  g.node("MatMul", {normed, g.weight("wqa", {4, 2}, std::vector<float>(8, 1.0f))}, "out");
  g.output("out");
  return g;
}

std::vector<std::string> site_outputs(const Analysed& a, const Placement& p) {
  std::vector<std::string> outputs;
  for (const Site& s : p.sites) outputs.push_back(a.index.node(s.node).output(0));
  return outputs;
}

// Rotary angles: frequencies times positions.
TEST(Placement, MatMulsOfSizesAndPositionsAloneStayFloat) {
  for (const bool given : {false, true}) {
    GraphBuilder g = block(Norm::whole);
    const std::string from =
        given ? g.input("position_ids", {2, 3}) : g.node("Shape", {"x"}, "shape");
    g.node("Cast", {from}, "places", {{"to", onnx::TensorProto::FLOAT}});
    g.node("MatMul", {"places", g.weight("frequencies", {3, 2}, std::vector<float>(6, 1.0f))},
           "angles");
    g.node("MatMul", {"angles", g.weight("more", {2, 2}, std::vector<float>(4, 1.0f))}, "further");
    g.output("further");
    Analysed a(std::move(g));
    const Placement p = place(a, {.op_types = {"MatMul"}, .head = true});
    EXPECT_THAT(site_outputs(a, p), ElementsAre("matmul", "out"));
    EXPECT_THAT(p.skipped.back().reason, HasSubstr("follow from sizes and positions"));
  }
}

TEST(Placement, TablesThatOneHotRowsSelectFromStayFloat) {
  GraphBuilder g = block(Norm::whole);
  g.node("OneHot", {g.input("ids", {3}), g.ints("depth", {4}), g.weight("off_on", {2}, {0, 1})},
         "rows");
  g.node("MatMul", {"rows", g.weight("table", {4, 2}, std::vector<float>(8, 1.0f))}, "looked_up");
  Analysed a(std::move(g));
  const Placement p = place(a, {.op_types = {"MatMul"}, .head = true});
  EXPECT_THAT(site_outputs(a, p), ElementsAre("matmul", "out"));
  EXPECT_THAT(p.skipped.back().reason, HasSubstr("OneHot"));
}

TEST(Placement, ChannelsOfResidualAddsUnlessTheirResultsAreQuantized) {
  const auto role = [](const PlacementOptions& options) {
    Analysed a(block(Norm::whole));
    const Placement p = place(a, options);
    for (const Site& s : p.sites)
      if (a.index.node(s.node).output(0) == "residual") return s.operands.at(0).role;
    return Role::constant;
  };
  PlacementOptions options = kResidual;
  options.add_channels = true;
  EXPECT_EQ(role(options), Role::channels);
  options.places = {Place::gelu};
  EXPECT_EQ(role(options), Role::channels);
  options.places = {Place::sum};
  EXPECT_EQ(role(options), Role::activation);
  options.places = {};
  options.output_op_types = {"Add"};
  EXPECT_EQ(role(options), Role::activation);
}

TEST(LayerNorm, TheAddInFrontIsFoundInEverySpelling) {
  for (const Norm norm :
       {Norm::whole, Norm::axes_attribute, Norm::axes_input, Norm::squared_by_mul}) {
    Analysed a(block(norm));
    const auto& adds = a.structure().residual_adds;
    ASSERT_EQ(adds.size(), 1u) << static_cast<int>(norm);
    EXPECT_EQ(a.index.node(adds[0]).output(0), "residual");
  }
}

TEST(LayerNorm, IsFoundThroughCasts) {
  GraphBuilder g(13);
  g.input("x", {3, 4});
  g.node("Add", {"x", "x"}, "sum");
  g.node("Cast", {"sum"}, "cast", {{"to", 1}});
  g.output(g.decomposed_layer_norm("cast", "ln_", false));
  Analysed a(std::move(g));
  ASSERT_EQ(a.structure().residual_adds.size(), 1u);
}

/// x + x -> RMSNorm -> out, as one operator or as those that it is made of.
GraphBuilder rms_norm(bool whole) {
  GraphBuilder g(whole ? 23 : 13, whole ? 11 : 8);
  g.input("x", {3, 4});
  g.node("Add", {"x", "x"}, "sum");
  const auto gamma = g.weight("gamma", {4}, {1, 1, 1, 1});
  if (whole) {
    g.node("RMSNormalization", {"sum", gamma}, "out");
  } else {
    g.node("Pow", {"sum", g.weight("two", {}, {2.0f})}, "square");
    g.node("ReduceMean", {"square"}, "mean", {{"axes", {-1}}});
    g.node("Add", {"mean", g.weight("eps", {}, {1e-6f})}, "shifted");
    g.node("Sqrt", {"shifted"}, "root");
    g.node("Div", {"sum", "root"}, "normal");
    g.node("Mul", {"normal", gamma}, "out");
  }
  g.output("out");
  return g;
}

TEST(RmsNorm, TheAddInFrontAndTheResultAreFoundInBothSpellings) {
  for (const bool whole : {true, false}) {
    Analysed a(rms_norm(whole));
    const Structure& s = a.structure();
    ASSERT_EQ(s.residual_adds.size(), 1u) << whole;
    EXPECT_EQ(a.index.node(s.residual_adds[0]).output(0), "sum");
    EXPECT_THAT(s.layer_norms, ElementsAre("out"));
    EXPECT_THAT(site_outputs(a, place(a, {.op_types = {"Add"}})), ElementsAre("sum"));
    EXPECT_THAT(place(a, {.op_types = {"Add"}, .places = {Place::layer_norm}}).outputs,
                ElementsAre("out"));
  }
}

TEST(LayerNorm, MeanPoolingIsNone) {
  GraphBuilder g(13);
  g.input("x", {1, 3, 4});
  g.node("Add", {"x", "x"}, "sum");
  g.node("ReduceMean", {"sum"}, "pooled");
  g.node("Sub", {"x", "pooled"}, "centred");  // the minuend is not what was averaged
  g.output("centred");
  Analysed a(std::move(g));
  EXPECT_TRUE(a.structure().residual_adds.empty());
}

TEST(LayerNorm, OnlyItsDataInputCounts) {
  GraphBuilder g;
  g.input("x", {3, 4});
  g.input("c", {4});
  g.node("Add", {"c", "c"}, "gamma");
  g.node("LayerNormalization", {"x", "gamma"}, "out");
  g.output("out");
  Analysed a(std::move(g));
  EXPECT_TRUE(a.structure().residual_adds.empty());
}

TEST(Placement, DefaultIsEveryMatMulAndNothingElse) {
  Analysed a(block(Norm::axes_attribute));
  const Placement p = place(a);
  EXPECT_THAT(site_outputs(a, p), ElementsAre("matmul", "out"));
  ASSERT_EQ(p.sites[0].operands.size(), 2u);
  EXPECT_EQ(p.sites[0].operands[0].role, Role::activation);
  EXPECT_EQ(p.sites[0].operands[1].role, Role::weight);
  ASSERT_EQ(p.skipped.size(), 1u);
  EXPECT_EQ(p.skipped[0].node, "residual");
  EXPECT_THAT(p.skipped[0].reason, HasSubstr("residual"));
}

TEST(Placement, ResidualAddsByOption) {
  for (const Norm norm : {Norm::whole, Norm::axes_attribute, Norm::axes_input}) {
    Analysed a(block(norm));
    const Placement p = place(a, kResidual);
    EXPECT_THAT(site_outputs(a, p), ElementsAre("matmul", "residual", "out"));
    EXPECT_TRUE(p.skipped.empty());
    EXPECT_EQ(p.sites[1].operands[0].tensor, "biased");
    EXPECT_EQ(p.sites[1].operands[1].tensor, "x");
  }
}

/// Layers with a norm before each: x -> norm -> MatMul -> + x = first -> norm -> MatMul -> + first
/// = second -> norm -> MatMul -> out; with the operator `between` before each norm and Add.
GraphBuilder pre_norm(const std::string& between) {
  GraphBuilder g;
  const auto gamma = g.weight("gamma", {4}, {1, 1, 1, 1});
  const auto linear = [&](const std::string& x, const std::string& to, std::int64_t columns) {
    const auto normed = g.node("LayerNormalization", {x, gamma}, to + "_normed");
    const std::vector<float> ones(static_cast<std::size_t>(4 * columns), 1.0f);
    return g.node("MatMul", {normed, g.weight(to + "_w", {4, columns}, ones)}, to);
  };
  const auto same = [&](const std::string& x) {
    if (between.empty()) return x;
    const auto y = g.node(between, {x}, x + "_same");
    if (between == "Cast") g.set("to", 1);
    return y;
  };
  g.input("x", {1, 3, 4});
  g.node("MatMul", {"x", g.weight("w", {4, 4}, kSixteen)}, "embedded");
  const auto stream = same("embedded");
  g.node("Add", {linear(stream, "one", 4), stream}, "first");
  const auto next = same("first");
  g.node("Add", {next, linear(next, "two", 4)}, "second");
  g.output(linear("second", "out", 2));
  return g;
}

TEST(Placement, WhatANormReadsStaysFloatUpToTheNextSum) {
  for (const char* between : {"", "Cast", "Identity"}) {
    Analysed a(pre_norm(between));
    for (const Adds adds : {Adds::layer_norm, Adds::encoder}) {
      const Placement p = place(a, {.op_types = {"Add"}, .adds = adds, .add_channels = true});
      EXPECT_THAT(site_outputs(a, p), ElementsAre("first", "second"));
      for (const Site& site : p.sites) ASSERT_EQ(site.operands.size(), 1u) << between;
      EXPECT_EQ(p.sites[0].operands[0].tensor, "one");
      EXPECT_EQ(p.sites[1].operands[0].tensor, "two");
      EXPECT_EQ(p.sites[1].operands[0].role, Role::channels);
      for (const char* sum : {"first", "second"})
        EXPECT_THAT(p.skipped, Contains(AllOf(Field(&SkippedNode::node, sum + std::string("_node")),
                                              Field(&SkippedNode::reason,
                                                    HasSubstr("because a norm also reads it")))));
    }
    const Placement all = place(a, {.op_types = {"Add"}, .adds = Adds::all});
    ASSERT_EQ(all.sites.size(), 2u);
    for (const Site& site : all.sites) EXPECT_EQ(site.operands.size(), 2u);
  }
}

/// x -> MatMul [-> copy] -> + x -> LayerNorm -> out, without a bias.
GraphBuilder no_bias(const std::string& copy) {
  GraphBuilder g;
  g.input("x", {1, 3, 4});
  g.node("MatMul", {"x", g.weight("w", {4, 4}, kSixteen)}, "linear");
  const std::string result = copy.empty() ? "linear" : g.node(copy, {"linear"}, "copied");
  if (copy == "Cast") g.set("to", 1);
  g.node("Add", {result, "x"}, "sum");
  g.output(g.node("LayerNormalization", {"sum", g.weight("gamma", {4}, {1, 1, 1, 1})}, "out"));
  return g;
}

TEST(Placement, ResultsOfQuantizedNodesHaveOneScale) {
  for (const char* copy : {"", "Cast", "Identity"}) {
    const auto roles = [&](PlacementOptions options) {
      Analysed a(no_bias(copy));
      options.add_channels = true;
      const Placement p = place(a, options);
      std::vector<Role> found;
      for (const Operand& operand : p.sites.back().operands) found.push_back(operand.role);
      return found;
    };
    EXPECT_THAT(roles(kResidual), ElementsAre(Role::activation, Role::channels)) << copy;
    EXPECT_THAT(roles({.op_types = {"Add"}}), ElementsAre(Role::channels, Role::channels)) << copy;
    PlacementOptions without = kResidual;
    without.exclude = {"linear_node"};
    EXPECT_THAT(roles(without), ElementsAre(Role::channels, Role::channels)) << copy;
  }
}

TEST(Placement, HeadByOption) {
  Analysed a(block(Norm::whole));
  const Placement p = place(a, {.head = false});
  EXPECT_THAT(site_outputs(a, p), ElementsAre("matmul"));
  EXPECT_EQ(p.skipped.back().node, "out_node");
}

TEST(Placement, AttentionMatMulsHaveTwoActivations) {
  GraphBuilder g;
  g.input("q", {1, 2, 3, 4});
  g.input("k", {1, 2, 4, 3});
  g.node("MatMul", {"q", "k"}, "scores");
  g.node("Softmax", {"scores"}, "probabilities");
  g.node("MatMul", {"probabilities", "q"}, "context", true);
  g.output("context");
  Analysed a(std::move(g));
  const Placement p = place(a);
  ASSERT_THAT(site_outputs(a, p), ElementsAre("scores", "context"));
  for (const Site& s : p.sites)
    for (const Operand& o : s.operands) EXPECT_EQ(o.role, Role::activation) << o.tensor;
}

TEST(Placement, AWeightMayStandAfterOtherNodes) {
  GraphBuilder g;
  g.input("x", {3, 4});
  g.half_weight("half", {4, 4}, kSixteen);
  g.node("Cast", {"half"}, "single", {{"to", 1}});
  g.node("Transpose", {"single"}, "turned");
  g.node("MatMul", {"x", "turned"}, "out");
  g.output("out");
  Analysed a(std::move(g));
  const Placement p = place(a);
  EXPECT_EQ(p.sites.at(0).operands.at(1).role, Role::weight);
}

TEST(Placement, ExcludesByNamePatternAndOutput) {
  for (const char* pattern : {"matmul_node", "mat*", "?atmul_node"}) {
    Analysed a(block(Norm::whole));
    const Placement p = place(a, {.exclude = {pattern}});
    EXPECT_THAT(site_outputs(a, p), ElementsAre("out")) << pattern;
    EXPECT_THAT(p.skipped[0].reason, HasSubstr(pattern));
  }
  Analysed a(block(Norm::whole));
  // The sum has no name: its output excludes it.
  const Placement p = place(a, {.op_types = {"MatMul", "Add"}, .exclude = {"residual"}});
  EXPECT_THAT(site_outputs(a, p), ElementsAre("matmul", "out"));
}

TEST(Placement, IncludesGoForResultsToo) {
  const auto outputs = [](GraphBuilder g, const std::vector<std::string>& include) {
    Analysed a(std::move(g));
    return place(a, {.places = {Place::linear, Place::layer_norm}, .include = include}).outputs;
  };
  EXPECT_THAT(outputs(block(Norm::whole), {}), ElementsAre("normed"));
  EXPECT_THAT(outputs(block(Norm::whole), {"out_node"}), IsEmpty());
  EXPECT_THAT(outputs(block(Norm::whole), {"normed_node"}), ElementsAre("normed"));
  GraphBuilder g;
  g.node("MatMul", {g.input("x", {3, 4}), g.weight("w", {4, 4}, kSixteen)}, "matmul");
  g.node("Add", {"matmul", g.weight("b", {4}, {1, 2, 3, 4})}, "biased");
  g.node("Relu", {"biased"}, "relu");
  g.output(g.node("MatMul", {"relu", g.weight("w2", {4, 4}, kSixteen)}, "out"));
  EXPECT_THAT(outputs(g, {"matmul_node"}), ElementsAre("biased")) << "by the name of the MatMul";
}

TEST(Placement, RefusesPatternsWithoutANodeAndModelsWithoutSites) {
  Analysed a(block(Norm::whole));
  EXPECT_ERROR(HasSubstr("'prodduct*'"), place(a, {.exclude = {"prodduct*"}}));
  EXPECT_ERROR(HasSubstr("nothing to quantize"), place(a, {.exclude = {"*"}}));
  GraphBuilder sum(17);  // the Add is the first that stays float, the MatMul is what was asked for
  sum.node("Add", {sum.input("x", {3, 4}), "x"}, "residual");
  sum.node("LayerNormalization", {"residual", sum.weight("gamma", {4}, {1, 1, 1, 1})}, "normed");
  sum.output(sum.node("MatMul", {"normed", sum.weight("w", {4, 4}, kSixteen)}, "out"));
  Analysed c(std::move(sum));
  EXPECT_ERROR(HasSubstr("'out_node' (MatMul): excluded by 'out*'"),
               place(c, {.exclude = {"out*"}}));
  GraphBuilder g;
  g.output(g.node("Relu", {g.input("x", {2})}, "y"));
  Analysed b(std::move(g));
  EXPECT_ERROR(HasSubstr("no MatMul ('op_types': choose from Relu)"), place(b));
  EXPECT_ERROR(HasSubstr("the model has no Conv ('op_types': choose from Add, LayerNormalization, "
                         "MatMul)"),
               place(c, {.op_types = {"Conv"}}));
  GraphBuilder none;
  none.output(none.node("Sqrt", {none.input("x", {2})}, "y"));
  Analysed d(std::move(none));
  EXPECT_ERROR(EndsWith("the model has no MatMul"), place(d));
}

TEST(Placement, WhatIsQuantizedAlreadyStays) {
  GraphBuilder g;
  g.input("x", {3, 4});
  g.node("QuantizeLinear", {"x", g.weight("s", {}, {1.0f})}, "integers");
  g.node("DequantizeLinear", {"integers", "s"}, "real");
  g.node("MatMul", {"real", g.weight("w", {4, 4}, kSixteen)}, "first");
  g.node("MatMul", {"first", g.weight("v", {4, 4}, kSixteen)}, "out");
  g.output("out");
  Analysed a(std::move(g));
  const Placement p = place(a);
  EXPECT_THAT(site_outputs(a, p), ElementsAre("out"));
  EXPECT_THAT(p.skipped.at(0).reason, HasSubstr("already quantized"));
}

TEST(Placement, OtherMatMulsAreReported) {
  GraphBuilder g;
  g.input("x", {3, 4});
  g.node("Gemm", {"x", g.weight("w", {4, 4}, kSixteen)}, "pooled");
  g.node("MatMul", {"pooled", g.weight("v", {4, 4}, kSixteen)}, "out");
  g.output("out");
  Analysed a(std::move(g));
  const Placement p = place(a);
  EXPECT_EQ(p.skipped.at(0).op, "Gemm");
  EXPECT_THAT(p.skipped.at(0).reason, HasSubstr("'op_types=MatMul,Gemm'"));
}

TEST(Constants, AreEvaluatedThroughTheNodesInFrontOfWeights) {
  GraphBuilder g;
  g.half_weight("half", {2, 3}, {1, 2, 3, 4, 5, 6});
  g.node("Cast", {"half"}, "single", {{"to", 1}});
  g.node("Transpose", {"single"}, "turned");
  g.node("Mul", {"turned", g.weight("two", {}, {2.0f})}, "doubled");
  g.node("Reshape", {"doubled", g.ints("shape", {1, 0, -1})}, "shaped");
  g.node("Transpose", {"shaped"}, "permuted", {{"perm", {2, 0, 1}}});
  g.node("Relu", {"permuted"}, "other");
  g.input("x");
  g.node("Add", {"x", "two"}, "varying");
  Analysed a(std::move(g));
  EXPECT_EQ(a.constants.value("doubled"), ir::Tensor::of<float>({3, 2}, {2, 8, 4, 10, 6, 12}));
  EXPECT_EQ(a.constants.value("shaped").shape(), (ir::Sizes{1, 2, 3})) << "0 copies a size";
  EXPECT_TRUE(a.constants.contains("permuted"));
  EXPECT_TRUE(a.constants.contains("other"));
  EXPECT_FALSE(a.constants.contains("varying"));
  EXPECT_FALSE(a.constants.contains("x"));
  EXPECT_ERROR(HasSubstr("Relu"), a.constants.value("other"));
}

}  // namespace
}  // namespace bertcl::quant::tests
