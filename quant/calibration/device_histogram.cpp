// SPDX-License-Identifier: Apache-2.0
// A histogram that is counted on the device.
#include "quant/calibration/device_histogram.hpp"

#include <cstdint>
#include <limits>

#include "kernels/bind.hpp"
#include "kernels/contracts/observe.hpp"
#include "quant/calibration/channel_statistics.hpp"

namespace bertcl::quant {
namespace {

constexpr std::size_t kMaxCounts = 1 << 16;  // on the device for one tensor, where copies help

}  // namespace

DeviceHistogram::DeviceHistogram(opencl::Context& context, const std::string& tensor, int bins,
                                 Binning binning)
    : context_(context), tensor_(tensor), bounds_(context, tensor), host_(bins, binning) {}

void DeviceHistogram::observe(const opencl::Buffer& values, std::span<const ElementRange> samples) {
  const std::vector<ValueBounds> bounds = bounds_.measure(values, samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].count == 0) continue;
    make_room(bounds[i], samples[i].count);
    host_.note(bounds[i]);
    count(values, samples[i]);
  }
}

/// Bins for a sample, and counters that it cannot overflow.
void DeviceHistogram::make_room(const ValueBounds& sample, std::size_t count) {
  if (host_.must_extend(sample)) {
    collect();
    host_.extend(sample);
    edges_ = context_.allocate(host_.edges().size() * sizeof(float));
    edges_.upload(host_.edges());
    const std::size_t items = max_items(context_);
    copies_ = items * host_.counts().size() <= kMaxCounts ? items : 1;
    counts_ = context_.allocate(copies_ * host_.counts().size() * sizeof(std::uint32_t));
    counts_.fill(0);
  } else if (pending_ + count > std::numeric_limits<std::uint32_t>::max()) {
    collect();
    counts_.fill(0);
  }
}

void DeviceHistogram::count(const opencl::Buffer& values, const ElementRange& sample) {
  const Division d = divide(context_, sample);
  const auto bins = static_cast<std::int32_t>(host_.counts().size());
  const double span =
      static_cast<double>(host_.edges().back()) - static_cast<double>(host_.edges().front());
  // Few work-items have a copy of the counts each, many share one by atomics.
  auto kernel =
      context_.kernel("observe", "observe_histogram",
                      {{"COPIES", static_cast<int>(copies_)}, {"EXCLUSIVE", copies_ > 1}});
  kernels::set(kernel, kernels::ObserveHistogram<opencl::KernelArgument>{
                           .x = values,
                           .edges = edges_,
                           .counts = counts_,
                           .first = d.first,
                           .end = d.end,
                           .chunk = d.chunk,
                           .bins = bins,
                           .absolute = std::int32_t{host_.absolute()},
                           .bins_per_unit = static_cast<float>(bins / span)});
  context_.queue().launch_items(kernel, {d.items, 1, 1}, "observe_histogram");
  pending_ += sample.count;
}

void DeviceHistogram::collect() {
  if (pending_ == 0) return;
  const auto counts = counts_.download<std::uint32_t>();
  const std::size_t bins = host_.counts().size();
  for (std::size_t copy = 0; copy < copies_; ++copy)
    host_.add(std::span(counts).subspan(copy * bins, bins));
  pending_ = 0;
}

const Histogram& DeviceHistogram::read() {
  if (host_.empty()) throw_unseen(tensor_);
  collect();
  counts_.fill(0);
  return host_;
}

}  // namespace bertcl::quant
