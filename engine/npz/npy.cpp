// SPDX-License-Identifier: Apache-2.0
// One tensor in the bytes of a .npy file (NEP 1, format 1.0 to 3.0).
#include "npz/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "bertcl/error.hpp"

namespace bertcl::npz {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// Kind and size of an element, as NumPy's `descr` has them after the byte order.
constexpr std::array<std::pair<std::string_view, ir::DType>, 12> kTypes = {{
    {"f2", ir::DType::f16},
    {"f4", ir::DType::f32},
    {"f8", ir::DType::f64},
    {"i1", ir::DType::i8},
    {"u1", ir::DType::u8},
    {"i2", ir::DType::i16},
    {"u2", ir::DType::u16},
    {"i4", ir::DType::i32},
    {"u4", ir::DType::u32},
    {"i8", ir::DType::i64},
    {"u8", ir::DType::u64},
    {"b1", ir::DType::boolean},
}};

struct Header {
  ir::DType dtype = ir::DType::f32;
  bool big_endian = false;
  bool fortran_order = false;
  ir::Sizes shape;
};

/// The Python dictionary of the header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),
/// }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  Header parse() {
    Header header;
    unsigned found = 0;
    expect('{');
    while (!take('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") {
        element_type(header);
        found |= 1;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        found |= 2;
      } else if (key == "shape") {
        header.shape = shape();
        found |= 4;
      } else {
        fail(fmt::format("unknown key '{}'", key));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (found != 7) fail("descr, fortran_order and shape must all be present");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(
        fmt::format("{}: invalid array header: {} (position {})", origin_, what, position_));
  }
  bool take(char c) {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) {
      ++position_;
    }
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("expected '{}'", c));
  }
  std::string_view string() {
    expect('\'');
    const std::size_t end = text_.find('\'', position_);
    if (end == std::string_view::npos) fail("unterminated string");
    const std::string_view value = text_.substr(position_, end - position_);
    position_ = end + 1;
    return value;
  }
  bool boolean() {
    take(' ');
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (text_.substr(position_).starts_with(word)) {
        position_ += std::strlen(word);
        return value;
      }
    }
    fail("fortran_order must be True or False");
  }
  ir::Sizes shape() {
    ir::Sizes sizes;
    std::int64_t total = 1;
    expect('(');
    while (!take(')')) {
      take(' ');
      std::int64_t size = 0;
      const char* begin = text_.data() + position_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail("shape must be a tuple of sizes");
      if (size != 0 && total > std::numeric_limits<std::int64_t>::max() / 16 / size) {
        fail("the shape is too large");
      }
      total *= std::max<std::int64_t>(size, 1);
      position_ += static_cast<std::size_t>(end - begin);
      sizes.push_back(size);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }
  void element_type(Header& header) {
    if (take('[')) fail("structured types are not supported; use an array of one number type");
    const std::string_view descr = string();
    const std::string_view name = descr.substr(std::min<std::size_t>(1, descr.size()));
    const auto known =
        std::ranges::find_if(kTypes, [&](const auto& type) { return type.first == name; });
    if (known == kTypes.end() ||
        std::string_view("<>|=").find(descr[0]) == std::string_view::npos) {
      fail(fmt::format(
          "unsupported element type '{}' (supported: f2, f4, f8, i1 to i8, u1 to u8, b1)", descr));
    }
    header.dtype = known->second;
    header.big_endian = descr[0] == '>';
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t position_ = 0;
};

void swap_bytes(std::span<std::byte> data, std::size_t element) {
  for (std::size_t i = 0; i + element <= data.size(); i += element) {
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(i),
                 data.begin() + static_cast<std::ptrdiff_t>(i + element));
  }
}

/// Fortran order (first index fastest) to C order.
std::vector<std::byte> to_c_order(std::span<const std::byte> data, const ir::Sizes& shape,
                                  std::size_t element) {
  std::vector<std::byte> result(data.size());
  std::vector<std::size_t> strides(shape.size());  // in Fortran order, in bytes
  std::size_t stride = element;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    strides[d] = stride;
    stride *= static_cast<std::size_t>(shape[d]);
  }
  ir::Sizes index(shape.size(), 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < data.size(); to += element) {
    std::memcpy(result.data() + to, data.data() + from, element);
    for (std::size_t d = shape.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < shape[d]) break;
      from -= strides[d] * static_cast<std::size_t>(shape[d]);
      index[d] = 0;
    }
  }
  return result;
}

}  // namespace

ir::Tensor parse_npy(std::vector<std::byte> bytes, const std::string& origin) {
  const auto text = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 12) {
    throw Error(fmt::format("{}: not a .npy array: it does not begin with \\x93NUMPY", origin));
  }
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) {
    throw Error(fmt::format("{}: unknown .npy format {} (supported: 1 to 3)", origin, version));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::size_t header_length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    header_length = header_length << 8 | static_cast<unsigned char>(text[8 + i]);
  }
  const std::size_t data_begin = 8 + length_bytes + header_length;
  if (data_begin > text.size())
    throw Error(fmt::format("{}: the .npy header is truncated", origin));
  const Header header = HeaderParser(text.substr(8 + length_bytes, header_length), origin).parse();

  const std::size_t element = ir::size_of(header.dtype);
  const std::size_t needed = static_cast<std::size_t>(ir::element_count(header.shape)) * element;
  if (text.size() - data_begin != needed) {
    throw Error(fmt::format("{}: {} bytes of data, but {} [{}] needs {}", origin,
                            text.size() - data_begin, ir::name_of(header.dtype),
                            fmt::join(header.shape, ", "), needed));
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(data_begin));
  if (header.big_endian) swap_bytes(bytes, element);
  if (header.fortran_order && header.shape.size() > 1) {
    bytes = to_c_order(bytes, header.shape, element);
  }
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return ir::Tensor(header.dtype, header.shape, owner, *owner);
}

std::vector<std::byte> format_npy(const ir::Tensor& tensor) {
  const auto known =
      std::ranges::find_if(kTypes, [&](const auto& type) { return type.second == tensor.dtype(); });
  if (known == kTypes.end()) {
    throw Error(fmt::format("NumPy has no element type for {}", ir::name_of(tensor.dtype())));
  }
  std::string header =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                  ir::size_of(tensor.dtype()) == 1 ? '|' : '<', known->first,
                  fmt::join(tensor.shape(), ", "), tensor.shape().size() == 1 ? "," : "");
  // Magic, version, length and header together fill whole blocks of 64 bytes.
  constexpr std::size_t prefix = 10;
  header.resize((prefix + header.size() + 1 + 63) / 64 * 64 - prefix, ' ');
  header.back() = '\n';
  std::string head(kMagic);
  head +=
      {'\1', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  head += header;

  std::vector<std::byte> bytes(head.size() + tensor.bytes().size());
  std::memcpy(bytes.data(), head.data(), head.size());
  std::ranges::copy(tensor.bytes(), bytes.begin() + static_cast<std::ptrdiff_t>(head.size()));
  return bytes;
}

}  // namespace bertcl::npz
