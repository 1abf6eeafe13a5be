// SPDX-License-Identifier: Apache-2.0
// Gives each tensor of a placement its scale, zero point and, where constant, its integers.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "quant/calibration/channel_statistics.hpp"
#include "quant/calibration/parameters.hpp"
#include "quant/encoding/overrides.hpp"
#include "quant/encoding/weight_scale.hpp"
#include "quant/placement/placement.hpp"

namespace bertcl::quant {

/// How weights become integers.
struct WeightOptions {
  Scheme scheme{ir::DType::i8, true};
  bool per_channel = true;  ///< one scale for each index of an axis
  /// By operator, from the end if negative; by default MatMul 1 of [in, out], Gemm likewise by
  /// transB, Conv 0.
  std::map<std::string, int> axes{};
  WeightScale scale = WeightScale::max;
  bool as_float = false;    ///< float after Q -> DQ, as TensorRT reads them, not i8
  bool transposed = false;  ///< matrices [out, in] after Transpose, as torch exports them

  /// `scheme`, per channel always symmetric.
  Scheme used_scheme() const;
  /// True if those of MatMul have a scale for each row.
  bool scales_rows() const;
};

struct EncodeOptions {
  Scheme activations{ir::DType::u8, false};
  WeightOptions weights;
  ChannelRanges channels{};  ///< of operands in that role
  Overrides overrides{};
  /// Weights of integer MatMuls: they stay in float unless they have one scale, or one for each
  /// column, and an int32 holds their sums with activations of this magnitude, zero points
  /// subtracted; 0: weights of any form.
  std::int64_t largest_activation = 0;
};

/// A tensor and what it becomes.
struct Encoding {
  Role role = Role::activation;
  Range range;                     ///< of the values seen or, of a constant, of its own
  Parameters parameters;           ///< per tensor; of a weight those of its first column
  ir::DType type = ir::DType::u8;  ///< of the integers
  QuantizedConstant constant;      ///< weights and constants; of channels without values
  std::vector<std::string> nodes;  ///< that read it, by label
};

/// Encodings by tensor and role: a constant may be a weight here and an operand there.
using Encodings = std::map<std::pair<std::string, Role>, Encoding>;

/// Values beyond this are mask constants: a scale that holds them leaves nothing for the others.
inline constexpr float kLargestQuantized = 1e4f;

/// Encodes all operands and outputs of `placement`. A site whose tensor cannot be quantized is
/// moved to Placement::skipped: values beyond kLargestQuantized, a constant that is not f32, not
/// finite or not to be evaluated. Weights per tensor take their range from `ranges` where it knows
/// them, else from their values; overrides come before both. Throws Error that names tensor and
/// reader if an activation has no range, an override does not fit its tensor, or if nothing
/// remains.
Encodings encode(Placement& placement, const GraphIndex& index, Constants& constants,
                 const Ranges& ranges, const EncodeOptions& options);

}  // namespace bertcl::quant
