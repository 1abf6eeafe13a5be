// SPDX-License-Identifier: Apache-2.0
// Runs whose sequences and outputs lie in memory of the device that the caller has.
#include "runtime/device_run.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/launch/caller.hpp"
#include "opencl/queue.hpp"
#include "runtime/request.hpp"
#include "runtime/sequences.hpp"

namespace bertcl::runtime {
namespace {

void check_bytes(const BufferRegion& range, std::size_t needed, const std::string& what) {
  if (range.bytes < needed)
    throw Error(fmt::format("{}: {} bytes are needed, {} were given", what, needed, range.bytes));
}

}  // namespace

int Request::packed_slot(const plan::Output& out) {
  return out.packed_slot >= 0 ? out.packed_slot : out.slot;
}

std::size_t Request::bytes_on_device(const plan::Output& out, std::size_t index) const {
  const int slot = packed_slot(out);
  ir::Sizes sizes = executor_.shape(slot);
  if (slot == out.slot && has_padding(plan_, index)) {
    sizes.erase(sizes.begin());
    sizes[0] = statistics_.tokens;
  }
  return static_cast<std::size_t>(ir::element_count(sizes)) *
         ir::size_of(plan_.slots[slot].type.dtype);
}

void Request::copy_output(const plan::Output& out, std::size_t index,
                          std::span<const std::int32_t> seq_offsets, BufferRegion& to) {
  const int slot = packed_slot(out);
  const std::size_t bytes = bytes_on_device(out, index);
  if (slot != out.slot || !has_padding(plan_, index))
    return to.buffer.copy_from(executor_.buffer(slot), bytes, 0, to.offset);
  const auto rows = static_cast<std::size_t>(statistics_.tokens);
  const std::size_t row = bytes / rows;
  for (std::size_t i = 0; i + 1 < seq_offsets.size(); ++i) {
    const auto first = static_cast<std::size_t>(seq_offsets[i]);
    const auto last = static_cast<std::size_t>(seq_offsets[i + 1]);
    to.buffer.copy_from(executor_.buffer(slot), (last - first) * row,
                        i * static_cast<std::size_t>(statistics_.seq) * row,
                        to.offset + first * row);
  }
}

void Request::start(const DeviceSequences& sequences, DeviceOutputs& outputs,
                    std::span<_cl_event* const> wait_for, const TapFunction& tap) {
  if (!drop_padding_ || !takes_packed(plan_))
    throw Error("the model takes padded tensors; run it with sequences or tensors of the host",
                ErrorCode::unsupported);
  const std::int64_t tokens = sequences.offsets.empty() ? 0 : sequences.offsets.back();
  check_sequence_offsets(sequences.offsets, tokens);
  const std::size_t bytes = static_cast<std::size_t>(tokens) * sizeof(std::int32_t);
  check_bytes(sequences.ids, bytes, "ids");
  if (sequences.token_type_ids.buffer)
    check_bytes(sequences.token_type_ids, bytes, "token_type_ids");
  OutputNames names;
  for (const auto& [name, range] : outputs) names.push_back(name);
  begin(names);
  const PackedShape shape = packed_shape(plan_, sequences.offsets);
  bind(shape.packing, bind_shapes(plan_, shape.inputs));
  const auto for_each_output = [&](const auto& action) {
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i)
      if (const auto to = outputs.find(plan_.outputs[i].name); to != outputs.end())
        action(plan_.outputs[i], i, to->second);
  };
  struct Written {
    std::string name;
    const BufferRegion* to;
    std::size_t bytes;
  };
  std::vector<Written> written;
  for_each_output([&](const plan::Output& out, std::size_t i, const BufferRegion& to) {
    if (out.slot < 0) throw Error(fmt::format("output '{}' is a constant of the model", out.name));
    const std::size_t size = bytes_on_device(out, i);
    check_bytes(to, size, fmt::format("output '{}'", out.name));
    for (const Written& other : written)
      if (opencl::overlap(other.to->buffer.native(), other.to->offset, other.bytes,
                          to.buffer.native(), to.offset, size))
        throw Error(fmt::format("outputs '{}' and '{}' overlap in a buffer", other.name, out.name));
    written.push_back({out.name, &to, size});
  });

  opencl::Queue& queue = plan_.context->queue();
  const auto held = queue.lock();
  queue.wait_for(wait_for);
  upload(Sequences{}, shape.packing);
  for (const plan::Input& in : plan_.inputs) {
    opencl::Buffer& to = executor_.buffer(in.slot);
    if (in.kind == plan::InputKind::packed_ids)
      to.copy_from(sequences.ids.buffer, bytes, sequences.ids.offset);
    if (in.kind == plan::InputKind::packed_token_types && sequences.token_type_ids.buffer)
      to.copy_from(sequences.token_type_ids.buffer, bytes, sequences.token_type_ids.offset);
  }
  executor_.enqueue(tap);
  for_each_output([&](const plan::Output& out, std::size_t i, BufferRegion& to) {
    copy_output(out, i, shape.packing.seq_offsets, to);
  });
  to_device_ = true;
  executor_.end_run();
  completion_event_ = executor_.end();
}

}  // namespace bertcl::runtime
