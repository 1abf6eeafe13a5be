// SPDX-License-Identifier: Apache-2.0
// Opening of a device, allocation and kernel look-up.
#include "opencl/context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "opencl/base/exit_guard.hpp"
#include "opencl/base/status.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/device/device_id.hpp"
#include "opencl/program/programs.hpp"

namespace bertcl::opencl {
namespace {

#if defined(__x86_64__)
constexpr bool kLoadsAtAnyAddress = true;
#else
constexpr bool kLoadsAtAnyAddress = false;
#endif

}  // namespace

struct Context::State {
  Device device;
  DeviceHandle device_reference;  // of a part of a device
  ContextHandle context;
  std::unique_ptr<Queue> queue;
  MemHandle scratch;
  size_t scratch_bytes = 0;
  std::unique_ptr<Programs> programs;
  bool stores_programs = true;
  std::mutex capabilities_mutex;  // held while they are found; they never change after that
  std::optional<Capabilities> capabilities;
  // Shared with the deleter of each allocation.
  std::shared_ptr<std::atomic<size_t>> allocated = std::make_shared<std::atomic<size_t>>(0);
};

Context::Context(std::unique_ptr<State> state) : state_(std::move(state)) {}

Context::~Context() {
  // Of a static context, programs stay unstored.
  if (process_is_ending() || !state_->stores_programs) return;
  try {
    store_programs();
  } catch (const std::exception& error) {
    state_->programs->cache().report("all programs", error.what());
  }
}

void Context::store_programs(double seconds) {
  // Whoever chose a kernel with assembly has asked for capabilities: nothing is probed for this.
  std::unique_lock lock(state_->capabilities_mutex);
  const bool assembly = state_->capabilities && state_->capabilities->assembly_binaries;
  lock.unlock();
  state_->programs->store(seconds, assembly);
}

std::shared_ptr<Context> Context::create(const std::string& selector) {
  refuse_fork();  // before the driver is asked for devices
  check_disabled_capabilities();
  check_kernel_folder();
  auto state = std::make_unique<State>();
  state->device = find_device(selector);
  return open(std::move(state));
}

std::shared_ptr<Context> Context::create_sibling() const {
  auto state = std::make_unique<State>();
  state->device = state_->device;
  state->device_reference = state_->device_reference;
  state->stores_programs = false;
  return open(std::move(state));
}

std::shared_ptr<Context> Context::pretend(const DeviceInfo& info,
                                          const Capabilities& capabilities) const {
  auto context = create_sibling();
  context->state_->device.info = info;
  context->state_->capabilities = capabilities;
  return context;
}

std::shared_ptr<Context> Context::open(std::unique_ptr<State> state) {
  refuse_fork();
  const DeviceInfo& info = state->device.info;
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(state->device.platform), 0};
  cl_int status = CL_SUCCESS;
  state->context =
      adopt(clCreateContext(properties, 1, &state->device.id, nullptr, nullptr, &status));
  check(status, "creation of a context on device '" + info.name + "' of " + info.platform);
  return start(std::move(state));
}

std::shared_ptr<Context> Context::wrap(_cl_context* context, _cl_device_id* device,
                                       QueueHandle queue) {
  refuse_fork();
  check_disabled_capabilities();
  check_kernel_folder();
  size_t bytes = 0;
  check(clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes),
        "the devices of the given context");
  std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
  check(clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr),
        "the devices of the given context");
  // PoCL lists the whole device where the context was made for a part of it.
  cl_device_id listed = device;
  while (listed && std::ranges::find(devices, listed) == devices.end())
    listed = device_value<cl_device_id>(listed, CL_DEVICE_PARENT_DEVICE);
  if (!listed)
    throw Error(fmt::format("device '{}' is not in the given context",
                            string_info(clGetDeviceInfo, device, CL_DEVICE_NAME)));
  auto state = std::make_unique<State>();
  state->device = device_of(device);
  check(clRetainDevice(device), "clRetainDevice");
  state->device_reference = adopt(device);
  check(clRetainContext(context), "clRetainContext");
  state->context = adopt(context);
  return start(std::move(state), std::move(queue));
}

std::shared_ptr<Context> Context::start(std::unique_ptr<State> state, QueueHandle queue) {
  const Device& device = state->device;
  state->queue = std::make_unique<Queue>(state->context.get(), device.id, std::move(queue));
  state->programs = std::make_unique<Programs>(state->context, device.id, device.info);
  return std::shared_ptr<Context>(new Context(std::move(state)));
}

std::string Context::key_of(std::span<const std::string> programs, std::string_view options) const {
  std::string sources;
  for (const std::string& program : programs) sources += final_source(program).text;
  return state_->programs->cache().key(sources, options);
}

std::filesystem::path Context::cache_file(std::string_view stem,
                                          std::span<const std::string> programs,
                                          std::string_view options) const {
  const ProgramCache& cache = state_->programs->cache();
  if (!cache.enabled()) return {};
  return cache.folder() / fmt::format("{}-{}.json", stem, key_of(programs, options).substr(0, 16));
}

const DeviceInfo& Context::info() const { return state_->device.info; }
Queue& Context::queue() { return *state_->queue; }
_cl_context* Context::native() const { return state_->context.get(); }
_cl_device_id* Context::native_device() const { return state_->device.id; }
size_t Context::allocated_bytes() const { return *state_->allocated; }

