// SPDX-License-Identifier: Apache-2.0
// Named tensors in files of safetensors.
#include "npz/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "bertcl/error.hpp"
#include "support/read_bytes.hpp"

namespace bertcl::npz {
namespace {

constexpr std::size_t kLengthBytes = 8;  // of the header's length, little-endian

using Name = std::pair<std::string_view, ir::DType>;
constexpr Name kDTypeNames[] = {
    {"F64", ir::DType::f64},     {"F32", ir::DType::f32}, {"F16", ir::DType::f16},
    {"BF16", ir::DType::bf16},   {"I64", ir::DType::i64}, {"I32", ir::DType::i32},
    {"I16", ir::DType::i16},     {"I8", ir::DType::i8},   {"U64", ir::DType::u64},
    {"U32", ir::DType::u32},     {"U16", ir::DType::u16}, {"U8", ir::DType::u8},
    {"BOOL", ir::DType::boolean}};

std::optional<ir::DType> dtype_of(const nlohmann::json& name) {
  const auto* const found = std::ranges::find_if(
      kDTypeNames, [&](const auto& entry) { return name.is_string() && name == entry.first; });
  return found == std::end(kDTypeNames) ? std::nullopt : std::optional(found->second);
}

/// Numbers from 0 on; empty if the list holds anything else.
std::optional<ir::Sizes> sizes_of(const nlohmann::json& list) {
  ir::Sizes sizes;
  if (!list.is_array()) return std::nullopt;
  for (const nlohmann::json& n : list) {
    if (!n.is_number_unsigned() ||
        n.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
      return std::nullopt;
    sizes.push_back(n.get<std::int64_t>());
  }
  return sizes;
}

/// The tensor that an entry of the header describes.
ir::Tensor tensor_of(const nlohmann::json& entry, std::string_view elements) {
  if (!entry.is_object()) throw Error("its entry in the header is not a JSON object");
  const auto value = [&](const char* key) { return entry.value(key, nlohmann::json()); };
  const auto dtype = dtype_of(value("dtype"));
  if (!dtype) {
    const nlohmann::json given = value("dtype");
    throw Error(fmt::format("its element type {} is not supported",
                            given.is_string() ? given.get<std::string>() : given.type_name()));
  }
  const auto shape = sizes_of(value("shape")), range = sizes_of(value("data_offsets"));
  if (!shape || !range || range->size() != 2 || range->at(0) > range->at(1) ||
      static_cast<std::uint64_t>(range->at(1)) > elements.size())
    throw Error("its shape or its data_offsets are invalid");
  std::uint64_t bytes = ir::size_of(*dtype);
  for (const std::int64_t extent : *shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      throw Error("its shape overflows");
  const auto begin = static_cast<std::size_t>(range->at(0));
  const std::size_t count = static_cast<std::size_t>(range->at(1)) - begin;
  if (bytes != count)
    throw Error(fmt::format("its shape needs {} bytes, its data has {}", bytes, count));
  ir::Tensor tensor = ir::Tensor::zeros(*dtype, *shape);
  std::ranges::copy(std::as_bytes(std::span(elements.substr(begin, count))),
                    tensor.mutable_bytes().begin());
  return tensor;
}

}  // namespace

Arrays load_safetensors(const std::filesystem::path& path) {
  const std::string content = read_bytes(path);
  const auto fail = [&](std::string_view what) -> void {
    throw Error(fmt::format("{}: {}", path.string(), what), ErrorCode::invalid_file);
  };
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < std::min(kLengthBytes, content.size()); ++i)
    length |= std::uint64_t{static_cast<unsigned char>(content[i])} << (8 * i);
  if (content.size() < kLengthBytes || length > content.size() - kLengthBytes)
    fail("not a safetensors file, or a truncated one");
  const std::string_view rest = std::string_view(content).substr(kLengthBytes);
  const auto header =
      nlohmann::json::parse(rest.substr(0, length), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) fail("its header is not a JSON object");
  Arrays arrays;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      arrays.emplace(name, tensor_of(entry, rest.substr(length)));
    } catch (const Error& error) {
      fail(fmt::format("tensor '{}': {}", name, error.what()));
    }
  }
  return arrays;
}

std::string format_safetensors(const Arrays& arrays) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
  std::string elements;
  for (const auto& [name, tensor] : arrays) {
    const std::size_t begin = elements.size();
    const std::span<const std::byte> bytes = tensor.bytes();
    elements.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto* const dtype = std::ranges::find(kDTypeNames, tensor.dtype(), &Name::second);
    tensors[name] = {{"dtype", dtype->first},
                     {"shape", tensor.shape()},
                     {"data_offsets", {begin, elements.size()}}};
  }
  std::string header = tensors.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string content(kLengthBytes, '\0');
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    content[i] = static_cast<char>(header.size() >> (8 * i) & 255);
  return content + header + elements;
}

}  // namespace bertcl::npz
