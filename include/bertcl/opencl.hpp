// SPDX-License-Identifier: Apache-2.0
// Sessions on the OpenCL context and queue of a caller, whose buffers they read and write. The only
// header of bertcl that needs CL/cl.h; bertcl.hpp does not include it.
#pragma once
#include <CL/cl.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bertcl/export.h"
#include "bertcl/session.hpp"

namespace bertcl {

/// Bytes of a caller's buffer, which a run retains until it is done with it.
struct DeviceMemory {
  cl_mem memory = nullptr;
  std::size_t offset = 0;
  std::size_t bytes = 0;  ///< 0: all after the offset
};

/// Sequences whose ids lie on the device. The offsets are on the host: the sizes of all launches
/// follow from them.
struct DeviceSequences {
  DeviceMemory ids;                  ///< int32[tokens]
  DeviceMemory token_type_ids = {};  ///< likewise; no memory: all 0
  std::vector<std::int64_t> offsets = {0};
};

/// Where outputs go, by name, in the shapes that run(const Sequences&) gives them. Those that are
/// not named are not copied.
using DeviceOutputs = std::map<std::string, DeviceMemory, std::less<>>;

/// A session whose work goes to `queue`, which is in order and of `context`; both are retained.
/// SessionOptions::device is not read. What the caller has queued before a run is done before it,
/// and what is queued after start_on_device() comes after it. Throws Error if the two do not belong
/// together.
BERTCL_API Session load_on_queue(cl_context context, cl_command_queue queue,
                                 const std::filesystem::path& model,
                                 const SessionOptions& options = {});
BERTCL_API Session load_on_queue(cl_context context, cl_command_queue queue,
                                 const ModelBytes& model, const SessionOptions& options = {});

/// A run that is queued; its session outlives it, and it holds one of SessionOptions::requests.
class BERTCL_API DeviceRun {
 public:
  DeviceRun(DeviceRun&&) noexcept;
  DeviceRun& operator=(DeviceRun&&) noexcept;
  ~DeviceRun();
  /// Complete when the outputs are there. It lives as long as this; retain it to keep it longer.
  cl_event event() const;
  /// Waits for it; once. Throws Error if an id was outside its table: the outputs are void then.
  void finish();

 private:
  friend struct SessionAccess;
  struct Impl;
  explicit DeviceRun(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Queues a run and flushes the queue; nothing is copied to the host. It starts when `wait_for` is
/// complete. Throws Error, before anything is queued, where a buffer is of another context or too
/// small, outputs overlap, ModelInfo::takes_packed is false, or all requests are in flight. Where
/// an earlier DeviceRun was dropped without finish(), the call may wait for the queue.
BERTCL_API DeviceRun start_on_device(const Session& session, const DeviceSequences& sequences,
                                     const DeviceOutputs& outputs,
                                     std::span<const cl_event> wait_for = {});

}  // namespace bertcl
