// SPDX-License-Identifier: Apache-2.0
// The parts of a BERT, the names of its quantizers, and the rules that users give by names.
#include <algorithm>

#include "quant/encoding/range_rules.hpp"
#include "quant/placement/node_rules.hpp"
#include "quant/placement/placement.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

const std::string kSelf = "/bert/encoder/layer.0/attention/self";

class NodeRules : public testing::Test {
 protected:
  std::vector<std::string> sites(const PlacementOptions& options) {
    placement_ = place(bert_, options);
    std::vector<std::string> nodes;
    for (const Site& s : placement_.sites) nodes.push_back(label_of(bert_.index.node(s.node)));
    return nodes;
  }
  std::string reason(const std::string& node) const {
    for (const SkippedNode& skipped : placement_.skipped)
      if (skipped.node == node) return skipped.reason;
    return "";
  }

  Analysed bert_{std::move(TinyBert().builder())};
  Placement placement_;
};

TEST_F(NodeRules, AttentionIsFound) {
  const auto& all = bert_.structure().attentions;
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(label_of(bert_.index.node(all[0].scores)), kSelf + "/MatMul");
  EXPECT_EQ(label_of(bert_.index.node(all[0].context)), kSelf + "/MatMul_1");
  EXPECT_EQ(all[0].k, kSelf + "/Transpose_1_output_0");
  EXPECT_EQ(label_of(bert_.index.node(all[0].v_linear)), kSelf + "/value/MatMul");
}

TEST_F(NodeRules, GeluIsItsLastTensorAndAPoolerNone) {
  EXPECT_TRUE(
      bert_.structure().gelus.contains("/bert/encoder/layer.0/intermediate/Mul_1_output_0"));
  EXPECT_FALSE(bert_.structure().gelus.contains("/bert/encoder/layer.0/intermediate/Erf_output_0"));
  EXPECT_FALSE(
      bert_.structure().gelus.contains("/bert/encoder/layer.0/attention/output/Add_output_0"));
  GraphBuilder g;
  g.input("x", {2, 4});
  g.node("Tanh", {"x"}, "pooled");
  g.node("Mul", {"pooled", g.weight("two", {}, {2.0f})}, "doubled");
  g.output("doubled");
  Analysed pooler(std::move(g));
  EXPECT_FALSE(pooler.structure().gelus.contains("pooled"));
  EXPECT_FALSE(pooler.structure().gelus.contains("doubled"));
}

TEST_F(NodeRules, LayerNormOutputsInBothSpellings) {
  EXPECT_EQ(bert_.structure().layer_norms.size(), 3u);
  GraphBuilder g(18);
  g.input("x", {3, 4});
  g.output(g.decomposed_layer_norm("x", "ln_", true));
  Analysed decomposed(std::move(g));
  EXPECT_THAT(decomposed.structure().layer_norms, ElementsAre("ln_out"));
}

TEST_F(NodeRules, MasksAreWhatDependsOnTheMaskAlone) {
  EXPECT_TRUE(bert_.structure().masks.contains("/bert/Mul_output_0"));
  EXPECT_FALSE(bert_.structure().masks.contains(kSelf + "/Add_output_0"));
  EXPECT_FALSE(bert_.structure().masks.contains("one"));
}

TEST_F(NodeRules, QuantizersAreNamedAsInQdqbert) {
  for (const bool nameless : {false, true}) {
    Analysed bert(std::move(TinyBert({.nameless = nameless}).builder()));
    const auto& attentions = bert.structure().attentions;
    const QuantizerNames name(bert.index, bert.structure());
    const std::string layer = "bert.encoder.layer.0.";
    EXPECT_EQ(name(attentions[0].q_linear, 0, false),
              layer + "attention.self.query._input_quantizer");
    EXPECT_EQ(name(attentions[0].q_linear, 1, true),
              layer + "attention.self.query._weight_quantizer");
    if (nameless) continue;  // MatMuls of activations have no constant that would tell
    EXPECT_EQ(name(attentions[0].scores, 1, false),
              layer + "attention.self.matmul_k_input_quantizer");
    EXPECT_EQ(name(attentions[0].context, 0, false),
              layer + "attention.self.matmul_a_input_quantizer");
  }
}

TEST_F(NodeRules, ResidualAddsAreNamedByTheirInputs) {
  for (const bool nameless : {false, true}) {
    Analysed bert(std::move(TinyBert({.nameless = nameless}).builder()));
    const QuantizerNames name(bert.index, bert.structure());
    const int add = bert.index.producer("/bert/encoder/layer.0/attention/output/Add_output_0");
    const std::string module = "bert.encoder.layer.0.attention.output.";
    EXPECT_EQ(name(add, 0, false), module + "add_local_input_quantizer") << nameless;
    EXPECT_EQ(name(add, 1, false), module + "add_residual_input_quantizer") << nameless;
  }
}

