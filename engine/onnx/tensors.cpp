// SPDX-License-Identifier: Apache-2.0
// Raw, typed and external tensor data.
#include "onnx/tensors.hpp"

#include <fmt/format.h>

#include <cstring>

#include "bertcl/error.hpp"
#include "onnx/proto.hpp"
#include "onnx/sub_byte.hpp"
#include "support/parse_number.hpp"

namespace bertcl::onnx_io {
namespace {

using ir::DType;

/// Extents of a tensor; throws if they are negative or multiply beyond what memory can hold.
ir::Sizes sizes_of(const onnx::TensorProto& proto, DType dtype, const std::string& where) {
  ir::Sizes sizes(proto.dims().begin(), proto.dims().end());
  std::int64_t bytes = static_cast<std::int64_t>(ir::size_of(dtype));
  for (const std::int64_t d : sizes) {
    if (d < 0) throw Error(fmt::format("{} has the negative extent {}", where, d));
    if (__builtin_mul_overflow(bytes, d, &bytes) || bytes > (std::int64_t{1} << 48))
      throw Error(fmt::format("{} is too large", where));
  }
  return sizes;
}

/// A tensor of the given bytes: a view if `owner` keeps them alive, else a copy.
ir::Tensor view_or_copy(DType dtype, ir::Sizes sizes, std::span<const std::byte> bytes,
                        std::shared_ptr<const void> owner, ir::Memory memory,
                        const std::string& where) {
  const auto expected = static_cast<std::size_t>(ir::element_count(sizes)) * ir::size_of(dtype);
  if (bytes.size() != expected)
    throw Error(fmt::format("{}: {} bytes of data, {} elements of {} need {}", where, bytes.size(),
                            ir::element_count(sizes), ir::name_of(dtype), expected));
  if (owner) return ir::Tensor::view(dtype, std::move(sizes), std::move(owner), bytes, memory);
  ir::Tensor copy = ir::Tensor::zeros(dtype, std::move(sizes));
  if (!bytes.empty()) std::memcpy(copy.mutable_bytes().data(), bytes.data(), bytes.size());
  return copy;
}

/// Data in one of the typed fields (float_data, int32_data, ...), whose elements are widened.
template <class Stored, class Field>
ir::Tensor typed(const Field& field, DType dtype, ir::Sizes sizes, const std::string& where) {
  std::vector<Stored> values;
  values.reserve(field.size());
  for (const auto v : field) values.push_back(static_cast<Stored>(v));
  if (std::ssize(values) != ir::element_count(sizes))
    throw Error(fmt::format("{}: {} values of data for {} elements", where, values.size(),
                            ir::element_count(sizes)));
  return ir::Tensor::of<Stored>(std::move(sizes), std::move(values), dtype);
}

ir::Tensor typed_tensor(const onnx::TensorProto& p, DType dtype, ir::Sizes sizes,
                        const std::string& where) {
  switch (dtype) {
    case DType::f32:
      return typed<float>(p.float_data(), dtype, std::move(sizes), where);
    case DType::f64:
      return typed<double>(p.double_data(), dtype, std::move(sizes), where);
    case DType::i64:
      return typed<std::int64_t>(p.int64_data(), dtype, std::move(sizes), where);
    case DType::u64:
      return typed<std::uint64_t>(p.uint64_data(), dtype, std::move(sizes), where);
    case DType::u32:
      return typed<std::uint32_t>(p.uint64_data(), dtype, std::move(sizes), where);
    case DType::i32:
      return typed<std::int32_t>(p.int32_data(), dtype, std::move(sizes), where);
    case DType::i16:
      return typed<std::int16_t>(p.int32_data(), dtype, std::move(sizes), where);
    case DType::u16:
    case DType::f16:
    case DType::bf16:  // halves as bit patterns
      return typed<std::uint16_t>(p.int32_data(), dtype, std::move(sizes), where);
    case DType::i8:
      return typed<std::int8_t>(p.int32_data(), dtype, std::move(sizes), where);
    case DType::u8:
    case DType::boolean:
      return typed<std::uint8_t>(p.int32_data(), dtype, std::move(sizes), where);
  }
  throw Error(fmt::format("{} has an unknown type", where));
}

std::uint64_t number(const std::string& text, const std::string& where) {
  if (const auto number = parse_number<std::uint64_t>(text)) return *number;
  throw Error(fmt::format("{}: '{}' in external_data is not a number", where, text));
}

}  // namespace

std::optional<ir::DType> known_element_type(std::int32_t onnx_type) {
  static const std::map<std::int32_t, DType> types = {
      {1, DType::f32},  {2, DType::u8},   {3, DType::i8},      {4, DType::u16},  {5, DType::i16},
      {6, DType::i32},  {7, DType::i64},  {9, DType::boolean}, {10, DType::f16}, {11, DType::f64},
      {12, DType::u32}, {13, DType::u64}, {16, DType::bf16}};
  const auto known = types.find(onnx_type);
  return known == types.end() ? std::nullopt : std::optional(known->second);
}

ir::DType element_type(std::int32_t onnx_type, const std::string& where) {
  if (const auto known = known_element_type(onnx_type)) return *known;
  static const std::map<std::int32_t, const char*> others = {
      {0, "undefined"},     {8, "string"},          {14, "complex64"},  {15, "complex128"},
      {17, "float8e4m3fn"}, {18, "float8e4m3fnuz"}, {19, "float8e5m2"}, {20, "float8e5m2fnuz"},
      {23, "float4e2m1"},   {24, "float8e8m0"}};
  if (const auto sub_byte = sub_byte_type(onnx_type))
    throw Error(fmt::format("{}: element type {} is supported only in constants that "
                            "DequantizeLinear, GatherBlockQuantized or Cast reads",
                            where, sub_byte->name),
                ErrorCode::unsupported);
  const auto it = others.find(onnx_type);
  throw Error(fmt::format("{}: element type {} is not supported (supported: f32, f16, bf16, f64, "
                          "i8 to i64, u8 to u64, bool)",
                          where, it == others.end() ? std::to_string(onnx_type) : it->second),
              ErrorCode::unsupported);
}

ir::Tensor TensorReader::read(const onnx::TensorProto& proto,
                              std::optional<std::span<const std::byte>> raw) {
  const std::string where = fmt::format("{}: tensor '{}'", model_.string(), proto.name());
  if (const auto sub_byte = sub_byte_type(proto.data_type())) {
    ir::Sizes sizes = sizes_of(proto, DType::u8, where);
    const std::int64_t count = ir::element_count(sizes);
    const ir::Tensor bytes = read_data(proto, DType::u8, {bytes_of(count, sub_byte->bits)}, raw,
                                       fmt::format("{} ({} of {}, {} to a byte)", where, count,
                                                   sub_byte->name, 8 / sub_byte->bits));
    return widen_to_bytes(*sub_byte, std::move(sizes), bytes.as<std::uint8_t>());
  }
  const DType dtype = element_type(proto.data_type(), where);
  return read_data(proto, dtype, sizes_of(proto, dtype, where), raw, where);
}

ir::Tensor TensorReader::read_data(const onnx::TensorProto& proto, DType dtype, ir::Sizes sizes,
                                   std::optional<std::span<const std::byte>> raw,
                                   const std::string& where) {
  if (proto.has_segment())
    throw Error(fmt::format("{}: segments are not supported", where), ErrorCode::unsupported);
  if (proto.data_location() == onnx::TensorProto::EXTERNAL)
    return read_external(proto, dtype, std::move(sizes), where);
  if (raw) return view_or_copy(dtype, std::move(sizes), *raw, owner_, memory_, where);
  if (proto.has_raw_data())
    return view_or_copy(dtype, std::move(sizes), std::as_bytes(std::span(proto.raw_data())),
                        nullptr, ir::Memory::anonymous, where);
  return typed_tensor(proto, dtype, std::move(sizes), where);
}

namespace {

/// True if the file lies in the folder of the model, by their names or by where links lead: stores
/// of models link both to one folder.
bool lies_beside(const std::filesystem::path& file, const std::filesystem::path& model) {
  namespace fs = std::filesystem;
  const fs::path target = fs::canonical(file);
  for (const fs::path& folder : {fs::canonical(fs::absolute(model).parent_path()),
                                 fs::weakly_canonical(model).parent_path()}) {
    const fs::path within = target.lexically_relative(folder);
    if (!within.empty() && *within.begin() != "..") return true;
  }
  return false;
}

}  // namespace

ir::Tensor TensorReader::read_external(const onnx::TensorProto& proto, DType dtype, ir::Sizes sizes,
                                       const std::string& where) {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number(entry.value(), where);
    if (entry.key() == "length") length = number(entry.value(), where);
  }
  const std::filesystem::path relative(location);
  bool inside = !location.empty() && relative.is_relative();
  for (const auto& part : relative.lexically_normal()) inside = inside && part != "..";
  if (!inside)
    throw Error(
        fmt::format("{}: external data '{}' is outside the model's folder", where, location));
  if (!has_folder_)
    throw Error(
        fmt::format("{}: its data are in the file '{}', but a model in memory has no folder; name "
                    "one, or load the model from its file",
                    where, location));
  auto& file = external_[location];
  if (!file) {
    const auto path = model_.parent_path() / relative;
    if (!std::filesystem::exists(path))
      throw Error(fmt::format("{}: its external data file {} is missing", where, path.string()),
                  ErrorCode::io);
    if (!lies_beside(path, model_))
      throw Error(fmt::format("{}: external data '{}' is a link to {}, outside the model's folder",
                              where, location, std::filesystem::canonical(path).string()));
    file = MappedFile::open(path);
  }
  const auto bytes = file->bytes();
  const auto size =
      length.value_or(static_cast<std::uint64_t>(ir::element_count(sizes)) * ir::size_of(dtype));
  if (offset > bytes.size() || size > bytes.size() - offset)
    throw Error(fmt::format("{}: its data is {} bytes at offset {} of '{}', which has {} bytes",
                            where, size, offset, location, bytes.size()));
  return view_or_copy(dtype, std::move(sizes), bytes.subspan(offset, size), file,
                      ir::Memory::mapped_file, where);
}

}  // namespace bertcl::onnx_io
