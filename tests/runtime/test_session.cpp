// SPDX-License-Identifier: Apache-2.0
// The default model on the device against the plain host interpreter of the same file.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "bertcl/error.hpp"
#include "default_model.hpp"
#include "onnx/read_model.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/queue.hpp"
#include "ops/interpret.hpp"
#include "tests/support/failing_opencl.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::runtime {
namespace {

/// Largest difference over the real tokens.
double largest_difference(const ir::Tensor& a, const ir::Tensor& b,
                          const std::vector<std::int64_t>& lengths) {
  EXPECT_EQ(a.shape(), b.shape());
  const auto x = a.as<float>(), y = b.as<float>();
  const auto seq = static_cast<std::size_t>(a.shape()[1]);
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (static_cast<std::int64_t>(i % seq) >= lengths[i / seq]) continue;
    EXPECT_TRUE(std::isfinite(x[i])) << "element " << i;
    largest = std::max(largest, static_cast<double>(std::abs(x[i] - y[i])));
  }
  return largest;
}

TEST(Session, LogitsOfTheDefaultModelAreThoseOfTheHostInterpreter) {
  const std::vector<std::int64_t> lengths{9, 1, 17};
  const Tensors inputs = batch_of(lengths, 17, 1);
  const auto expected = ops::interpret(onnx_io::read_model(model), inputs);
  Session session = Session::load(model);
  const Tensors outputs = session.run(inputs);
  EXPECT_LT(largest_difference(outputs.at("start_logits"), expected[0], lengths), 1e-3);
  EXPECT_LT(largest_difference(outputs.at("end_logits"), expected[1], lengths), 1e-3);
  EXPECT_EQ(session.statistics().tokens, 27);
}

TEST(Session, PackedAndPaddedRunsAgreeOnRealTokens) {
  Session packed = Session::load(model);
  SessionOptions options;
  options.drop_padding = false;
  options.context = packed.shared_context();
  Session padded = Session::load(model, options);
  for (const auto& lengths :
       std::vector<std::vector<std::int64_t>>{{64, 1, 33}, {5}, {128, 2, 127, 3}}) {
    const std::int64_t seq = *std::max_element(lengths.begin(), lengths.end()) + 3;
    const Tensors inputs = batch_of(lengths, seq, 2);
    EXPECT_LT(largest_difference(packed.run(inputs).at("start_logits"),
                                 padded.run(inputs).at("start_logits"), lengths),
              1e-4);
  }
}

TEST(Session, GemmsByClblastAgreeWithOurs) {
  const std::vector<std::int64_t> lengths{31, 8};
  const Tensors inputs = batch_of(lengths, 31, 8);
  Session own = Session::load(model);
  SessionOptions options;
  options.context = own.shared_context();
  options.gemm = "clblast";
  Session clblast = Session::load(model, options);
  EXPECT_LT(largest_difference(clblast.run(inputs).at("start_logits"),
                               own.run(inputs).at("start_logits"), lengths),
            1e-3);
  options.gemm = "cublas";
  EXPECT_THROW(Session::load(model, options), Error);
}

TEST(Session, WeightsInHalfAndBf16AgreeWithFp32) {
  const std::vector<std::int64_t> lengths{31, 8};
  const Tensors inputs = batch_of(lengths, 31, 8);
  Session own = Session::load(model);
  const ir::Tensor expected = own.run(inputs).at("start_logits");
  SessionOptions options;
  options.context = own.shared_context();
  options.precision = ir::DType::f16;  // the weights of this model are halves in its file
  Session half = Session::load(model, options);
  EXPECT_LT(largest_difference(half.run(inputs).at("start_logits"), expected, lengths), 1e-4);
  options.precision = ir::DType::bf16;  // 8 bits of each factor, where the device multiplies them
  Session bf16 = Session::load(model, options);
  EXPECT_LT(largest_difference(bf16.run(inputs).at("start_logits"), expected, lengths), 0.2);
}

