// SPDX-License-Identifier: Apache-2.0
// Gives each tensor of a placement its scale, zero point and, where constant, its integers.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "quant/parameters.hpp"
#include "quant/placement.hpp"

namespace bertcl::quant {

/// Ranges of activations by tensor.
using Ranges = std::map<std::string, Range>;

/// A tensor and what it becomes.
struct Encoding {
  Role role = Role::activation;
  Range range;                     ///< of the values seen or, of a constant, of its own
  Parameters parameters;           ///< per tensor; of a weight those of its first column
  QuantizedConstant constant;      ///< weights and constants
  std::vector<std::string> nodes;  ///< that read it, by label
};

/// By tensor and role: a constant may be a weight here and an operand there.
using Encodings = std::map<std::pair<std::string, Role>, Encoding>;

/// Values beyond this are mask constants: a scale that holds them leaves nothing for the others.
inline constexpr float kLargestQuantized = 1e4f;

/// Encodes all operands of `placement`. A site is moved to `left` where an operand cannot be
/// quantized: values beyond kLargestQuantized, a constant that is not f32, not finite or not to be
/// evaluated. Throws Error that names tensor and reader if an activation has no range, or if no
/// site remains.
Encodings encode(Placement& placement, const GraphIndex& index, Constants& constants,
                 const Ranges& ranges, Scheme activations);

}  // namespace bertcl::quant
