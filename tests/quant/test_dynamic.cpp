// SPDX-License-Identifier: Apache-2.0
// Dynamic quantization: the integer MatMuls that are written, what stays in float, refusals.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <utility>

#include "quant/quantizer.hpp"
#include "quant/settings/quantize_options.hpp"
#include "quant/settings/settings.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "text/base/file.hpp"

namespace bertcl::quant::tests {
namespace {

class Dynamic : public testing::Test {
 protected:
  void SetUp() override {
    options_.model = folder_ / "m.onnx";
    options_.output = folder_ / "q.onnx";
  }

  Model quantized(GraphBuilder& g) {
    Model::of(std::move(g.model()), "m").save(options_.model);
    report_ = quantize_dynamic(options_, scales_);
    return Model::load(options_.output);
  }
  Model quantized_bert() {
    TinyBert bert;
    return quantized(bert.builder());
  }

  const bertcl::tests::ScratchFolder folder_;
  Options options_;
  ActivationScales scales_ = ActivationScales::per_tensor;
  Report report_;
};

int count(const Model& model, const std::string& op) {
  int n = 0;
  for (const auto& node : model.graph().node()) n += node.op_type() == op;
  return n;
}

/// x is read by two MatMuls, one with a weight that both share with nothing else.
GraphBuilder two_readers() {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.weight("w", {4, 2}, {1, 2, 3, 4, 5, 6, -8, 0.5f});
  g.node("MatMul", {"x", "w"}, "y");
  g.node("MatMul", {"x", g.weight("v", {4, 2}, std::vector<float>(8, 0.25f))}, "z", true);
  g.node("Add", {"y", "z"}, "sum");
  g.output("sum", {2, 2});
  return g;
}

TEST_F(Dynamic, AMatMulBecomesAnIntegerOneAndItsScales) {
  GraphBuilder g = two_readers();
  Model m = quantized(g);
  const auto& graph = m.graph();
  const auto& y = *producer(graph, "y");
  EXPECT_EQ(y.op_type(), "Mul");
  EXPECT_EQ(y.name(), "y_node_quant_output_scale_mul");
  const auto& cast = *producer(graph, y.input(0));
  EXPECT_EQ(cast.op_type(), "Cast");
  EXPECT_EQ(int_attribute(cast, "to", 0), onnx::TensorProto::FLOAT);
  const auto& scale = *producer(graph, y.input(1));
  EXPECT_EQ(scale.op_type(), "Mul");
  EXPECT_THAT(scale.input(), ElementsAre("x_scale", "w_scale"));
  const auto& matmul = *producer(graph, cast.input(0));
  EXPECT_EQ(matmul.op_type(), "MatMulInteger");
  EXPECT_EQ(matmul.name(), "y_node_quant");
  EXPECT_THAT(matmul.input(),
              ElementsAre("x_quantized", "w_quantized", "x_zero_point", "w_zero_point"));
  const auto& quantize = *producer(graph, "x_quantized");
  EXPECT_EQ(quantize.op_type(), "DynamicQuantizeLinear");
  EXPECT_EQ(quantize.name(), "x_QuantizeLinear");
  EXPECT_THAT(quantize.output(), ElementsAre("x_quantized", "x_scale", "x_zero_point"));

  EXPECT_EQ(m.read("w_quantized"),
            (ir::Tensor::of<std::int8_t>({4, 2}, {16, 42, 48, 85, 79, 127, -127, 11})));
  EXPECT_EQ(m.read("w_scale"), (ir::Tensor::of<float>({2}, {8.0f / 127.0f, 6.0f / 127.0f})));
  EXPECT_EQ(m.read("w_zero_point"), (ir::Tensor::of<std::int8_t>({2}, {0, 0})));
  EXPECT_EQ(m.initializer("w"), nullptr);
}

void expect_sorted(const Model& m) {
  std::set<std::string> made{""};
  for (const auto& input : m.graph().input()) made.insert(input.name());
  for (const auto& t : m.graph().initializer()) made.insert(t.name());
  for (const auto& n : m.graph().node()) {
    for (const auto& i : n.input()) EXPECT_TRUE(made.contains(i)) << i << " of " << n.name();
    made.insert(n.output().begin(), n.output().end());
  }
  for (const auto& output : m.graph().output()) EXPECT_TRUE(made.contains(output.name()));
}

TEST_F(Dynamic, ATensorIsQuantizedOnceAndNodesStayInOrder) {
  GraphBuilder g = two_readers();
  const Model m = quantized(g);
  EXPECT_EQ(count(m, "DynamicQuantizeLinear"), 1);
  EXPECT_EQ(count(m, "MatMulInteger"), 2);
  EXPECT_EQ(count(m, "MatMul") + count(m, "DequantizeLinear"), 0);
  expect_sorted(m);
}

/// Two MatMuls without a bias, the second with the name that comes first.
GraphBuilder layers_without_biases() {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.node("MatMul", {"x", g.weight("w9", {4, 4}, std::vector<float>(16, 0.25f))}, "MatMul_9");
  g.node("MatMul", {"MatMul_9", g.weight("w10", {4, 4}, std::vector<float>(16, 0.5f))},
         "MatMul_10");
  g.output("MatMul_10", {2, 4});
  return g;
}

TEST_F(Dynamic, NodesStayInOrderWhateverTheirNames) {
  for (const auto scales : {ActivationScales::per_tensor, ActivationScales::per_token}) {
    scales_ = scales;
    GraphBuilder g = layers_without_biases();
    const Model m = quantized(g);
    EXPECT_EQ(count(m, "MatMulInteger"), 2);
    expect_sorted(m);
  }
}

TEST_F(Dynamic, AFileThatIsNotSortedIsSortedFirst) {
  GraphBuilder g = layers_without_biases();
  g.graph().mutable_node()->SwapElements(0, 1);
  const Model m = quantized(g);
  EXPECT_EQ(count(m, "MatMulInteger"), 2);
  EXPECT_TRUE(report_.skipped.empty());
  expect_sorted(m);
}

TEST_F(Dynamic, WeightsAsTheOptionsSay) {
  options_.weights.per_channel = false;
  options_.weights.scheme = {ir::DType::u8, false};
  GraphBuilder g = two_readers();
  Model m = quantized(g);
  EXPECT_EQ(m.read("w_scale"), ir::Tensor::scalar(14.0f / 255.0f));
  EXPECT_EQ(m.read("w_zero_point"), ir::Tensor::scalar<std::uint8_t>(146));
}

TEST_F(Dynamic, WeightsWithoutAScaleForEachColumnStayInFloat) {
  options_.weights.axes = {{"MatMul", 0}};
  GraphBuilder g = two_readers();
  Model::of(std::move(g.model()), "m").save(options_.model);
  EXPECT_ERROR(HasSubstr("its weight has scales along axis 0"),
               quantize_dynamic(options_, scales_));

  options_.weights.axes.clear();
  GraphBuilder vector = two_readers();
  vector.node("MatMul", {"x", vector.weight("u", {4}, {1, 2, 3, 4})}, "dots");
  vector.output("dots", {2});
  for (const auto scales : {ActivationScales::per_tensor, ActivationScales::per_token}) {
    scales_ = scales;
    GraphBuilder copy = vector;
    EXPECT_EQ(count(quantized(copy), "MatMulInteger"), 2);
    ASSERT_EQ(report_.skipped.size(), 1u);
    EXPECT_EQ(report_.skipped[0].reason, "its weight has no columns");
  }
}

TEST_F(Dynamic, ColumnsOfBatchedWeightsHaveNoZeroPoints) {
  GraphBuilder g;
  g.node("MatMul", {g.input("x", {2, 4}), g.weight("w", {1, 4, 2}, {1, 2, 3, 4, 5, 6, -8, 1})},
         "y");
  g.output("y", {1, 2, 2});
  GraphBuilder copy = g;
  EXPECT_EQ(find_node(quantized(copy).graph(), "MatMulInteger")->input_size(), 3);
  options_.weights.per_channel = false;
  EXPECT_EQ(find_node(quantized(g).graph(), "MatMulInteger")->input_size(), 3);
  options_.weights.scheme = {ir::DType::u8, false};
  GraphBuilder other;
  other.node("MatMul", {other.input("x", {2, 2}), other.weight("w", {1, 2, 1}, {1, -2})}, "y");
  other.output("y", {1, 2, 1});
  EXPECT_EQ(find_node(quantized(other).graph(), "MatMulInteger")->input_size(), 4);
}

TEST_F(Dynamic, SumsThatAnInt32MayNotHoldStayInFloat) {
  const auto reason = [&](std::int64_t rows) {
    GraphBuilder g = two_readers();
    const auto ones = std::vector<float>(static_cast<std::size_t>(rows), 1.0f);
    g.node("MatMul", {g.input("long", {2, rows}), g.weight("u", {rows, 1}, ones)}, "dots");
    g.output("dots", {2, 1});
    quantized(g);
    return report_.skipped.empty() ? "" : report_.skipped.back().reason;
  };
  EXPECT_EQ(reason(65'793), "");
  EXPECT_EQ(reason(65'794),
            "its weight has K = 65794, which can overflow the int32 accumulator (at most 65793)");
  scales_ = ActivationScales::per_token;
  EXPECT_EQ(reason(132'104), "");
  EXPECT_THAT(reason(132'105), HasSubstr("(at most 132104)"));
  scales_ = ActivationScales::per_tensor;
  options_.weights.per_channel = false;
  options_.weights.scheme = {ir::DType::u8, false};
  EXPECT_EQ(reason(33'025), "");
  EXPECT_THAT(reason(33'026), HasSubstr("(at most 33025)"));
}

TEST_F(Dynamic, AttentionStaysInFloat) {
  const Model m = quantized_bert();
  EXPECT_EQ(count(m, "MatMulInteger"), 7);  // q, k, v, three more, the head
  EXPECT_EQ(count(m, "MatMul"), 2);
  EXPECT_EQ(count(m, "DynamicQuantizeLinear"), 5);  // q, k and v read the same
  EXPECT_EQ(report_.quantized_nodes, 7);
  EXPECT_EQ(report_.count(Role::weight), 7);
  EXPECT_EQ(report_.count(Role::activation), 0);
  EXPECT_EQ(report_.method, "dynamic");
  int attention = 0;
  for (const SkippedNode& node : report_.skipped)
    attention += node.reason.find("an activation and a weight") != std::string::npos;
  EXPECT_EQ(attention, 5) << "and the residual Adds";
}

TEST_F(Dynamic, TablesAreQuantizedNow) {
  options_.placement.op_types = {"MatMul", "Gather"};
  const Model m = quantized_bert();
  EXPECT_EQ(count(m, "MatMulInteger"), 7);
  EXPECT_EQ(count(m, "DequantizeLinear"), 1);
  EXPECT_EQ(report_.count(Role::constant), 1);
}

TEST_F(Dynamic, ADisabledOperandLeavesTheMatMulInFloat) {
  options_.placement.disable_keywords = {"query._input"};
  const Model m = quantized_bert();
  EXPECT_EQ(count(m, "MatMulInteger"), 6);
  EXPECT_EQ(count(m, "MatMul"), 3);
}

/// The operators on the way from a tensor back to `end`, by first inputs.
std::string way(const onnx::GraphProto& graph, std::string tensor, const std::string& end) {
  std::string ops;
  while (tensor != end) {
    const auto* node = producer(graph, tensor);
    if (!node) return ops + "and an end";
    ops += node->op_type() + " ";
    tensor = node->input(0);
  }
  return ops;
}

TEST_F(Dynamic, AScaleForEachToken) {
  scales_ = ActivationScales::per_token;
  for (const std::int64_t opset : {13, 18}) {
    GraphBuilder g = two_readers();
    g.model().mutable_opset_import(0)->set_version(opset);
    Model m = quantized(g);
    const auto& graph = m.graph();
    EXPECT_EQ(way(graph, "y", "x"), "Mul Div Max ReduceMax Abs ");
    const auto& y = *producer(graph, "y");
    EXPECT_EQ(way(graph, y.input(1), "x_quantized"), "Mul Cast MatMulInteger ");
    EXPECT_EQ(way(graph, "x_quantized", "x"), "Cast Round Div ");
    const auto& reduce = *find_node(graph, "ReduceMax");
    EXPECT_EQ(reduce.input_size(), opset < 18 ? 1 : 2);
    EXPECT_EQ(find_attribute(reduce, "axes") != nullptr, opset < 18);
    const auto& matmul = *producer(graph, "y_node_quant_scaled");
    EXPECT_EQ(matmul.input(1), "w_scale");
    const auto& integers = *find_node(graph, "MatMulInteger");
    EXPECT_THAT(integers.input(), ElementsAre("x_quantized", "w_quantized", "", "w_zero_point"));
    EXPECT_EQ(count(m, "Abs"), 1);
    EXPECT_EQ(count(m, "MatMulInteger"), 2);
    EXPECT_EQ(report_.method, "dynamic per token");
  }
}

/// Values to try, "" as a flag: those that the help names, or what suits the type.
std::vector<std::string> values_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {""};
  const std::string type = option.get_type_name();
  if (type.find('|') != type.npos) return CLI::detail::split(type, '|');
  static const std::map<std::string, std::vector<std::string>> by_type{
      {"N", {"2", "18"}},       {"P", {"99"}},          {"C", {"0.5"}},
      {"X", {"0.5"}},           {"OP,...", {"Gather"}}, {"PLACE,...", {"gelu"}},
      {"PATTERN", {"*query*"}}, {"REGEX", {"query"}},   {"OP=AXIS", {"MatMul=0"}}};
  const auto known = by_type.find(type);
  if (known != by_type.end()) return known->second;
  ADD_FAILURE() << "no value of the type " << type;
  return {};
}

// What is silently without effect lacks its mark in quantize_options.cpp.
TEST_F(Dynamic, EveryOptionChangesTheFileOrIsRefused) {
  TinyBert bert;
  Model::of(std::move(bert.builder().model()), "m").save(options_.model);
  JobOptions job;
  job.dynamic = true;
  const auto outcome = [&](const std::vector<Setting>& settings) {
    Options options = options_;
    const std::string error = error_of([&] {
      apply(settings, job, options);
      quantize_dynamic(options, scales_);
    });
    return error == kNoError ? text::read_file(options.output) : error;
  };
  const std::string usual = outcome({});
  CLI::App command;
  Options unused;
  MarkedOptions marked;
  add_quantizer_options(command, unused, marked);
  const auto is_valid = [&](const std::string& name, const std::string& value) {
    try {
      unused = {};
      command.parse("--" + name + (value.empty() ? "" : "=" + value));
      return true;
    } catch (const CLI::ParseError&) {
      return false;
    }
  };
  for (const CLI::Option* option : std::as_const(command).get_options()) {
    if (option == command.get_help_ptr()) continue;
    bool has_effect = false;
    for (const std::string& name : option->get_lnames())
      for (const std::string& value : values_of(*option))
        has_effect = has_effect || (is_valid(name, value) && outcome({{name, value}}) != usual);
    EXPECT_TRUE(has_effect) << option->get_name();
  }
}

TEST_F(Dynamic, RefusesWhatHasNoDynamicForm) {
  TinyBert bert;
  Model::of(std::move(bert.builder().model()), "m").save(options_.model);
  const auto refusal = [&](const auto& change) {
    Options options = options_;
    change(options);
    const std::string message = error_of([&] { quantize_dynamic(options, scales_); });
    EXPECT_FALSE(std::filesystem::exists(options.output));
    return message;
  };
  EXPECT_THAT(refusal([](Options& o) {
                o.placement.op_types = {"MatMul", "Add"};
              }),
              HasSubstr("operator Add"));
  EXPECT_THAT(refusal([](Options& o) { o.placement.places = {Place::gelu}; }),
              HasSubstr("outputs cannot be quantized"));
  EXPECT_THAT(refusal([](Options& o) {
                o.activations = {ir::DType::i8, true};
              }),
              AllOf(HasSubstr("supports only asymmetric u8"), HasSubstr("use 'activations=u8'")));
  EXPECT_THAT(refusal([](Options& o) { o.activations.steps = Steps::full; }),
              HasSubstr("use 'narrow_range'"));
  EXPECT_THAT(refusal([](Options& o) { o.activations.min_range = 1.0f; }),
              HasSubstr("use 'minimum_range=0'"));
  EXPECT_THAT(refusal([](Options& o) { o.activations.bits = 7; }),
              HasSubstr("use the default scheme, or calibrate"));
  EXPECT_THAT(refusal([](Options& o) { o.weights.as_float = true; }),
              HasSubstr("read integer weights"));
  EXPECT_THAT(refusal([](Options& o) { o.softmax = Softmax::unnormalized; }), HasSubstr("Softmax"));
  scales_ = ActivationScales::per_token;
  EXPECT_THAT(refusal([](Options& o) {
                o.weights.scheme = {ir::DType::u8, false};
              }),
              HasSubstr("'per_token' needs i8 weights; use 'weights=i8'"));
}

}  // namespace
}  // namespace bertcl::quant::tests
