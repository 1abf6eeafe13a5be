// SPDX-License-Identifier: Apache-2.0
// Launches and their profile.
#include "opencl/queue.hpp"

#include <fmt/format.h>

#include <iterator>

#include "opencl/base/cl.hpp"
#include "opencl/base/exit_guard.hpp"
#include "opencl/base/status.hpp"
#include "opencl/device/device_id.hpp"

namespace bertcl::opencl {
namespace {

constexpr size_t kMaxPending = 4096;  // events kept before their times are read and they are freed

QueueHandle make_queue(cl_context context, cl_device_id device, bool profiling) {
  cl_int status = CL_SUCCESS;
  auto queue = adopt(
      clCreateCommandQueue(context, device, profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &status));
  check(status, "creation of the command queue");
  return queue;
}

std::string describe(const Kernel& kernel, const std::array<size_t, 3>& global,
                     const std::array<size_t, 3>& local, std::string_view label) {
  return fmt::format("launch '{}' of kernel '{}' of program '{}', global {}x{}x{}, local {}x{}x{}",
                     label, kernel.name(), kernel.program_name(), global[0], global[1], global[2],
                     local[0], local[1], local[2]);
}

std::string hint(cl_int status, const Grid& grid) {
  if (std::string of_groups = hint_of_groups(grid); !of_groups.empty()) return of_groups;
  switch (status) {
    case CL_INVALID_KERNEL_ARGS:
      return ": not every argument is set";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
      return ": not enough memory or registers on the device; use smaller batches";
    default:
      return "";
  }
}

bool is_refusal(cl_int status) {
  return status == CL_OUT_OF_RESOURCES || status == CL_INVALID_WORK_GROUP_SIZE ||
         status == CL_INVALID_WORK_ITEM_SIZE;
}

}  // namespace

Queue::Queue(_cl_context* context, _cl_device_id* device, QueueHandle queue, const Queue* sibling)
    : context_(context),
      device_(device),
      is_cpu_((device_value<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0),
      queue_(queue ? queue : make_queue(context, device, false)),
      of_caller_(queue != nullptr),
      exit_watched_(sibling ? sibling->exit_watched_ : std::make_shared<std::once_flag>()) {}

Queue::~Queue() {
  // Work that cannot be waited for may run on after this: what it uses stays for ever.
  if (!kept_.empty() && (process_is_ending() || !is_drained()))
    new std::vector<std::shared_ptr<const void>>(std::move(kept_));
}

void Queue::launch(const Kernel& kernel, std::array<size_t, 3> global, std::array<size_t, 3> local,
                   std::string_view label) {
  refuse_fork();
  if (global[0] == 0 || global[1] == 0 || global[2] == 0) return;
  for (size_t i = 0; i < 3; ++i)
    if (local[i] == 0 || global[i] % local[i] != 0)
      throw Error(describe(kernel, global, local, label) +
                  ": the global size is not a multiple of the local size");
  kernel.build();
  const auto held = lock();
  cl_event event = nullptr;
  const cl_int status =
      clEnqueueNDRangeKernel(queue_.get(), kernel.native(), 3, nullptr, global.data(), local.data(),
                             0, nullptr, profiling_ || is_cpu_ ? &event : nullptr);
  try {
    if (status != CL_SUCCESS)
      check(status, describe(kernel, global, local, label) + hint(status, {global, local}));
  } catch (const Error& error) {
    if (!is_refusal(status)) throw;
    throw LaunchError(error.what(), error.code());
  }
  watch_exit();
  if (!event) return;
  last_launch_ = adopt(event);
  if (profiling_) add_event(last_launch_, label, kernel.name());
}

void Queue::watch_exit() const { std::call_once(*exit_watched_, opencl::watch_exit); }

Grid Queue::grid_of(const Kernel& kernel, std::array<size_t, 3> items) const {
  if (is_cpu_ || items[0] == 0 || items[1] == 0 || items[2] == 0) return {.global = items};
  const auto ask = [&](cl_kernel_work_group_info what, auto value) {
    check(clGetKernelWorkGroupInfo(kernel.native(), device_, what, sizeof(value), &value, nullptr),
          "clGetKernelWorkGroupInfo");
    return value;
  };
  const auto required = ask(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, std::array<size_t, 3>{});
  if (required[0] > 0) return {items, required};
  return in_groups(items, ask(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, size_t{}),
                   max_items(kernel), device_value<cl_uint>(device_, CL_DEVICE_MAX_COMPUTE_UNITS));
}

size_t Queue::max_items(const Kernel& kernel) const {
  size_t most = 0;
  check(clGetKernelWorkGroupInfo(kernel.native(), device_, CL_KERNEL_WORK_GROUP_SIZE, sizeof(most),
                                 &most, nullptr),
        "CL_KERNEL_WORK_GROUP_SIZE");
  return most;
}

void Queue::launch_items(const Kernel& kernel, std::array<size_t, 3> items,
                         std::string_view label) {
  const Grid grid = grid_of(kernel, items);
  launch(kernel, grid.global, grid.local, label);
}

void Queue::finish() {
  std::vector<std::shared_ptr<const void>> settled;  // freed at the end, when the queue is not held
  std::unique_lock held = lock();
  const QueueHandle queue = queue_;
  settled.swap(kept_);
  held.unlock();
  const cl_int status = clFinish(queue.get());
  if (status == CL_SUCCESS) return;
  held.lock();
  kept_.insert(kept_.end(), std::make_move_iterator(settled.begin()),
               std::make_move_iterator(settled.end()));
  settled.clear();
  check(status, "waiting for the device (clFinish)");
}

void Queue::wait(const EventHandle& point) {
  cl_event event = point.get();
  check(clWaitForEvents(1, &event), "waiting for the device (clWaitForEvents)");
}

bool Queue::is_drained() noexcept {
  const QueueHandle queue = handle();
  if (clFinish(queue.get()) == CL_SUCCESS) return true;
  cl_event event = nullptr;
  if (clEnqueueMarkerWithWaitList(queue.get(), 0, nullptr, &event) != CL_SUCCESS) return false;
  const EventHandle last = adopt(event);
  return clWaitForEvents(1, &event) == CL_SUCCESS;
}

void Queue::settle(std::shared_ptr<const void> memory) noexcept {
  if (is_drained()) return;
  const auto held = lock();
  kept_.push_back(std::move(memory));
}

void Queue::enable_profiling(bool on) {
  const auto held = lock();
  if (on == profiling_) return;
  if (of_caller_) throw Error("the command queue of a caller is not profiled");
  finish();
  read_event_times();
  queue_ = make_queue(context_, device_, on);
  last_launch_ = nullptr;
  profiling_ = on;
}

EventHandle Queue::mark() {
  const auto held = lock();
  if (last_launch_) return last_launch_;
  cl_event event = nullptr;
  check(clEnqueueMarkerWithWaitList(handle().get(), 0, nullptr, &event),
        "clEnqueueMarkerWithWaitList");
  return adopt(event);
}

void Queue::wait_for(std::span<_cl_event* const> events) {
  if (events.empty()) return;
  check(clEnqueueBarrierWithWaitList(handle().get(), static_cast<cl_uint>(events.size()),
                                     events.data(), nullptr),
        "events to wait for");
}

void Queue::flush() { check(clFlush(handle().get()), "clFlush"); }

void Queue::add_event(EventHandle event, std::string_view label, std::string_view kernel,
                      EventHandle since) {
  const auto held = lock();
  if (!profiling_) return;
  pending_.push_back({std::move(event), std::move(since), entry_index(label, kernel)});
  if (pending_.size() >= kMaxPending) {
    finish();
    read_event_times();
  }
}

size_t Queue::entry_index(std::string_view label, std::string_view kernel) {
  const auto [place, is_new] =
      entry_of_.try_emplace({std::string(label), std::string(kernel)}, entries_.size());
  if (is_new) entries_.push_back({std::string(label), std::string(kernel), 0, 0});
  return place->second;
}

void Queue::read_event_times() {
  for (const Pending& launch : pending_) {
    ProfileEntry& entry = entries_[launch.entry];
    const auto time = [&](const EventHandle& event, cl_profiling_info moment) {
      cl_ulong ns = 0;
      check(clGetEventProfilingInfo(event.get(), moment, sizeof(ns), &ns, nullptr),
            "profile of '" + entry.label + "'");
      return ns;
    };
    const cl_ulong start = launch.since ? time(launch.since, CL_PROFILING_COMMAND_END)
                                        : time(launch.event, CL_PROFILING_COMMAND_START);
    const cl_ulong end = time(launch.event, CL_PROFILING_COMMAND_END);
    entry.ns += end > start ? end - start : 0;
    ++entry.calls;
  }
  pending_.clear();
}

std::vector<ProfileEntry> Queue::profile() {
  const auto held = lock();
  finish();
  read_event_times();
  return entries_;
}

void Queue::clear_profile() {
  const auto held = lock();
  finish();
  pending_.clear();
  entries_.clear();
  entry_of_.clear();
}

}  // namespace bertcl::opencl
