// SPDX-License-Identifier: Apache-2.0
// Constant tensors and the conversion of their elements.
#include "ir/tensor.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"
#include "support/ceil_div.hpp"
#include "support/for_each.hpp"

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

/// Without branches, so that loops over it become vector code. The product moves the exponent,
/// which is exact for subnormals too; infinity and NaN get the exponent of theirs.
float widened(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
  const std::uint32_t special = magnitude >= (0x7c00u << 13) ? 0x7f800000u : 0;
  const float value = std::bit_cast<float>(magnitude) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | special | sign);
}

float load(Half h) { return widened(h.bits); }
float load(BFloat b) { return bfloat_to_float(b.bits); }
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
#define BERTCL_STORAGE(row) BERTCL_STORAGE_OF row
#define BERTCL_STORAGE_OF(type, Storage) \
  case DType::type:                      \
    return f(static_cast<const Storage*>(nullptr));
    BERTCL_FOR_EACH(BERTCL_STORAGE, (f32, float), (f16, Half), (bf16, BFloat), (f64, double),
                    (i8, std::int8_t), (u8, std::uint8_t), (i16, std::int16_t),
                    (u16, std::uint16_t), (i32, std::int32_t), (u32, std::uint32_t),
                    (i64, std::int64_t), (u64, std::uint64_t), (boolean, Bool))
#undef BERTCL_STORAGE_OF
#undef BERTCL_STORAGE
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

void convert_elements(DType from, const std::byte* in, DType to, std::byte* out,
                      std::size_t count) {
  with_storage(from, [&]<class From>(const From*) {
    with_storage(
        to, [&]<class To>(const To*) { convert_all<From>(in, reinterpret_cast<To*>(out), count); });
  });
}

constexpr std::size_t kLazyBytes = 64 << 10;  // smaller tensors are made at once

}  // namespace

struct Tensor::Lazy {
  std::vector<Tensor> parts;  // empty: an aligned copy of the bytes is made
  std::once_flag made;
  std::unique_ptr<std::byte[]> bytes;
};

std::int64_t element_count(const Sizes& sizes) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return 0;
  std::int64_t n = 1;
  for (const std::int64_t d : sizes) n = product(n, d, "a tensor");
  return n;
}

Tensor::Tensor(DType dtype, Sizes shape, std::shared_ptr<const void> owner,
               std::span<const std::byte> bytes)
    : dtype_(dtype), shape_(std::move(shape)), owner_(std::move(owner)), bytes_(bytes) {
  const auto size = static_cast<std::int64_t>(size_of(dtype_));
  const auto expected = static_cast<std::size_t>(product(element_count(shape_), size, "a tensor"));
  if (bytes_.size() != expected)
    throw Error(fmt::format("a {} tensor of {} elements needs {} bytes, got {}", name_of(dtype_),
                            element_count(shape_), expected, bytes_.size()));
}

Tensor Tensor::view(DType dtype, Sizes shape, std::shared_ptr<const void> owner,
                    std::span<const std::byte> bytes, Memory memory) {
  Tensor t(dtype, std::move(shape), std::move(owner), bytes);
  t.memory_ = memory;
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % size_of(dtype) != 0)
    t.lazy_ = std::make_shared<Lazy>();
  return t;
}

Tensor Tensor::concat(DType dtype, const std::vector<Tensor>& parts) {
  auto lazy = std::make_shared<Lazy>();
  Sizes shape = parts.at(0).shape_;
  shape.back() = 0;
  for (const Tensor& part : parts) {
    const std::int64_t columns = part.shape_.back();
    if (!std::equal(shape.begin(), shape.end() - 1, part.shape_.begin(), part.shape_.end() - 1))
      throw Error("cannot concatenate tensors whose extents differ from the first one's");
    shape.back() = sum(shape.back(), columns, "a concatenated tensor");
    const std::vector<Tensor> inner = part.dtype_ == dtype ? part.parts() : std::vector{part};
    lazy->parts.insert(lazy->parts.end(), inner.begin(), inner.end());
  }
  Tensor concatenated;
  concatenated.dtype_ = dtype;
  concatenated.shape_ = std::move(shape);
  concatenated.lazy_ = std::move(lazy);
  if (concatenated.byte_count() >= kLazyBytes) return concatenated;
  return Tensor(dtype, concatenated.shape_, concatenated.lazy_, concatenated.bytes());
}

