// SPDX-License-Identifier: Apache-2.0
// Contexts, queues, events and buffers of a caller.
#include "opencl/launch/caller.hpp"

#include <numeric>
#include <vector>

#include "opencl/base/cl.hpp"
#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/device/device_id.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/failing_opencl.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::opencl {
namespace {

constexpr const char* kAddToSource = R"CL(
__kernel void add_to(__global const int* in, __global int* out, int value) {
  const int i = get_global_id(0);
  out[i] = in[i] + value;
}
)CL";

struct Caller {
  explicit Caller(cl_device_id of = find_device("cpu").id) : device(of) {
    context = adopt(clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr));
    queue = make_queue(0);
  }
  QueueHandle make_queue(cl_command_queue_properties properties) const {
    return adopt(clCreateCommandQueue(context.get(), device, properties, nullptr));
  }
  MemHandle make_buffer(std::vector<int32_t> values) const {
    return adopt(clCreateBuffer(context.get(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                values.size() * 4, values.data(), nullptr));
  }
  std::vector<int32_t> read(const MemHandle& memory, size_t count) const {
    std::vector<int32_t> values(count);
    EXPECT_EQ(clEnqueueReadBuffer(queue.get(), memory.get(), CL_TRUE, 0, count * 4, values.data(),
                                  0, nullptr, nullptr),
              CL_SUCCESS);
    return values;
  }
  cl_device_id device;
  ContextHandle context;
  QueueHandle queue;
};

