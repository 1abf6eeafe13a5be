// SPDX-License-Identifier: Apache-2.0
// A model that is quantized and evaluated through the public interface.
#include "bertcl/quantize.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "bertcl/bertcl.hpp"
#include "bertcl/evaluate.hpp"
#include "tests/api/model.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl {
namespace {

using testing::HasSubstr;
using tests::error_of;

const std::filesystem::path kData = std::filesystem::path(BERTCL_SOURCE_DIR) / "data";

QuantizeOptions quick() {
  QuantizeOptions options;
  options.smooth = options.gptq = false;
  return options;
}

class ApiQuantize : public testing::Test {
 protected:
  Tokenizer tokenizer_ = Tokenizer::load(tests::folder / "vocab.txt");
  tests::ScratchFolder folder_;
};

TEST_F(ApiQuantize, WritesAModelInInt8ThatAnswersAsTheFloatOneDoes) {
  const Sequences samples = read_squad_samples(kData / "calibration.json", tokenizer_, 8);
  EXPECT_EQ(samples.count(), 8);
  std::int64_t seen = -1;
  const QuantizeReport report =
      quantize(tests::model, folder_ / "int8.onnx", samples, quick(),
               [&](std::string_view, std::int64_t done) { return seen = done, true; });
  EXPECT_EQ(seen, 8);
  EXPECT_EQ(report.samples, 8);
  EXPECT_EQ(report.tokens, samples.offsets.back());
  EXPECT_GE(report.quantized_nodes, 36);
  EXPECT_THAT(report.json, HasSubstr("\"quantized_nodes\""));
  SessionOptions strict;
  strict.require_int8 = true;
  const Session int8 = Session::load(folder_ / "int8.onnx", strict);
  EXPECT_TRUE(int8.info().int8);
  SquadOptions options;
  options.limit = 12;
  const SquadScores found = evaluate_squad(int8, tokenizer_, kData / "sample-v2.0.json", options);
  const SquadScores expected =
      evaluate_squad(Session::load(tests::model), tokenizer_, kData / "sample-v2.0.json", options);
  EXPECT_EQ(found.questions, 12u);
  EXPECT_EQ(found.answers.size(), 12u);
  EXPECT_GT(expected.f1, 50);
  EXPECT_NEAR(found.f1, expected.f1, 20) << "two questions of twelve";
  EXPECT_EQ(expected.metrics.at("f1"), expected.f1);
}

TEST_F(ApiQuantize, ACallbackCancelsAndNothingIsLeft) {
  const Sequences samples = tests::sequences_of({9, 12}, 1);
  try {
    quantize(tests::model, folder_ / "int8.onnx", samples, quick(),
             [](std::string_view, std::int64_t) { return false; });
    FAIL() << "it was not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  const Session session = Session::load(tests::model);
  EXPECT_THAT(error_of([&] {
                evaluate_squad(session, tokenizer_, kData / "sample-v2.0.json", {},
                               [](std::size_t, std::size_t) { return false; });
              }),
              HasSubstr("cancelled"));
}

TEST_F(ApiQuantize, WrongOptionsAreErrors) {
  const auto error = [&](const Sequences& samples, const QuantizeOptions& options) {
    return error_of([&] { quantize(tests::model, folder_ / "q.onnx", samples, options); });
  };
  const Sequences samples = tests::sequences_of({9}, 1);
  QuantizeOptions wrong = quick();
  wrong.preset = "best";
  EXPECT_THAT(error(samples, wrong), HasSubstr("'best'"));
  wrong = quick();
  wrong.method = "guess";
  EXPECT_THAT(error(samples, wrong), HasSubstr("'guess'"));
  EXPECT_THAT(error({}, quick()), HasSubstr("offsets"));
  SquadOptions options;
  options.max_length = 600;
  const Session session = Session::load(tests::model);
  EXPECT_THAT(
      error_of([&] { evaluate_squad(session, tokenizer_, kData / "sample-v2.0.json", options); }),
      HasSubstr("512"));
  EXPECT_THAT(error_of([&] { evaluate_squad(session, tokenizer_, "/nowhere.json"); }),
              HasSubstr("/nowhere.json"));
}

}  // namespace
}  // namespace bertcl
