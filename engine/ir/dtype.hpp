// SPDX-License-Identifier: Apache-2.0
// Element types of tensors and their names.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace bertcl::ir {

/// Element type of a tensor. `boolean` is one byte, 0 or 1, as in ONNX.
enum class DType : std::uint8_t {
  f32,
  f16,
  bf16,
  f64,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean
};

/// Bytes of one element.
std::size_t size_of(DType type);
/// Short name as used in the text form: "f32", "u8", "bool".
std::string_view name_of(DType type);
/// The inverse of name_of; empty for an unknown name.
std::optional<DType> dtype_from_name(std::string_view name);

constexpr bool is_float(DType t) {
  return t == DType::f32 || t == DType::f16 || t == DType::bf16 || t == DType::f64;
}
/// True for the 8-bit types that quantized MatMuls take.
constexpr bool is_int8(DType t) { return t == DType::i8 || t == DType::u8; }

/// The DType of a C++ arithmetic type; f16 and bf16 have none.
template <class T>
consteval DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::int8_t>) return DType::i8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::u8;
  if constexpr (std::is_same_v<T, std::int16_t>) return DType::i16;
  if constexpr (std::is_same_v<T, std::uint16_t>) return DType::u16;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DType::u32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return DType::u64;
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
}

}  // namespace bertcl::ir
