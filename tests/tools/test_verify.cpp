// SPDX-License-Identifier: Apache-2.0
// bertcl verify: agreement, difference, refusal, and both forms of stored outputs.
#include <cmath>
#include <cstring>
#include <limits>

#include "npz/npz.hpp"
#include "program_runner.hpp"
#include "tests/support/matchers.hpp"
#include "tools/verify/golden.hpp"

namespace bertcl::tests {
namespace {

using ir::Tensor;

/// A TensorProto of int64 or float in the wire format of protobuf.
std::string tensor_proto(const Tensor& tensor) {
  std::string bytes;
  const auto varint = [&](std::uint64_t value) {
    for (; value > 127; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
    bytes += static_cast<char>(value);
  };
  for (const std::int64_t extent : tensor.shape()) {
    varint(1 << 3);  // dims
    varint(static_cast<std::uint64_t>(extent));
  }
  varint(2 << 3);  // data_type
  varint(tensor.dtype() == ir::DType::f32 ? 1 : 7);
  varint(9 << 3 | 2);  // raw_data
  varint(tensor.bytes().size());
  bytes.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
  return bytes;
}

class VerifyTest : public FolderTest {
 protected:
  /// Inputs of the default model and what it gives for them.
  VerifyTest() {
    const ir::Sizes shape = {2, 6};
    inputs_ = {{"input_ids", Tensor::of<std::int64_t>(
                                 shape, {101, 2040, 102, 7, 8, 102, 101, 2073, 102, 9, 10, 102})},
               {"attention_mask", Tensor::of(shape, std::vector<std::int64_t>(12, 1))},
               {"token_type_ids", Tensor::of(shape, std::vector<std::int64_t>(12, 0))}};
    npz::save(path("x.npz"), inputs_);
    const ProgramResult run = succeeded(
        run_bertcl({"run", kModel, "--inputs", path("x.npz"), "--outputs", path("y.npz")}));
    outputs_ = npz::load(path("y.npz"));
  }

  npz::Arrays golden() const {
    npz::Arrays arrays;
    for (const auto& [name, tensor] : inputs_) arrays["in__" + name] = tensor;
    for (const auto& [name, tensor] : outputs_) arrays["out__" + name] = tensor;
    return arrays;
  }
  ProgramResult verify(const std::string& model, const std::vector<std::string>& goldens) {
    const ProgramResult result =
        run_bertcl(joined({"verify", model, "--json", path("v.json")}, goldens));
    files_ = read_json(path("v.json")).at("files");
    return result;
  }

  npz::Arrays inputs_, outputs_;
  nlohmann::json files_;
};

TEST_F(VerifyTest, AgreesWithItself) {
  npz::save(path("g.npz"), golden());
  const ProgramResult result = succeeded(verify(kModel, {path("g.npz")}));
  ASSERT_EQ(files_.size(), 1u);
  EXPECT_EQ(files_[0].at("golden"), path("g.npz"));
  EXPECT_EQ(files_[0].at("status"), "pass");
  EXPECT_LT(files_[0].at("max_abs"), 1e-4);
  EXPECT_LT(files_[0].at("max_rel"), 1e-4);
  EXPECT_EQ(files_[0].at("message"), "");
  EXPECT_THAT(result.out, HasSubstr("pass"));
}

TEST_F(VerifyTest, OutputsThatAreNotStoredAreTold) {
  npz::Arrays arrays = golden();
  arrays.erase("out__end_logits");
  npz::save(path("g.npz"), arrays);
  succeeded(verify(kModel, {path("g.npz")}));
  EXPECT_EQ(files_[0].at("status"), "pass");
  EXPECT_EQ(files_[0].at("message"), "end_logits is not compared");
}

TEST_F(VerifyTest, ADifferenceFailsAndIsLocated) {
  npz::Arrays arrays = golden();
  std::vector<float> values(outputs_.at("end_logits").as<float>().begin(),
                            outputs_.at("end_logits").as<float>().end());
  values[8] += 0.5f;
  arrays["out__end_logits"] = Tensor::of({2, 6}, values);
  npz::save(path("bad.npz"), arrays);
  npz::save(path("good.npz"), golden());
  const ProgramResult result = verify(kModel, {path("good.npz"), path("bad.npz")});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(files_[0].at("status"), "pass");
  EXPECT_EQ(files_[1].at("status"), "fail");
  EXPECT_NEAR(files_[1].at("max_abs").get<double>(), 0.5, 0.01);
  EXPECT_THAT(files_[1].at("message").get<std::string>(),
              AllOf(HasSubstr("end_logits [2, 6]"), HasSubstr("1 of 12"), HasSubstr("at [1, 2]")));
  EXPECT_EQ(run_bertcl({"verify", kModel, path("bad.npz"), "--atol", "0.6"}).code, 0);
}

TEST_F(VerifyTest, ReadsTestDataSetsOfOnnx) {
  std::filesystem::create_directories(folder_ / "set" / "test_data_set_0");
  int number = 0;  // in the order of the model's inputs
  for (const char* name : {"input_ids", "attention_mask", "token_type_ids"}) {
    write("set/test_data_set_0/input_" + std::to_string(number++) + ".pb",
          tensor_proto(inputs_.at(name)));
  }
  write("set/test_data_set_0/output_0.pb", tensor_proto(outputs_.at("start_logits")));
  write("set/test_data_set_0/output_1.pb", tensor_proto(outputs_.at("end_logits")));
  EXPECT_EQ(verify(kModel, {path("set/test_data_set_0")}).code, 0) << files_;
  EXPECT_EQ(verify(kModel, {path("set")}).code, 0) << files_;
  write("set/test_data_set_0/output_1.pb", tensor_proto(outputs_.at("start_logits")));
  EXPECT_EQ(verify(kModel, {path("set")}).code, 1);
  write("set/test_data_set_0/output_1.pb", "\xff\xff");
  EXPECT_EQ(verify(kModel, {path("set")}).code, 2);
  EXPECT_THAT(files_[0].at("message").get<std::string>(), HasSubstr("output_1.pb"));
}

TEST_F(VerifyTest, RefusalsAndErrorsAreTwoThings) {
  npz::save(path("g.npz"), golden());
  ProgramResult result = verify(write("words.onnx", "words"), {path("g.npz")});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(files_[0].at("status"), "refused");
  EXPECT_TRUE(files_[0].at("max_abs").is_null());
  EXPECT_THAT(result.err, AllOf(StartsWith("bertcl: "), HasSubstr("words.onnx")));

  result = verify(kModel, {path("absent.npz"), path("g.npz")});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(files_[0].at("status"), "error");
  EXPECT_EQ(files_[1].at("status"), "pass");
  EXPECT_THAT(result.err, HasSubstr("absent.npz"));

  npz::Arrays arrays = golden();
  arrays["out__logits"] = arrays["out__end_logits"];
  npz::save(path("other.npz"), arrays);
  EXPECT_EQ(verify(kModel, {path("other.npz")}).code, 2);
  EXPECT_THAT(files_[0].at("message").get<std::string>(), HasSubstr("'logits'"));
}

tools::Difference compare(const Tensor& found, const Tensor& expected) {
  return tools::compare("y", found, expected, {});
}

TEST(Compare, FloatsByTolerance) {
  const Tensor expected = Tensor::of<float>({3}, {100.0f, 0.0f, -1.0f});
  EXPECT_TRUE(compare(Tensor::of<float>({3}, {100.1f, 0.09f, -1.0f}), expected).agrees);
  const auto difference = compare(Tensor::of<float>({3}, {100.0f, 0.2f, -1.0f}), expected);
  EXPECT_FALSE(difference.agrees);
  EXPECT_NEAR(difference.max_abs, 0.2, 1e-6);
  EXPECT_NEAR(difference.max_rel, 0.002, 1e-8);
}

TEST(Compare, NamesTheWorstOfTheValuesOutsideOfTheTolerance) {
  tools::Tolerance tolerance;
  tolerance.absolute = 0.1;
  tolerance.relative = 0.002;
  const auto difference = tools::compare("y", Tensor::of<float>({3}, {1001.95F, 2.0F, 3.5F}),
                                         Tensor::of<float>({3}, {1000.0F, 0.5F, 3.0F}), tolerance);
  EXPECT_NEAR(difference.max_abs, 1.95, 1e-3);
  EXPECT_THAT(difference.message,
              AllOf(HasSubstr("2 of 3 values differ"), HasSubstr("at [1]: got 2, expected 0.5")));
}

TEST(Compare, WhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor expected = Tensor::of<float>({3}, {nan, infinity, 1.0f});
  EXPECT_TRUE(compare(expected, expected).agrees);
  for (const std::vector<float>& other : {std::vector<float>{0, infinity, 1},
                                          {nan, -infinity, 1},
                                          {nan, 3e38f, 1},
                                          {nan, infinity, nan}}) {
    const auto difference = compare(Tensor::of<float>({3}, other), expected);
    EXPECT_FALSE(difference.agrees);
    EXPECT_TRUE(std::isinf(difference.max_abs));
  }
}

TEST(Compare, AFractionOfTheElementsMayExceedTheTolerance) {
  std::vector<float> values(1000, 1.0f);
  const Tensor expected = Tensor::of<float>({1000}, values);
  const auto agrees = [&](double mismatches) {
    tools::Tolerance tolerance;
    tolerance.mismatches = mismatches;
    return tools::compare("y", Tensor::of<float>({1000}, values), expected, tolerance).agrees;
  };
  values[7] = 1.05f;
  EXPECT_TRUE(agrees(1e-3));
  EXPECT_FALSE(agrees(0));
  values[8] = 1.05f;
  EXPECT_FALSE(agrees(1e-3));
  values[8] = 1.0f;
  values[7] = 1.2f;  // by more than 0.1 of the largest value
  EXPECT_FALSE(agrees(1e-3));
}

TEST(Compare, IntegersAndShapes) {
  const Tensor bytes = Tensor::of<std::uint8_t>({2}, {10, 20});
  EXPECT_TRUE(compare(Tensor::of<std::uint8_t>({2}, {11, 19}), bytes).agrees);
  EXPECT_FALSE(compare(Tensor::of<std::uint8_t>({2}, {12, 20}), bytes).agrees);
  const Tensor words = Tensor::of<std::int32_t>({2}, {10, 20});
  EXPECT_FALSE(compare(Tensor::of<std::int32_t>({2}, {11, 20}), words).agrees);
  EXPECT_FALSE(compare(Tensor::of<std::int32_t>({1, 2}, {10, 20}), words).agrees);
  const std::int64_t beyond_double = (std::int64_t{1} << 53) + 1;
  const Tensor large = Tensor::of<std::int64_t>({2}, {0, beyond_double});
  EXPECT_TRUE(compare(large, large).agrees);
  const auto off = compare(Tensor::of<std::int64_t>({2}, {0, beyond_double - 1}), large);
  EXPECT_THAT(off.message, HasSubstr("at [1]: got 9007199254740992, expected 9007199254740993"));
  EXPECT_EQ(off.max_abs, 1.0);
  const Tensor least = Tensor::of<std::int64_t>({1}, {std::numeric_limits<std::int64_t>::min()});
  EXPECT_FALSE(compare(Tensor::of<std::int64_t>({1}, {1}), least).agrees);
  EXPECT_FALSE(compare(Tensor::of<float>({2}, {10, 20}), words).agrees);
}

}  // namespace
}  // namespace bertcl::tests
