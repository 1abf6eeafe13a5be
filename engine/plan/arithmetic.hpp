// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a step, as reports name it and sum it up.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/dtype.hpp"

namespace bertcl::plan {

/// What a step computes in; the operands or the results of "a > b" are of another type.
class Arithmetic {
 public:
  /// `moves`: in neither of these. `mixed`: floats that are quantized, or the reverse.
  enum class Kind : std::uint8_t { moves, int8, fp16, bf16, fp32, mixed };

  static const Arithmetic copy, fill, sizes;
  static const Arithmetic int8, fp16, fp16_weights, bf16, fp32;
  static const Arithmetic quantize;  // or dequantize
  /// Element by element, of one type; types other than floats keep their own name.
  static Arithmetic elements(ir::DType type);
  /// In fp32, of operands in int8 or fp32, with results in int8, bf16 or f32.
  static Arithmetic fp32_to(ir::DType results, bool of_int8 = false);

  constexpr Arithmetic() = default;  // nothing that is known
  std::string str() const { return std::string(name_); }
  constexpr Kind kind() const { return kind_; }
  bool operator==(const Arithmetic&) const = default;

 private:
  constexpr Arithmetic(std::string_view name, Kind kind) : name_(name), kind_(kind) {}

  std::string_view name_;  // a literal
  Kind kind_ = Kind::moves;
};

inline constexpr Arithmetic Arithmetic::copy{"copy", Kind::moves},
    Arithmetic::fill{"fill", Kind::moves}, Arithmetic::sizes{"sizes", Kind::moves},
    Arithmetic::int8{"int8", Kind::int8}, Arithmetic::fp16{"fp16", Kind::fp16},
    Arithmetic::fp16_weights{"fp16w", Kind::fp16}, Arithmetic::bf16{"bf16", Kind::bf16},
    Arithmetic::fp32{"fp32", Kind::fp32}, Arithmetic::quantize{"fp32 <> int8", Kind::mixed};

}  // namespace bertcl::plan
