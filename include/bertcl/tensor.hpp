// SPDX-License-Identifier: Apache-2.0
// Named tensors, as models take and give them.
#pragma once
#if __cplusplus <= 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG <= 201703L)
#error "the C++ headers of bertcl need C++20: compile with -std=c++20"
#endif
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bertcl/export.h"

namespace bertcl {

/// Element types of ONNX. `boolean` is one byte, 0 or 1.
enum class ElementType { f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, u64, boolean };

/// Bytes of one element.
BERTCL_API std::size_t size_of(ElementType type);
/// "f32", "i64", "bool", ...
BERTCL_API const char* name_of(ElementType type);

/// The ElementType of a number of C++; f16 and bf16 have none.
template <class T>
struct ElementTypeOf;
template <>
struct ElementTypeOf<float> {
  static constexpr ElementType value = ElementType::f32;
};
template <>
struct ElementTypeOf<double> {
  static constexpr ElementType value = ElementType::f64;
};
template <>
struct ElementTypeOf<bool> {
  static_assert(sizeof(bool) == 1);
  static constexpr ElementType value = ElementType::boolean;
};
/// In the order of the enumeration, by bytes and sign.
template <std::integral T>
struct ElementTypeOf<T> {
  static constexpr ElementType value =
      static_cast<ElementType>(static_cast<int>(ElementType::i8) + 2 * std::countr_zero(sizeof(T)) +
                               (std::is_signed_v<T> ? 0 : 1));
};

/// An immutable dense row-major tensor. Copies share its memory; a moved-from tensor stays valid
/// and shares it too; any thread may read it.
class BERTCL_API Tensor {
 public:
  /// f32 of shape [0].
  Tensor();
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  /// Copies `bytes`. Throws Error if their number does not match the shape.
  Tensor(ElementType type, std::vector<std::int64_t> shape, std::span<const std::byte> bytes);
  /// The same from numbers.
  template <class T>
  static Tensor of(std::vector<std::int64_t> shape, const std::vector<T>& values) {
    if constexpr (std::same_as<T, bool>) {  // whose vector has no array of them
      const std::vector<std::uint8_t> bytes(values.begin(), values.end());
      return Tensor(ElementType::boolean, std::move(shape), std::as_bytes(std::span(bytes)));
    } else {
      return Tensor(ElementTypeOf<T>::value, std::move(shape), std::as_bytes(std::span(values)));
    }
  }

  ElementType type() const;
  const std::vector<std::int64_t>& shape() const;
  /// Number of elements.
  std::int64_t size() const;
  /// A view, valid as long as the tensor; not available on a temporary.
  std::span<const std::byte> bytes() const&;
  std::span<const std::byte> bytes() const&& = delete;
  /// The elements. Throws Error if T is not their type.
  template <class T>
  std::span<const T> values() const& {
    const std::span<const std::byte> all = bytes_as(ElementTypeOf<T>::value);
    return {reinterpret_cast<const T*>(all.data()), all.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> values() const&& = delete;

  struct Data;
  explicit Tensor(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  const std::shared_ptr<const Data>& data() const { return data_; }

 private:
  std::span<const std::byte> bytes_as(ElementType type) const;
  std::shared_ptr<const Data> data_;
};

/// Tensors by their names.
using Tensors = std::map<std::string, Tensor, std::less<>>;

}  // namespace bertcl
