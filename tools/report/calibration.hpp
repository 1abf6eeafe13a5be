// SPDX-License-Identifier: Apache-2.0
// The ranges that calibration gave the activations of a Q/DQ file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ir/dtype.hpp"

namespace bertcl::tools {

/// The integers of a quantized activation.
struct CalibratedRange {
  std::string tensor;
  std::optional<int> layer;  ///< the number in the name of the tensor
  ir::DType type = ir::DType::u8;
  double scale = 0, smallest_scale = 0;  ///< differ where there is one for each channel
  std::int64_t zero_point = 0;           ///< of the first channel
  std::size_t channels = 1;
  double low = 0, high = 0;  ///< smallest and largest value that the integers hold

  bool operator==(const CalibratedRange&) const = default;
};

/// One for each QuantizeLinear of an activation whose scale is constant, in the order of the file;
/// those that several readers have alike once.
std::vector<CalibratedRange> calibrated_ranges(const std::filesystem::path& model);

}  // namespace bertcl::tools
