// SPDX-License-Identifier: Apache-2.0
// A histogram whose range grows with the data, with the bins that onnxruntime's calibrators make.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "quant/device_range.hpp"

namespace bertcl::quant {

/// Edges and counts on the host. Bin i holds edges[i] <= v < edges[i + 1], the last bin its right
/// edge too.
///
/// The bins are those of `HistogramCollector` in onnxruntime 1.31 (quantization/calibrate.py) that
/// is given the same batches one by one, in float as numpy computes them:
/// - absolute: `bins` equal bins between the smallest and largest |x| of the first batch; larger
///   values append bins of the same width.
/// - not absolute: `bins` equal bins over -T .. T, T the largest |x| of the first batch; larger
///   values add bins of the same width on both sides.
/// Unlike there the number of bins is bounded: where growth would pass `max_bins`, the range is
/// divided anew into half as many wider bins and each old count goes to the bin of its centre.
class Histogram {
 public:
  Histogram(int bins, bool absolute, int max_bins = 1 << 17);

  bool absolute() const { return absolute_; }
  bool empty() const { return edges_.empty(); }
  /// True if extend() would change the edges.
  bool must_extend(const Extent& batch) const;
  /// Makes room for a batch, keeping the counts.
  void extend(const Extent& batch);
  /// Records what was seen, after extend().
  void note(const Extent& batch);
  /// Adds counts of values, one for each bin.
  void add(std::span<const std::uint32_t> counts);

  const std::vector<float>& edges() const { return edges_; }
  const std::vector<std::uint64_t>& counts() const { return counts_; }
  Extent seen() const { return seen_; }
  bool coarsened() const { return coarsened_; }

 private:
  void extend_absolute(float largest);
  void extend_signed(float largest);
  void coarsen(float low, float high);

  int bins_, max_bins_;
  bool absolute_;
  bool coarsened_ = false;
  float threshold_ = 0.0f;  // signed: T
  Extent seen_;
  bool any_ = false;
  std::vector<float> edges_;
  std::vector<std::uint64_t> counts_;
};

/// `bins` + 1 edges from low to high as numpy.histogram; equal ends are moved 0.5 apart each.
std::vector<float> even_edges(float low, float high, int bins);

}  // namespace bertcl::quant