enum class NamedNorm { layer_norm, layer_norm_in_parts, rms_norm, simplified, rms_norm_in_parts };

/// x -> MatMul -> + x = sum -> norm of layer 0's "output" -> out, without names of nodes.
GraphBuilder residual_before(NamedNorm norm) {
  const bool new_opset = norm == NamedNorm::rms_norm;
  GraphBuilder g(new_opset ? 23 : 13, new_opset ? 11 : 8);
  const auto node = [&](const char* op, const std::vector<std::string>& inputs,
                        const std::string& output) { return g.node(op, inputs, output, true); };
  const auto mean = [&](const std::string& of) {
    const auto result = node("ReduceMean", {of}, of + "_mean");
    g.set("axes", std::vector<std::int64_t>{-1});
    return result;
  };
  const auto vector = [&](const std::string& name) {
    return g.weight("layer.0.output.Norm." + name, {4}, {1, 1, 1, 1});
  };
  g.input("x", {3, 4});
  node("MatMul", {"x", g.weight("w", {4, 4}, std::vector<float>(16, 0.5f))}, "local");
  node("Add", {"local", "x"}, "sum");
  const auto gamma = vector("weight");
  const bool in_parts =
      norm == NamedNorm::layer_norm_in_parts || norm == NamedNorm::rms_norm_in_parts;
  if (in_parts) {
    const std::string d =
        norm == NamedNorm::rms_norm_in_parts ? "sum" : node("Sub", {"sum", mean("sum")}, "d");
    const auto squares = node("Pow", {d, g.weight("two", {}, {2.0f})}, "squares");
    node("Add", {mean(squares), g.weight("eps", {}, {1e-6f})}, "shifted");
    node("Div", {d, node("Sqrt", {"shifted"}, "root")}, "normal");
    const auto scaled = node("Mul", {"normal", gamma}, "scaled");
    g.output(d == "sum" ? scaled : node("Add", {scaled, vector("bias")}, "out"));
  } else {
    const char* ops[] = {"LayerNormalization", "", "RMSNormalization",
                         "SimplifiedLayerNormalization"};
    g.output(node(ops[static_cast<int>(norm)], {"sum", gamma}, "out"));
  }
  return g;
}

TEST(QuantizerName, OfAResidualAddIsTheModuleOfTheNormInEverySpelling) {
  for (const NamedNorm norm :
       {NamedNorm::layer_norm, NamedNorm::layer_norm_in_parts, NamedNorm::rms_norm,
        NamedNorm::simplified, NamedNorm::rms_norm_in_parts}) {
    Analysed a(residual_before(norm));
    const QuantizerNames name(a.index, a.structure());
    const int add = a.index.producer("sum");
    EXPECT_EQ(name(add, 0, false), "layer.0.output.add_local_input_quantizer")
        << static_cast<int>(norm);
    EXPECT_EQ(name(add, 1, false), "layer.0.output.add_residual_input_quantizer")
        << static_cast<int>(norm);
  }
}

TEST(QuantizerName, ASumThatPassesANormIsNoLocalInput) {
  GraphBuilder g;
  const std::vector<float> ones(16, 1.0f);
  const auto norm = [&](const std::string& x, const std::string& name) {
    return g.node("LayerNormalization", {x, g.weight(name + ".weight", {4}, {1, 1, 1, 1})},
                  x + "_normed", true);
  };
  g.input("x", {3, 4});
  g.node("Add", {"x", g.node("MatMul", {"x", g.weight("w1", {4, 4}, ones)}, "one", true)}, "first",
         true);
  g.node("MatMul", {norm("first", "layer.0.feed_forward.norm"), g.weight("w2", {4, 4}, ones)},
         "two", true);
  g.node("Add", {"first", "two"}, "second", true);
  g.output(norm("second", "layer.1.norm"));
  Analysed a(std::move(g));
  const QuantizerNames name(a.index, a.structure());
  const int second = a.index.producer("second");
  EXPECT_EQ(name(second, 0, false), "layer.1.add_residual_input_quantizer");
  EXPECT_EQ(name(second, 1, false), "layer.1.add_local_input_quantizer");
}

TEST_F(NodeRules, IncludeAndExclude) {
  EXPECT_THAT(sites({.include = {"*/query/*", "*/key/*"}, .exclude = {"*key*"}}),
              ElementsAre(kSelf + "/query/MatMul"));
  EXPECT_THAT(reason(kSelf + "/value/MatMul"), HasSubstr("include"));
  EXPECT_THAT(reason(kSelf + "/key/MatMul"), HasSubstr("'*key*'"));
}

