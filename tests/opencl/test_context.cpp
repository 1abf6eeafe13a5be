// SPDX-License-Identifier: Apache-2.0
// Devices, selection, buffers, launches and the errors of each.
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "opencl/context.hpp"
#include "opencl/upload.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/failing_opencl.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::opencl {
namespace {

constexpr const char* kAddSource = R"CL(
#ifndef STEP
#define STEP 1
#endif
__kernel void add(__global const int* in, __global int* out, int value, float factor) {
  const int i = get_global_id(0);
  out[i] = (int)((float)in[i] * factor) + value * STEP;
}
)CL";

std::shared_ptr<Context> shared_context() {
  static const std::shared_ptr<Context> context = Context::create("cpu");
  return context;
}

std::vector<int32_t> counting(size_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(WrapHostMemory, GivesKernelsTheBytesAtAnyAddressAndKeepsThemUntilTheyHaveRun) {
  const auto context = shared_context();
  for (const size_t shift : {0, 1, 4}) {
    auto memory = std::make_shared<std::vector<std::byte>>(4 * 1000 + 8);
    const std::vector<int32_t> values = counting(1000);
    std::memcpy(memory->data() + shift, values.data(), 4000);
    const std::weak_ptr<std::vector<std::byte>> watched = memory;
    Buffer out = context->allocate(4000);
    {
      const Buffer in =
          context->wrap_host_memory(std::span(*memory).subspan(shift, 4000), 4, memory);
      EXPECT_EQ(in.size(), 4000u);
      auto kernel = context->kernel_from_source("add", kAddSource, "add");
      kernel.args(in, out, 5, 1.0f);
      context->queue().launch(kernel, {1000, 1, 1}, {1, 1, 1});
    }
    memory.reset();
    const auto results = out.download<int32_t>();
    for (int32_t i = 0; i < 1000; ++i) ASSERT_EQ(results[static_cast<size_t>(i)], i + 5) << shift;
    // The driver lets go of them after it has told that the launch is complete.
    for (int i = 0; i < 1000 && !watched.expired(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(watched.expired()) << "the bytes are never given back";
  }
}

TEST(WrapHostMemory, TakesNoBytesAtAll) {
  EXPECT_EQ(shared_context()->wrap_host_memory({}, 4, nullptr).size(), 0u);
}

TEST(Devices, AreListedWithTheirIndex) {
  const auto devices = list_devices();
  ASSERT_FALSE(devices.empty());
  for (size_t i = 0; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i].index, static_cast<int>(i));
    EXPECT_FALSE(devices[i].name.empty());
    EXPECT_GT(devices[i].compute_units, 0u);
    EXPECT_GT(devices[i].global_mem_bytes, 0u);
    EXPECT_GT(devices[i].base_align_bytes, 0u);
  }
}

TEST(Devices, AreSelectedByIndexTypeAndName) {
  const auto devices = list_devices();
  EXPECT_EQ(select_device("0").index, 0);
  EXPECT_EQ(select_device("cpu").type, "cpu");
  EXPECT_EQ(select_device("CPU").type, "cpu");
  EXPECT_EQ(select_device(devices[0].name).name, devices[0].name);
  std::string part = devices[0].platform.substr(1, 8);
  for (char& c : part) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_EQ(select_device(part).platform, devices[0].platform);
}

TEST(Devices, WrongSelectorListsWhatIsThere) {
  const std::string name = list_devices()[0].name;
  for (const char* selector : {"no such device", "999"}) {
    const std::string message = error_of([&] { select_device(selector); });
    EXPECT_THAT(message, HasSubstr(selector));
    EXPECT_THAT(message, HasSubstr(name));
  }
}

TEST(Devices, EnvironmentIsTheDefault) {
  const tests::ScopedVariable device("BERTCL_DEVICE", "nonsense");
  const std::string message = error_of([] { select_device(""); });
  EXPECT_EQ(select_device("0").index, 0);
  EXPECT_THAT(message, HasSubstr("BERTCL_DEVICE"));
  EXPECT_THAT(message, HasSubstr("nonsense"));
}

TEST(Devices, OneThatCannotRunKernelsIsNamedWithTheReason) {
  for (const auto& [query, reason] : {std::pair(CL_DEVICE_AVAILABLE, "it is not available"),
                                      std::pair(CL_DEVICE_COMPILER_AVAILABLE, "it has no compiler"),
                                      std::pair(CL_DEVICE_ENDIAN_LITTLE, "it is big-endian")}) {
    tests::answer_opencl(nullptr, query, CL_FALSE);
    EXPECT_ERROR(AllOf(HasSubstr("no OpenCL device can be used; "), HasSubstr(reason)),
                 list_devices());
    tests::mend_opencl();
  }
}

TEST(Devices, ADriverThatFailsHidesNoOther) {
  const std::size_t devices = list_devices().size();
  for (const int call : {1, 2}) {
    tests::repeat_platforms();
    const tests::FailingOpencl failing("clGetDeviceIDs", call);
    const std::vector<DeviceInfo> found = list_devices();
    ASSERT_GE(found.size(), devices) << "call " << call;
    EXPECT_EQ(found.back().index, static_cast<int>(found.size()) - 1) << "call " << call;
  }
  const tests::FailingOpencl all("clGetDeviceIDs", 1, 1000);
  EXPECT_ERROR(AllOf(HasSubstr("platform " + shared_context()->info().platform),
                     HasSubstr("clGetDeviceIDs: CL_OUT_OF_HOST_MEMORY")),
               list_devices());
}

// In a new process, because the loader looks for drivers once.
TEST(DevicesDeathTest, WithoutADriverTheErrorSaysWhatToInstall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto list_without_drivers = [] {
    const tests::ScopedVariable vendors("OCL_ICD_VENDORS", "/nonexistent");
    std::fputs(error_of([] { list_devices(); }).c_str(), stderr);
    std::exit(3);
  };
  EXPECT_EXIT(list_without_drivers(), ::testing::ExitedWithCode(3),
              "no OpenCL device.*apt-get install pocl-opencl-icd");
}

TEST(Buffers, RoundTripAndFill) {
  auto context = shared_context();
  Buffer buffer = context->allocate(100 * sizeof(int32_t));
  const auto values = counting(100);
  buffer.upload(values);
  EXPECT_EQ(buffer.download<int32_t>(), values);
  buffer.fill(0xA5);
  EXPECT_EQ(buffer.download<uint8_t>(), std::vector<uint8_t>(400, 0xA5));
}

TEST(Buffers, EmptyOnesWork) {
  auto context = shared_context();
  Buffer buffer = context->allocate(0);
  EXPECT_EQ(buffer.size(), 0u);
  buffer.fill(1);
  buffer.write({});
  EXPECT_TRUE(buffer.download<int>().empty());
  Buffer view = buffer.view(0, 0);
  EXPECT_EQ(view.size(), 0u);
  EXPECT_TRUE(view);
}

TEST(Buffers, ViewsOfViewsShareMemory) {
  auto context = shared_context();
  const size_t align = context->info().base_align_bytes;
  Buffer view_of_view;
  Buffer whole = context->allocate(4 * align);
  whole.fill(0);
  {
    Buffer view = whole.view(align, 3 * align);
    view_of_view = view.view(align, align / 2);
  }
  view_of_view.fill(7);
  std::vector<uint8_t> expected(4 * align, 0);
  std::fill_n(expected.begin() + static_cast<long>(2 * align), align / 2, uint8_t{7});
  EXPECT_EQ(whole.download<uint8_t>(), expected);
  whole = Buffer();
  EXPECT_EQ(view_of_view.download<uint8_t>(), std::vector<uint8_t>(align / 2, 7));
  EXPECT_EQ(whole.view(0, 0).size(), 0u);
}

TEST(Buffers, RangesAreChecked) {
  auto context = shared_context();
  Buffer buffer = context->allocate(256);
  std::vector<std::byte> data(200);
  EXPECT_ERROR(HasSubstr("200 bytes at offset 100"), buffer.write(data, 100));
  EXPECT_ERROR(HasSubstr("outside"), buffer.read(data, SIZE_MAX));
  EXPECT_ERROR(HasSubstr("outside"), buffer.view(128, 129));
  EXPECT_ERROR(HasSubstr("multiple of"), buffer.view(1, 2));
}

TEST(Buffers, CopyOnTheDevice) {
  auto context = shared_context();
  Buffer source = context->allocate(16), target = context->allocate(16);
  source.upload(std::vector<int32_t>{1, 2, 3, 4});
  target.fill(0);
  target.copy_from(source, 8, 4, 8);
  EXPECT_EQ(target.download<int32_t>(), (std::vector<int32_t>{0, 0, 2, 3}));
  EXPECT_THROW(target.copy_from(source, 8, 12, 0), Error);
}

TEST(Buffers, TooLargeSaysHowMuch) {
  auto context = shared_context();
  const size_t before = context->allocated_bytes();
  const uint64_t limit = context->info().max_alloc_bytes;
  const std::string message = error_of([&] { context->allocate(limit + 1); });
  EXPECT_THAT(message, HasSubstr("cannot allocate " + std::to_string(limit + 1)));
  EXPECT_THAT(message, HasSubstr(std::to_string(limit)));
  EXPECT_EQ(context->allocated_bytes(), before);
  {
    Buffer held = context->allocate(1000);
    EXPECT_EQ(context->allocated_bytes(), before + 1000);
  }
  EXPECT_EQ(context->allocated_bytes(), before);
}

TEST(Kernels, RunWithArgumentsAndDefines) {
  auto context = shared_context();
  Buffer in = context->allocate(64 * 4), out = context->allocate(64 * 4);
  in.upload(counting(64));
  Kernel kernel = context->kernel_from_source("add", kAddSource, "add", {{"STEP", 10}});
  kernel.args(in, out, 3, 2.0f);
  EXPECT_EQ(kernel.argument_count(), 4u);
  Kernel other = context->kernel_from_source("add", kAddSource, "add", {{"STEP", 10}});
  other.args(out, out, 1, 1.0f);
  context->queue().launch(kernel, {64, 1, 1}, {16, 1, 1}, "first");
  context->queue().launch(other, {64, 1, 1}, {8, 1, 1}, "second");
  context->queue().launch(other, {0, 1, 1}, {16, 1, 1}, "empty");
  std::vector<int32_t> expected;
  for (int i = 0; i < 64; ++i) expected.push_back(2 * i + 30 + 10);
  EXPECT_EQ(out.download<int32_t>(), expected);
}

TEST(Kernels, KeepTheirBuffersAlive) {
  auto context = shared_context();
  Buffer out = context->allocate(16);
  Kernel kernel = context->kernel_from_source("add", kAddSource, "add", {});
  {
    Buffer in = context->allocate(16);
    in.upload(counting(4));
    kernel.args(in, out, 5, 1.0f);
  }
  context->queue().launch(kernel, {4, 1, 1}, {4, 1, 1}, "alive");
  EXPECT_EQ(out.download<int32_t>(), (std::vector<int32_t>{5, 6, 7, 8}));
}

TEST(Kernels, ManyThreadsAskForTheSamePrograms) {
  auto context = Context::create("cpu");
  std::vector<int> results(8);
  std::vector<Kernel> kernels(results.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kernels.size(); ++i)
    threads.emplace_back([&, i] {
      kernels[i] = context->kernel_from_source("add", kAddSource, "add",
                                               {{"STEP", static_cast<int>(i % 3)}});
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kernels.size(); ++i) {
    Buffer buffer = context->allocate(sizeof(int));
    buffer.fill(0);
    kernels[i].args(buffer, buffer, 5, 1.0f);
    context->queue().launch(kernels[i], {1, 1, 1}, {1, 1, 1});
    EXPECT_EQ(buffer.download<int>()[0], static_cast<int>(5 * (i % 3)));
  }
}

TEST(Kernels, ErrorsNameThePlace) {
  auto context = shared_context();
  const std::string build = error_of([&] {
    context->kernel_from_source("broken", "__kernel void f() { undeclared_thing = MARK; }", "f",
                                {{"MARK", 42}});
  });
  EXPECT_THAT(build, HasSubstr("broken.cl"));
  EXPECT_THAT(build, HasSubstr("-DMARK=42"));
  EXPECT_THAT(build, HasSubstr("CL_BUILD_PROGRAM_FAILURE"));
  EXPECT_THAT(build, HasSubstr("undeclared_thing"));

  EXPECT_ERROR(HasSubstr("no_such_file.cl"), context->kernel("no_such_file", "f"));
  EXPECT_ERROR(HasSubstr("CL_INVALID_KERNEL_NAME"),
               context->kernel_from_source("add", kAddSource, "subtract"));

  Kernel kernel = context->kernel_from_source("add", kAddSource, "add");
  Buffer buffer = context->allocate(16);
  EXPECT_ERROR(HasSubstr("takes 4 arguments, got 2"), kernel.args(buffer, buffer));
  EXPECT_ERROR(HasSubstr("CL_INVALID_ARG_INDEX"), kernel.set(9, 1));
  EXPECT_ERROR(HasSubstr("argument 2"), kernel.set(2, buffer));
  EXPECT_ERROR(HasSubstr("unset"), context->queue().launch(kernel, {4, 1, 1}, {4, 1, 1}, "unset"));
  kernel.args(buffer, buffer, 0, 1.0f);
  EXPECT_ERROR(HasSubstr("not a multiple"),
               context->queue().launch(kernel, {5, 1, 1}, {4, 1, 1}, "ragged"));
}

// The event of a launch is the point after it only while nothing else was queued.
TEST(Queues, APointComesAfterEverythingQueuedBeforeIt) {
  const auto context = shared_context();
  Queue& queue = context->queue();
  const auto command_of = [](const EventHandle& point) {
    cl_command_type type = 0;
    clGetEventInfo(point.get(), CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr);
    return type;
  };
  Buffer in = upload(*context, std::vector<int32_t>(1000, 1));
  Buffer out = context->allocate(4000);
  auto kernel = context->kernel_from_source("add", kAddSource, "add");
  kernel.args(in, out, 1, 1.0f);
  queue.launch(kernel, {1000, 1, 1}, {1, 1, 1});
  EXPECT_EQ(command_of(queue.mark()), static_cast<cl_command_type>(CL_COMMAND_NDRANGE_KERNEL));
  in.copy_from(out, 4000);
  const EventHandle after_copy = queue.mark();
  EXPECT_EQ(command_of(after_copy), static_cast<cl_command_type>(CL_COMMAND_MARKER));
  Queue other(context->native(), context->native_device());
  std::vector<int32_t> copied(1000);
  in.read_async(std::as_writable_bytes(std::span(copied)), other, after_copy);
  other.finish();
  EXPECT_EQ(copied, std::vector<int32_t>(1000, 2));
  queue.launch(kernel, {1000, 1, 1}, {1, 1, 1});
  queue.wait(queue.mark());
  EXPECT_EQ(out.download<int32_t>(), std::vector<int32_t>(1000, 3));
}

TEST(Profile, CountsLaunchesByLabelAndKernel) {
  auto context = Context::create("cpu");
  Queue& queue = context->queue();
  Buffer buffer = context->allocate(4096);
  buffer.fill(0);
  Kernel kernel = context->kernel_from_source("add", kAddSource, "add");
  kernel.args(buffer, buffer, 1, 1.0f);
  queue.launch(kernel, {1024, 1, 1}, {64, 1, 1}, "unprofiled");
  EXPECT_TRUE(queue.profile().empty());
  queue.enable_profiling(true);
  for (int i = 0; i < 3; ++i) queue.launch(kernel, {1024, 1, 1}, {64, 1, 1}, "three");
  queue.launch(kernel, {1024, 1, 1}, {64, 1, 1}, "one");
  const auto entries = queue.profile();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].label, "three");
  EXPECT_EQ(entries[0].kernel, "add");
  EXPECT_EQ(entries[0].calls, 3u);
  EXPECT_GT(entries[0].ns, 0u);
  EXPECT_EQ(entries[1].calls, 1u);
  EXPECT_EQ(queue.profile()[0].ns, entries[0].ns);
  queue.clear_profile();
  EXPECT_TRUE(queue.profile().empty());
  queue.enable_profiling(false);
  EXPECT_EQ(buffer.download<int32_t>()[1023], 5);
}

}  // namespace
}  // namespace bertcl::opencl
