// SPDX-License-Identifier: Apache-2.0
// One device with its CL context, its in-order queue and its built programs.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "opencl/buffer.hpp"
#include "opencl/device/device.hpp"
#include "opencl/kernel.hpp"
#include "opencl/program/build.hpp"
#include "opencl/program/sources.hpp"
#include "opencl/queue.hpp"

namespace bertcl::opencl {

struct Capabilities;
class ProgramCache;

/// Everything needed to run kernels on one device. Programs are built at first use, kept for the
/// life of the context, and stored on disk (program/program_cache.hpp).
///
/// Several threads may use a context. A Kernel, whose arguments are its state, and a Buffer belong
/// to one thread at a time.
class Context : public std::enable_shared_from_this<Context> {
 public:
  /// Opens the device that `selector` names (see select_device()).
  static std::shared_ptr<Context> create(const std::string& selector = "");
  /// Works in a cl_context of the caller, on one of its devices. Keeps both. All work goes to
  /// `queue`, to a queue of its own where that is null. Throws Error where the device is not one of
  /// the context's.
  static std::shared_ptr<Context> wrap(_cl_context* context, _cl_device_id* device,
                                       QueueHandle queue = nullptr);
  /// Another one on the same device, with a cl_context and a queue of its own, for probes: what
  /// these find is stored, their programs are not.
  std::shared_ptr<Context> create_sibling() const;
  /// A sibling that claims to be `info` with these capabilities, for tests of the planner; its
  /// plans must not be run.
  std::shared_ptr<Context> pretend(const DeviceInfo& info, const Capabilities& capabilities) const;
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DeviceInfo& info() const;

  /// What the device has shown it can do; the first call runs the probes (device/capabilities.hpp).
  const Capabilities& capabilities();

  /// Memory of `bytes` bytes (0 is allowed), uninitialised. Throws Error saying how much was asked
  /// for, how much this context holds and how much the device has.
  Buffer allocate(size_t bytes);
  size_t allocated_bytes() const;

  /// Memory that kernels only read, with these bytes: on a CPU the bytes themselves, which `owner`
  /// keeps alive until no queued work reads them, elsewhere a copy. On x86 they may lie at any
  /// address, so kernels have to load them by element or by vloadn(); elsewhere what is not
  /// aligned to `alignment` bytes is copied too.
  Buffer wrap_host_memory(std::span<const std::byte> bytes, size_t alignment,
                          std::shared_ptr<const void> owner);

  /// The kernel `kernel_name` of `program`, a file of kernels_cl/, built with `defines`. Throws
  /// Error with file, options, CL status name and build log where the build fails.
  Kernel kernel(std::string_view program, std::string_view kernel_name,
                const Defines& defines = {});

  /// The same, but built by Kernel::build() or at its first launch, so that everything a plan needs
  /// is known before the first build.
  Kernel unbuilt_kernel(std::string_view program, std::string_view kernel_name,
                        const Defines& defines = {});

  /// A kernel, not built yet, of a program that is linked from several.
  Kernel linked_kernel(std::string_view name, std::string_view kernel_name,
                       const std::vector<LinkedPart>& parts);

  /// A built kernel from arbitrary source text with these traits; `program` names it in messages.
  Kernel kernel_from_source(std::string_view program, const std::string& source,
                            std::string_view kernel_name, const Defines& defines = {},
                            const SourceTraits& traits = {});

  /// A program for a kernel that `program` lacks: the same from source, where that came from the
  /// program cache; else null.
  ProgramHandle rebuilt(const ProgramHandle& program);

  /// Writes the binaries of programs that were built from source to the program cache, and begins
  /// no other once `seconds` have passed; the destructor calls it. Call it after the first
  /// launches: a binary then holds what the driver compiled for them.
  ///
  /// Why late and with a limit: PoCL compiles each kernel again to return a binary, 0.03 to 0.41 s
  /// per program. A stored binary saves 20 ms at each later start where PoCL's own kernel cache is
  /// warm (1 to 5 ms from the binary, 22 to 28 ms from source), 750 ms where it is cold (PoCL 3.1,
  /// AMD EPYC with AVX-512, 2026-11-21). So no process is held up for long, and after a few of them
  /// all binaries are stored except those of kernels with barriers, which would take seconds. Other
  /// drivers return a binary at once. Kernels of a binary are as fast as those built from source:
  /// PoCL still compiles them for other local sizes.
  void store_programs(double seconds = 0.5);

  /// What determines how these programs run: their sources, `options` as text, this device and its
  /// driver, as a hash.
  std::string key_of(std::span<const std::string> programs, std::string_view options = "") const;

  /// A file in the program cache's folder for measurements of these programs on this device:
  /// `stem`-KEY.json, with the first letters of key_of(). Empty without a cache.
  std::filesystem::path cache_file(std::string_view stem, std::span<const std::string> programs,
                                   std::string_view options = "") const;

  Queue& queue();

  /// Scratch memory for one queued operation, shared by all: at least `bytes` bytes, valid for work
  /// queued before the next call. Hold the queue from this call until the operation is queued.
  _cl_mem* scratch(size_t bytes);

  _cl_context* native() const;
  _cl_device_id* native_device() const;

 private:
  struct State;
  explicit Context(std::unique_ptr<State> state);
  /// Creates an OpenCL context on the device of `state`, and starts. Throws Error if the driver
  /// refuses.
  static std::shared_ptr<Context> open(std::unique_ptr<State> state);
  /// Starts one with queue and programs for the context and the device of `state`.
  static std::shared_ptr<Context> start(std::unique_ptr<State> state, QueueHandle queue = nullptr);
  /// The cached result for the same device, driver and CPU; else runs the probes, in a child
  /// process if find_probe_program() finds one. Otherwise they run in this process, except for
  /// those that rely on driver internals, which are then absent. Defined in probe/: probes launch
  /// kernels.
  Capabilities find_capabilities(const ProgramCache& cache);
  /// Null where the driver refuses.
  MemHandle use_host_memory(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  std::unique_ptr<State> state_;
};

}  // namespace bertcl::opencl