TEST(Session, EveryVariantGivesTheSameLogits) {
  const std::vector<std::int64_t> lengths{31, 8};
  const Tensors inputs = batch_of(lengths, 31, 9);
  Session fastest = Session::load(model);
  const ir::Tensor expected = fastest.run(inputs).at("end_logits");
  SessionOptions options;
  options.context = fastest.shared_context();
  for (const char* disabled :
       {"x86_avx512", "x86_avx512,x86_avx2", "x86_avx512,x86_avx2,x86",
        "x86_avx512,x86_avx2,portable,x86", "x86,group", "rows", "rows,subgroup"}) {
    options.disabled_kernels = disabled;
    Session session = Session::load(model, options);
    EXPECT_LT(largest_difference(session.run(inputs).at("end_logits"), expected, lengths), 1e-3)
        << disabled;
  }
}

TEST(Session, RecordedLaunchesGiveTheSame) {
  Session plain = Session::load(model);
  SessionOptions options;
  options.context = plain.shared_context();
  options.command_buffer = true;
  if (!plain.context().capabilities().command_buffer) {
    EXPECT_THROW(Session::load(model, options), Error);
    GTEST_SKIP() << "the device has no command buffers";
  }
  Session recorded = Session::load(model, options);
  for (const int seed : {1, 2}) {  // each shape is recorded once and replayed with other tokens
    for (const auto& lengths : std::vector<std::vector<std::int64_t>>{{20, 7}, {20, 7}, {64}}) {
      const Tensors inputs = batch_of(lengths, 64, seed);
      EXPECT_EQ(recorded.run(inputs), plain.run(inputs));
    }
    const Tensors inputs = batch_of({64}, 64, seed + 2);
    EXPECT_EQ(recorded.run(inputs), plain.run(inputs)) << "replayed";
    recorded.context().queue().enable_profiling(seed == 1);  // with another queue
  }
  const Tensors inputs = batch_of({64}, 64, 5);
  EXPECT_EQ(recorded.run(inputs), plain.run(inputs)) << "recorded for a queue that is gone";
  const int handlers = tests::exit_handlers();
  EXPECT_GT(handlers, 0);
  for (const std::int64_t length : {20, 64, 20}) recorded.run(batch_of({length}, length, 6));
  EXPECT_EQ(tests::exit_handlers(), handlers);
}

TEST(Session, WhatClblastComputesIsNotRecorded) {
  SessionOptions options;
  options.command_buffer = true;
  options.gemm = "clblast";
  EXPECT_THROW(Session::load(model, options), Error);
}

TEST(Session, ShapesMayChangeFromRunToRun) {
  Session session = Session::load(model);
  const std::vector<std::int64_t> lengths{20, 7};
  const Tensors inputs = batch_of(lengths, 20, 3);
  const ir::Tensor first = session.run(inputs).at("end_logits");
  session.run(batch_of({300}, 300, 4));
  session.run(batch_of({1}, 1, 5));
  EXPECT_EQ(session.run(inputs).at("end_logits"), first);
}

// Small-M GEMMs may have a variant of their own, which needs all arguments when it comes
// first.
TEST(Session, NumbersOfRowsMayAlternate) {
  Session session = Session::load(model);
  SessionOptions options;
  options.context = session.shared_context();
  options.disabled_kernels = "x86_vnni_small_m,x86_avx512_small_m,x86_avx2_small_m";
  Session one_build = Session::load(model, options);
  for (const std::int64_t n : {1, 40, 2, 33, 32, 1, 40}) {
    const Tensors inputs = batch_of({n}, n, static_cast<unsigned>(n));
    EXPECT_LT(largest_difference(session.run(inputs).at("start_logits"),
                                 one_build.run(inputs).at("start_logits"), {n}),
              1e-4)
        << n << " rows";
  }
}

TEST(Session, TellsWhereTheTimeOfLoadingWent) {
  const Session session = Session::load(model);
  const LoadTimes& t = session.load_times();
  for (const double part : {t.parse, t.passes, t.device, t.programs, t.plan}) {
    EXPECT_GT(part, 0);
    EXPECT_LT(part, t.total());
  }
}

TEST(Session, AccountsForEveryNodeOfTheFile) {
  SessionOptions options;
  options.follow_nodes = true;
  Session session = Session::load(model, options);
  const ir::Graph graph = onnx_io::read_model(model);
  ASSERT_EQ(session.node_statuses().size(), graph.source_nodes.size());
  std::map<passes::Status, int> counts;
  for (const passes::NodeStatus& node : session.node_statuses()) {
    ++counts[node.status];
    EXPECT_EQ(node.pass.empty(), node.status == passes::Status::computed) << node.name;
  }
  for (const passes::Status status : {passes::Status::computed, passes::Status::constant,
                                      passes::Status::size, passes::Status::absorbed})
    EXPECT_GT(counts[status], 0);
  for (const plan::Step& step : session.plan().steps) EXPECT_TRUE(step.kernel) << step.name;
}

