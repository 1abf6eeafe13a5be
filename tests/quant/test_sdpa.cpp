// SPDX-License-Identifier: Apache-2.0
// Attention as torch exports scaled_dot_product_attention: the decisions are those for eager
// attention.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "ops/interpret.hpp"
#include "quant/placement/node_rules.hpp"
#include "quant/placement/quantized_op.hpp"
#include "quant/transforms/unnormalized_softmax.hpp"
#include "quant/writing/rewrite.hpp"
#include "runtime/session.hpp"
#include "tests/quant/planted.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

const std::string kAttention = "/bert/encoder/layer.0/attention/self/";

/// The tiny BERT in both spellings.
struct Twins {
  Analysed eager{std::move(TinyBert().builder())};
  Analysed sdpa{std::move(TinyBert({.sdpa = true}).builder())};
};

TEST(Sdpa, PartsOfAttentionAreThoseOfEager) {
  Twins twins;
  ASSERT_EQ(twins.eager.structure().attentions.size(), 1u);
  ASSERT_EQ(twins.sdpa.structure().attentions.size(), 1u);
  const AttentionParts& eager = twins.eager.structure().attentions[0];
  const AttentionParts& sdpa = twins.sdpa.structure().attentions[0];
  for (const auto part :
       {&AttentionParts::scores, &AttentionParts::softmax, &AttentionParts::context,
        &AttentionParts::q_linear, &AttentionParts::k_linear, &AttentionParts::v_linear})
    EXPECT_EQ(label_of(twins.sdpa.index.node(sdpa.*part)),
              label_of(twins.eager.index.node(eager.*part)));
  EXPECT_EQ(sdpa.v, eager.v);
  EXPECT_EQ(eager.probabilities, eager.softmax);
  EXPECT_EQ(label_of(twins.sdpa.index.node(sdpa.probabilities)), kAttention + "Where");
}

TEST(Sdpa, KindsLayersAndQuantizersAreThoseOfEager) {
  Twins twins;
  const auto described = [](Analysed& model) {
    const Placement placement = place(model);
    const QuantizerNames name(model.index, model.structure());
    std::vector<std::string> lines;
    for (const QuantizedOp& op : quantized_ops(placement, model.index, model.structure()))
      lines.push_back(fmt::format("{} {} {}", op.node, op.kind_name(), op.layer.value_or(-1)));
    for (const Site& site : placement.sites)
      for (const Operand& operand : site.operands)
        lines.push_back(name(site.node, operand.input, operand.role == Role::weight));
    return lines;
  };
  const auto eager = described(twins.eager);
  EXPECT_THAT(eager, IsSupersetOf({kAttention + "MatMul_1 context 0",
                                   std::string("bert.encoder.layer.0.attention.self."
                                               "matmul_a_input_quantizer")}));
  EXPECT_EQ(described(twins.sdpa), eager);
}

/// P is what its MatMul reads: it is not quantized twice.
TEST(Sdpa, PlacesOfAttentionAreThoseOfEager) {
  Twins twins;
  const auto outputs = [](Analysed& model) {
    return place(model, {.places = {Place::scores, Place::probabilities, Place::context}}).outputs;
  };
  EXPECT_THAT(outputs(twins.eager),
              ElementsAre(kAttention + "MatMul_output_0", kAttention + "Softmax_output_0",
                          kAttention + "MatMul_1_output_0"));
  EXPECT_THAT(outputs(twins.sdpa),
              ElementsAre(kAttention + "MatMul_output_0", kAttention + "Where_output_0",
                          kAttention + "MatMul_1_output_0"));
}

/// The scale of q and k is not a reason to quantize them again.
TEST(Sdpa, ScaledResultsOfLinearLayersAreQuantizedOnce) {
  Twins twins;
  for (Analysed* model : {&twins.eager, &twins.sdpa}) {
    const Placement placement = place(*model, {.places = {Place::linear}});
    const int scores = model->structure().attentions.at(0).scores;
    const auto site = std::ranges::find(placement.sites, scores, &Site::node);
    EXPECT_TRUE(site == placement.sites.end() || site->operands.empty());
  }
}

