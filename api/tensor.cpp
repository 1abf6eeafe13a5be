// SPDX-License-Identifier: Apache-2.0
// The tensors of the public interface, which wrap the engine's.
#include "bertcl/tensor.hpp"

#include <fmt/format.h>

#include <utility>

#include "api/boundary.hpp"
#include "api/tensor_data.hpp"
#include "bertcl/error.hpp"

namespace bertcl {
namespace {

// The numbers of both enumerations are the same.
static_assert(static_cast<int>(ElementType::boolean) == static_cast<int>(ir::DType::boolean) &&
              static_cast<int>(ElementType::i64) == static_cast<int>(ir::DType::i64) &&
              static_cast<int>(ElementType::i8) == static_cast<int>(ir::DType::i8));

ir::Tensor copied(ElementType type, std::vector<std::int64_t> shape,
                  std::span<const std::byte> bytes) {
  for (const std::int64_t extent : shape)
    if (extent < 0) throw Error(fmt::format("a tensor has an extent of {}", extent));
  const std::int64_t count = ir::element_count(shape);
  if (bytes.size() != static_cast<std::size_t>(count) * size_of(type))
    throw Error(fmt::format("got {} bytes for a tensor of {} elements of {}", bytes.size(), count,
                            name_of(type)));
  auto owner = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  const std::span<const std::byte> view(*owner);
  return {to_runtime(type), std::move(shape), std::move(owner), view};
}

}  // namespace

ir::DType to_runtime(ElementType type) {
  if (type < ElementType::f32 || type > ElementType::boolean)
    throw Error(fmt::format("unknown element type {}", static_cast<int>(type)));
  return static_cast<ir::DType>(type);
}

std::size_t size_of(ElementType type) { return ir::size_of(to_runtime(type)); }

const char* name_of(ElementType type) { return ir::name_of(to_runtime(type)).data(); }

Tensor::Tensor() : Tensor(ElementType::f32, {0}, {}) {}

Tensor::Tensor(ElementType type, std::vector<std::int64_t> shape, std::span<const std::byte> bytes)
    : data_(translate_exceptions([&] {
        return std::make_shared<const Data>(Data{copied(type, std::move(shape), bytes)});
      })) {}

ElementType Tensor::type() const { return to_public(data_->tensor.dtype()); }
const std::vector<std::int64_t>& Tensor::shape() const { return data_->tensor.shape(); }
std::int64_t Tensor::size() const { return data_->tensor.size(); }
std::span<const std::byte> Tensor::bytes() const& { return data_->tensor.bytes(); }

std::span<const std::byte> Tensor::bytes_as(ElementType asked) const {
  if (asked != type())
    throw Error(fmt::format("the tensor holds {}, but its elements were requested as {}",
                            name_of(type()), name_of(asked)));
  return bytes();
}

Tensor to_public(ir::Tensor tensor) {
  return Tensor(std::make_shared<const Tensor::Data>(Tensor::Data{std::move(tensor)}));
}

Tensors to_public(runtime::Tensors tensors) {
  Tensors result;
  for (auto& [name, tensor] : tensors) result.emplace(name, to_public(std::move(tensor)));
  return result;
}

runtime::Tensors to_runtime(const Tensors& tensors) {
  runtime::Tensors result;
  for (const auto& [name, tensor] : tensors) result.emplace(name, tensor.data()->tensor);
  return result;
}

}  // namespace bertcl
