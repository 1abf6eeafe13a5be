// SPDX-License-Identifier: Apache-2.0
// Kernels that are asked for before they are built.
#include <string>
#include <thread>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/context.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/failing_opencl.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::opencl {
namespace {

/// Kernel files of their own, and no cache, so that whatever is built is built from them.
class UnbuiltKernel : public ::testing::Test {
 protected:
  UnbuiltKernel() {
    write("add", "__kernel void add(__global int* out, int value) { out[0] += value * TIMES; }");
    write("broken", "__kernel void broken() { undeclared_thing = 1; }");
  }

  void write(const std::string& program, const std::string& source) const {
    folder_.write(program + ".cl", source);
  }

  const tests::ScratchFolder folder_;
  const tests::ScopedVariable kernels_{"BERTCL_KERNELS", folder_.path().string()};
  const tests::ScopedVariable cache_{"BERTCL_CACHE", "off"};
  std::shared_ptr<Context> context_ = Context::create("cpu");
};

TEST_F(UnbuiltKernel, TakesItsArgumentsBeforeItIsBuilt) {
  Kernel kernel = context_->unbuilt_kernel("add", "add", {{"TIMES", 10}});
  EXPECT_EQ(kernel.name(), "add");
  EXPECT_EQ(kernel.program_name(), "add");
  Buffer out = context_->allocate(sizeof(int));
  out.fill(0);
  kernel.set(0, out).set(1, 3);
  Kernel other = context_->unbuilt_kernel("add", "add", {{"TIMES", 10}});
  other.set(0, out).set(1, 4);
  for (const Kernel& k : {kernel, other}) context_->queue().launch(k, {1, 1, 1}, {1, 1, 1}, "k");
  EXPECT_EQ(out.download<int>()[0], 70);
  EXPECT_EQ(kernel.build().argument_count(), 2u);
}

TEST_F(UnbuiltKernel, KeepsItsContextUntilThen) {
  const Kernel kernel = context_->unbuilt_kernel("add", "add", {{"TIMES", 1}});
  const std::weak_ptr<Context> watched = context_;
  context_.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(kernel.argument_count(), 2u);
  EXPECT_TRUE(watched.expired());
}

TEST_F(UnbuiltKernel, TellsItsErrorsWhenItIsBuilt) {
  EXPECT_ERROR(HasSubstr("no_such_file.cl"), context_->unbuilt_kernel("no_such_file", "f"));
  const Kernel broken = context_->unbuilt_kernel("broken", "broken");
  for (int time = 0; time < 2; ++time)
    EXPECT_ERROR(AllOf(HasSubstr("broken.cl"), HasSubstr("undeclared_thing")), broken.build());
  EXPECT_ERROR(HasSubstr("CL_INVALID_KERNEL_NAME"),
               context_->unbuilt_kernel("add", "subtract", {{"TIMES", 1}}).build());
  Kernel add = context_->unbuilt_kernel("add", "add", {{"TIMES", 1}});
  add.set(9, 1);
  for (int time = 0; time < 2; ++time) EXPECT_ERROR(HasSubstr("CL_INVALID_ARG_INDEX"), add.build());
}

TEST_F(UnbuiltKernel, IsBuiltAgainAfterAShortageAlone) {
  constexpr int kOutOfResources = -5, kOutOfHostMemory = -6, kBuildFailure = -11;
  int times = 1;
  for (const int status : {kOutOfResources, kOutOfHostMemory, kBuildFailure}) {
    const Kernel kernel = context_->unbuilt_kernel("add", "add", {{"TIMES", times++}});
    const auto code_of_build = [&] {
      try {
        kernel.build();
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("building 'add.cl' for device '"));
        return error.code();
      }
      return ErrorCode{};
    };
    const bool passes = status != kBuildFailure;
    const tests::FailingOpencl failing("clBuildProgram", 1, 1, status);
    EXPECT_EQ(code_of_build(), passes ? ErrorCode::out_of_memory : ErrorCode::device) << status;
    EXPECT_EQ(code_of_build(), passes ? ErrorCode{} : ErrorCode::device) << status;
    EXPECT_EQ(tests::opencl_calls("clBuildProgram"), passes ? 2 : 1) << status;
  }
}

TEST_F(UnbuiltKernel, OfTwoArgumentsTheLaterCounts) {
  Kernel kernel = context_->unbuilt_kernel("add", "add", {{"TIMES", 1}});
  const auto before = context_->allocated_bytes();
  kernel.set(0, context_->allocate(1000));
  EXPECT_EQ(context_->allocated_bytes(), before + 1000);
  kernel.set(0, 3).set(0, nullptr);
  EXPECT_EQ(context_->allocated_bytes(), before) << "the buffer is let go of";
  kernel.build();  // an int is not a buffer: it would be refused
}

TEST_F(UnbuiltKernel, IsBuiltByManyThreadsOnce) {
  std::vector<Kernel> kernels;
  for (int i = 0; i < 8; ++i)
    kernels.push_back(context_->unbuilt_kernel("add", "add", {{"TIMES", i % 2}}));
  std::vector<std::thread> threads;
  for (const Kernel& kernel : kernels) threads.emplace_back([&] { kernel.build(); });
  for (std::thread& thread : threads) thread.join();
  Buffer out = context_->allocate(sizeof(int));
  out.fill(0);
  for (Kernel& kernel : kernels) {
    kernel.args(out, 5);
    context_->queue().launch(kernel, {1, 1, 1}, {1, 1, 1}, "add");
  }
  EXPECT_EQ(out.download<int>()[0], 20);
}

}  // namespace
}  // namespace bertcl::opencl