// The child finds locks of the driver as other threads of its parent hold them at the fork.
TEST(Session, AForkedChildIsRefused) {
  Session session = Session::load(model);
  const Tensors inputs = batch_of({4}, 4, 6);
  session.run(inputs);
  const std::jthread user_of_the_driver(
      [context = session.shared_context()](const std::stop_token& stop) {
        while (!stop.stop_requested()) context->allocate(64);
      });
  for (int forks = 0; forks < 20; ++forks) {
    Session::Run run = session.start(inputs);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // ends a child that waits for threads of its parent
      const auto refused = [](auto&& work) {
        try {
          work();
        } catch (const Error& e) {
          return e.code() == ErrorCode::device &&
                 std::string(e.what()).find("fork") != std::string::npos;
        }
        return false;
      };
      const bool all = refused([&] { session.run(inputs); }) &&
                       refused([&] { Session::load(model); }) && refused([&] { run.finish(); });
      { const Session gone = std::move(session); }
      _exit(all ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    run.finish();
  }
  session.run(inputs);
}

/// The default model's file in a folder of the test, loaded on a CPU, which reads tables from it.
class OverwrittenFile : public testing::Test {
 protected:
  OverwrittenFile() { std::filesystem::copy_file(model, file_); }

  tests::ScratchFolder folder_;
  const std::filesystem::path file_ = folder_ / "model.onnx";
  const Tensors inputs_ = batch_of({5}, 5, 1);
};

TEST_F(OverwrittenFile, IsNamedByTheNextRun) {
  Session session = Session::load(file_);
  if (!session.context().info().is_cpu())
    GTEST_SKIP() << "the device has copies of the tables, which no writer of the file reaches";
  ASSERT_TRUE(session.plan().tables_in_place);
  const Tensors expected = session.run(inputs_);
  const auto begun = std::filesystem::last_write_time(file_);
  std::filesystem::copy_file(model, file_, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::last_write_time(file_, begun + std::chrono::milliseconds(1));
  EXPECT_ERROR(AllOf(HasSubstr(file_.string()), HasSubstr("was written to after it was loaded")),
               session.run(inputs_));
  EXPECT_EQ(Session::load(file_).run(inputs_), expected);
  std::filesystem::resize_file(file_, 4096);
  std::filesystem::last_write_time(file_, begun);
  EXPECT_ERROR(HasSubstr("load the model again"), session.run(inputs_));
}

TEST_F(OverwrittenFile, AnotherFileOfItsNameChangesNothing) {
  Session session = Session::load(file_);
  const Tensors expected = session.run(inputs_);
  std::filesystem::rename(folder_.write("next.onnx", "another file"), file_);
  EXPECT_EQ(session.run(inputs_), expected);
  std::filesystem::remove(file_);
  EXPECT_EQ(session.run(inputs_), expected);
}

TEST(Session, BadInputsAreNamed) {
  Session session = Session::load(model);
  const auto message = [&](Tensors inputs) { return error_of([&] { session.run(inputs); }); };
  EXPECT_THAT(message({}), HasSubstr("input 'input_ids'"));
  Tensors inputs = batch_of({4}, 4, 6);
  inputs["attention_mask"] = ir::Tensor::of<std::int64_t>({1, 5}, {1, 1, 1, 1, 1});
  EXPECT_THAT(message(inputs), HasSubstr("attention_mask"));
  inputs = batch_of({4}, 4, 6);
  inputs["labels"] = inputs["input_ids"];
  EXPECT_THAT(message(inputs), HasSubstr("no input 'labels'"));
  EXPECT_THAT(message(batch_of({513}, 513, 7)), HasSubstr("512"));
  inputs = batch_of({4}, 4, 6);
  inputs["input_ids"] = ir::Tensor::of<std::int64_t>({1, 4}, {1, 2, 3, 40000});
  EXPECT_THAT(message(inputs), HasSubstr("vocabulary"));
}

}  // namespace
}  // namespace bertcl::runtime
