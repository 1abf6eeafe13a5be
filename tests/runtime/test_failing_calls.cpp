// SPDX-License-Identifier: Apache-2.0
// OpenCL calls that fail: an error, and neither a crash nor memory that queued work still uses.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "default_model.hpp"
#include "opencl/queue.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/failing_opencl.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::runtime {
namespace {

using tests::FailingOpencl;

/// GEMMs one after the other, enough of them to share launches.
ir::Graph two_linears() {
  std::string text = "graph g(%x0: f32[batch, 8]) {\n  const %w: f32[8, 8] = splat 0.25\n";
  for (int i = 0; i < 20; ++i)
    text += fmt::format("  %x{1}: f32[batch, 8] = MatMul(%x{0}, %w)\n", i, i + 1);
  return ir::parse(text + "  return %x20 as y\n}");
}

Tensors linear_inputs() {
  return {{"x0", ir::Tensor::of<float>({2, 8}, {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1})}};
}

/// Takes the memory that was freed last, so that a late write is seen.
void reuse_freed_memory() {
  for (std::size_t size = 64; size <= 1 << 22; size *= 2) {
    const std::vector<char> block(size, 0x5a);
    EXPECT_EQ(std::ranges::count(block, 0x5a), static_cast<std::ptrdiff_t>(size));
  }
}

class FailingCalls : public testing::Test {
 protected:
  Tensors inputs_ = batch_of({200, 180, 200}, 200, 1);
  Session session_ = Session::load(model);
  Tensors expected_ = session_.run(inputs_);
};

// A wait fails, the device goes on: outputs live until it has written them.
TEST_F(FailingCalls, AWaitThatFailsKeepsWhatQueuedReadsWrite) {
  for (int round = 0; round < 5; ++round) {
    {
      Session::Run run = session_.start(inputs_);
      const FailingOpencl failing("clFinish");
      EXPECT_ERROR(HasSubstr("clFinish"), run.finish());
      reuse_freed_memory();
    }
    EXPECT_EQ(session_.run(inputs_), expected_);
  }
}

TEST_F(FailingCalls, WhatCannotBeWaitedForIsKeptUntilItCan) {
  for (int round = 0; round < 3; ++round) {
    {
      Session::Run run = session_.start(inputs_);
      tests::fail_opencl("clFinish", 1, 1000);
      tests::fail_opencl("clWaitForEvents", 1, 1000);
      EXPECT_ERROR(HasSubstr("waiting for the device"), run.finish());
      tests::mend_opencl();
      reuse_freed_memory();
    }
    EXPECT_EQ(session_.run(inputs_), expected_);
  }
}

// As NVIDIA's driver refuses it.
TEST_F(FailingCalls, ALaunchOfManyGroupsNamesTheLimit) {
  opencl::Context& context = session_.context();
  const opencl::Kernel kernel = context.kernel("copy_strided", "copy_strided_1");
  const FailingOpencl failing("clEnqueueNDRangeKernel", 1, 2);
  EXPECT_ERROR(HasSubstr("65535 work-groups along the second and third axis"),
               context.queue().launch(kernel, {1, 1, 65'536}, {1, 1, 1}));
  EXPECT_ERROR(HasSubstr("not enough memory or registers"),
               context.queue().launch(kernel, {1, 1, 65'535}, {1, 1, 1}));
}

// The session is gone, its work is not: arena, weights and staged inputs stay with the context.
TEST_F(FailingCalls, ASessionThatCannotBeWaitedForIsKept) {
  const std::shared_ptr<opencl::Context> context = session_.shared_context();
  const std::size_t before = context->allocated_bytes();
  SessionOptions options;
  options.context = context;
  {
    Session other = Session::load(model, options);
    other.start(inputs_);
    tests::fail_opencl("clFinish", 1, 1000);
    tests::fail_opencl("clWaitForEvents", 1, 1000);
  }
  EXPECT_GT(context->allocated_bytes(), before);
  tests::mend_opencl();
  context->queue().finish();
  EXPECT_EQ(context->allocated_bytes(), before);
  EXPECT_EQ(session_.run(inputs_), expected_);
}

// Some drivers hold launches back until then.
TEST_F(FailingCalls, AStartedRunIsFlushed) {
  const FailingOpencl none("clFlush", 1, 0);
  Session::Run run = session_.start(inputs_);
  EXPECT_GE(tests::opencl_calls("clFlush"), 1);
  EXPECT_EQ(run.finish(), expected_);
}

TEST_F(FailingCalls, AWrongEventIsFoundBeforeAnythingIsQueued) {
  opencl::Buffer ids = session_.context().allocate(4 * sizeof(std::int32_t));
  ids.fill(1);
  const std::int64_t offsets[] = {0, 4};
  _cl_event* const wrong[] = {nullptr};
  const FailingOpencl writes("clEnqueueWriteBuffer", 1, 0), fills("clEnqueueFillBuffer", 1, 0);
  EXPECT_ERROR(HasSubstr("events to wait for"),
               session_.start(DeviceSequences{{ids.front(16), 0, 16}, {}, offsets}, {}, wrong));
  EXPECT_EQ(tests::opencl_calls("clEnqueueWriteBuffer"), 0);
  EXPECT_EQ(tests::opencl_calls("clEnqueueFillBuffer"), 0);
  EXPECT_EQ(session_.run(inputs_), expected_);
}

// Numbers of calls: all of the first, then fewer and fewer of them.
int next_call(int call) { return call < 8 ? call + 1 : call + call / 2; }

TEST_F(FailingCalls, ARunMeetsEveryFailureWithAnErrorAndTheNextOneIsRight) {
  const Tensors small = batch_of({9}, 9, 2), expected = session_.run(small);
  int failed = 0;
  for (const char* function : tests::failing_functions())
    for (int call = 1;; call = next_call(call)) {
      // Another shape than that of the run before, so that all of it is bound anew.
      tests::fail_opencl(function, call);
      std::string error;
      try {
        EXPECT_EQ(session_.run(small), expected) << function << ", call " << call;
      } catch (const Error& e) {
        error = e.what();
        EXPECT_THAT(error, HasSubstr("CL_")) << function << ", call " << call;
        ++failed;
      }
      const bool reached = tests::opencl_calls(function) >= call;
      tests::mend_opencl();
      EXPECT_EQ(session_.run(batch_of({3}, 3, 3)).size(), 2u);
      EXPECT_EQ(session_.run(small), expected) << "after " << function << ", call " << call;
      session_.run(batch_of({3}, 3, 3));
      if (!reached) break;
    }
  EXPECT_GT(failed, 10);
}

void load_and_run(const Tensors& expected) {
  Session session = Session::compile(two_linears());
  EXPECT_EQ(session.run(linear_inputs()), expected);
}

/// A cache of its own, which forgets programs. What the probes found stays there: without a cache
/// each start would probe the device, in another process.
class CacheWithoutPrograms {
 public:
  CacheWithoutPrograms() {
    Session session = Session::compile(two_linears());
    session.run(linear_inputs());
    for (const auto& entry : files()) kept_.insert(entry.path());  // programs come at the end
  }
  void forget() const {
    for (const auto& entry : files())
      if (!kept_.contains(entry.path())) std::filesystem::remove(entry.path());
  }

 private:
  std::filesystem::directory_iterator files() const {
    return std::filesystem::directory_iterator(folder_.path());
  }
  const tests::ScratchFolder folder_;
  const tests::ScopedVariable cache_{"BERTCL_CACHE", folder_.path().string()};
  std::set<std::filesystem::path> kept_;
};

/// Makes the calls 1, 3, 7 ... of these functions fail, each in a load and run of its own. Gives
/// their numbers of calls.
std::map<std::string, int> fail_each(const std::vector<std::string>& functions,
                                     const Tensors& expected,
                                     const std::function<void()>& prepare) {
  prepare();
  for (const std::string& function : functions) tests::fail_opencl(function.c_str(), 1, 0);
  load_and_run(expected);
  std::map<std::string, int> calls;
  for (const std::string& function : functions)
    calls[function] = tests::opencl_calls(function.c_str());
  tests::mend_opencl();
  for (const std::string& function : functions)
    for (int call = 1; call <= calls[function]; call = next_call(next_call(call))) {
      prepare();
      tests::fail_opencl(function.c_str(), call);
      const std::string error = error_of([&] { load_and_run(expected); });
      EXPECT_GE(tests::opencl_calls(function.c_str()), call) << function;
      tests::mend_opencl();
      if (error != kNoError) {
        EXPECT_THAT(error, HasSubstr("CL_")) << function << ", call " << call;
      }
    }
  return calls;
}

// From an empty start to the outputs, with programs from the cache and from their sources.
TEST(FailingLoads, EveryFailureIsAnErrorOrIsMadeUpFor) {
  const Tensors expected = Session::compile(two_linears()).run(linear_inputs());
  load_and_run(expected);  // stores the programs that the first had no time for
  const auto& functions = tests::failing_functions();
  fail_each({functions.begin(), functions.end()}, expected, [] {});
  {
    const CacheWithoutPrograms cache;
    const auto calls = fail_each({"clBuildProgram", "clCompileProgram", "clLinkProgram",
                                  "clCreateProgramWithSource", "clCreateKernel"},
                                 expected, [&] { cache.forget(); });
    EXPECT_GT(calls.at("clCreateProgramWithSource"), 0) << "programs came from the cache";
  }
  load_and_run(expected);
}

}  // namespace
}  // namespace bertcl::runtime