TEST_F(NodeRules, APatternThatFitsNothingIsRefusedWithTheNearestNames) {
  EXPECT_ERROR(AllOf(HasSubstr("no node to quantize matches 'queery'; nearest"),
                     HasSubstr("nearest of the 12 candidates: '" + kSelf + "/query/MatMul', ")),
               sites({.include = {"*", "queery"}}));
  // It is there, but nothing that could be quantized.
  EXPECT_ERROR(
      AllOf(HasSubstr("no node to exclude matches '*/Softmax': node '" + kSelf + "/Softmax'"),
            HasSubstr("(Softmax)")),
      sites({.exclude = {"*/Softmax"}}));
}

TEST(Patterns, DistanceIsThatToTheBestPart) {
  EXPECT_EQ(distance_to_part("query", "/self/query/MatMul"), 0u);
  EXPECT_EQ(distance_to_part("queery", "/self/query/MatMul"), 1u);
  EXPECT_EQ(distance_to_part("*self*M?t", "/self/query/MatMul"), 0u);
  EXPECT_EQ(distance_to_part("MatMul_7", "/self/MatMul_1"), 1u);
  EXPECT_EQ(distance_to_part("*", ""), 0u);
  EXPECT_EQ(distance_to_part("abc", ""), 3u);
  EXPECT_EQ(distance_to_part("", "abc"), 0u);
}

TEST_F(NodeRules, KeywordsLeaveOutOperands) {
  sites({.disable_keywords = {"matmul_a"}});
  const auto site = std::find_if(placement_.sites.begin(), placement_.sites.end(), [&](auto& s) {
    return label_of(bert_.index.node(s.node)) == kSelf + "/MatMul_1";
  });
  ASSERT_NE(site, placement_.sites.end());
  ASSERT_EQ(site->operands.size(), 1u) << "the values stay quantized";
  EXPECT_EQ(site->operands[0].input, 1);
  EXPECT_THAT(reason(kSelf + "/MatMul_1"), HasSubstr("'matmul_a'"));
}

TEST_F(NodeRules, LayerModulesAndTheirExceptions) {
  const auto nodes = sites(
      {.disable_layer_modules = {"attention"}, .enable_layer_modules = {"attention.self.query"}});
  EXPECT_THAT(nodes, Contains(kSelf + "/query/MatMul"));
  EXPECT_THAT(nodes, Not(Contains(kSelf + "/key/MatMul")));
  EXPECT_THAT(nodes, Contains("/bert/encoder/layer.0/output/dense/MatMul"));
  EXPECT_ERROR(AllOf(HasSubstr("'pooler'"), HasSubstr("quantizer")),
               sites({.disable_layer_modules = {"pooler"}}));
  EXPECT_ERROR(HasSubstr("regular expression"), sites({.disable_keywords = {"("}}));
}

TEST_F(NodeRules, WhichAdds) {
  const auto count = [&](Adds adds) {
    const auto nodes = sites({.op_types = {"Add"}, .adds = adds});
    return nodes.size();
  };
  EXPECT_EQ(count(Adds::layer_norm), 3u);
  EXPECT_EQ(count(Adds::encoder), 2u);
  EXPECT_EQ(count(Adds::all), 3u + 7u + 1u) << "residual, biases, and that of GELU";
  EXPECT_THAT(reason(kSelf + "/Add"), HasSubstr("attention mask"));
}

TEST_F(NodeRules, PlacesAreQuantizedForAll) {
  const auto all = [&](Place place) {
    sites({.places = {place}});
    return placement_.outputs;
  };
  EXPECT_THAT(all(Place::scores), ElementsAre(kSelf + "/MatMul_output_0"));
  EXPECT_THAT(all(Place::probabilities), ElementsAre(kSelf + "/Softmax_output_0"));
  EXPECT_THAT(all(Place::context), ElementsAre(kSelf + "/MatMul_1_output_0"));
  EXPECT_THAT(all(Place::gelu), ElementsAre("/bert/encoder/layer.0/intermediate/Mul_1_output_0"));
  EXPECT_EQ(all(Place::sum).size(), 3u);
  EXPECT_EQ(all(Place::layer_norm).size(), 3u);
  EXPECT_THAT(all(Place::linear),
              ElementsAre(kSelf + "/query/Add_output_0", kSelf + "/key/Add_output_0",
                          kSelf + "/value/Add_output_0",
                          "/bert/encoder/layer.0/intermediate/dense/Add_output_0"));
}

TEST_F(NodeRules, WhatOnlyMovesQuantizedElementsHasNoPairOfItsOwn) {
  sites({.places = {Place::linear}});
  for (const Site& s : placement_.sites)
    if (label_of(bert_.index.node(s.node)) == kSelf + "/MatMul") {
      EXPECT_THAT(s.operands, IsEmpty()) << "q and k";
    }
}

