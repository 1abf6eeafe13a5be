// SPDX-License-Identifier: Apache-2.0
// MinMax: the range is from the smallest to the largest value seen, or their moving averages.
#include "quant/calibration/channel_statistics.hpp"
#include "quant/calibration/device_min_max.hpp"
#include "quant/calibration/observer.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

class MinMaxObserver final : public Observer {
 public:
  MinMaxObserver(opencl::Context& context, const MethodOptions& options, const std::string& tensor)
      : range_(context, tensor), symmetric_(options.symmetric.value_or(false)) {}
  void observe(const opencl::Buffer& values, std::span<const ElementRange> samples) override {
    range_.add(values, samples);
  }
  Range range() override {
    const ValueBounds e = range_.read();
    return symmetric_ ? symmetric({e.low, e.high}) : Range{e.low, e.high};
  }

 private:
  DeviceMinMax range_;
  bool symmetric_;
};

/// `MinMaxCalibrater` of onnxruntime with moving_average: the ends of the samples of one call are
/// averaged; from call to call each end moves by `averaging_constant` of the difference.
class MovingAverageObserver final : public Observer {
 public:
  MovingAverageObserver(opencl::Context& context, const MethodOptions& options,
                        const std::string& tensor)
      : tensor_(tensor),
        bounds_(context, tensor),
        symmetric_(options.symmetric.value_or(false)),
        constant_(static_cast<float>(options.averaging_constant.value_or(0.01))),
        together_(options.averaged_samples.value_or(1)) {
    if (!(constant_ >= 0.0f && constant_ <= 1.0f))
      fail("{} is {}, expected 0 to 1", option_name("averaging-constant"),
           *options.averaging_constant);
    if (together_ < 0)
      fail("{} is {}, expected 0 (all) or more", option_name("averaged-samples"), together_);
  }
  void observe(const opencl::Buffer& values, std::span<const ElementRange> samples) override {
    const std::vector<ValueBounds> bounds = bounds_.measure(values, samples);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].count == 0) continue;
      low_ += bounds[i].low;
      high_ += bounds[i].high;
      if (++waiting_ == together_) move();
    }
  }
  Range range() override {
    if (waiting_ > 0) move();
    if (!moved_) throw_unseen(tensor_);
    return range_;
  }

 private:
  void move() {
    Range mean{static_cast<float>(low_ / waiting_), static_cast<float>(high_ / waiting_)};
    if (symmetric_) mean = symmetric(mean);
    range_ = moved_ ? Range{range_.low + constant_ * (mean.low - range_.low),
                            range_.high + constant_ * (mean.high - range_.high)}
                    : mean;
    moved_ = true;
    low_ = high_ = 0.0;
    waiting_ = 0;
  }

  std::string tensor_;
  DeviceMinMax bounds_;
  bool symmetric_;
  float constant_;
  int together_;
  double low_ = 0.0, high_ = 0.0;  // sums over the samples that wait
  int waiting_ = 0;
  bool moved_ = false;
  Range range_;
};

}  // namespace

extern const Method kMinmax{"minmax",
                            "smallest to largest value seen; or their moving averages",
                            [](opencl::Context& context, const MethodOptions& options,
                               const std::string& tensor) -> std::unique_ptr<Observer> {
                              if (options.moving_average)
                                return std::make_unique<MovingAverageObserver>(context, options,
                                                                               tensor);
                              return std::make_unique<MinMaxObserver>(context, options, tensor);
                            },
                            {.moving_average = true}};

}  // namespace bertcl::quant