std::span<const std::byte> Tensor::bytes() const {
  return lazy_ && !lazy_->parts.empty() ? aligned_bytes() : bytes_;
}

std::span<const std::byte> Tensor::aligned_bytes() const {
  if (!lazy_) return bytes_;
  std::call_once(lazy_->made, [&] {
    lazy_->bytes.reset(new std::byte[byte_count()]);
    if (lazy_->parts.empty())
      std::memcpy(lazy_->bytes.get(), bytes_.data(), bytes_.size());
    else
      join(lazy_->bytes.get());
  });
  return {lazy_->bytes.get(), byte_count()};
}

/// Writes the rows of the parts side by side.
void Tensor::join(std::byte* target) const {
  const auto columns = static_cast<std::size_t>(shape_.back());
  const std::size_t rows = columns == 0 ? 0 : static_cast<std::size_t>(size()) / columns;
  for (std::size_t row = 0; row < rows; ++row)
    for (const Tensor& part : lazy_->parts) {
      const auto count = static_cast<std::size_t>(part.shape_.back());
      const std::byte* from = part.bytes().data() + row * count * size_of(part.dtype_);
      if (part.dtype_ == dtype_)
        std::memcpy(target, from, count * size_of(dtype_));
      else
        convert_elements(part.dtype_, from, dtype_, target, count);
      target += count * size_of(dtype_);
    }
}

std::vector<Tensor> Tensor::parts() const {
  return lazy_ && !lazy_->parts.empty() ? lazy_->parts : std::vector{*this};
}

void Tensor::release_pages() const {
  if (memory_ == Memory::anonymous) return;  // such advice would discard its bytes
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
  const std::uintptr_t first = round_up(address, page);
  const std::uintptr_t end = (address + bytes_.size()) / page * page;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

Tensor Tensor::zeros(DType dtype, Sizes shape) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const auto bytes = static_cast<std::size_t>(product(element_count(shape), size, "a tensor"));
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
  std::vector<double> out(size());
  with_storage(dtype_, [&]<class From>(const From*) {
    convert_all<From>(bytes().data(), out.data(), out.size());
  });
  return out;
}

std::vector<std::int64_t> Tensor::to_ints() const {
  std::vector<std::int64_t> out(size());
  with_storage(dtype_, [&]<class From>(const From*) {
    convert_all<From>(bytes().data(), out.data(), out.size());
  });
  return out;
}

Tensor Tensor::reshaped(Sizes shape) const {
  if (lazy_ && !lazy_->parts.empty()) {
    if (lazy_->parts.size() == 1 && !shape.empty())
      return concat(dtype_, {lazy_->parts[0].reshaped(std::move(shape))});
    return Tensor(dtype_, std::move(shape), lazy_, bytes());
  }
  Tensor t(dtype_, std::move(shape), owner_, bytes_);
  t.lazy_ = lazy_;
  t.memory_ = memory_;
  return t;
}

Tensor Tensor::converted(DType dtype) const {
  if (dtype == dtype_) return *this;
  if (dtype_ == DType::f16 && dtype == DType::f32 && !shape_.empty()) return concat(dtype, {*this});
  Tensor out = zeros(dtype, shape_);
  convert_elements(dtype_, bytes().data(), dtype, out.mutable_bytes().data(),
                   static_cast<std::size_t>(size()));
  return out;
}

bool operator==(const Tensor& a, const Tensor& b) {
  if (a.dtype_ != b.dtype_ || a.shape_ != b.shape_) return false;
  const auto x = a.bytes(), y = b.bytes();
  return x.data() == y.data() || x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0;
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