Buffer Context::allocate(size_t bytes) {
  const DeviceInfo& device = info();
  const auto failure = [&](const std::string& reason) {
    return Error(
        fmt::format(
            "device memory: cannot allocate {} bytes; this context holds {} bytes, '{}' has {} "
            "bytes in all and at most {} in one buffer ({}); use smaller batches or another device",
            bytes, allocated_bytes(), device.name, device.global_mem_bytes, device.max_alloc_bytes,
            reason),
        ErrorCode::out_of_memory);
  };
  // Drivers allocate lazily and would report this at a later launch, without its size.
  if (bytes > device.max_alloc_bytes) throw failure("larger than the largest buffer");
  const size_t size = std::max<size_t>(bytes, 1);  // CL knows no empty buffer
  // Counted first, so that two threads are never given the same rest.
  const size_t held = state_->allocated->fetch_add(size);
  const auto release = [size, counter = state_->allocated] { *counter -= size; };
  if (bytes > device.global_mem_bytes - std::min<uint64_t>(held, device.global_mem_bytes)) {
    release();
    throw failure("more than is free");
  }
  // Unified memory: let the driver choose memory that the host can map without a copy.
  const cl_mem_flags flags =
      CL_MEM_READ_WRITE | (device.unified_memory ? CL_MEM_ALLOC_HOST_PTR : 0);
  cl_int status = CL_SUCCESS;
  cl_mem mem = clCreateBuffer(native(), flags, size, nullptr, &status);
  if (status != CL_SUCCESS) {
    release();
    throw failure(status_name(status));
  }
  // The counter follows the last handle, whatever becomes of the object.
  MemHandle handle(mem, [release, owned = adopt(mem)](cl_mem) mutable {
    owned = nullptr;
    release();
  });
  return Buffer(shared_from_this(), std::move(handle), bytes);
}

MemHandle Context::use_host_memory(std::span<const std::byte> bytes,
                                   std::shared_ptr<const void> owner) {
  cl_int status = CL_SUCCESS;
  MemHandle mem =
      adopt(clCreateBuffer(native(), CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, bytes.size(),
                           const_cast<std::byte*>(bytes.data()), &status));
  if (status != CL_SUCCESS) return nullptr;
  // Queued work holds the object longer than the last handle does.
  auto held = std::make_unique<std::shared_ptr<const void>>(std::move(owner));
  const auto release = [](cl_mem, void* data) {
    delete static_cast<std::shared_ptr<const void>*>(data);
  };
  check(clSetMemObjectDestructorCallback(mem.get(), release, held.get()),
        "clSetMemObjectDestructorCallback");
  held.release();
  return mem;
}

Buffer Context::wrap_host_memory(std::span<const std::byte> bytes, size_t alignment,
                                 std::shared_ptr<const void> owner) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment == 0;
  if (info().is_cpu() && !bytes.empty() && (aligned || kLoadsAtAnyAddress))
    if (MemHandle mem = use_host_memory(bytes, owner))
      return Buffer(shared_from_this(), std::move(mem), bytes.size());
  Buffer copy = allocate(bytes.size());
  copy.write(bytes);
  return copy;
}

_cl_mem* Context::scratch(size_t bytes) {
  // Without Buffer: that would hold this context alive for ever. Work queued on the old memory
  // keeps it until it has run.
  if (state_->scratch_bytes < bytes) {
    Buffer larger = allocate(bytes);
    state_->scratch = larger.handle();
    state_->scratch_bytes = bytes;
  }
  return state_->scratch.get();
}

Kernel Context::kernel(std::string_view program, std::string_view kernel_name,
                       const Defines& defines) {
  return unbuilt_kernel(program, kernel_name, defines).build();
}

Kernel Context::unbuilt_kernel(std::string_view program, std::string_view kernel_name,
                               const Defines& defines) {
  return Kernel(shared_from_this(), state_->programs->get(program, defines), std::string(program),
                std::string(kernel_name), defines);
}

Kernel Context::linked_kernel(std::string_view name, std::string_view kernel_name,
                              const std::vector<LinkedPart>& parts) {
  return Kernel(shared_from_this(), state_->programs->get_linked(name, parts), std::string(name),
                std::string(kernel_name), {});
}

Kernel Context::kernel_from_source(std::string_view program, const std::string& source,
                                   std::string_view kernel_name, const Defines& defines,
                                   const SourceTraits& traits) {
  return Kernel(shared_from_this(),
                state_->programs->get_source(program, {source, traits}, defines),
                std::string(program), std::string(kernel_name), defines)
      .build();
}

ProgramHandle Context::rebuilt(const ProgramHandle& program) {
  return state_->programs->rebuilt(program);
}

const Capabilities& Context::capabilities() {
  std::lock_guard lock(state_->capabilities_mutex);
  if (!state_->capabilities) {
    Capabilities found = find_capabilities(state_->programs->cache());
    if (const char* hidden = std::getenv("BERTCL_DISABLE")) disable(found, hidden);
    state_->capabilities = std::move(found);
  }
  return *state_->capabilities;
}

}  // namespace bertcl::opencl
