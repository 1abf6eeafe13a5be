// SPDX-License-Identifier: Apache-2.0
// Constant tensors and the conversion of their elements.
#include "ir/tensor.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "bertcl/error.hpp"

namespace bertcl::ir {
namespace {

float bfloat_to_float(std::uint16_t b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

std::uint16_t float_to_bfloat(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>(bits >> 16);
}

struct Half {
  std::uint16_t bits;
};
struct BFloat {
  std::uint16_t bits;
};
struct Bool {
  std::uint8_t value;
};

double load(Half h) { return half_to_float(h.bits); }
double load(BFloat b) { return bfloat_to_float(b.bits); }
std::int64_t load(Bool b) { return b.value != 0; }
template <class T>
T load(T v) {
  return v;
}

template <class To, class From>
To convert(From v) {
  if constexpr (std::is_same_v<To, Half>)
    return {float_to_half(static_cast<float>(v))};
  else if constexpr (std::is_same_v<To, BFloat>)
    return {float_to_bfloat(static_cast<float>(v))};
  else if constexpr (std::is_same_v<To, Bool>)
    return {static_cast<std::uint8_t>(v != From{})};
  else
    return static_cast<To>(v);
}

/// Calls f with a null pointer of the storage type of `dtype`.
template <class F>
void with_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(static_cast<const float*>(nullptr));
    case DType::f16:
      return f(static_cast<const Half*>(nullptr));
    case DType::bf16:
      return f(static_cast<const BFloat*>(nullptr));
    case DType::f64:
      return f(static_cast<const double*>(nullptr));
    case DType::i8:
      return f(static_cast<const std::int8_t*>(nullptr));
    case DType::u8:
      return f(static_cast<const std::uint8_t*>(nullptr));
    case DType::i16:
      return f(static_cast<const std::int16_t*>(nullptr));
    case DType::u16:
      return f(static_cast<const std::uint16_t*>(nullptr));
    case DType::i32:
      return f(static_cast<const std::int32_t*>(nullptr));
    case DType::u32:
      return f(static_cast<const std::uint32_t*>(nullptr));
    case DType::i64:
      return f(static_cast<const std::int64_t*>(nullptr));
    case DType::u64:
      return f(static_cast<const std::uint64_t*>(nullptr));
    case DType::boolean:
      return f(static_cast<const Bool*>(nullptr));
  }
}

/// out[i] = conversion of in[i], element types given by the pointers. The bytes may be unaligned.
template <class From, class To>
void convert_all(const std::byte* in, To* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    From v;
    std::memcpy(&v, in + i * sizeof(From), sizeof(From));
    out[i] = convert<To>(load(v));
  }
}

}  // namespace

std::int64_t element_count(const Sizes& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t d : sizes) n *= d;
  return n;
}

Tensor::Tensor(DType dtype, Sizes shape, std::shared_ptr<const void> owner,
               std::span<const std::byte> bytes)
    : dtype_(dtype), shape_(std::move(shape)), owner_(std::move(owner)), bytes_(bytes) {
  const auto expected = static_cast<std::size_t>(element_count(shape_)) * size_of(dtype_);
  if (bytes_.size() != expected)
    throw Error(fmt::format("a {} tensor of {} elements needs {} bytes, {} were given",
                            name_of(dtype_), element_count(shape_), expected, bytes_.size()));
}

Tensor Tensor::zeros(DType dtype, Sizes shape) {
  const auto bytes = static_cast<std::size_t>(element_count(shape)) * size_of(dtype);
  const std::shared_ptr<std::byte[]> owner(new std::byte[bytes]());
  return Tensor(dtype, std::move(shape), owner, {owner.get(), bytes});
}

void Tensor::check_type(DType asked) const {
  const bool same = asked == dtype_ ||
                    (asked == DType::u16 && (dtype_ == DType::f16 || dtype_ == DType::bf16)) ||
                    (asked == DType::u8 && dtype_ == DType::boolean);
  if (!same)
    throw Error(fmt::format("a {} tensor was read as {}", name_of(dtype_), name_of(asked)));
}

std::vector<double> Tensor::to_doubles() const {
  std::vector<double> out(static_cast<std::size_t>(size()));
  with_storage(dtype_, [&]<class From>(const From*) {
    convert_all<From>(bytes_.data(), out.data(), out.size());
  });
  return out;
}

std::vector<std::int64_t> Tensor::to_ints() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(size()));
  with_storage(dtype_, [&]<class From>(const From*) {
    convert_all<From>(bytes_.data(), out.data(), out.size());
  });
  return out;
}

Tensor Tensor::reshaped(Sizes shape) const {
  return Tensor(dtype_, std::move(shape), owner_, bytes_);
}

Tensor Tensor::converted(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor out = zeros(dtype, shape_);
  std::byte* target = out.mutable_bytes().data();
  with_storage(dtype_, [&]<class From>(const From*) {
    with_storage(dtype, [&]<class To>(const To*) {
      convert_all<From>(bytes_.data(), reinterpret_cast<To*>(target),
                        static_cast<std::size_t>(size()));
    });
  });
  return out;
}

bool operator==(const Tensor& a, const Tensor& b) {
  return a.dtype_ == b.dtype_ && a.shape_ == b.shape_ &&
         (a.bytes_.data() == b.bytes_.data() ||
          std::memcmp(a.bytes_.data(), b.bytes_.data(), a.bytes_.size()) == 0);
}

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u)  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude < 0x400u) {  // zero and subnormal: value = magnitude * 2^-24
    const float v = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -v : v;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // becomes subnormal: adding 0.5 rounds at 2^-24
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

}  // namespace bertcl::ir
