// SPDX-License-Identifier: Apache-2.0
// bertcl bench: shapes, streams, durations, the table of kernels.
#include <array>
#include <cstddef>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "onnx/proto.hpp"
#include "program_runner.hpp"
#include "runtime/session.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"
#include "tools/measure/request_load.hpp"
#include "tools/options/model_options.hpp"

namespace bertcl::tests {
namespace {

using BenchTest = FolderTest;

TEST_F(BenchTest, JsonHasLatencyAndKernels) {
  const nlohmann::json whole =
      json_of({"bench", kModel, "--batch", "2", "--seq", "16", "--runs", "5", "--warmup", "1"});
  EXPECT_EQ(whole.at("path"), kModel);
  EXPECT_EQ(whole.at("streams"), 1);
  EXPECT_GT(whole.at("load_ms").at("plan"), 0.0);
  ASSERT_EQ(whole.at("rows").size(), 1u);
  const nlohmann::json& json = whole.at("rows")[0];
  EXPECT_EQ(json.at("batch"), 2);
  EXPECT_EQ(json.at("seq"), 16);
  EXPECT_EQ(json.at("tokens"), 32);
  EXPECT_EQ(json.at("runs"), 5);
  EXPECT_GT(json.at("first_run_ms"), 0.0);
  const nlohmann::json& latency = json.at("latency_ms");
  EXPECT_GT(latency.at("min"), 0.0);
  EXPECT_LE(latency.at("min"), latency.at("p50"));
  EXPECT_LE(latency.at("p50"), latency.at("p95"));
  EXPECT_LE(latency.at("p95"), latency.at("p99"));
  EXPECT_GE(latency.at("mean"), latency.at("min"));
  // One stream: runs follow one another.
  EXPECT_GE(json.at("seconds").get<double>(), 5 * latency.at("min").get<double>() / 1000);
  EXPECT_NEAR(json.at("sequences_per_second").get<double>(),
              2 * 5 / json.at("seconds").get<double>(), 1e-6);
  EXPECT_NEAR(json.at("tokens_per_second").get<double>(),
              16 * json.at("sequences_per_second").get<double>(), 1e-6);
  double calls = 0, operations = 0;
  for (const auto& kernel : json.at("kernels")) {
    for (const char* key : {"name", "op", "type"}) EXPECT_TRUE(kernel.at(key).is_string()) << key;
    calls += kernel.at("calls").get<double>();
    operations += kernel.at("gops").get<double>() * kernel.at("ms").get<double>() * 1e6;
    EXPECT_GT(kernel.at("gbps"), 0.0) << kernel;
  }
  EXPECT_EQ(calls, json_of({"inspect", kModel}).at("launches"));
  // Six layers of 12 * 384^2 weights, and the head: each multiplied and added for each token.
  const double linears = 32 * 2.0 * (6 * 12 * 384 * 384 + 2 * 384);
  const double attention = 6 * 2 * 4.0 * 16 * 16 * 384;
  EXPECT_NEAR(operations, linears + attention, 0.01 * linears);
}

TEST(RandomInputs, AFloatMaskIsOnes) {
  const runtime::Session session =
      runtime::Session::compile(ir::parse(R"(graph g(%attention_mask: f32[batch, seq]) {
  %y: f32[batch, seq] = Relu(%attention_mask)
  return %y as y
})"));
  const auto inputs = tools::random_inputs(session, {2, 3}, 10);
  EXPECT_THAT(inputs.at("attention_mask").to_doubles(), Each(1.0));
}

TEST_F(BenchTest, AllSizesAreCheckedBeforeOneIsMeasured) {
  expect_refused({"bench", kModel, "--batch", "1", "--seq", "128,513", "--duration", "100000"},
                 {kModel, "513"});
}

TEST_F(BenchTest, KernelsOfSeveralShapesAreShownWhereAskedFor) {
  const ProgramResult result = succeeded(run_bertcl(
      {"bench", kModel, "--batch", "1,2", "--seq", "16", "--runs", "2", "--profiled", "1"}));
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("batch 2, sequence 16"), HasSubstr("attention"), HasSubstr("GB/s")));
}

