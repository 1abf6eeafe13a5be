// SPDX-License-Identifier: Apache-2.0
// Constant tensors: a view of bytes kept alive by an owner (a mapped file, a vector, a string).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/dtype.hpp"

namespace bertcl::ir {

using Sizes = std::vector<std::int64_t>;

/// Product of all extents; 1 for a scalar.
std::int64_t element_count(const Sizes& sizes);

/// Where bytes lie: only pages of a mapped file can be read again once they were released.
enum class Memory { anonymous, mapped_file };

/// An immutable dense row-major tensor. Copying it shares the bytes. Several threads may read one.
///
/// Large tensors made from others (concat(), and f32 from f16) get bytes of their own on first
/// access; weights are prepacked from their parts and never need them.
class Tensor {
 public:
  Tensor() = default;
  /// A view of `bytes`, which `owner` keeps alive. The size must be element_count * size_of.
  Tensor(DType dtype, Sizes shape, std::shared_ptr<const void> owner,
         std::span<const std::byte> bytes);

  /// The same for bytes at any address: as() copies them once if they are not aligned for their
  /// type.
  static Tensor view(DType dtype, Sizes shape, std::shared_ptr<const void> owner,
                     std::span<const std::byte> bytes, Memory memory);

  /// The elements of `parts`, whose shapes differ in the last extent only, side by side along the
  /// last axis, as `dtype`.
  static Tensor concat(DType dtype, const std::vector<Tensor>& parts);

  /// Takes ownership of the values without copying them.
  template <class T>
  static Tensor of(Sizes shape, std::vector<T> values, DType dtype = dtype_of<T>()) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    const auto bytes = std::as_bytes(std::span(*owner));
    return Tensor(dtype, std::move(shape), owner, bytes);
  }
  /// A rank-0 tensor.
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, std::vector<T>{value});
  }
  /// A tensor of zeros with its own memory, to be filled through mutable_bytes().
  static Tensor zeros(DType dtype, Sizes shape);

  DType dtype() const { return dtype_; }
  const Sizes& shape() const { return shape_; }
  std::int64_t size() const { return element_count(shape_); }
  /// Possibly unaligned in a view.
  std::span<const std::byte> bytes() const;
  /// The arguments of concat(), in f16 if this was converted from f16; the tensor itself if it
  /// already has bytes.
  std::vector<Tensor> parts() const;
  /// Tells the system that the bytes will not be read soon. Pages of a mapped file leave memory,
  /// and are reloaded if they are read again.
  void release_pages() const;

  /// The elements; throws bertcl::Error if T is not the element type. f16 and bf16 are read as
  /// uint16_t, boolean as uint8_t.
  template <class T>
  std::span<const T> as() const {
    check_type(dtype_of<T>());
    const auto aligned = aligned_bytes();
    return {reinterpret_cast<const T*>(aligned.data()), aligned.size() / sizeof(T)};
  }
  /// Writable bytes and elements of a tensor made by zeros(); no one else may hold it yet.
  std::span<std::byte> mutable_bytes() {
    return {const_cast<std::byte*>(bytes_.data()), bytes_.size()};
  }
  template <class T>
  std::span<T> mutable_as() {
    check_type(dtype_of<T>());
    return {reinterpret_cast<T*>(mutable_bytes().data()), bytes_.size() / sizeof(T)};
  }

  /// Every element converted to double; for small tensors and for tests.
  std::vector<double> to_doubles() const;
  /// Every element converted to int64 (floats truncated).
  std::vector<std::int64_t> to_ints() const;
  /// The same bytes under another shape of equal size.
  Tensor reshaped(Sizes shape) const;
  /// The elements converted to another type: float to integer truncates, to boolean is != 0, f32 to
  /// f16/bf16 rounds to nearest even (ONNX Cast).
  Tensor converted(DType dtype) const;

  /// Equal type, shape and bytes.
  friend bool operator==(const Tensor& a, const Tensor& b);

 private:
  struct Lazy;

  void check_type(DType asked) const;
  std::size_t byte_count() const { return static_cast<std::size_t>(size()) * size_of(dtype_); }
  std::span<const std::byte> aligned_bytes() const;
  void join(std::byte* target) const;

  DType dtype_ = DType::f32;
  Sizes shape_{0};
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<Lazy> lazy_;  // bytes that are made on first access; shared by copies
  Memory memory_ = Memory::anonymous;
};

/// IEEE half, rounded to nearest even.
std::uint16_t float_to_half(float value);

}  // namespace bertcl::ir
