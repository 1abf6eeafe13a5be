// SPDX-License-Identifier: Apache-2.0
// Batched samples, and the locations of their values between the padding of a tensor.
#include "quant/calibration/padded_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/observe.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

/// One extent of a box, after those of the shape were taken apart.
struct Side {
  std::int64_t extent = 1, stride = 0;
};

/// The factors of an extent, outermost first.
struct Factors {
  bool batch = false, seq = false;
  std::int64_t number = 1;
};

std::optional<Factors> factors_of(const ir::Dim& dim, const BatchSymbols& symbols) {
  Factors f;
  f.number = dim.evaluate([&] {
    ir::Bindings ones;
    for (const std::string& s : dim.symbols()) ones[s] = 1;
    return ones;
  }());
  for (const std::string& symbol : dim.symbols()) {
    bool& known = symbols.batch.contains(symbol) ? f.batch : f.seq;
    if (known || (!symbols.batch.contains(symbol) && !symbols.seq.contains(symbol)))
      return std::nullopt;
    known = true;
  }
  return f;
}

}  // namespace

BatchSymbols batch_symbols(const std::vector<ir::Port>& inputs) {
  BatchSymbols symbols;
  for (const ir::Port& port : inputs) {
    const ir::Shape& shape = port.type.shape;
    const auto add = [&](std::size_t axis, std::set<std::string>& to) {
      if (shape.size() > axis && !shape[axis].is_constant()) to.insert(shape[axis].symbols()[0]);
    };
    add(0, symbols.batch);
    add(1, symbols.seq);
  }
  return symbols;
}

Batches::Batches(const std::vector<ir::Port>& inputs, const SampleSource& source, int size,
                 bool ignores_padding)
    : source_(source),
      size_(static_cast<std::size_t>(std::max(size, 1))),
      pads_(ignores_padding && std::ranges::any_of(inputs, [](const ir::Port& p) {
              return ir::role_of_input(p.name) == ir::InputRole::mask;
            })) {
  if (size < 1) fail("a calibration batch must have 1 or more samples, got {}", size);
  for (const ir::Port& port : inputs)
    if (size > 1 && !port.type.shape.empty() && port.type.shape[0].is_constant())
      fail(
          "input '{}' has a fixed batch of {}; samples of such models run one by one; leave out {}",
          port.name, port.type.shape[0].constant(), option_name("batch"));
}

std::vector<Sample> Batches::next() {
  std::vector<Sample> samples;
  while (samples.size() < size_) {
    auto sample = waiting_ ? std::exchange(waiting_, std::nullopt) : source_();
    if (!sample) break;
    if (!pads_ && !samples.empty() && sample->ids.size() != samples[0].ids.size()) {
      waiting_ = std::move(sample);
      break;
    }
    samples.push_back(std::move(*sample));
  }
  return samples;
}

Box box_of(const std::string& tensor, const ir::Shape& shape, const BatchSymbols& symbols,
           std::span<const std::int64_t> lengths, std::size_t row) {
  const auto unknown = [&] {
    return Error(
        fmt::format("tensor '{}' has shape {}, which does not tell where padding lies in "
                    "it; calibrate with a batch of 1",
                    tensor, ir::str(shape)));
  };
  const auto rows = std::ssize(lengths);
  const std::int64_t longest = *std::ranges::max_element(lengths);
  const bool padded = *std::ranges::min_element(lengths) < longest;
  Box box;
  std::vector<Side> sides;  // innermost first, coalesced where adjacent
  std::int64_t stride = 1;
  bool batch_seen = false;
  const auto add = [&](std::int64_t extent, std::int64_t whole) {
    if (extent != 1) {
      if (!sides.empty() && sides.back().stride * sides.back().extent == stride)
        sides.back().extent *= extent;
      else
        sides.push_back({extent, stride});
    }
    stride *= whole;
  };
  for (auto dim = shape.rbegin(); dim != shape.rend(); ++dim) {
    const auto factors = factors_of(*dim, symbols);
    if (!factors || (padded && factors->seq && factors->number > 1)) throw unknown();
    add(factors->number, factors->number);
    if (factors->seq) add(lengths[row], longest);
    if (factors->batch) {
      if (std::exchange(batch_seen, true)) throw unknown();
      box.first += static_cast<std::int64_t>(row) * stride;
      stride *= rows;
    }
  }
  if (sides.empty() || sides[0].stride != 1) sides.insert(sides.begin(), {1, 1});
  if (sides.size() > 3) throw unknown();
  box.run = sides[0].extent;
  if (sides.size() > 1) box.rows = sides[1].extent, box.row_stride = sides[1].stride;
  if (sides.size() > 2) box.planes = sides[2].extent, box.plane_stride = sides[2].stride;
  return box;
}

Unpadder::Values Unpadder::real_values(const std::string& tensor, const opencl::Buffer& buffer,
                                       const ir::Shape& shape, const BatchSymbols& symbols,
                                       std::span<const std::int64_t> lengths) {
  std::vector<Box> boxes;
  std::vector<ElementRange> dense, gathered;
  std::size_t end = 0;
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    const Box box = box_of(tensor, shape, symbols, lengths, row);
    const auto count = static_cast<std::size_t>(box.count());
    check_elements(static_cast<std::size_t>(box.first + (box.planes - 1) * box.plane_stride +
                                            (box.rows - 1) * box.row_stride + box.run));
    boxes.push_back(box);
    dense.push_back({static_cast<std::size_t>(box.first), count});
    gathered.push_back({end, count});
    end += count;
  }
  if (std::ranges::all_of(boxes, [](const Box& b) { return b.dense(); })) return {buffer, dense};
  if (gathered_.size() < end * sizeof(float)) gathered_ = context_.allocate(end * sizeof(float));
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Box& box = boxes[i];
    auto kernel = context_.kernel("observe", "observe_gather");
    kernels::set(kernel, kernels::ObserveGather<opencl::KernelArgument>{
                             .x = buffer,
                             .y = gathered_,
                             .first = static_cast<std::int32_t>(box.first),
                             .target = static_cast<std::int32_t>(gathered[i].first),
                             .plane_stride = static_cast<std::int32_t>(box.plane_stride),
                             .row_stride = static_cast<std::int32_t>(box.row_stride),
                             .run = static_cast<std::int32_t>(box.run),
                             .rows = static_cast<std::int32_t>(box.rows),
                             .planes = static_cast<std::int32_t>(box.planes)});
    context_.queue().launch_items(
        kernel, {static_cast<std::size_t>(box.rows), static_cast<std::size_t>(box.planes), 1},
        "observe_gather");
  }
  return {gathered_, gathered};
}

}  // namespace bertcl::quant
