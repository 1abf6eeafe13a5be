// SPDX-License-Identifier: Apache-2.0
// The public session: a wrapper of the engine's, with information from its plan.
#include "bertcl/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/boundary.hpp"
#include "api/check_not_negative.hpp"
#include "api/session_impl.hpp"
#include "api/tensor_data.hpp"
#include "bertcl/error.hpp"
#include "bertcl/version.hpp"
#include "ir/port.hpp"
#include "onnx/model_path.hpp"
#include "runtime/sequences.hpp"
#include "runtime/task.hpp"
#include "support/model_in_memory.hpp"
#include "support/option_name.hpp"
#include "tasks/model_files/dense_module.hpp"
#include "text/pad_token_id.hpp"

namespace bertcl {
namespace {

static_assert(static_cast<int>(Task::feature_extraction) ==
              static_cast<int>(runtime::Task::feature_extraction));

ir::DType type_of(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return ir::DType::f16;
    case Precision::bf16:
      return ir::DType::bf16;
    case Precision::fp32:
      return ir::DType::f32;
  }
  throw Error(fmt::format("unknown precision {} (choose from fp32, fp16, bf16)",
                          static_cast<int>(precision)));
}

std::vector<Port> to_public(const std::vector<ir::Port>& ports) {
  std::vector<Port> result;
  for (const ir::Port& port : ports) {
    Port& added = result.emplace_back(Port{port.name, bertcl::to_public(port.type.dtype), {}});
    for (const ir::Dim& extent : port.type.shape)
      added.shape.push_back(extent.is_constant() ? extent.constant() : -1);
  }
  return result;
}

Precision float_precision(const plan::Plan& plan) {
  using enum plan::Arithmetic::Kind;
  return plan::computes_in(plan, bf16)   ? Precision::bf16
         : plan::computes_in(plan, fp16) ? Precision::fp16
                                         : Precision::fp32;
}

ModelInfo info_of(const runtime::Session& session) {
  const plan::Plan& plan = session.plan();
  ModelInfo info;
  info.inputs = to_public(session.inputs());
  info.outputs = to_public(session.outputs());
  info.task = static_cast<Task>(runtime::task_of(plan));
  info.max_length = runtime::longest_sequence(plan);
  info.vocab_size = plan.word_rows;
  info.heads = plan.attention_heads;
  info.precision = float_precision(plan);
  info.int8 = plan::computes_in(plan, plan::Arithmetic::Kind::int8);
  info.takes_packed = runtime::takes_packed(plan);
  info.weight_bytes = session.memory().weights;
  info.device = plan.context->info().name;
  info.metadata = session.metadata();
  return info;
}

runtime::Sequences to_runtime(const Sequences& sequences) {
  return {sequences.ids, sequences.token_type_ids, sequences.offsets};
}

}  // namespace

std::filesystem::path file_in(const ModelBytes& model) {
  return model.folder.empty() ? std::filesystem::path() : model.folder / "model.onnx";
}

runtime::SessionOptions to_runtime(const SessionOptions& options,
                                   const std::filesystem::path& model) {
  if (options.requests < 1 || options.requests > max_requests)
    throw Error(fmt::format("{} is {}, expected 1 to {} runs in flight", option_name("requests"),
                            options.requests, max_requests));
  check_not_negative("max-memory", options.max_memory, "what the device has");
  if (options.pooling) check_not_negative("dimensions", options.pooling->dimensions, "all");
  runtime::SessionOptions result;
  if (!model.empty()) result.pad_token_id = [model] { return text::read_pad_token_id(model); };
  result.device = options.device;
  result.precision = type_of(options.precision);
  result.requests = options.requests;
  result.max_memory = options.max_memory;
  result.require_int8 = options.require_int8;
  result.allow_nonfinite = options.allow_nonfinite;
  if (const auto& pooling = options.pooling)
    result.pooling = runtime::Pooling{pooling->kind, pooling->or_own, pooling->dimensions,
                                      pooling->normalize, tasks::dense_modules(pooling->dense)};
  return result;
}

