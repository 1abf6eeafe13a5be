// SPDX-License-Identifier: Apache-2.0
// Scale tables: what is written is read back, files of other programs are read, damage is named.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "bertcl/error.hpp"
#include "quant/tables/table.hpp"
#include "support/pending_file.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "text/base/file.hpp"

namespace bertcl::quant::tests {
namespace {

/// A flatbuffers table {"x": "2.5", "y z": "1.0"} in onnxruntime's own bytes, made by
/// write_calibration_table of onnxruntime 1.31.1 with flatbuffers 25.12.19.
constexpr unsigned char kOnnxruntimeFlatbuffers[] = {
    12, 0,  0,  0, 0,  0, 6, 0, 8,   0,   4,   0,   6,  0,  0,  0, 4,  0, 0, 0, 2,   0, 0, 0,
    8,  0,  0,  0, 40, 0, 0, 0, 228, 255, 255, 255, 8,  0,  0,  0, 12, 0, 0, 0, 3,   0, 0, 0,
    49, 46, 48, 0, 3,  0, 0, 0, 121, 32,  122, 0,   8,  0,  12, 0, 8,  0, 4, 0, 8,   0, 0, 0,
    8,  0,  0,  0, 12, 0, 0, 0, 3,   0,   0,   0,   50, 46, 53, 0, 1,  0, 0, 0, 120, 0, 0, 0};

void write_table(const std::filesystem::path& path, const ScaleTable& table,
                 const ScaleTableFormat& format) {
  write_file(path, table_text(table, format));
}

class Tables : public testing::Test {
 protected:
  std::filesystem::path file(std::string_view bytes) {
    const auto path = folder_ / "table";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  ScaleTable read(std::string_view bytes) { return read_table(file(bytes)).table; }
  auto fails(std::string_view bytes, const testing::Matcher<const std::string&>& message) {
    EXPECT_ERROR(message, read(bytes)) << bytes;
  }

  const bertcl::tests::ScratchFolder folder_;
};

ScaleTable random_table(std::size_t tensors) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> exponent(-20.0f, 20.0f);
  std::normal_distribution<float> normal;
  ScaleTable table{{}, "percentile", 128, 20973, std::string(64, 'a')};
  for (std::size_t i = 0; i < tensors; ++i) {
    const float scale = std::exp2(exponent(generator));
    const float a = normal(generator) * scale, b = normal(generator) * scale;
    table.ranges["/layer." + std::to_string(i) + "/Add: output 0 \"ü\""] = {std::min(a, b),
                                                                            std::max(a, b)};
  }
  table.ranges["zero"] = {0.0f, 0.0f};
  table.ranges["whole"] = {-3.0f, 2.0f};
  table.ranges["large"] = {-1e30f, std::numeric_limits<float>::max()};
  return table;
}

TEST_F(Tables, AreReadAsTheyWereWritten) {
  const ScaleTable table = random_table(200);
  for (const ScaleTableFormat& format : table_formats()) {
    const auto path = folder_ / ("ranges" + std::string(format.extension));
    write_table(path, table, format);
    const ReadTable found = read_table(path);
    EXPECT_EQ(found.format->name, format.name) << "the content shows the format";
    ASSERT_EQ(found.table.ranges.size(), table.ranges.size()) << format.name;
    for (const auto& [tensor, range] : table.ranges) {
      const Range expected = format.magnitudes ? symmetric_range(magnitude(range)) : range;
      const Range actual = found.table.ranges.at(tensor);
      if (format.name != "tensorrt") {
        EXPECT_EQ(actual, expected) << format.name << " " << tensor;
        continue;
      }
      // It stores a scale: the magnitude may move by its last bit, the scale may not.
      EXPECT_FLOAT_EQ(actual.high, expected.high) << tensor;
      const Scheme s8{ir::DType::i8, true};
      EXPECT_EQ(parameters_of(actual, s8), parameters_of(expected, s8)) << tensor;
    }
    EXPECT_EQ(format.parse(text::read_file(path)).ranges, found.table.ranges);
  }
  EXPECT_EQ(read_table(folder_ / "ranges.flatbuffers").table.method, "");
}

TEST_F(Tables, OwnFormatKeepsWhereTheRangesComeFrom) {
  const ScaleTable table = random_table(1);
  const auto path = folder_ / "ranges.json";
  write_table(path, table, table_format("", path));
  const ScaleTable found = read_table(path).table;
  EXPECT_EQ(found.method, "percentile");
  EXPECT_EQ(found.samples, 128);
  EXPECT_EQ(found.tokens, 20973);
  EXPECT_EQ(found.data_sha256, table.data_sha256);
}

// Texts as json.dumps of onnxruntime 1.31.1 and 1.10 give them.
TEST_F(Tables, ReadsEverySpellingOfOnnxruntime) {
  const std::map<std::string, Range> expected{{"x", {-1.5f, 0.2f}}, {"y", {0.0f, 1.0f}}};
  const std::string x =
      R"("x": {"lowest": {"data": -1.5, "dtype": "float32", "CLS": "numpy.array"}, )"
      R"("highest": {"data": [0.20000000298023224], "dtype": "float32", "CLS": "numpy.array"}, )"
      R"("hist": {"data": [1, 2], "dtype": "int64", "CLS": "numpy.array"}, "CLS": "TensorData"})";
  const std::string y = R"("y": {"lowest": 0.0, "highest": 1.0, "CLS": "TensorData"})";
  const ScaleTable whole = read(
      R"({"CLS": "TensorsData", "data": {)" + x + ", " + y +
      R"(}, "calibration_method": {"CLS": "CalibrationMethod", "value": "CalibrationMethod.Entropy"}})");
  EXPECT_EQ(whole.ranges, expected);
  EXPECT_EQ(whole.method, "entropy");
  EXPECT_THAT(kOnnxruntimeTable.format(whole), HasSubstr("\"CalibrationMethod.Entropy\""));
  const ScaleTable other = read(R"({"CLS": "TensorsData", "data": {)" + x + ", " + y +
                                R"(}, "calibration_method": "Entropy"})");
  EXPECT_EQ(other.ranges, expected);
  EXPECT_EQ(other.method, "");
  EXPECT_EQ(read("{" + x + ", " + y + "}").ranges, expected);
  EXPECT_EQ(read(R"({"x": [-1.5, 0.2], "y": [[0.0], [1.0]]})").ranges, expected);
}

TEST_F(Tables, ReadsTheFlatbuffersOfOnnxruntime) {
  const ReadTable found = read_table(file(
      {reinterpret_cast<const char*>(kOnnxruntimeFlatbuffers), sizeof kOnnxruntimeFlatbuffers}));
  EXPECT_EQ(found.format->name, "flatbuffers");
  EXPECT_EQ(found.table.ranges,
            (std::map<std::string, Range>{{"x", {-2.5f, 2.5f}}, {"y z", {-1.0f, 1.0f}}}));
}

// The example of TensorRT's sampleINT8, and names as its ONNX parser gives them.
TEST_F(Tables, ReadsTheCacheOfTensorRt) {
  const ReadTable found = read_table(
      file("TRT-7000-EntropyCalibration2\r\ndata: 3c008912\r\nprob: 3c010a14\r\n"
           "(Unnamed Layer* 22) [Constant]_output: 3a4b050c\nonnx::Conv_348: 00000000\n"));
  EXPECT_EQ(found.format->name, "tensorrt");
  EXPECT_EQ(found.table.method, "EntropyCalibration2");
  ASSERT_EQ(found.table.ranges.size(), 4u);
  EXPECT_FLOAT_EQ(found.table.ranges.at("prob").high, 1.00024414f);
  EXPECT_FLOAT_EQ(found.table.ranges.at("prob").low, -1.00024414f);
  EXPECT_EQ(found.table.ranges.at("onnx::Conv_348"), Range{});
}

TEST_F(Tables, CacheIsTextThatPythonReads) {
  ScaleTable table;
  table.ranges = {{"b", {-10.0f, 1.0f}}, {"a c", {0.0f, 0.2f}}, {"d", {-1e-7f, 0.0f}}};
  EXPECT_EQ(kTextTable.format(table),
            "a c 0.20000000298023224\nb 10.0\nd 1.0000000116860974e-07\n");
  // The larger end with its sign, as onnxruntime writes it.
  EXPECT_EQ(read("x -0.5\n").ranges.at("x"), (Range{-0.5f, 0.5f}));
}

TEST_F(Tables, ANameOfTwoLinesIsRefusedWhereItWouldNotBeRead) {
  ScaleTable table;
  table.ranges = {{"a\nb", {0.0f, 1.0f}}};
  for (const ScaleTableFormat& format : table_formats()) {
    const bool has_lines = format.name == "cache" || format.name == "tensorrt";
    const auto path = folder_ / "t";
    const std::string error = error_of([&] { write_table(path, table, format); });
    EXPECT_THAT(error, has_lines ? HasSubstr("its name has a line break") : HasSubstr(kNoError));
    if (!has_lines) {
      EXPECT_EQ(read_table(path).table.ranges.size(), 1u) << format.name;
    }
  }
}

TEST_F(Tables, ANameOfOtherBytesThanTextIsRefusedByJson) {
  ScaleTable table;
  table.ranges = {{"a\xff", {0.0f, 1.0f}}};
  for (const ScaleTableFormat& format : table_formats()) {
    const bool is_json = format.extension == ".json";
    const std::string error = error_of([&] { write_table(folder_ / "t", table, format); });
    EXPECT_THAT(error, is_json ? HasSubstr("its name is invalid UTF-8") : HasSubstr(kNoError));
  }
}

TEST_F(Tables, FormatIsChosenByNameOrExtension) {
  EXPECT_EQ(table_format("", "a/b.json").name, "json");
  EXPECT_EQ(table_format("", "a/b.cache").name, "cache");
  EXPECT_EQ(table_format("", "a/b.flatbuffers").name, "flatbuffers");
  EXPECT_EQ(table_format("tensorrt", "a/b.json").name, "tensorrt");
  EXPECT_ERROR(AllOf(HasSubstr("a/b.txt"), HasSubstr("onnxruntime")), table_format("", "a/b.txt"));
  EXPECT_ERROR(AllOf(HasSubstr("'caffe'"), HasSubstr("tensorrt")),
               table_format("caffe", "a/b.json"));
}

TEST_F(Tables, SayWhatIsWrong) {
  fails("", HasSubstr("not a scale table"));
  fails("hello\n", HasSubstr("not a scale table"));
  fails("{}", HasSubstr("lists no tensor"));
  EXPECT_ERROR(HasSubstr("invalid JSON"), kOnnxruntimeTable.parse("{\"x\": "));
  fails(R"({"x": 3})", HasSubstr("x has no 'lowest'"));
  fails(R"({"x": {"avg": 1, "std": 2}})", HasSubstr("'lowest' and 'highest'"));
  fails(R"({"x": [[1, 2], [3, 4]]})", HasSubstr("per_channel"));
  fails(R"({"x": ["a", 3]})",
        HasSubstr("x[0] is of type string, expected the number of the lower"));
  fails(R"({"x": {"lowest": {"dtype": "float32"}, "highest": 1}})",
        HasSubstr("x.lowest.data is missing"));
  fails(R"({"CLS": "TensorsData", "data": [1]})", HasSubstr("data is of type array"));
  fails(R"({"CLS": "TensorsData"})", HasSubstr("data is missing"));
  fails(R"({"x": [0, 1e999]})", HasSubstr("1e999"));
  fails(R"({"x": [2, 1]})", AllOf(HasSubstr("'x'"), HasSubstr("[2, 1] is not a range")));
  fails(R"({"x": [-1e99, 1]})", HasSubstr("is not a range"));
  fails(R"({"format": "bertcl-ranges", "version": 2, "ranges": {}})", HasSubstr("version is 2"));
  fails(R"({"format": "bertcl-ranges", "version": 1, "ranges": {"x": {"low": 1}}})",
        HasSubstr("ranges.x.high is missing"));
  fails(R"({"format": "bertcl-ranges", "version": 1, "ranges": {"x": {"low": "1", "high": 2}}})",
        HasSubstr("ranges.x.low is of type string, expected number"));
  fails(R"({"format": "bertcl-ranges", "version": 1, "ranges": [1]})",
        HasSubstr("ranges is of type array"));
  fails(R"({"format": "bertcl-ranges", "version": 1, "samples": "8", "ranges": {}})",
        HasSubstr("samples is of type string"));
  EXPECT_ERROR(AllOf(HasSubstr("'x'"), HasSubstr("twice")), kTextTable.parse("x 1.0\nx 2.0\n"));
  EXPECT_ERROR(HasSubstr("line 2"), kTextTable.parse("x 1.0\ny\n"));
  EXPECT_ERROR(HasSubstr("'1.0e'"), kTextTable.parse("x 1.0e\n"));
  fails("x nan\n", HasSubstr("is not a range"));
  EXPECT_ERROR(HasSubstr("line 1"), kTensorrtTable.parse("x: 3c010a14\n"));
  fails("TRT-1-A\nx: 3c010a1g\n", HasSubstr("'3c010a1g'"));
  fails("TRT-1-A\nx: 7f800000\n", HasSubstr("is not a range"));
  fails("TRT-1-A\nx: bf800000\n", HasSubstr("'x': negative scale -1"));
  fails("TRT-1-A\nx 1\n", HasSubstr("line 2"));
  EXPECT_ERROR(AllOf(HasSubstr("none"), HasSubstr("No such file")), read_table(folder_ / "none"));
  EXPECT_ERROR(HasSubstr("is a directory"), read_table(folder_.path()));
}

TEST_F(Tables, AJsonFileThatIsCutIsNoOtherFormat) {
  const ScaleTable table = random_table(3);
  for (const ScaleTableFormat* format : {&kJsonTable, &kOnnxruntimeTable}) {
    const std::string whole = format->format(table);
    for (const std::size_t size : {whole.size() / 2, whole.size() - 3})
      fails(whole.substr(0, size), AllOf(HasSubstr((folder_ / "table").string()),
                                         HasSubstr("read as " + std::string(format->name)),
                                         HasSubstr("invalid JSON: unexpected end")));
  }
}

// Damage anywhere is an error or another table; never a crash or a read outside the file.
TEST_F(Tables, SurviveDamage) {
  std::mt19937 generator(5);
  const ScaleTable table = random_table(4);
  for (const ScaleTableFormat& format : table_formats()) {
    const std::string whole = format.format(table);
    for (int round = 0; round < 300; ++round) {
      std::string bytes = whole.substr(0, round % 2 ? whole.size() : generator() % whole.size());
      for (int i = 0; !bytes.empty() && i < 3; ++i)
        bytes[generator() % bytes.size()] = static_cast<char>(generator());
      try {
        format.recognizes(bytes);
        format.parse(bytes);
      } catch (const Error&) {
      }
    }
  }
}

TEST_F(Tables, AreWrittenWholeOrNotAtAll) {
  ScaleTable table;
  table.ranges["x"] = {0.0f, INFINITY};
  EXPECT_ERROR(HasSubstr("'x'"), write_table(folder_ / "t.json", table, kJsonTable));
  table.ranges["x"] = {0.0f, 1.0f};
  EXPECT_ERROR(HasSubstr("absent"), write_table(folder_ / "absent" / "t.json", table, kJsonTable));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace bertcl::quant::tests