TEST_F(NodeRules, OutputsByOperator) {
  sites({.output_op_types = {"MatMul"}, .exclude = {"*value*"}});
  EXPECT_EQ(placement_.outputs.size(), 8u);
  EXPECT_THAT(placement_.outputs, Not(Contains(kSelf + "/value/MatMul_output_0")));
  EXPECT_ERROR(AllOf(HasSubstr("MatMull"), HasSubstr("did you mean MatMul?")),
               sites({.op_types = {"MatMull"}}));
}

class RangeRules : public NodeRules {
 protected:
  const std::string q_ = kSelf + "/Transpose_output_0", k_ = kSelf + "/Transpose_1_output_0",
                    v_ = kSelf + "/Transpose_2_output_0",
                    gelu_ = "/bert/encoder/layer.0/intermediate/Mul_1_output_0";
  ChannelRanges channels_;
  Ranges ranges_{{q_, {-1, 2}}, {k_, {-3, 1}}, {v_, {0, 1}}, {gelu_, {-0.2f, 30}}};
};

TEST_F(RangeRules, FuseQkv) {
  apply({.fuse_qkv = true}, {}, bert_.index, bert_.constants, bert_.structure(), ranges_,
        channels_);
  for (const auto& tensor : {q_, k_, v_}) EXPECT_EQ(ranges_.at(tensor), (Range{-3, 2}));
  EXPECT_EQ(ranges_.size(), 4u) << "weights per channel keep their own";
  apply({.fuse_qkv = true}, {.per_channel = false}, bert_.index, bert_.constants, bert_.structure(),
        ranges_, channels_);
  ASSERT_EQ(ranges_.size(), 7u);
  EXPECT_EQ(ranges_.at("onnx::MatMul_0"), ranges_.at("onnx::MatMul_1"));
  EXPECT_EQ(ranges_.at("onnx::MatMul_0"), ranges_.at("onnx::MatMul_2"));
}

TEST_F(RangeRules, ClipGelu) {
  apply({.clip_gelu = 10.0f}, {}, bert_.index, bert_.constants, bert_.structure(), ranges_,
        channels_);
  EXPECT_EQ(ranges_.at(gelu_), (Range{-0.2f, 10}));
  EXPECT_EQ(ranges_.at(q_), (Range{-1, 2}));
  EXPECT_ERROR(HasSubstr("-1"), apply({.clip_gelu = -1.0f}, {}, bert_.index, bert_.constants,
                                      bert_.structure(), ranges_, channels_));
  ranges_.erase(gelu_);
  EXPECT_ERROR(HasSubstr("GELU"), apply({.clip_gelu = 5.0f}, {}, bert_.index, bert_.constants,
                                        bert_.structure(), ranges_, channels_));
}

TEST_F(RangeRules, Symmetry) {
  ranges_ = {{q_, {0.5f, 0.6f}}, {k_, {-3, 1}}};
  apply({.symmetric = true}, {}, bert_.index, bert_.constants, bert_.structure(), ranges_,
        channels_);
  EXPECT_EQ(ranges_.at(k_), (Range{-3, 3}));
  EXPECT_EQ(ranges_.at(q_), (Range{-0.6f, 0.6f}));
}

TEST_F(RangeRules, SymmetryOfChannels) {
  channels_["x"] = {{-3, 0.5f}, {1, 0.6f}, {1, 1}, 4};
  apply({}, {}, bert_.index, bert_.constants, bert_.structure(), ranges_, channels_);
  EXPECT_THAT(channels_.at("x").low, ElementsAre(-3, 0.5f));
  apply({.symmetric = true}, {}, bert_.index, bert_.constants, bert_.structure(), ranges_,
        channels_);
  EXPECT_THAT(channels_.at("x").low, ElementsAre(-3, -0.6f));
  EXPECT_THAT(channels_.at("x").high, ElementsAre(3, 0.6f));
}

TEST_F(RangeRules, AWeightTakesTheRangeOfATableUnlessRecalibrated) {
  for (const bool recalibrate : {false, true}) {
    Analysed bert(std::move(TinyBert().builder()));
    Placement p = place(bert, {.include = {"*/query/*"}});
    Ranges ranges{{"/bert/embeddings/LayerNorm/LayerNormalization_output_0", {-1, 1}},
                  {"onnx::MatMul_0", {-127, 127}}};
    const WeightOptions weights{.per_channel = false};
    apply({.recalibrate_weights = recalibrate}, weights, bert.index, bert.constants,
          bert.structure(), ranges, channels_);
    const auto e = encode(p, bert.index, bert.constants, ranges, {{}, weights});
    EXPECT_EQ(e.at({"onnx::MatMul_0", Role::weight}).parameters.scale == 1.0f, !recalibrate);
  }
}

}  // namespace
}  // namespace bertcl::quant::tests
