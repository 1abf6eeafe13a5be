// SPDX-License-Identifier: Apache-2.0
// One run of a plan at a time: named tensors to staged inputs, and results to named tensors.
#include "runtime/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"
#include "ir/input_role.hpp"
#include "ir/port.hpp"
#include "opencl/base/exit_guard.hpp"
#include "opencl/queue.hpp"
#include "ops/symbols.hpp"
#include "runtime/sequences.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::runtime {

namespace symbols = ops::symbols;

void Request::bind_packing_sizes(const ops::Packing& packing, ir::Bindings& sizes) const {
  sizes[symbols::batch] = packing.batch;
  sizes[symbols::tokens] = packing.tokens();
  sizes[symbols::offsets] = packing.batch + 1;
  sizes[symbols::longest] = packing.longest;
  // One work-item for all rows of a head packs its keys once; more items keep more units busy.
  const std::int64_t heads = std::max<std::int64_t>(1, plan_.attention_heads * packing.batch);
  const std::int64_t wanted = 4 * static_cast<std::int64_t>(plan_.context->info().compute_units);
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(wanted, heads));
  const std::int64_t rows = std::max<std::int64_t>(1, ceil_div(packing.longest, blocks));
  sizes[symbols::attention_rows] = round_up(rows, 32);
}

/// Of each element of an input that is left out.
std::int64_t Request::default_of(const std::string& name) const {
  return name == plan_.mask_input || ir::role_of_input(name) == ir::InputRole::mask ? 1 : 0;
}

void Request::upload(const Tensors& inputs, const ops::Packing* packing) {
  for (const plan::Input& in : plan_.inputs) {
    const auto stage = [&](const auto& values) {
      const auto from = std::as_bytes(std::span(values));
      const std::span<std::byte> to = executor_.staging(in.slot);
      if (from.size() != to.size())
        throw Error(
            fmt::format("input '{}' has {} bytes, expected {}", in.source, from.size(), to.size()));
      std::ranges::copy(from, to.begin());
    };
    switch (in.kind) {
      case plan::InputKind::dense: {
        const ir::DType wanted = plan_.slots[in.slot].type.dtype;
        const auto given = inputs.find(in.source);
        const auto absent = [&] {
          const ir::Sizes shape = executor_.shape(in.slot);
          const auto count = static_cast<std::size_t>(ir::element_count(shape));
          return ir::Tensor::of(shape, std::vector(count, default_of(in.source))).converted(wanted);
        };
        const ir::Tensor t =
            given != inputs.end() ? without_loss(given->second, wanted, in.source) : absent();
        stage(t.bytes());
        break;
      }
      case plan::InputKind::packed_ids:
      case plan::InputKind::packed_token_types:
        stage(packing->gather(packed_source(inputs, in.source)));
        break;
      case plan::InputKind::positions:
        stage(in.source.empty() ? packing->positions
                                : packing->gather(packed_source(inputs, in.source)));
        break;
      case plan::InputKind::seq_offsets:
        stage(packing->seq_offsets);
        break;
      case plan::InputKind::key_mask:
        stage(packing->key_mask);
        break;
    }
  }
  executor_.upload();
}

/// Values [batch, seq] of an input; their default where it is absent.
std::vector<std::int64_t> Request::packed_source(const Tensors& inputs,
                                                 const std::string& name) const {
  if (inputs.contains(name)) return integers_of(plan_, inputs, name);
  return std::vector(static_cast<std::size_t>(statistics_.batch * statistics_.seq),
                     default_of(name));
}

