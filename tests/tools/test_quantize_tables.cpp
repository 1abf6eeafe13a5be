// SPDX-License-Identifier: Apache-2.0
// bertcl quantize with scale tables: written, read in place of calibration, and refused.
#include "program_runner.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

class QuantizeTablesTest : public FolderTest {
 protected:
  ProgramResult quantize(const std::string& output, std::vector<std::string> more) const {
    return run_bertcl(joined({"quantize", kModel, "-o", path(output), "--force"}, more));
  }
  /// The scales of a report by tensor.
  std::map<std::string, std::pair<double, int>> parameters(const std::string& report) const {
    std::map<std::string, std::pair<double, int>> all;
    for (const auto& t : read_json(path(report)).at("tensors"))
      all[t.at("tensor")] = {t.at("scale"), t.at("zero_point")};
    return all;
  }
};

TEST_F(QuantizeTablesTest, ATableGivesTheModelOfItsCalibration) {
  const std::vector<std::string> data = {"--data", kCalibration, "--samples", "4"};
  // A table holds ranges; GPTQ needs the samples themselves.
  const ProgramResult made = succeeded(quantize(
      "a.onnx", joined(data, {"--weight-rounding", "nearest", "--write-table", path("t.json")})));
  EXPECT_THAT(made.out, HasSubstr("t.json: ranges of 49 activations, format json"));
  EXPECT_THAT(made.out, HasSubstr("without smoothing: a table holds the per-tensor ranges"));

  const ProgramResult again =
      succeeded(quantize("b.onnx", {"--read-table", path("t.json"), "--json", path("b")}));
  EXPECT_THAT(again.out, HasSubstr("without smoothing, GPTQ: "));
  EXPECT_EQ(read_json(path("b")).at("left_out_by_table"), nlohmann::json({"smoothing", "GPTQ"}));
  EXPECT_THAT(again.out, HasSubstr("t.json: ranges of 49 tensors, format json"));
  EXPECT_TRUE(read(path("a.onnx")) == read(path("b.onnx")));

  // A table keeps what it says of tensors that are not quantized when it is written in another
  // form.
  nlohmann::json table = read_json(path("t.json"));
  table["ranges"]["another"] = {{"low", -1.5}, {"high", 2.0}};
  ASSERT_EQ(quantize("e.onnx", {"--read-table", write("e.json", table.dump()), "--write-table",
                                path("f.json")})
                .code,
            0);
  EXPECT_EQ(read_json(path("f.json")), table);

  // onnxruntime's JSON keeps both ends, too.
  succeeded(quantize("c.onnx", {"--read-table", path("t.json"), "--write-table", path("o.json"),
                                "--table-format", "onnxruntime", "--json", path("c")}));
  ASSERT_EQ(quantize("d.onnx", {"--read-table", path("o.json"), "--json", path("d")}).code, 0);
  EXPECT_EQ(parameters("c"), parameters("d"));
}

// Symmetric integers need no more than magnitudes, which is what the other formats keep.
TEST_F(QuantizeTablesTest, MagnitudesGiveTheSameSymmetricModel) {
  succeeded(quantize("a.onnx", {"--activations", "i8", "--data", kCalibration, "--samples", "4",
                                "--json", path("a"), "--write-table", path("t.json")}));
  const auto expected = parameters("a");
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"flatbuffers", "t.flatbuffers"}, {"cache", "t.cache"}, {"tensorrt", "trt.cache"}};
  for (const auto& [format, file] : kinds) {
    succeeded(quantize("b.onnx", {"--read-table", path("t.json"), "--write-table", path(file),
                                  "--table-format", format}));
    succeeded(quantize("c.onnx",
                       {"--activations", "s8", "--read-table", path(file), "--json", path("c")}));
    EXPECT_EQ(parameters("c"), expected) << format;
  }
}

TEST_F(QuantizeTablesTest, WhatATableLeavesOutIsTold) {
  const std::vector<std::string> fast = {"--data",   kCalibration, "--samples", "2",
                                         "--preset", "fast",       "--json",    path("report")};
  const ProgramResult made =
      succeeded(quantize("a.onnx", joined(fast, {"--write-table", path("t.json")})));
  EXPECT_THAT(made.out, HasSubstr("without smoothing, per-channel scales: a table"));
  EXPECT_EQ(read_json(path("report")).at("left_out_by_table").size(), 2u);

  const ProgramResult plain = succeeded(quantize(
      "a.onnx",
      joined(fast, {"--write-table", path("t.json"), "--smooth", "off", "--no-add-channels"})));
  EXPECT_THAT(plain.out, Not(HasSubstr("without")));
  EXPECT_TRUE(read_json(path("report")).at("left_out_by_table").empty());
}

TEST_F(QuantizeTablesTest, RefusalsLeaveNoFile) {
  write("x.json", R"({"x": [0, 1]})");
  write("cut.json", R"({"format": "bertcl-ranges", "version": 1, "ran)");
  const std::string table = path("x.json");
  const auto refused = [&](const std::vector<std::string>& more) {
    const std::string message = refusal(quantize("q.onnx", more));
    EXPECT_THAT(files(), ElementsAre("cut.json", "x.json"));
    return message;
  };
  EXPECT_THAT(refused({}), AllOf(HasSubstr("--data"), HasSubstr("--read-table")));
  EXPECT_THAT(refused({"--data", kCalibration, "--read-table", table}),
              HasSubstr("cannot be combined"));
  EXPECT_THAT(refused({"--read-table", table}),
              AllOf(HasSubstr("the table does not name it"), HasSubstr("MatMul")));
  EXPECT_THAT(refused({"--read-table", path("none")}), HasSubstr("none: cannot open"));
  EXPECT_THAT(refused({"--read-table", kModel}), HasSubstr("not a scale table"));
  EXPECT_THAT(refused({"--read-table", path("cut.json")}),
              HasSubstr("cut.json: read as json: invalid JSON: unexpected end"));
  EXPECT_THAT(refused({"--data", kCalibration, "--overrides", path("cut.json")}),
              HasSubstr("cut.json: invalid JSON: unexpected end"));
  EXPECT_THAT(refused({"--read-table", table, "--write-table", path("t.txt")}),
              AllOf(HasSubstr("t.txt"), HasSubstr("flatbuffers")));
  EXPECT_THAT(refused({"--read-table", table, "--table-format", "cache"}),
              HasSubstr("--write-table"));
  EXPECT_THAT(refused({"--read-table", table, "--write-table", path("t"), "--table-format", "csv"}),
              HasSubstr("csv"));
}

}  // namespace
}  // namespace bertcl::tests
