// SPDX-License-Identifier: Apache-2.0
// The file of measured choices: what is read from it, and what is not.
#include "plan/tuning.hpp"

#include <fstream>
#include <iterator>

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::plan {
namespace {

Tuning example() {
  Tuning tuning{"a device", "1.0", "2026-11-22", {}};
  tuning.put({"linear_q", "int8", 768, 3072, {{32, "dot4_32x64", 10, 20}, {512, "dot4", 80, 90}}});
  tuning.put({"linear", "fp32", 768, 768, {{128, "clblast", 50, 100}}});
  return tuning;
}

std::string tuning_error(const std::string& text) {
  return error_of([&] { parse_tuning(text); });
}

std::string file_of(const std::string& by_rows) {
  return R"({"format": 4, "device": "", "driver": "", "date": "", "gemms": [
    {"op": "linear", "type": "fp32", "n": 1, "k": 1, "by_rows": )" +
         by_rows + "}]}";
}

TEST(TuningFile, IsReadAsItWasWritten) {
  const tests::ScratchFolder folder;
  const std::filesystem::path path = folder.path() / "deeper" / "tuning.json";
  write_tuning(path, example());
  std::ifstream stream(path);
  const Tuning read = parse_tuning(std::string(std::istreambuf_iterator<char>(stream), {}));
  EXPECT_EQ(read.device, "a device");
  ASSERT_EQ(read.gemms.size(), 2u);
  const TunedGemm* found = read.find("linear_q", "int8", 768, 3072);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->by_rows.size(), 2u);
  EXPECT_EQ(found->by_rows[0].variant, "dot4_32x64");
  EXPECT_EQ(found->by_rows[1].rows, 512);
  EXPECT_NEAR(found->gain(), 1.5, 1e-12);  // of 2 and 9/8 the geometric mean
  EXPECT_FALSE(read.find("linear_q", "int8", 3072, 768)) << "n and k are not the same";
  EXPECT_FALSE(read.find("linear", "fp16", 768, 768));
}

TEST(TuningFile, ALaterChoiceReplacesTheEarlier) {
  Tuning tuning = example();
  tuning.put({"linear", "fp32", 768, 768, {{128, "portable", 1, 2}}});
  ASSERT_EQ(tuning.gemms.size(), 2u);
  EXPECT_EQ(tuning.find("linear", "fp32", 768, 768)->by_rows[0].variant, "portable");
}

TEST(TuningFile, WhatIsDamagedIsRefusedWithTheReason) {
  EXPECT_EQ(tuning_error(""), "it is damaged (byte 0 of 0)");
  EXPECT_EQ(tuning_error("{"), "it is damaged (byte 1 of 1)");
  EXPECT_THAT(tuning_error(R"({"format": 1})"), HasSubstr("format 1"));
  EXPECT_EQ(tuning_error(R"({"format": 4})"), "key 'device' not found");
  EXPECT_NE(tuning_error(R"({"format": "1"})"), kNoError);
  EXPECT_NE(tuning_error(file_of("[]")), kNoError);
  const std::string row = R"({"rows": 8, "variant": "x", "us": 1, "default_us": 2})";
  EXPECT_EQ(tuning_error(file_of("[" + row + "]")), kNoError);
  EXPECT_NE(tuning_error(file_of("[" + row + ", " + row + "]")), kNoError) << "the same rows twice";
  EXPECT_NE(tuning_error(file_of(R"([{"rows": 8, "variant": "x", "us": 0, "default_us": 2}])")),
            kNoError);
  EXPECT_NE(tuning_error(file_of(R"([{"rows": 8, "variant": 3, "us": 1, "default_us": 2}])")),
            kNoError);
}

}  // namespace
}  // namespace bertcl::plan
