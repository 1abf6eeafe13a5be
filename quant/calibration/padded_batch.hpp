// SPDX-License-Identifier: Apache-2.0
// Batched samples, and the locations of their values between the padding of a tensor.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/dim.hpp"
#include "ir/port.hpp"
#include "opencl/context.hpp"
#include "plan/plan.hpp"
#include "quant/calibration/device_min_max.hpp"
#include "quant/calibration/samples.hpp"

namespace bertcl::quant {

/// The symbols that the inputs of a model have for their two sizes.
struct BatchSymbols {
  std::set<std::string> batch, seq;
};
BatchSymbols batch_symbols(const std::vector<ir::Port>& inputs);

/// Takes samples from a source in batches that the model can run.
class Batches {
 public:
  /// Throws Error if `size` is below 1, or above 1 for a model whose batch is fixed.
  Batches(const std::vector<ir::Port>& inputs, const SampleSource& source, int size,
          bool ignores_padding);
  /// Up to `size` samples in the order of the source; empty at its end. Of one length only, where
  /// the model has no mask, or cannot tell padding.
  std::vector<Sample> next();

 private:
  const SampleSource& source_;
  std::size_t size_;
  bool pads_;
  std::optional<Sample> waiting_;
};

/// A box of elements: planes x rows x run, the elements of a run side by side.
struct Box {
  std::int64_t first = 0;
  std::int64_t planes = 1, rows = 1, run = 1;
  std::int64_t plane_stride = 0, row_stride = 0;
  std::int64_t count() const { return planes * rows * run; }
  bool dense() const { return planes == 1 && rows == 1; }
};

/// The part of a tensor that belongs to row `row` of a batch: its index where the shape has the
/// batch, the first lengths[row] where it has the sequence. `lengths` are those of the samples,
/// padded to the longest. Throws Error naming `tensor` if the shape does not tell where padding
/// lies.
Box box_of(const std::string& tensor, const ir::Shape& shape, const BatchSymbols& symbols,
           std::span<const std::int64_t> lengths, std::size_t row);

/// Removes the padding from tensors on the device.
class Unpadder {
 public:
  explicit Unpadder(opencl::Context& context) : context_(context) {}
  /// The real values of each sample: `slices` of `values`. That is `buffer` itself where they lie
  /// side by side, else memory of this object, valid for what is queued before the next call.
  struct Values {
    const opencl::Buffer& buffer;
    std::vector<ElementRange> slices;
  };
  Values real_values(const std::string& tensor, const opencl::Buffer& buffer,
                     const ir::Shape& shape, const BatchSymbols& symbols,
                     std::span<const std::int64_t> lengths);

 private:
  opencl::Context& context_;
  opencl::Buffer gathered_;
};

}  // namespace bertcl::quant
