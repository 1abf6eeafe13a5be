// SPDX-License-Identifier: Apache-2.0
// Element types, shapes and elements of the Open Inference Protocol.
#include "serve/routes/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "serve/http/http.hpp"
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
    if (size < 0 || size > std::numeric_limits<std::int32_t>::max())
      extent.fail("is not a valid extent");
    shape.push_back(size);
    const std::int64_t counted = std::max<std::int64_t>(size, 1);  // rows may be empty
    if (elements > std::numeric_limits<std::int32_t>::max() / counted)
      node.fail("has too many elements");
    elements *= counted;
  });
  return shape;
}

constexpr std::size_t kMaxNested = 16;  // lists in lists; no operator takes more axes

/// The values of an integer type that a request can state.
std::pair<std::int64_t, std::int64_t> range_of(DType type) {
  if (type == DType::boolean) return {0, 1};
  const int bits = 8 * static_cast<int>(ir::size_of(type));
  const bool has_sign =
      type == DType::i8 || type == DType::i16 || type == DType::i32 || type == DType::i64;
  if (bits == 64)
    return {has_sign ? std::numeric_limits<std::int64_t>::min() : 0,
            std::numeric_limits<std::int64_t>::max()};
  const std::int64_t half = std::int64_t{1} << (bits - 1);
  return has_sign ? std::pair{-half, half - 1} : std::pair{std::int64_t{0}, 2 * half - 1};
}

/// Elements of lists and lists in them, in their order.
class Elements {
 public:
  Elements(DType type, const ir::Sizes& shape)
      : type_(type), range_(range_of(type)), shape_(shape) {}

  /// `data`, flat or nested. Lists of other sizes than the shape's rows are refused: their elements
  /// would move to other rows.
  void add(const text::JsonNode& node, std::size_t depth = 0) {
    const std::size_t before = size();
    if (node.value().is_array()) {
      if (depth == kMaxNested) node.fail("is nested too deeply");
      node.each([&](const text::JsonNode& element) { add(element, depth + 1); });
    } else if (ir::is_float(type_)) {
      const double value = node.number();
      const double max = type_ == DType::f64   ? std::numeric_limits<double>::max()
                         : type_ == DType::f16 ? 65504.0
                                               : std::numeric_limits<float>::max();
      if (std::abs(value) > max) node.fail(std::string("is outside ") + datatype_of(type_));
      floats_.push_back(value);
    } else {
      const std::int64_t value = node.value().is_boolean() ? node.boolean() : node.integer();
      if (value < range_.first || value > range_.second)
        node.fail("is " + std::to_string(value) + ", outside " + datatype_of(type_));
      integers_.push_back(value);
    }
    if (depth == 0 || node.value().is_array()) check_count(node, size() - before, depth);
  }
  std::size_t size() const { return floats_.size() + integers_.size(); }
  ir::Tensor tensor(const ir::Sizes& shape) && {
    if (!ir::is_float(type_)) return ir::Tensor::of(shape, std::move(integers_)).converted(type_);
    const ir::Tensor doubles = ir::Tensor::of(shape, std::move(floats_));
    return type_ == DType::f64 ? doubles : doubles.converted(DType::f32).converted(type_);
  }

 private:
  void check_count(const text::JsonNode& node, std::size_t found, std::size_t depth) const {
    const auto axis = static_cast<std::ptrdiff_t>(std::min(depth, shape_.size()));
    const std::int64_t expected = ir::element_count(ir::Sizes(shape_.begin() + axis, shape_.end()));
    if (found != static_cast<std::size_t>(expected))
      node.fail("has {} {}, expected {} from the shape", found, found == 1 ? "element" : "elements",
                expected);
  }

  DType type_;
  std::pair<std::int64_t, std::int64_t> range_;
  const ir::Sizes& shape_;
  std::vector<double> floats_;
  std::vector<std::int64_t> integers_;
};

ir::Tensor from_json(const text::JsonNode& data, DType type, const ir::Sizes& shape) {
  Elements elements(type, shape);
  elements.add(data);
  return std::move(elements).tensor(shape);
}

ir::Tensor from_bytes(const text::JsonNode& size, DType type, const ir::Sizes& shape,
                      std::string_view& binary) {
  const std::int64_t bytes = size.integer();
  const auto expected = static_cast<std::int64_t>(ir::size_of(type)) * ir::element_count(shape);
  if (bytes != expected)
    size.fail("is " + std::to_string(bytes) + ", the shape needs " + std::to_string(expected));
  if (static_cast<std::size_t>(bytes) > binary.size())
    size.fail("exceeds the bytes left in the body: " + std::to_string(binary.size()));
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

void check_parameters(const std::optional<text::JsonNode>& parameters) {
  for (const char* name : {"classification", "shared_memory_region"})
    if (const auto given = parameters ? parameters->find(name) : std::nullopt)
      given->fail("is not supported; read and send whole tensors");
}

ir::Tensor read_tensor(const text::JsonNode& input, std::string_view& binary) {
  const text::JsonNode datatype = input.at("datatype");
  const auto type = type_of_datatype(datatype.string());
  if (!type) datatype.fail("is '" + datatype.string() + "', which is not supported");
  const ir::Sizes shape = read_shape(input.at("shape"));
  const auto parameters = input.find("parameters");
  check_parameters(parameters);
  if (const auto size = parameters ? parameters->find("binary_data_size") : std::nullopt) {
    if (input.find("data")) input.fail("has both data and parameters.binary_data_size");
    return from_bytes(*size, *type, shape, binary);
  }
  return from_json(input.at("data"), *type, shape);
}

std::string data_json(const ir::Tensor& tensor) {
  if (tensor.dtype() == DType::boolean) {
    const std::vector<std::int64_t> values = tensor.to_ints();
    return nlohmann::json(std::vector<bool>(values.begin(), values.end())).dump();
  }
  if (!ir::is_float(tensor.dtype())) return nlohmann::json(tensor.to_ints()).dump();
  const auto check = [](const auto& values) {
    if (!std::ranges::all_of(values, [](auto x) { return std::isfinite(x); }))
      throw HttpError(
          424, "Backend",
          "an output has NaN or infinity, which JSON cannot represent; request binary_data");
  };
  if (tensor.dtype() == DType::f64) {
    const std::vector<double> values = tensor.to_doubles();
    check(values);
    return nlohmann::json(values).dump();
  }
  const ir::Tensor floats = tensor.converted(DType::f32);
  check(floats.as<float>());
  std::string text;
  append_floats(text, floats.as<float>());
  return text;
}

}  // namespace bertcl::serve