/// s -> Softmax -> p; Where(IsNaN(p), 0, p) -> w; MatMul(w, v) -> y
GraphBuilder sdpa_graph(float otherwise = 0.0f) {
  GraphBuilder g;
  g.input("s", {1, 3, 3});
  g.input("v", {1, 3, 2});
  g.node("Softmax", {"s"}, "p");
  g.node("IsNaN", {"p"}, "n");
  g.node("Where", {"n", g.weight("otherwise", {}, {otherwise}), "p"}, "w");
  g.node("MatMul", {"w", "v"}, "y");
  g.output("y", {1, 3, 2});
  return g;
}

std::set<std::string> sdpa_unnormalizable(GraphBuilder g) {
  Analysed a(std::move(g));
  return unnormalizable_softmaxes(place(a), a.index, a.structure(), rank_3);
}

TEST(Sdpa, SoftmaxIsUnnormalizedWhereItsMatMulAloneReadsIt) {
  EXPECT_THAT(sdpa_unnormalizable(sdpa_graph()), ElementsAre("w"));
  EXPECT_THAT(sdpa_unnormalizable(sdpa_graph(1.0f)), IsEmpty()) << "no 0 for rows without keys";
  for (const std::string read : {"p", "n", "w"}) {
    GraphBuilder g = sdpa_graph();
    g.node("Identity", {read}, "copy");
    g.output("copy");
    EXPECT_THAT(sdpa_unnormalizable(std::move(g)), IsEmpty()) << read;
    GraphBuilder given = sdpa_graph();
    given.output(read);
    EXPECT_THAT(sdpa_unnormalizable(std::move(given)), IsEmpty()) << read;
  }
}

TEST(Sdpa, RowsWithoutKeysStay0WhereSoftmaxIsUnnormalized) {
  Analysed a(sdpa_graph());
  const ops::Tensors inputs = [] {
    constexpr float kHidden = -std::numeric_limits<float>::infinity();
    ops::Tensors tensors;
    tensors["s"] = ir::Tensor::of<float>(
        {1, 3, 3}, {0.5f, -1.0f, 2.0f, kHidden, kHidden, kHidden, kHidden, 3.0f, 2.5f});
    tensors["v"] = ir::Tensor::of<float>({1, 3, 2}, {0.5f, -1.0f, 0.25f, 1.0f, -0.75f, 0.125f});
    return tensors;
  }();
  const auto expected = ops::interpret(a.model.import(), inputs)[0].to_doubles();
  Placement p = place(a);
  const auto results = unnormalizable_softmaxes(p, a.index, a.structure(), rank_3);
  const Encodings e = encode(p, a.index, a.constants, {{"w", kExponentials}, {"v", {-1.0f, 1.0f}}},
                             {{ir::DType::u8, false}, {}});
  rewrite(a.model, p, e, a.index, a.constants, {});
  unnormalize_softmax(a.model, results, a.structure());
  EXPECT_EQ(find_node(a.model.graph(), "Softmax"), nullptr);
  const auto found = ops::interpret(a.model.import(), inputs)[0].to_doubles();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 0.01) << i;
  EXPECT_EQ(found[2], 0.0);
  EXPECT_EQ(found[3], 0.0);
}

class SdpaFiles : public PlantedTest {
 protected:
  void SetUp() override {
    PlantedTest::SetUp();
    Model::of(std::move(TinyBert({.sdpa = true}).builder().model()), "bert").save(options_.model);
  }
};

TEST_F(SdpaFiles, UnnormalizedSoftmaxIsOneLaunch) {
  options_.softmax = Softmax::unnormalized;
  const Report report = calibrated().write();
  EXPECT_EQ(report.unnormalized_softmaxes, 1);
  EXPECT_FALSE(report.not_applied.contains("unnormalized Softmax"));
  const auto session = runtime::Session::load(options_.output);
  EXPECT_EQ(std::ranges::count(session.plan().steps, "attention_q", &plan::Step::op), 1);
  EXPECT_EQ(std::ranges::count(session.plan().steps, "Exp", &plan::Step::op), 0);
}

}  // namespace
}  // namespace bertcl::quant::tests
