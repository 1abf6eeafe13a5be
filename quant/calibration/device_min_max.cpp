// SPDX-License-Identifier: Apache-2.0
// Smallest and largest value of tensors, reduced on the device.
#include "quant/calibration/device_min_max.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/bind.hpp"
#include "kernels/contracts/observe.hpp"
#include "quant/calibration/channel_statistics.hpp"
#include "quant/calibration/nonfinite_tensor.hpp"
#include "support/ceil_div.hpp"
#include "support/fail.hpp"

namespace bertcl::quant {
namespace {

constexpr std::size_t kMinChunk = 4096;  // less is not worth a work-item
constexpr std::size_t kStateBytes = 4 * sizeof(float);

}  // namespace

std::size_t max_items(const opencl::Context& context) {
  const std::size_t units = std::max(1u, context.info().compute_units);
  return context.info().is_gpu() ? units * 256 : units * 4;
}

void check_elements(std::size_t elements) {
  if (elements > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    fail(
        "cannot observe a tensor of {} elements, at most 2^31 - 1 are supported; "
        "calibrate with smaller batches",
        elements);
}

Division divide(const opencl::Context& context, const ElementRange& slice) {
  check_elements(slice.first + slice.count);
  const std::size_t min_chunk = context.info().is_gpu() ? 64 : kMinChunk;
  const std::size_t items = std::clamp<std::size_t>(slice.count / min_chunk, 1, max_items(context));
  Division d;
  d.first = static_cast<std::int32_t>(slice.first);
  d.end = static_cast<std::int32_t>(slice.first + slice.count);
  d.chunk = static_cast<std::int32_t>(ceil_div(slice.count, items));
  d.items = ceil_div(slice.count, static_cast<std::size_t>(d.chunk));
  return d;
}

DeviceMinMax::DeviceMinMax(opencl::Context& context, std::string tensor)
    : context_(context),
      tensor_(std::move(tensor)),
      states_(context.allocate(kStateBytes)),
      partials_(context.allocate(max_items(context) * kStateBytes)) {}

void DeviceMinMax::add(const opencl::Buffer& values, std::span<const ElementRange> samples) {
  for (const ElementRange& sample : samples) {
    if (sample.count == 0) continue;
    queue(values, sample, 0, seen_);
    seen_ = true;
  }
}

std::vector<ValueBounds> DeviceMinMax::measure(const opencl::Buffer& values,
                                               std::span<const ElementRange> samples) {
  const std::size_t bytes = (samples.size() + 1) * kStateBytes;
  if (states_.size() < bytes) {
    opencl::Buffer larger = context_.allocate(bytes);
    larger.copy_from(states_, kStateBytes);
    states_ = std::move(larger);
  }
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i].count > 0) queue(values, samples[i], static_cast<std::int32_t>(i) + 1, false);
  std::vector<float> states(samples.size() * 4);
  states_.read(std::as_writable_bytes(std::span(states)), kStateBytes);
  std::vector<ValueBounds> bounds(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i].count > 0) bounds[i] = checked(std::span(states).subspan(i * 4).first<4>());
  return bounds;
}

/// Reduces one sample to the state at `place`; `keep`: combined with what is there.
void DeviceMinMax::queue(const opencl::Buffer& values, const ElementRange& sample,
                         std::int32_t place, bool keep) {
  const Division d = divide(context_, sample);
  auto range = context_.kernel("observe", "observe_range");
  kernels::set(
      range,
      kernels::ObserveRange<opencl::KernelArgument>{
          .x = values, .partials = partials_, .first = d.first, .end = d.end, .chunk = d.chunk});
  context_.queue().launch_items(range, {d.items, 1, 1}, "observe_range");
  auto merge = context_.kernel("observe", "observe_merge");
  kernels::set(merge, kernels::ObserveMerge<opencl::KernelArgument>{
                          .partials = partials_,
                          .states = states_,
                          .items = static_cast<std::int32_t>(d.items),
                          .place = place,
                          .keep = std::int32_t{keep}});
  context_.queue().launch(merge, {1, 1, 1}, {1, 1, 1}, "observe_merge");
}

ValueBounds DeviceMinMax::read() const {
  if (!seen_) throw_unseen(tensor_);
  std::array<float, 4> state{};
  states_.read(std::as_writable_bytes(std::span(state)));
  return checked(state);
}

ValueBounds DeviceMinMax::checked(std::span<const float, 4> state) const {
  if (state[3] != 0.0f || !std::isfinite(state[0]) || !std::isfinite(state[1]))
    throw NonfiniteTensor(fmt::format("tensor '{}' has no range: calibration met {} in it", tensor_,
                                      state[3] != 0.0f ? "NaN" : "an infinite value"),
                          tensor_);
  return {state[0], state[1], state[2]};
}

}  // namespace bertcl::quant
