// SPDX-License-Identifier: Apache-2.0
// Element types, shapes and elements of the Open Inference Protocol.
#include "serve/tensors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "serve/json_text.hpp"

namespace bertcl::serve {
namespace {

using ir::DType;

constexpr std::array<std::pair<DType, const char*>, 13> kDatatypes = {{{DType::f32, "FP32"},
                                                                       {DType::f16, "FP16"},
                                                                       {DType::bf16, "BF16"},
                                                                       {DType::f64, "FP64"},
                                                                       {DType::i8, "INT8"},
                                                                       {DType::u8, "UINT8"},
                                                                       {DType::i16, "INT16"},
                                                                       {DType::u16, "UINT16"},
                                                                       {DType::i32, "INT32"},
                                                                       {DType::u32, "UINT32"},
                                                                       {DType::i64, "INT64"},
                                                                       {DType::u64, "UINT64"},
                                                                       {DType::boolean, "BOOL"}}};

ir::Sizes read_shape(const text::JsonNode& node) {
  ir::Sizes shape;
  std::int64_t elements = 1;
  node.each([&](const text::JsonNode& extent) {
    const std::int64_t size = extent.integer();
    if (size < 0 || size > std::numeric_limits<std::int32_t>::max()) extent.fail("is no extent");
    shape.push_back(size);
    if (size > 0 && elements > std::numeric_limits<std::int32_t>::max() / size)
      node.fail("has too many elements");
    elements *= size;
  });
  return shape;
}

/// Elements of nested lists, in their order.
void flatten(const text::JsonNode& node, std::vector<double>& floats,
             std::vector<std::int64_t>& integers, bool is_float) {
  if (node.value().is_array()) {
    node.each([&](const text::JsonNode& element) { flatten(element, floats, integers, is_float); });
  } else if (node.value().is_boolean()) {
    integers.push_back(node.boolean() ? 1 : 0);
  } else if (is_float) {
    floats.push_back(node.number());
  } else {
    integers.push_back(node.integer());
  }
}

ir::Tensor from_json(const text::JsonNode& data, DType type, const ir::Sizes& shape) {
  std::vector<double> floats;
  std::vector<std::int64_t> integers;
  flatten(data, floats, integers, ir::is_float(type));
  const std::size_t given = ir::is_float(type) ? floats.size() : integers.size();
  if (given != static_cast<std::size_t>(ir::element_count(shape)))
    data.fail("has " + std::to_string(given) + " elements, the shape has " +
              std::to_string(ir::element_count(shape)));
  if (!ir::is_float(type)) return ir::Tensor::of(shape, std::move(integers)).converted(type);
  return ir::Tensor::of(shape, std::vector<float>(floats.begin(), floats.end())).converted(type);
}

ir::Tensor from_bytes(const text::JsonNode& size, DType type, const ir::Sizes& shape,
                      std::string_view& binary) {
  const std::int64_t bytes = size.integer();
  const auto expected = static_cast<std::int64_t>(ir::size_of(type)) * ir::element_count(shape);
  if (bytes != expected)
    size.fail("is " + std::to_string(bytes) + ", the shape has " + std::to_string(expected));
  if (static_cast<std::size_t>(bytes) > binary.size())
    size.fail("is more than the body has left: " + std::to_string(binary.size()));
  ir::Tensor tensor = ir::Tensor::zeros(type, shape);
  if (bytes > 0)
    std::memcpy(tensor.mutable_bytes().data(), binary.data(), static_cast<std::size_t>(bytes));
  binary.remove_prefix(static_cast<std::size_t>(bytes));
  return tensor;
}

}  // namespace

const char* datatype_of(DType type) {
  for (const auto& [known, name] : kDatatypes)
    if (known == type) return name;
  return "BYTES";
}

std::optional<DType> type_of_datatype(std::string_view datatype) {
  for (const auto& [type, name] : kDatatypes)
    if (datatype == name) return type;
  return std::nullopt;
}

ir::Tensor read_tensor(const text::JsonNode& input, std::string_view& binary) {
  const text::JsonNode datatype = input.at("datatype");
  const auto type = type_of_datatype(datatype.string());
  if (!type) datatype.fail("is '" + datatype.string() + "', which is not supported");
  const ir::Sizes shape = read_shape(input.at("shape"));
  const auto parameters = input.find("parameters");
  if (const auto size = parameters ? parameters->find("binary_data_size") : std::nullopt)
    return from_bytes(*size, *type, shape, binary);
  return from_json(input.at("data"), *type, shape);
}

std::string data_json(const ir::Tensor& tensor) {
  std::string text;
  if (ir::is_float(tensor.dtype()) && tensor.dtype() != DType::f64) {
    const ir::Tensor floats = tensor.converted(DType::f32);
    if (!std::ranges::all_of(floats.as<float>(), [](float x) { return std::isfinite(x); }))
      throw Error("an output has NaN or infinity, which JSON has not; ask for binary_data");
    append_floats(text, floats.as<float>());
    return text;
  }
  if (tensor.dtype() == DType::f64) return nlohmann::json(tensor.to_doubles()).dump();
  return nlohmann::json(tensor.to_ints()).dump();
}

}  // namespace bertcl::serve