TEST(Percentile, IsInterpolatedAsNumpyDoes) {
  tools::LoadResult load;
  const auto all = [&](std::vector<double> sorted) {
    load.latencies = std::move(sorted);
    return std::vector{load.percentile(0), load.percentile(50), load.percentile(95),
                       load.percentile(100)};
  };
  // numpy.percentile(values, [0, 50, 95, 100]) of NumPy 2.
  EXPECT_THAT(all({3}), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(all({1, 2}), ElementsAre(1, 1.5, DoubleEq(1.95), 2));
  EXPECT_THAT(all({1, 2, 7}), ElementsAre(1, 2, DoubleEq(6.5), 7));
  EXPECT_THAT(all({1, 2, 4, 10}), ElementsAre(1, 3, DoubleEq(9.1), 10));
}

TEST_F(BenchTest, TheMedianOfTwoRunsIsTheirMean) {
  const nlohmann::json latency =
      json_of({"bench", kModel, "--batch", "1", "--seq", "16", "--runs", "2"})
          .at("rows")[0]
          .at("latency_ms");
  EXPECT_NEAR(latency.at("p50").get<double>(), latency.at("mean").get<double>(), 1e-9);
}

/// The default model for sequences of one length alone.
std::string fixed_model(std::int64_t batch, std::int64_t seq) {
  std::ifstream file(kModel, std::ios::binary);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromIstream(&file));
  for (auto& input : *model.mutable_graph()->mutable_input()) {
    auto* shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->mutable_dim(0)->set_dim_value(batch);
    shape->mutable_dim(1)->set_dim_value(seq);
  }
  return model.SerializeAsString();
}

TEST_F(BenchTest, ShapesThatTheFileFixesAreTaken) {
  const std::string model = write("fixed.onnx", fixed_model(2, 16));
  const nlohmann::json json =
      json_of({"bench", model, "--runs", "1", "--warmup", "0"}).at("rows").at(0);
  EXPECT_EQ(json.at("batch"), 2);
  EXPECT_EQ(json.at("seq"), 16);
  EXPECT_EQ(json.at("tokens"), 32);
  EXPECT_EQ(json_of({"inspect", model}).at("seq"), 16);
  EXPECT_EQ(json_of({"inspect", model, "--batch", "2", "--seq", "16"}).at("batch"), 2);
  expect_refused({"bench", model, "--seq", "128"}, {"fixed.onnx", "i64[2, 16]", "--seq 128"});
  expect_refused({"inspect", model, "--batch", "1"}, {"--batch 1"});
}

/// Rows of a table of six, chosen by token ids, or by these plus one.
std::string table_of_six(bool by_sum) {
  quant::tests::GraphBuilder g(17);
  g.input("input_ids", {2, 8});
  g.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::INT64);
  const std::string ids =
      by_sum ? g.node("Add", {"input_ids", g.ints("one", {1})}, "sum") : std::string("input_ids");
  g.node("Gather", {g.weight("table", {6, 4}, std::vector<float>(24, 0.5f)), ids}, "rows");
  g.node("Relu", {"rows"}, "last_hidden_state");
  g.output("last_hidden_state", {2, 8, 4});
  return g.model().SerializeAsString();
}

TEST_F(BenchTest, RandomIdsFitTheTableOfEmbeddings) {
  const std::vector<std::string> once{"--runs", "1", "--warmup", "0", "--profiled", "0"};
  const auto bench = [&](const std::string& model, std::vector<std::string> more = {}) {
    return run_bertcl(joined(joined({"bench", model}, once), more));
  };
  const std::string bert =
      write("bert.onnx", quant::tests::TinyBert().builder().model().SerializeAsString());
  EXPECT_EQ(bench(bert, {"--seq", "8"}).code, 0) << bench(bert, {"--seq", "8"}).err;
  const std::string table = write("table.onnx", table_of_six(false));
  EXPECT_EQ(bench(table).code, 0) << bench(table).err;
  expect_refused(bench(table, {"--ids", "100000"}), {"below 100000 (--ids)"});
  const std::string unknown = write("unknown.onnx", table_of_six(true));
  expect_refused(bench(unknown), {"vocabulary", "below 20000 (--ids)"});
  EXPECT_EQ(bench(unknown, {"--ids", "5"}).code, 0);
}

TEST_F(BenchTest, SizesBeyondAnyMemoryAreRefused) {
  const auto refused = [](const char* batch, const char* seq) {
    return refusal(run_bertcl({"bench", kModel, "--batch", batch, "--seq", seq}));
  };
  // Known before memory is taken for inputs.
  EXPECT_THAT(refused("300000", "512"), HasSubstr("exceed the limit of"));
  EXPECT_THAT(refused("2000000000", "2000000000"),
              HasSubstr("a batch of 4000000000000000000 tokens is too large"));
}

TEST_F(BenchTest, AbsentPrecisionIsNoted) {
  const auto notes = [](const std::string& precision, const std::string& gemm = "auto") {
    return run_bertcl({"bench", kModel, "--seq", "8", "--runs", "1", "--warmup", "0", "--precision",
                       precision, "--gemm", gemm},
                      {{"BERTCL_DISABLE", "avx512_bf16,fp16"}})
        .err;
  };
  EXPECT_EQ(notes("bf16"), "bertcl: " + kModel +
                               ": --precision bf16: the device has no avx512_bf16, float GEMMs "
                               "run in fp32\n");
  EXPECT_EQ(notes("fp16"), "") << "own kernels read weights in half on every device";
  EXPECT_EQ(notes("fp16", "clblast"),
            "bertcl: " + kModel +
                ": --precision fp16: the device has no fp16 arithmetic for CLBlast; bertcl's "
                "kernels are used instead: they read fp16 weights, and multiply in fp16 if the "
                "device has matrix_f16\n");
}

