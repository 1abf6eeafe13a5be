// SPDX-License-Identifier: Apache-2.0
// A histogram whose range grows with the data, with the same bins as onnxruntime's calibrators.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "quant/calibration/device_min_max.hpp"

namespace bertcl::quant {

/// Which values a histogram counts, where its first range lies and how it grows, in float.
enum class Binning {
  /// |x|: `bins` equal bins between the smallest and largest |x| of the first sample; larger values
  /// append bins of the same width. `HistogramCollector.collect_absolute_value` of onnxruntime 1.31
  /// (quantization/calibrate.py).
  absolute,
  /// |x|: the same from 0, with as many bins as the largest value needs. `HistogramCalibrator` of
  /// pytorch-quantization.
  from_zero,
  /// x: `bins` equal bins over -T .. T, T the largest |x| of the first sample; larger values add
  /// bins of the same width on both sides. `HistogramCollector.collect_value` of onnxruntime.
  two_sided,
};

/// Edges and counts on the host. Bin i holds edges[i] <= v < edges[i + 1], the last bin its right
/// edge too.
///
/// The bins are exactly those of the original method, given the samples one by one, while there are
/// at most `max_bins`. Unlike there their number is bounded: beyond it the range is split into half
/// as many wider bins and each old count goes to the bin of its centre, so no count moves by more
/// than one new bin.
class Histogram {
 public:
  Histogram(int bins, Binning binning, int max_bins = 1 << 15);

  /// Counts absolute values.
  bool absolute() const { return binning_ != Binning::two_sided; }
  bool empty() const { return edges_.empty(); }
  /// True if extend() would change the edges.
  bool must_extend(const ValueBounds& batch) const;
  /// Makes room for a batch, keeping the counts.
  void extend(const ValueBounds& batch);
  /// Records what was seen, after extend().
  void note(const ValueBounds& batch);
  /// Adds counts of values, one for each bin.
  void add(std::span<const std::uint32_t> counts);

  const std::vector<float>& edges() const { return edges_; }
  /// (left edge + right edge) / 2 of each bin.
  std::vector<float> centres() const;
  const std::vector<std::uint64_t>& counts() const { return counts_; }
  ValueBounds bounds() const { return bounds_; }

 private:
  void extend_absolute(float largest);
  void extend_from_zero(float largest);
  void extend_two_sided(float largest);
  void coarsen(float low, float high);
  float centre(std::size_t bin) const;

  int bins_, max_bins_;
  Binning binning_;
  float threshold_ = 0.0f;  // largest |x| that the bins were made for
  ValueBounds bounds_;
  bool any_ = false;
  std::vector<float> edges_;
  std::vector<std::uint64_t> counts_;
};

/// `bins` + 1 edges from low to high as numpy.histogram; equal ends are moved 0.5 apart each.
std::vector<float> even_edges(float low, float high, int bins);

}  // namespace bertcl::quant