onnx_io::ModelBytes to_runtime(const ModelBytes& model) {
  if (model.owner) return {model.bytes, model.owner, model.folder};
  auto copy =
      std::make_shared<const std::vector<std::byte>>(model.bytes.begin(), model.bytes.end());
  const std::span<const std::byte> bytes(*copy);
  return {bytes, std::move(copy), model.folder};
}

const char* version() { return BERTCL_VERSION; }

struct Session::Run::Impl {
  runtime::Session::Run run;
};

std::filesystem::path SessionAccess::file(const Session& session) {
  const std::filesystem::path& path = of(session).path();
  return path == kModelInMemory ? std::filesystem::path() : path;
}

Session SessionAccess::make(runtime::Session session) {
  ModelInfo info = info_of(session);
  return Session(
      std::unique_ptr<Session::Impl>(new Session::Impl{std::move(session), std::move(info)}));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session Session::load(const std::filesystem::path& model, const SessionOptions& options) {
  return translate_exceptions([&] {
    const std::filesystem::path file = onnx_io::find_model(model);
    return SessionAccess::make(runtime::Session::load(file, to_runtime(options, file)));
  });
}

Session Session::load(const ModelBytes& model, const SessionOptions& options) {
  return translate_exceptions([&] {
    return SessionAccess::make(
        runtime::Session::load(to_runtime(model), to_runtime(options, file_in(model))));
  });
}

const ModelInfo& Session::info() const { return held(impl_, "session").info; }

MemoryUse Session::memory() const {
  const runtime::MemoryUse use = held(impl_, "session").session.memory();
  return {use.weights, use.values, use.requests};
}

std::int64_t Session::run_memory(std::int64_t batch, std::int64_t length) const {
  return translate_exceptions([&] {
    if (batch < 1 || length < 1)
      throw Error("a batch needs at least one sequence, and a sequence at least one token");
    std::map<std::string, ir::Sizes, std::less<>> shapes;
    for (const Port& port : held(impl_, "session").info.inputs) {
      if (port.shape.empty() || port.shape.size() > 2)
        throw Error("input '" + port.name + "' does not have the shape [batch, length]");
      ir::Sizes shape{batch, length};
      shape.resize(port.shape.size());
      shapes.emplace(port.name, std::move(shape));
    }
    return held(impl_, "session").session.arena_bytes(shapes);
  });
}

Tensors Session::run(const Tensors& inputs, const RunOptions& options) const {
  return translate_exceptions([&] {
    return bertcl::to_public(
        held(impl_, "session").session.run(bertcl::to_runtime(inputs), options.outputs));
  });
}

Tensors Session::run(const Sequences& sequences, const RunOptions& options) const {
  return translate_exceptions([&] {
    return bertcl::to_public(
        held(impl_, "session").session.run(to_runtime(sequences), options.outputs));
  });
}

Session::Run::Run(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Run::Run(Run&&) noexcept = default;
Session::Run& Session::Run::operator=(Run&&) noexcept = default;
Session::Run::~Run() = default;

Session::Run Session::start(const Tensors& inputs, const RunOptions& options) const {
  return translate_exceptions([&] {
    return Run(std::unique_ptr<Run::Impl>(new Run::Impl{
        held(impl_, "session").session.start(bertcl::to_runtime(inputs), options.outputs)}));
  });
}

Session::Run Session::start(const Sequences& sequences, const RunOptions& options) const {
  return translate_exceptions([&] {
    return Run(std::unique_ptr<Run::Impl>(new Run::Impl{
        held(impl_, "session").session.start(to_runtime(sequences), options.outputs)}));
  });
}

Tensors Session::Run::finish() {
  return translate_exceptions([&] { return bertcl::to_public(held(impl_, "run").run.finish()); });
}

}  // namespace bertcl
