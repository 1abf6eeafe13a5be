// SPDX-License-Identifier: Apache-2.0
// Sessions on the OpenCL objects of a caller.
#include "bertcl/opencl.hpp"

#include <algorithm>
#include <utility>

#include "api/boundary.hpp"
#include "api/session_impl.hpp"
#include "onnx/model_path.hpp"
#include "opencl/launch/caller.hpp"

namespace bertcl {

struct DeviceRun::Impl {
  runtime::Session::Run run;
};

namespace {

Session load_on(cl_context context, cl_command_queue queue, const auto& model,
                const std::filesystem::path& file, const SessionOptions& options) {
  return translate_exceptions([&] {
    runtime::SessionOptions all = to_runtime(options, file);
    all.context = opencl::context_on(context, queue);
    return SessionAccess::make(runtime::Session::load(model, all));
  });
}

runtime::BufferRegion region_of(const std::shared_ptr<opencl::Context>& context,
                                const DeviceMemory& given, const std::string& what) {
  if (!given.memory) throw Error(what + ": no buffer given");
  runtime::BufferRegion range{opencl::retain(context, given.memory, what), given.offset,
                              given.bytes};
  const std::size_t size = range.buffer.size();
  if (given.offset > size || given.bytes > size - given.offset)
    throw Error(what + ": bytes " + std::to_string(given.offset) + " to " +
                std::to_string(given.offset + given.bytes) + " of a buffer of " +
                std::to_string(size));
  if (given.bytes == 0) range.bytes = size - given.offset;
  return range;
}

}  // namespace

Session load_on_queue(cl_context context, cl_command_queue queue,
                      const std::filesystem::path& model, const SessionOptions& options) {
  return translate_exceptions([&] {
    const std::filesystem::path file = onnx_io::find_model(model);
    return load_on(context, queue, file, file, options);
  });
}

Session load_on_queue(cl_context context, cl_command_queue queue, const ModelBytes& model,
                      const SessionOptions& options) {
  return translate_exceptions(
      [&] { return load_on(context, queue, to_runtime(model), file_in(model), options); });
}

DeviceRun::DeviceRun(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceRun::DeviceRun(DeviceRun&&) noexcept = default;
DeviceRun& DeviceRun::operator=(DeviceRun&&) noexcept = default;
DeviceRun::~DeviceRun() = default;

cl_event DeviceRun::event() const { return held(impl_, "run").run.event().get(); }

void DeviceRun::finish() {
  translate_exceptions([&] { held(impl_, "run").run.finish(); });
}

DeviceRun SessionAccess::start(const Session& session, const DeviceSequences& sequences,
                               const DeviceOutputs& outputs, std::span<const cl_event> wait_for) {
  if (std::ranges::find(wait_for, nullptr) != wait_for.end())
    throw Error("wait_for holds a null event");
  runtime::Session& engine = of(session);
  const auto context = engine.context().shared_from_this();
  runtime::DeviceSequences given;
  given.offsets = sequences.offsets;
  given.ids = region_of(context, sequences.ids, "ids");
  if (sequences.token_type_ids.memory)
    given.token_type_ids = region_of(context, sequences.token_type_ids, "token_type_ids");
  runtime::DeviceOutputs to;
  for (const auto& [name, memory] : outputs)
    to.emplace(name, region_of(context, memory, "output '" + name + "'"));
  return DeviceRun(std::unique_ptr<DeviceRun::Impl>(
      new DeviceRun::Impl{engine.start(given, std::move(to), wait_for)}));
}

DeviceRun start_on_device(const Session& session, const DeviceSequences& sequences,
                          const DeviceOutputs& outputs, std::span<const cl_event> wait_for) {
  return translate_exceptions(
      [&] { return SessionAccess::start(session, sequences, outputs, wait_for); });
}

}  // namespace bertcl
