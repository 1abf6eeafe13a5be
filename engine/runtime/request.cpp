// SPDX-License-Identifier: Apache-2.0
// One run of a plan at a time: named tensors to staged inputs, and results to named tensors.
#include "runtime/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"
#include "opencl/queue.hpp"
#include "ops/symbols.hpp"

namespace bertcl::runtime {

namespace symbols = ops::symbols;

void Request::bind_packing(const ops::Packing& packing, ir::Bindings& sizes) const {
  sizes[symbols::batch] = packing.batch;
  sizes[symbols::tokens] = packing.tokens();
  sizes[symbols::offsets] = packing.batch + 1;
  sizes[symbols::longest] = packing.longest;
  // One work-item for all rows of a head packs its keys once; more items keep more units busy.
  const std::int64_t heads = std::max<std::int64_t>(1, plan_.attention_heads * packing.batch);
  const std::int64_t wanted = 4 * static_cast<std::int64_t>(plan_.context->info().compute_units);
  const std::int64_t blocks = std::max<std::int64_t>(1, (wanted + heads - 1) / heads);
  const std::int64_t rows = (packing.longest + blocks - 1) / blocks;
  sizes[symbols::attention_rows] = std::max<std::int64_t>(32, (rows + 31) / 32 * 32);
}

/// An absent mask or absent token types that a generic op reads.
ir::Tensor Request::default_of(const plan::Input& in) const {
  const ir::Sizes shape = executor_.shape(in.slot);
  return ir::Tensor::of(
      shape, std::vector<std::int64_t>(static_cast<std::size_t>(ir::element_count(shape)),
                                       in.source == plan_.mask_input ? 1 : 0));
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
        const ir::DType wanted = plan_.slots[static_cast<std::size_t>(in.slot)].type.dtype;
        const auto given = inputs.find(in.source);
        const ir::Tensor t = given != inputs.end() ? given->second.converted(wanted)
                                                   : default_of(in).converted(wanted);
        stage(t.bytes());
        break;
      }
      case plan::InputKind::packed_ids:
      case plan::InputKind::packed_types:
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

/// Values [batch, seq] of an input; zeros where it is absent.
std::vector<std::int64_t> Request::packed_source(const Tensors& inputs,
                                                 const std::string& name) const {
  if (inputs.contains(name)) return integers_of(plan_, inputs, name);
  return std::vector<std::int64_t>(static_cast<std::size_t>(statistics_.batch * statistics_.seq));
}

void Request::start(const Tensors& inputs, const Tap& tap) {
  check_names(plan_, inputs);
  ir::Bindings sizes = bind_shapes(plan_, shapes_of(inputs));
  std::optional<ops::Packing> packing;
  if (const plan::Input* ids = packed_ids()) {
    const ir::Sizes& shape = inputs.find(ids->source)->second.shape();
    packing = ops::make_packing(shape[0], shape[1], mask_of(plan_, inputs),
                                drop_padding_ && plan_.keeps_padding.empty(), plan_.mask_is_length);
    check_length(plan_, *packing);
    bind_packing(*packing, sizes);
    statistics_ = {packing->batch, packing->seq, packing->tokens()};
  }
  executor_.bind(sizes);
  upload(inputs, packing ? &*packing : nullptr);
  executor_.enqueue(tap);
}

const plan::Input* Request::packed_ids() const {
  const auto ids =
      std::find_if(plan_.inputs.begin(), plan_.inputs.end(),
                   [](const plan::Input& in) { return in.kind == plan::InputKind::packed_ids; });
  return ids == plan_.inputs.end() ? nullptr : &*ids;
}

std::int64_t Request::arena_bytes(const Shapes& inputs) const {
  ir::Bindings sizes = bind_shapes(plan_, inputs);
  if (const plan::Input* ids = packed_ids()) {
    const auto shape = inputs.find(ids->source);
    if (shape == inputs.end()) throw Error(fmt::format("input '{}' is missing", ids->source));
    ops::Packing packing;  // of full sequences
    packing.batch = shape->second[0];
    packing.seq = packing.longest = shape->second[1];
    const std::int64_t tokens = ir::product(packing.batch, packing.seq, "a batch");
    if (tokens > std::numeric_limits<std::int32_t>::max())
      throw Error(fmt::format("a batch of {} tokens is too large", tokens));
    packing.seq_offsets = {static_cast<std::int32_t>(tokens)};
    check_length(plan_, packing);
    bind_packing(packing, sizes);
  }
  return executor_.arena_bytes(sizes);
}

Tensors Request::finish() {
  // Where the device cannot be waited for, queued reads write here after this call has thrown.
  struct Results {
    Tensors outputs;
    std::int32_t index_error = 0;
  };
  const auto results = std::make_shared<Results>();
  for (const plan::Output& out : plan_.outputs)
    results->outputs[out.name] =
        out.slot < 0 ? out.constant
                     : ir::Tensor::zeros(plan_.slots[static_cast<std::size_t>(out.slot)].type.dtype,
                                         executor_.shape(out.slot));
  opencl::Buffer& flag = executor_.index_error();
  // All reads are queued before the one wait.
  try {
    for (const plan::Output& out : plan_.outputs)
      if (ir::Tensor& t = results->outputs.at(out.name); out.slot >= 0 && !t.bytes().empty())
        executor_.buffer(out.slot).read_async(t.mutable_bytes());
    if (flag) flag.read_async(std::as_writable_bytes(std::span(&results->index_error, 1)));
    executor_.wait();
  } catch (...) {
    plan_.context->queue().settle(results);
    throw;
  }
  if (results->index_error == 0) return std::move(results->outputs);
  flag.fill(0);
  throw Error(
      "an index is outside its table: a token id beyond the vocabulary, a token type or a position "
      "beyond its table");
}

}  // namespace bertcl::runtime
