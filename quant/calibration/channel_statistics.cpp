// SPDX-License-Identifier: Apache-2.0
// Statistics of each channel (index of the last axis) of a tensor, collected on the device.
#include "quant/calibration/channel_statistics.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/bind.hpp"
#include "kernels/contracts/observe.hpp"
#include "quant/calibration/nonfinite_tensor.hpp"
#include "support/ceil_div.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

std::size_t tiles(std::int64_t channels, std::int64_t width) {
  return static_cast<std::size_t>(ceil_div(channels, width));
}

void check_channels(const std::string& tensor, std::int64_t before, std::int64_t now) {
  if (before != 0 && before != now)
    fail(
        "tensor '{}' had {} channels and now has {}; its last axis must not "
        "depend on the sample",
        tensor, before, now);
}

void check_finite(const std::string& tensor, float value) {
  if (!std::isfinite(value))
    throw NonfiniteTensor(
        fmt::format("tensor '{}' held NaN, an infinite or a huge value during calibration", tensor),
        tensor);
}

}  // namespace

void throw_unseen(const std::string& tensor) {
  fail(
      "tensor '{}' has no range: no calibration sample reached it; exclude its nodes ({}), or give "
      "other samples",
      tensor, option_name("exclude"));
}

void ChannelObserver::observe(const opencl::Buffer& values, std::int64_t rows,
                              std::int64_t channels) {
  if (rows == 0 || channels == 0) return;
  check_channels(tensor_, channels_, channels);
  if (channels_ == 0) {
    channels_ = channels;
    state_ = context_->allocate(3 * static_cast<std::size_t>(channels) * sizeof(float));
  }
  auto kernel = context_->kernel("observe_channels", "observe_channels");
  kernels::set(kernel, kernels::ObserveChannels<opencl::KernelArgument>{
                           .x = values,
                           .state = state_,
                           .rows = static_cast<std::int32_t>(rows),
                           .channels = static_cast<std::int32_t>(channels),
                           .keep = std::int32_t{rows_ > 0}});
  context_->queue().launch_items(kernel, {tiles(channels, 16), 1, 1}, "observe_channels");
  rows_ += rows;
}

ChannelStatistics ChannelObserver::statistics() const {
  if (rows_ == 0) throw_unseen(tensor_);
  const std::vector<float> all = state_.download<float>();
  ChannelStatistics s;
  s.rows = rows_;
  const auto third = [&](std::int64_t i) { return all.begin() + i * channels_; };
  s.low.assign(third(0), third(1));
  s.high.assign(third(1), third(2));
  s.mean_square.assign(third(2), third(3));
  for (float& sum : s.mean_square) {
    check_finite(tensor_, sum);
    sum /= static_cast<float>(rows_);
  }
  return s;
}

void GramObserver::observe(const opencl::Buffer& values, std::int64_t rows, std::int64_t channels) {
  if (rows == 0 || channels == 0) return;
  check_channels(tensor_, channels_, channels);
  if (channels_ == 0) {
    channels_ = channels;
    const auto side = static_cast<std::size_t>(channels);
    gram_ = context_->allocate(side * side * sizeof(float));
    gram_.fill(0);
  }
  const bool cpu = context_->info().is_cpu();
  auto kernel =
      context_->kernel(cpu ? "observe_gram_portable" : "observe_channels", "observe_gram");
  kernels::set(kernel, kernels::ObserveGram<opencl::KernelArgument>{
                           .x = values,
                           .gram = gram_,
                           .rows = static_cast<std::int32_t>(rows),
                           .channels = static_cast<std::int32_t>(channels)});
  const GramTile tile = cpu ? kPortableGramTile : kGramTile;
  context_->queue().launch_items(
      kernel, {tiles(channels, tile.columns), tiles(channels, tile.rows), 1}, "observe_gram");
}

std::vector<float> GramObserver::gram() const {
  if (channels_ == 0) throw_unseen(tensor_);
  std::vector<float> g = gram_.download<float>();
  const auto side = static_cast<std::size_t>(channels_);
  for (std::size_t i = 0; i < side; ++i) {
    check_finite(tensor_, g[i * side + i]);
    for (std::size_t j = 0; j < i; ++j) g[i * side + j] = g[j * side + i];
  }
  return g;
}

}  // namespace bertcl::quant
