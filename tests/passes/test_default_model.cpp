// SPDX-License-Identifier: Apache-2.0
// The default model through the normalize passes: no shape arithmetic is left, and the host
// computes what ONNX Runtime does.
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "ir/text.hpp"
#include "onnx/read_model.hpp"
#include "ops/interpret.hpp"
#include "ops/recognize_by_value.hpp"
#include "passes/pass.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::passes {

Pass fold_constants(const ir::Limits& limits);
Pass resolve_shapes();
Pass drop_identity();
Pass fold_weight_transpose();
Pass share_common();
Pass dead_code();
namespace {

const std::filesystem::path model = tests::source_file("models/minilm-l6-squad/model.onnx");

void normalize(ir::Graph& graph) {
  for (const Pass& pass : {resolve_shapes(), fold_constants({}), drop_identity(),
                           fold_weight_transpose(), share_common(), dead_code()}) {
    pass.run(graph);
    ir::verify(graph, pass.name);
  }
}

ir::Tensor ints(std::vector<std::int64_t> v) {
  return ir::Tensor::of<std::int64_t>({2, 8}, std::move(v));
}
const ops::Tensors inputs = {
    {"input_ids", ints({101, 2040, 2626, 9587, 102, 2002, 2626, 102,  //
                        101, 2073, 102, 2182, 102, 0, 0, 0})},
    {"attention_mask", ints({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0})},
    {"token_type_ids", ints({0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0})}};

// onnxruntime 1.31.1, CPU, graph optimizations off.
const std::vector<float> start_logits = {
    -1.45345f, -6.40741f, -6.29618f, -2.51394f, -6.85732f, -5.21464f, -6.47965f, -6.55694f,
    -0.48159f, -6.31714f, -6.87635f, -6.17767f, -6.77544f, -6.39475f, -6.43233f, -6.51121f};
const std::vector<float> end_logits = {
    -1.10472f, -5.25284f, -5.71059f, -1.43206f, -4.53292f, -5.70476f, -5.60964f, -5.01925f,
    -0.40300f, -5.33472f, -4.92551f, -5.59821f, -5.13601f, -5.61051f, -5.54090f, -5.40431f};

void expect_near(const ir::Tensor& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.shape(), (ir::Sizes{2, 8}));
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(got.to_doubles()[i] - static_cast<double>(expected[i])));
  EXPECT_LT(largest, 1e-4);
}

TEST(DefaultModel, ComputesWhatOnnxRuntimeDoes) {
  const ir::Graph graph = onnx_io::read_model(model);
  const auto outputs = ops::interpret(graph, inputs);
  expect_near(outputs[0], start_logits);
  expect_near(outputs[1], end_logits);
}

TEST(DefaultModel, NormalizesToTypedMatMuls) {
  ir::Graph graph = onnx_io::read_model(model);
  normalize(graph);
  std::set<std::string> ops;
  int matmuls = 0;
  for (const auto& node : graph.nodes()) {
    ops.insert(node->op);
    if (node->op == "MatMul") {
      ++matmuls;
      const std::string type = ir::str(node->output()->type);
      EXPECT_TRUE(type.starts_with("f32[batch, seq, ") || type.starts_with("f32[batch, 12, seq, "))
          << type;
    }
    EXPECT_THAT(ir::str(node->output()->type), Not(HasSubstr("n0"))) << node->describe();
  }
  EXPECT_EQ(matmuls, 6 * 8 + 1);
  for (const char* op : {"Shape", "Identity", "Concat"}) EXPECT_EQ(ops.count(op), 0u) << op;
  const auto outputs = ops::interpret(graph, inputs);
  expect_near(outputs[0], start_logits);
  expect_near(outputs[1], end_logits);
}

TEST(DefaultModel, ComputesTheSameAfterAllPasses) {
  ir::Graph graph = onnx_io::read_model(model);
  compile(graph, {});
  std::map<std::string, int> count;
  for (const auto& node : graph.nodes()) ++count[node->op];
  EXPECT_EQ(count["embed_norm"], 1);
  EXPECT_EQ(count["attention"], 6);
  EXPECT_EQ(count["add_norm"], 12);
  EXPECT_EQ(count["pack_inputs"], 1);
  const auto outputs = ops::interpret(graph, inputs);
  const auto mask = inputs.at("attention_mask").to_ints();
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const double start = outputs[0].to_doubles()[i], end = outputs[1].to_doubles()[i];
    EXPECT_NEAR(start, mask[i] ? start_logits[i] : 0, 1e-4) << i;
    EXPECT_NEAR(end, mask[i] ? end_logits[i] : 0, 1e-4) << i;
  }
}

TEST(DefaultModel, MaskAndPositionsAreRecognized) {
  ir::Graph graph = onnx_io::read_model(model);
  normalize(graph);
  int masks = 0;
  bool positions = false;
  for (const auto& node : graph.nodes()) {
    if (node->op == "Softmax")
      for (ir::Value* operand : node->inputs[0]->producer->inputs) {
        const auto mask = ops::additive_key_mask(graph, operand);
        masks += mask && mask->input->name == "attention_mask" && !mask->mask_is_length;
      }
    if (node->op == "Gather") positions |= ops::is_position_ids(graph, node->inputs[1]);
  }
  EXPECT_EQ(masks, 6);
  // Positions are a constant table cut to seq, so the Gather of embeddings reads 0..seq-1.
  EXPECT_TRUE(positions);
}

}  // namespace
}  // namespace bertcl::passes
