// SPDX-License-Identifier: Apache-2.0
// The interface of calibration methods: an observer that sees a tensor sample by sample and returns
// its range.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "opencl/context.hpp"
#include "quant/calibration/device_min_max.hpp"
#include "quant/calibration/parameters.hpp"

namespace bertcl::quant {

/// Observes one tensor. Its memory does not grow with the number or the size of the samples.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Takes in f32 samples that lie in `values`, in this order: equivalent to one call per sample,
  /// so the batch size does not affect the result. Queued work may still read `values` on return.
  /// Samples may differ in size; an empty one changes nothing.
  virtual void observe(const opencl::Buffer& values, std::span<const ElementRange> samples) = 0;
  /// The range of all samples. Throws Error that names the tensor if none was seen, or if a value
  /// was NaN or infinite.
  virtual Range range() = 0;
  /// True if range() spans so few bins of a histogram that these, not the values, decide its ends:
  /// few values are many times as large as the others. Call after range().
  virtual bool is_coarse() const { return false; }
};

/// Settings of the methods; each method reads those it uses. Unset ones take the default of the
/// original method.
struct MethodOptions {
  std::optional<int> bins;  ///< of a histogram, at first: 2048; entropy 128
  /// Share of the values inside the range, in percent: 99.999; torch-percentile 99.99.
  std::optional<double> percentile;
  /// Makes the range -a .. a. Unset: yes for percentile, no for minmax and entropy, and for the
  /// others as the integers are (`scheme`). percentile then uses absolute values, else it clips
  /// half of the rest on each side; mse then searches one bound, else two.
  std::optional<bool> symmetric;
  std::optional<int> quantized_bins;  ///< entropy: bins after merging: 128
  std::optional<int> start_bin;  ///< mse, torch-entropy: the first bound to be tried, in bins: 128
  std::optional<int> stride;     ///< mse, torch-entropy: from one bound to the next, in bins: 1
  bool moving_average = false;   ///< minmax: the average of the ends, not their extremes
  /// minmax, moving_average: weight of what is new: 0.01.
  std::optional<double> averaging_constant;
  /// minmax, moving_average: samples whose ends are averaged before the average moves (those of one
  /// call of onnxruntime's collect_data): 1; 0: all, a plain mean.
  std::optional<int> averaged_samples;
  Scheme scheme;  ///< the integers that the range is for
};

/// The members of MethodOptions that a method reads; `moving_average` stands for those of one, too.
struct SettingsRead {
  bool bins = false, percentile = false, quantized_bins = false, start_bin = false, stride = false,
       moving_average = false;
};

/// A calibration method: a file of its own, and a line in methods.cpp.
struct Method {
  std::string_view name;     ///< as on the command line
  std::string_view summary;  ///< one line
  /// `tensor` is named in messages. Throws Error on settings out of range.
  std::unique_ptr<Observer> (*observer)(opencl::Context&, const MethodOptions&,
                                        const std::string& tensor);
  SettingsRead reads;
};

/// All methods, the default first.
std::span<const Method> methods();
/// The method of that name. Throws Error with the list of names if there is none.
const Method& method(std::string_view name);

/// Throws Error if a setting is given that only other methods use, or one of a moving average
/// without it.
void check_settings(const Method& method, const MethodOptions& options);

}  // namespace bertcl::quant
