// SPDX-License-Identifier: Apache-2.0
// bertcl verify --self: agreement of the kernels, and whether it notices another model.
#include "tools/verify/self_check.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "ir/text.hpp"
#include "plan/builder.hpp"
#include "program_runner.hpp"

namespace bertcl::tests {
namespace {

using testing::HasSubstr;

TEST(SelfCheck, KernelsOfThisDeviceAgreeWithTheReference) {
  const ProgramResult result = run_bertcl({"verify", "--self", kModel, "--json", "-"});
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  const auto sequences = nlohmann::json::parse(result.out).at("sequences");
  ASSERT_EQ(sequences.size(), 6u);
  EXPECT_EQ(sequences.back().at("tokens"), 129);
  for (const auto& sequence : sequences) EXPECT_EQ(sequence.at("status"), "pass");
}

// A rounding tie that the two take differently is spread by the layers after it.
TEST(SelfCheck, AnInt8ModelAgreesToo) {
  const ScratchFolder folder;
  const std::string model = folder / "int8.onnx";
  const ProgramResult made = run_bertcl({"quantize", kModel, "-o", model, "--data", kCalibration});
  ASSERT_EQ(made.code, 0) << made.err;
  const ProgramResult result = run_bertcl({"verify", "--self", model});
  EXPECT_EQ(result.code, 0) << result.out << result.err;
}

TEST(SelfCheck, ReferenceKernelsAreAllThatTheReferenceTakes) {
  const runtime::Session session = runtime::Session::load(kModel, tools::reference_options({}));
  const std::vector<std::string> names = plan::variant_names();
  std::size_t references = 0;
  for (const plan::Step& step : session.plan().steps) {
    references += step.variant == "ref";
    if (std::ranges::find(names, step.variant) == names.end()) continue;
    EXPECT_THAT(step.variant, testing::AnyOf("ref", "rows"));
  }
  EXPECT_GE(references, 31u);  // 25 linears and 6 attentions
}

TEST(SelfCheck, NoticesOneOtherWeight) {
  const std::string text = R"(graph g(%input_ids: i64[batch, seq]) {
    const %table: f32[4, 3] = splat 0.5
    const %w: f32[3, 2] = splat 1
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
  for (const tools::SelfCheck& check : tools::self_check(session, same, {}))
    EXPECT_TRUE(check.difference.agrees) << check.tokens << ": " << check.difference.message;
  for (const tools::SelfCheck& check : tools::self_check(session, wrong, {})) {
    EXPECT_FALSE(check.difference.agrees) << check.tokens;
    EXPECT_THAT(check.difference.message, HasSubstr("logits"));
  }
}

TEST(SelfCheck, TakesNoGoldensAndNeedsAModel) {
  EXPECT_EQ(run_bertcl({"verify", "--self"}).code, 2);
  const ProgramResult both = run_bertcl({"verify", "--self", kModel, kModel});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("--self"));
}

}  // namespace
}  // namespace bertcl::tests