/// Ids or token types at their places in device memory, without a copy between. What 32 bits do not
/// hold becomes the nearest that they do, as in Packing::gather().
void Request::upload(const Sequences& sequences, const ops::Packing& packing) {
  for (const plan::Input& in : plan_.inputs) {
    const std::span<std::byte> to = executor_.staging(in.slot);
    const auto stage = [&](const auto& values) {
      std::ranges::copy(std::as_bytes(std::span(values)), to.begin());
    };
    const auto narrow = [&](std::span<const std::int64_t> values) {
      const std::span rows(reinterpret_cast<std::int32_t*>(to.data()), to.size() / 4);
      std::ranges::fill(rows, 0);
      std::ranges::transform(values, rows.begin(), ops::nearest_int32);
    };
    switch (in.kind) {
      case plan::InputKind::packed_ids:
        narrow(sequences.ids);
        break;
      case plan::InputKind::packed_token_types:
        narrow(sequences.token_type_ids);
        break;
      case plan::InputKind::positions:
        stage(packing.positions);
        break;
      case plan::InputKind::seq_offsets:
        stage(packing.seq_offsets);
        break;
      case plan::InputKind::key_mask:
        stage(packing.key_mask);
        break;
      case plan::InputKind::dense:  // takes_packed(): there is none
        break;
    }
  }
  executor_.upload();
}

void Request::begin(const OutputNames& wanted) {
  check_outputs(plan_, wanted);
  wanted_ = wanted;
  seq_offsets_.clear();
  packed_ = to_device_ = false;
  completion_event_ = nullptr;
  // What it says of a run that was dropped is not said of this one.
  if (opencl::Buffer& flag = executor_.index_error(); unfinished_ && flag) flag.fill(0);
  unfinished_ = true;
}

void Request::bind(const ops::Packing& packing, ir::Bindings sizes) {
  bind_packing_sizes(packing, sizes);
  statistics_ = {packing.batch, packing.seq, packing.tokens()};
  executor_.bind(sizes);
}

void Request::start(const Sequences& sequences, const OutputNames& wanted, const TapFunction& tap) {
  check(sequences);
  if (!drop_padding_ || !takes_packed(plan_)) {
    start(padded(plan_, sequences), wanted, tap);
    seq_offsets_.assign(sequences.offsets.begin(), sequences.offsets.end());
    return;
  }
  begin(wanted);
  packed_ = true;
  PackedShape shape = packed_shape(plan_, sequences.offsets);
  bind(shape.packing, bind_shapes(plan_, shape.inputs));
  upload(sequences, shape.packing);
  enqueue(tap);
  seq_offsets_ = std::move(shape.packing.seq_offsets);
}

void Request::start(const Tensors& inputs, const OutputNames& wanted, const TapFunction& tap) {
  begin(wanted);
  bind_and_upload(inputs);
  enqueue(tap);
}

void Request::enqueue(const TapFunction& tap) {
  const auto held = plan_.context->queue().lock();  // so that the run ends before another begins
  executor_.enqueue(tap);
  executor_.end_run();
}

void Request::bind_and_upload(const Tensors& inputs) {
  check_names(plan_, inputs);
  const Shapes shapes = shapes_of(inputs);
  ir::Bindings sizes = bind_shapes(plan_, shapes);
  std::optional<ops::Packing> packing;
  if (const auto rows = packed_rows(shapes, sizes)) {
    packing =
        ops::make_packing(rows->at(0), rows->at(1), mask_of(plan_, inputs),
                          drop_padding_ && plan_.padding_reader.empty(), plan_.mask_is_length);
    check_length(plan_, *packing);
    bind(*packing, std::move(sizes));
  } else {
    executor_.bind(sizes);
  }
  upload(inputs, packing ? &*packing : nullptr);
}

void Request::try_launches() {
  try {
    ir::Bindings sizes;
    Tensors inputs;
    for (const ir::Port& input : plan_.model_inputs) {
      const ir::Sizes extents = synthetic_extents(input.type.shape, 1, sizes);
      inputs[input.name] =
          ir::Tensor::of(extents, std::vector<std::int64_t>(ir::element_count(extents),
                                                            input.name == plan_.mask_input ? 1 : 0))
              .converted(input.type.dtype);
    }
    bind_and_upload(inputs);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device) throw;
    return;  // these inputs cannot run: a real run reports it
  }
  executor_.try_launches();
  executor_.wait();
}

