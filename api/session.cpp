// SPDX-License-Identifier: Apache-2.0
// The public session: a wrapper of the engine's, with information from its plan.
#include "bertcl/session.hpp"

#include <optional>
#include <utility>

#include "api/boundary.hpp"
#include "api/sequences.hpp"
#include "api/tensor_data.hpp"
#include "bertcl/version.hpp"

namespace bertcl {
namespace {

ir::DType type_of(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return ir::DType::f16;
    case Precision::bf16:
      return ir::DType::bf16;
    case Precision::fp32:
      break;
  }
  return ir::DType::f32;
}

runtime::SessionOptions internal(const SessionOptions& options) {
  runtime::SessionOptions result;
  result.device = options.device;
  result.precision = type_of(options.precision);
  result.requests = options.requests;
  result.max_memory = options.max_memory;
  result.require_int8 = options.require_int8;
  result.allow_nonfinite = options.allow_nonfinite;
  return result;
}

std::vector<Port> external(const std::vector<plan::Port>& ports) {
  std::vector<Port> result;
  for (const plan::Port& port : ports) {
    Port& added = result.emplace_back(Port{port.name, bertcl::external(port.type.dtype), {}});
    for (const ir::Dim& extent : port.type.shape)
      added.shape.push_back(extent.is_constant() ? extent.constant() : -1);
  }
  return result;
}

ModelInfo info_of(const runtime::Session& session) {
  const plan::Plan& plan = session.plan();
  return {external(session.inputs()), external(session.outputs()),
          plan.max_positions,         plan.word_rows,
          plan.attention_heads,       plan::computes_in_int8(plan),
          plan.context->info().name};
}

}  // namespace

const char* version() { return BERTCL_VERSION; }

struct Session::Impl {
  mutable runtime::Session session;  // its calls may meet
  ModelInfo info;
};

struct Session::Run::Impl {
  runtime::Session::Run run;
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session Session::load(const std::filesystem::path& model, const SessionOptions& options) {
  return at_boundary([&] {
    runtime::Session session = runtime::Session::load(model, internal(options));
    ModelInfo info = info_of(session);
    return Session(std::unique_ptr<Impl>(new Impl{std::move(session), std::move(info)}));
  });
}

const ModelInfo& Session::info() const { return impl_->info; }

Tensors Session::run(const Tensors& inputs) const {
  return at_boundary(
      [&] { return bertcl::external(impl_->session.run(bertcl::internal(inputs))); });
}

Tensors Session::run(const Sequences& sequences) const {
  return at_boundary([&] {
    check(sequences);
    runtime::Session& session = impl_->session;
    return bertcl::external(packed(session.run(padded(sequences, session.inputs())), sequences,
                                   session.inputs(), session.outputs()));
  });
}

Session::Run::Run(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Run::Run(Run&&) noexcept = default;
Session::Run::~Run() = default;

Session::Run Session::start(const Tensors& inputs) const {
  return at_boundary([&] {
    return Run(
        std::unique_ptr<Run::Impl>(new Run::Impl{impl_->session.start(bertcl::internal(inputs))}));
  });
}

Tensors Session::Run::finish() {
  return at_boundary([&] { return bertcl::external(impl_->run.finish()); });
}

}  // namespace bertcl
