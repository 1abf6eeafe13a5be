// SPDX-License-Identifier: Apache-2.0
// Smallest and largest value of tensors, reduced on the device.
#include "quant/device_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "bertcl/error.hpp"

namespace bertcl::quant {
namespace {

constexpr std::size_t kMinChunk = 4096;  // less is not worth a work-item
constexpr std::size_t kGpuGroup = 64;

bool is_gpu(const opencl::Context& context) { return context.info().type == "gpu"; }

}  // namespace

std::size_t most_items(const opencl::Context& context) {
  const std::size_t units = std::max(1u, context.info().compute_units);
  return is_gpu(context) ? units * 4 * kGpuGroup : units * 4;
}

Division divide(const opencl::Context& context, std::size_t count) {
  if (count > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw Error(
        fmt::format("a tensor of {} elements was to be observed; at most 2^31 - 1 are "
                    "supported: calibrate with smaller batches",
                    count));
  const std::size_t least = is_gpu(context) ? 64 : kMinChunk;
  const std::size_t items = std::clamp<std::size_t>(count / least, 1, most_items(context));
  Division d;
  d.chunk = static_cast<std::int32_t>((count + items - 1) / items);
  d.items = (count + static_cast<std::size_t>(d.chunk) - 1) / static_cast<std::size_t>(d.chunk);
  const std::size_t group = is_gpu(context) ? kGpuGroup : 1;
  d.local = {group, 1, 1};
  d.global = {(d.items + group - 1) / group * group, 1, 1};
  return d;
}

DeviceRange::DeviceRange(opencl::Context& context, std::string tensor)
    : context_(context),
      tensor_(std::move(tensor)),
      state_(context.allocate(4 * sizeof(float))),
      partials_(context.allocate((most_items(context) + kGpuGroup) * 4 * sizeof(float))) {}

void DeviceRange::join(const opencl::Buffer& values, std::size_t count) {
  queue(values, count, seen_);
}

void DeviceRange::restart(const opencl::Buffer& values, std::size_t count) {
  queue(values, count, false);
}

void DeviceRange::queue(const opencl::Buffer& values, std::size_t count, bool keep) {
  if (count == 0) return;
  const Division d = divide(context_, count);
  auto range = context_.kernel("observe", "observe_range");
  range.args(values, partials_, static_cast<std::int32_t>(count), d.chunk);
  context_.queue().launch(range, d.global, d.local, "observe_range");
  auto merge = context_.kernel("observe", "observe_merge");
  merge.args(partials_, state_, static_cast<std::int32_t>(d.items), std::int32_t{keep});
  context_.queue().launch(merge, {1, 1, 1}, {1, 1, 1}, "observe_merge");
  seen_ = true;
}

Extent DeviceRange::read() const {
  if (!seen_)
    throw Error(fmt::format("tensor '{}' has no range: no calibration sample reached it", tensor_));
  std::array<float, 4> state{};
  state_.read(std::as_writable_bytes(std::span(state)));
  if (state[3] != 0.0f || !std::isfinite(state[0]) || !std::isfinite(state[1]))
    throw Error(
        fmt::format("tensor '{}' has no range: calibration met {} in it; exclude its node "
                    "or correct the model",
                    tensor_, state[3] != 0.0f ? "NaN" : "an infinite value"));
  return {state[0], state[1], state[2]};
}

}  // namespace bertcl::quant
