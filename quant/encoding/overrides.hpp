// SPDX-License-Identifier: Apache-2.0
// User overrides for individual tensors: onnxruntime's TensorQuantOverrides.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quant/calibration/parameters.hpp"

namespace bertcl::quant {

/// What a file of overrides says of a tensor, or of one of its channels. Empty fields follow the
/// other options.
struct Override {
  std::optional<ir::DType> type;           ///< quant_type
  std::optional<Parameters> parameters;    ///< scale, zero_point
  std::optional<float> low, high;          ///< rmin, rmax
  std::optional<bool> symmetric, reduced;  ///< symmetric, reduce_range
};

struct TensorOverride {
  std::optional<int> axis;         ///< of the channels; none: one scale for the tensor
  std::vector<Override> channels;  ///< one for all, or with an axis one for each
  std::string place;               ///< file and tensor, for messages
};

/// Overrides by tensor.
using Overrides = std::map<std::string, TensorOverride>;

/// A JSON file {"tensor": [{"quant_type": "QInt8", "scale": 0.5, "zero_point": 3, "symmetric":
/// true, "reduce_range": false, "rmin": -1, "rmax": 1, "axis": 0}, ..], ..} with the rules of
/// onnxruntime 1.31 (quantization/tensor_quant_overrides.py): scale and zero_point together and
/// without the four that would change them; with an axis one entry for each channel, which agree on
/// axis, quant_type, symmetric and reduce_range, or one for all (of the range of such an entry
/// onnxruntime's Q/DQ writer makes use for the first channel alone, its other one for all). scale
/// and zero_point may be lists of one number. Throws Error that names file and place in it.
Overrides read_overrides(const std::filesystem::path& path);

/// `scheme` with what the override changes of it.
Scheme overridden(Scheme scheme, const Override& o);
/// The same of a range.
Range overridden(Range range, const Override& o);

}  // namespace bertcl::quant
