// SPDX-License-Identifier: Apache-2.0
// bertcl verify --self: agreement of the kernels, and whether it notices another model.
#include "tools/verify/reference_check.hpp"

#include <algorithm>
#include <fstream>
#include <functional>

#include "kernels/variants.hpp"
#include "onnx/proto.hpp"
#include "plan/options.hpp"
#include "program_runner.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::tests {
namespace {

/// Changes int8 weights [rows][columns].
using Damage = std::function<void(std::string& weights, std::size_t columns)>;

TEST(ReferenceCheck, KernelsOfThisDeviceAgreeWithTheReference) {
  const auto sequences =
      json_of(run_bertcl({"verify", "--self", kModel, "--json", "-"})).at("sequences");
  ASSERT_EQ(sequences.size(), 6u);
  EXPECT_EQ(sequences.back().at("tokens"), 129);
  for (const auto& sequence : sequences) EXPECT_EQ(sequence.at("status"), "pass");
}

/// The default model in int8, made once for all tests.
const std::string& int8_model() {
  static const ScratchFolder folder;
  static const std::string model = [] {
    const std::string path = folder / "int8.onnx";
    succeeded(
        run_bertcl({"quantize", kModel, "-o", path, "--data", kCalibration, "--samples", "8"}));
    return path;
  }();
  return model;
}

// A rounding tie that the two take differently is spread by the layers after it.
TEST(ReferenceCheck, AnInt8ModelAgreesToo) {
  const ProgramResult result = run_bertcl({"verify", "--self", int8_model()});
  EXPECT_EQ(result.code, 0) << result.out << result.err;
}

// Scales of a whole batch differ from those of its sequences, which the reference runs one by one.
TEST(ReferenceCheck, ADynamicallyQuantizedModelAgreesToo) {
  const ScratchFolder folder;
  const std::string model = folder / "dynamic.onnx";
  succeeded(run_bertcl({"quantize", kModel, "-o", model, "--dynamic", "--model-only"}));
  const ProgramResult result = run_bertcl({"verify", "--self", model});
  EXPECT_EQ(result.code, 0) << result.out << result.err;
}

// Such a MatMul has two computed operands.
TEST(ReferenceCheck, AnAttentionThatIsNotFusedAgreesToo) {
  const ProgramResult result =
      run_bertcl({"verify", "--self", "--disable-passes", "find_attention", kModel});
  EXPECT_EQ(result.code, 0) << result.out << result.err;
}

TEST(ReferenceCheck, ReferenceKernelsAreAllThatTheReferenceTakes) {
  const runtime::Session session = runtime::Session::load(kModel, tools::reference_options({}));
  const std::vector<std::string> names = plan::disableable_variants();
  const std::vector<std::string> reference_names = kernels::reference_names();
  std::size_t references = 0;
  for (const plan::Step& step : session.plan().steps) {
    references += step.variant == "ref";
    if (std::ranges::find(names, step.variant) == names.end()) continue;
    EXPECT_THAT(reference_names, Contains(step.variant));
  }
  EXPECT_GE(references, 31u);  // 25 linears and 6 attentions
}

TEST(ReferenceCheck, NoticesOneOtherWeight) {
  const std::string text = R"(graph g(%input_ids: i64[batch, seq]) {
    const %table: f32[4, 3] = splat 0.5  const %w: f32[3, 2] = splat 1
    %rows: f32[batch, seq, 3] = Gather(%table, %input_ids) {axis = 0}
    %y: f32[batch, seq, 2] = MatMul(%rows, %w)
    return %y as logits
  })";
  std::string other = text;
  const std::size_t at = other.find("splat 1");
  ASSERT_NE(at, std::string::npos);
  other.replace(at, 7, "splat 1.01");
  runtime::Session session = runtime::Session::compile(ir::parse(text));
  runtime::Session same = runtime::Session::compile(ir::parse(text), tools::reference_options({}));
  runtime::Session wrong =
      runtime::Session::compile(ir::parse(other), tools::reference_options({}));
  for (const tools::ReferenceCheck& check : tools::compare_with_reference(session, same, {}))
    EXPECT_TRUE(check.difference.agrees) << check.tokens << ": " << check.difference.message;
  for (const tools::ReferenceCheck& check : tools::compare_with_reference(session, wrong, {})) {
    EXPECT_FALSE(check.difference.agrees) << check.tokens;
    EXPECT_THAT(check.difference.message, HasSubstr("logits"));
  }
}

/// The int8 weights [rows, columns] of a model, of which `damage` changes the first or all.
onnx::ModelProto damaged(onnx::ModelProto model, const Damage& damage, bool all) {
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer())
    if (tensor.data_type() == onnx::TensorProto::INT8 && tensor.dims_size() == 2) {
      damage(*tensor.mutable_raw_data(), static_cast<std::size_t>(tensor.dims(1)));
      if (!all) break;
    }
  return model;
}

// The tolerance of int8 is wide, 10 % of the largest value, for rounding ties. What a wrong kernel
// does to all linears is seen; in one linear of the first layer only what changes most of its sums.
TEST(ReferenceCheck, NoticesAWrongKernelInInt8) {
  const ScratchFolder folder;
  const std::string path = int8_model(), other = folder / "wrong.onnx";
  onnx::ModelProto model;
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(model.ParseFromIstream(&file));
  runtime::Session session = runtime::Session::load(path, {});
  tools::Tolerance tolerance;
  tolerance.share = 0.1;  // as `bertcl verify --self` has it
  const auto disagreements = [&](const Damage& damage, bool all = false) {
    {
      std::ofstream wrong(other, std::ios::binary);
      EXPECT_TRUE(damaged(model, damage, all).SerializeToOstream(&wrong));
    }
    runtime::Session reference = runtime::Session::load(other, tools::reference_options({}));
    const auto checks = tools::compare_with_reference(session, reference, tolerance);
    return std::ranges::count_if(checks,
                                 [](const auto& check) { return !check.difference.agrees; });
  };
  const auto by_row = [](auto change) {
    return [change](std::string& weights, std::size_t columns) {
      if (columns < 96) return;  // the head
      for (auto row = weights.begin(); row != weights.end(); row += static_cast<long>(columns))
        change(row, static_cast<long>(columns));
    };
  };
  EXPECT_EQ(disagreements([](std::string&, std::size_t) {}), 0) << "the same weights";
  const auto halves = by_row([](auto row, long n) { std::rotate(row, row + n / 2, row + n); });
  EXPECT_GE(disagreements(halves), 3) << "halves of the columns are exchanged";
  const auto panel = by_row([](auto row, long) { std::copy_n(row + 48, 48, row); });
  EXPECT_GE(disagreements(panel, true), 3) << "a panel of 48 columns is read twice";
  const auto depth = [](std::string& weights, std::size_t columns) {
    std::fill_n(weights.begin(), 4 * columns, '\0');
  };
  EXPECT_GE(disagreements(depth, true), 3) << "a K group is left out";
}

TEST(ReferenceCheck, TakesNoGoldensAndNeedsAModel) {
  EXPECT_EQ(run_bertcl({"verify", "--self"}).code, 2);
  const ProgramResult both = run_bertcl({"verify", "--self", kModel, kModel});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("--self"));
}

}  // namespace
}  // namespace bertcl::tests