std::vector<int32_t> ascending(size_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(CallersContext, IsKeptAndRunsKernels) {
  std::shared_ptr<Context> context;
  {
    const Caller caller;
    context = Context::wrap(caller.context.get(), caller.device);
    EXPECT_EQ(context->native(), caller.context.get());
  }
  EXPECT_EQ(context->info().index, select_device("cpu").index);
  Buffer in = context->allocate(400), out = context->allocate(400);
  in.upload(ascending(100));
  auto kernel = context->kernel_from_source("add_to", kAddToSource, "add_to");
  kernel.args(in, out, 3);
  context->queue().launch(kernel, {100, 1, 1}, {1, 1, 1});
  EXPECT_EQ(out.download<int32_t>()[99], 102);
  EXPECT_EQ(context->capabilities().list(), Context::create("cpu")->capabilities().list());
}

// The last of several: test_opencl_parts has two.
TEST(CallersContext, OfAPartOfADeviceHasItsUnitsAndTheCapabilitiesOfTheWhole) {
  const Device device = find_devices().back();
  const cl_device_id whole = device.id;
  const cl_device_partition_property by_one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_device_id part[64];
  cl_uint count = 0;
  if (clCreateSubDevices(whole, by_one, 64, part, &count) != CL_SUCCESS || count == 0)
    GTEST_SKIP() << "the device has no parts";
  {
    const Caller caller(part[0]);
    const auto context = Context::wrap(caller.context.get(), caller.device);
    EXPECT_EQ(context->info().compute_units, 1u);
    EXPECT_EQ(context->info().index, device.info.index);
    EXPECT_EQ(context->capabilities().list(),
              Context::create(std::to_string(device.info.index))->capabilities().list());
  }
  for (cl_uint i = 0; i < count; ++i) clReleaseDevice(part[i]);
}

TEST(CallersContext, OfAnUnfitDeviceIsRefused) {
  const cl_device_id whole = find_device("cpu").id;
  const cl_device_partition_property by_one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_device_id part[64];
  cl_uint count = 0;
  // Where the device has no parts, all of it is unfit.
  if (clCreateSubDevices(whole, by_one, 64, part, &count) != CL_SUCCESS) count = 0;
  const cl_device_id unfit = count ? part[0] : whole;
  {
    const Caller caller(unfit);
    tests::answer_opencl(unfit, CL_DEVICE_SINGLE_FP_CONFIG, CL_FP_ROUND_TO_ZERO);
    EXPECT_ERROR(HasSubstr("it does not support round-to-nearest for floats"),
                 Context::wrap(caller.context.get(), unfit));
    tests::mend_opencl();
  }
  for (cl_uint i = 0; i < count; ++i) clReleaseDevice(part[i]);
}

TEST(CallersContext, WithoutTheDeviceIsRefused) {
  const Caller caller;
  EXPECT_ERROR(HasSubstr("is not in the given context"),
               Context::wrap(caller.context.get(), nullptr));
}

TEST(CallersQueue, IsToldFromThatOfAnotherContext) {
  const Caller caller, other;
  const auto context = Context::wrap(caller.context.get(), caller.device);
  EXPECT_EQ(owner_of(caller.queue.get()).context, caller.context.get());
  EXPECT_EQ(owner_of(caller.queue.get()).device, caller.device);
  check_queue(*context, caller.queue.get());
  EXPECT_ERROR(HasSubstr("another cl_context"), check_queue(*context, other.queue.get()));
}

TEST(CallersQueue, RunsALaunchAfterItsEventsAndGivesOne) {
  const Caller caller;
  const auto context = Context::wrap(caller.context.get(), caller.device);
  const QueueHandle queue = caller.make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  check_queue(*context, queue.get());
  const MemHandle in = caller.make_buffer(ascending(8)), out = caller.make_buffer(ascending(8));
  auto kernel = context->kernel_from_source("add_to", kAddToSource, "add_to");
  kernel.args(borrow(context, in.get(), 0, 32, "in"), borrow(context, out.get(), 0, 32, "out"), 10);
  const cl_event gate = clCreateUserEvent(caller.context.get(), nullptr);
  cl_event done = nullptr, all = nullptr;
  launch(kernel, {8, 1, 1}, {1, 1, 1}, {queue.get(), {&gate, 1}, &done});
  mark({queue.get(), {&done, 1}, &all});
  clFlush(queue.get());
  EXPECT_EQ(caller.read(out, 8)[7], 7) << "the launch did not wait";
  clSetUserEventStatus(gate, CL_COMPLETE);
  clWaitForEvents(1, &all);
  EXPECT_EQ(caller.read(out, 8)[7], 17);
  for (const cl_event event : {gate, done, all}) clReleaseEvent(event);
}

TEST(CallersBuffer, IsTakenFromAnOffsetOn) {
  const Caller caller;
  const auto context = Context::wrap(caller.context.get(), caller.device);
  const size_t align = context->info().base_align_bytes;
  const MemHandle memory = caller.make_buffer(ascending(align));  // four times as many bytes
  const cl_buffer_region region{align, 2 * align};
  const MemHandle part =
      adopt(clCreateSubBuffer(memory.get(), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, nullptr));
  const Buffer view = borrow(context, part.get(), align, 4, "a");
  EXPECT_EQ(view.download<int32_t>(), std::vector{static_cast<int32_t>(2 * align / 4)});

  EXPECT_ERROR(HasSubstr("'a' begins at byte 3"), borrow(context, memory.get(), 3, 4, "a"));
  EXPECT_ERROR(HasSubstr("1 are needed from offset"),
               borrow(context, memory.get(), 4 * align, 1, "a"));
  EXPECT_ERROR(HasSubstr("are needed"), borrow(context, memory.get(), 4, SIZE_MAX, "a"));
  const Caller other;
  EXPECT_ERROR(HasSubstr("another cl_context"),
               borrow(context, other.make_buffer({1}).get(), 0, 4, "a"));
  EXPECT_TRUE(overlap(part.get(), align, 1, memory.get(), 0, 2 * align + 1));
  EXPECT_FALSE(overlap(part.get(), align, 1, memory.get(), 0, 2 * align));
  EXPECT_FALSE(overlap(part.get(), align, 1, memory.get(), 2 * align + 1, 1));
  EXPECT_FALSE(overlap(memory.get(), 0, 4, caller.make_buffer({1}).get(), 0, 4));
}

TEST(CallersBuffer, HasNoViewsWhereTheDriverBreaksOverThem) {
  const tests::ScopedVariable hidden("BERTCL_DISABLE", "overlapping_views");
  const Caller caller;
  const auto context = Context::wrap(caller.context.get(), caller.device);
  const size_t align = context->info().base_align_bytes;
  const MemHandle memory = caller.make_buffer(ascending(align));
  EXPECT_EQ(borrow(context, memory.get(), 0, 4, "a").native(), memory.get());
  EXPECT_ERROR(HasSubstr("a buffer of its own"), borrow(context, memory.get(), align, 4, "a"));
}

}  // namespace
}  // namespace bertcl::opencl