std::optional<ir::Sizes> Request::packed_rows(const Shapes& inputs,
                                              const ir::Bindings& sizes) const {
  if (!plan_.packed_rows.empty()) return ir::evaluate(plan_.packed_rows, sizes);
  const auto ids = std::ranges::find(plan_.inputs, plan::InputKind::packed_ids, &plan::Input::kind);
  if (ids == plan_.inputs.end()) return std::nullopt;
  return batch_shape(plan_, inputs, ids->source);
}

std::int64_t Request::arena_bytes(const Shapes& inputs) const {
  ir::Bindings sizes = bind_shapes(plan_, inputs);
  if (const auto rows = packed_rows(inputs, sizes)) {
    ops::Packing packing;  // of full sequences
    packing.batch = rows->at(0);
    packing.seq = packing.longest = rows->at(1);
    const std::int64_t tokens = ir::product(packing.batch, packing.seq, "a batch");
    ops::check_tokens(tokens);
    packing.seq_offsets = {static_cast<std::int32_t>(tokens)};
    check_length(plan_, packing);
    bind_packing_sizes(packing, sizes);
  }
  return executor_.memory().bytes(sizes);
}

bool Request::is_wanted(const std::string& output) const {
  if (to_device_) return false;
  return wanted_.empty() || std::ranges::find(wanted_, output) != wanted_.end();
}

/// Rows of an output before they were unpacked, where its slot is read with padding otherwise.
int Request::slot_of(const plan::Output& out) const {
  return packed_ ? packed_slot(out) : out.slot;
}

// Reads stand on a queue of their own: on the context's they would wait for the runs that were
// started meanwhile, and queued by start() they would make it wait with drivers that copy to
// pageable memory only when its content is there.
Tensors Request::finish() {
  opencl::refuse_fork();
  // Where the device cannot be waited for, queued reads write here after this call has thrown.
  struct Results {
    Tensors outputs;
    std::int32_t index_error = 0;
  };
  const auto results = std::make_shared<Results>();
  for (const plan::Output& out : plan_.outputs) {
    if (!is_wanted(out.name)) continue;
    const int slot = slot_of(out);
    results->outputs[out.name] =
        slot < 0 ? out.constant
                 : ir::Tensor::zeros(plan_.slots[slot].type.dtype, executor_.shape(slot));
  }
  if (!reads_)
    reads_ =
        std::make_unique<opencl::Queue>(plan_.context->native(), plan_.context->native_device());
  try {
    for (const plan::Output& out : plan_.outputs)
      if (const auto t = results->outputs.find(out.name);
          t != results->outputs.end() && out.slot >= 0)
        executor_.buffer(slot_of(out))
            .read_async(t->second.mutable_bytes(), *reads_, executor_.end());
    if (const opencl::Buffer& flag = executor_.index_error())
      flag.read_async(std::as_writable_bytes(std::span(&results->index_error, 1)), *reads_,
                      executor_.end());
    reads_->finish();
    executor_.wait();  // which is over already, unless there was nothing to read
  } catch (...) {
    reads_->settle(results);
    throw;
  }
  unfinished_ = false;
  if (results->index_error != 0) {
    executor_.index_error().fill(0);
    throw Error(
        "an index is outside its table: a token id beyond the vocabulary, a token type or a "
        "position beyond its table, or a token of an empty sequence");
  }
  for (std::size_t i = 0; !seq_offsets_.empty() && i < plan_.outputs.size(); ++i) {
    const plan::Output& out = plan_.outputs[i];
    if (is_wanted(out.name) && slot_of(out) == out.slot && has_padding(plan_, i)) {
      ir::Tensor& t = results->outputs.at(out.name);
      t = without_padding(t, seq_offsets_);
    }
  }
  return std::move(results->outputs);
}

}  // namespace bertcl::runtime