TEST_F(BenchTest, EveryBatchIsMeasuredWithEveryLength) {
  const nlohmann::json json =
      json_of({"bench", kModel, "--batch", "1,2", "--seq", "8,16", "--runs", "2", "--warmup", "0"});
  std::vector<std::pair<int, int>> shapes;
  for (const auto& row : json.at("rows")) {
    shapes.emplace_back(row.at("batch"), row.at("seq"));
    EXPECT_EQ(row.at("runs"), 2);
    EXPECT_TRUE(row.at("kernels").empty()) << "none is asked for";
  }
  EXPECT_THAT(shapes,
              ElementsAre(std::pair(1, 8), std::pair(1, 16), std::pair(2, 8), std::pair(2, 16)));
  const ProgramResult text =
      run_bertcl({"bench", kModel, "--batch", "1,2", "--seq", "8", "--runs", "2", "--warmup", "0"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("sequences/s"), HasSubstr("p99 ms"), HasSubstr("loaded")));
  expect_refused({"bench", kModel, "--batch", "1,0"}, {"'0' is out of range (1 or more)"});
  expect_refused({"bench", kModel, "--batch", "1,x"}, {"'x' is not an integer"});
  expect_refused({"bench", kModel, "--threads", "4097"}, {"'4097' is out of range (0 to 4096)"});
  for (const char* list : {"1,,2", "1,", ",1"})
    expect_refused({"bench", kModel, "--batch", list}, {"--batch: '' is not an integer"});
}

TEST_F(BenchTest, StreamsShareOneSession) {
  const nlohmann::json json = json_of({"bench", kModel, "--seq", "8", "--runs", "24", "--warmup",
                                       "2", "--streams", "6", "--profiled", "0"});
  EXPECT_EQ(json.at("streams"), 6);
  const nlohmann::json& row = json.at("rows").at(0);
  EXPECT_EQ(row.at("runs"), 24) << "of all streams";
  // Runs overlap: together they take longer than the time that passes.
  EXPECT_GT(24 * row.at("latency_ms").at("mean").get<double>(),
            1.5 * 1000 * row.at("seconds").get<double>());
}

TEST(RequestLoad, WarmUpRunsAreThoseOfEachStream) {
  for (const auto& [streams, warmup, expected] :
       {std::array{1, 0, 1}, {1, 1, 1}, {1, 3, 3}, {4, 0, 1}, {4, 1, 4}, {4, 3, 12}}) {
    std::mutex mutex;
    std::map<std::thread::id, int> runs;
    tools::LoadOptions options;
    options.streams = streams;
    options.warmup = warmup;
    options.runs = 7;
    const auto run = [&] {
      const std::lock_guard lock(mutex);
      ++runs[std::this_thread::get_id()];
    };
    tools::measure_load(run, options, [](std::size_t, std::size_t) {});
    int all = 0, warmed = 0;
    for (const auto& [thread, count] : runs) {
      all += count;
      warmed += count >= warmup;
    }
    EXPECT_EQ(all, expected + 7) << streams << " streams, --warmup " << warmup;
    EXPECT_GE(warmed, warmup > 0 ? streams : 0) << "--warmup " << warmup;
  }
}

TEST_F(BenchTest, ADurationTakesThePlaceOfRuns) {
  const nlohmann::json row = json_of({"bench", kModel, "--seq", "8", "--duration", "0.3",
                                      "--warmup", "0", "--profiled", "0"})
                                 .at("rows")
                                 .at(0);
  EXPECT_GE(row.at("seconds"), 0.29) << "the last run ends about then";
  EXPECT_LE(row.at("seconds"), 5.0) << "a run that has begun ends, on a busy machine too";
  EXPECT_EQ(json_of({"bench", kModel, "--seq", "8", "--duration", "0.000001", "--warmup", "0",
                     "--profiled", "0"})
                .at("rows")
                .at(0)
                .at("runs"),
            1);
  expect_refused({"bench", kModel, "--duration", "1", "--runs", "3"}, {"--duration", "--runs"});
}

TEST_F(BenchTest, ARunThatFailsIsTold) {
  expect_refused(
      {"bench", kModel, "--seq", "8", "--ids", "4000000", "--streams", "3", "--batch", "64"},
      {"vocabulary"});
}

TEST_F(BenchTest, TableHasASum) {
  const ProgramResult result = succeeded(run_bertcl(
      {"bench", kModel, "--seq", "8", "--runs", "2", "--warmup", "0", "--threads", "1"}));
  EXPECT_THAT(result.out, AllOf(HasSubstr("p95"), HasSubstr("tokens/s"), HasSubstr("\nall ")));
}

}  // namespace
}  // namespace bertcl::tests
