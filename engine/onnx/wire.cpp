// SPDX-License-Identifier: Apache-2.0
// The walk over the protobuf wire format.
#include "onnx/wire.hpp"

#include <cstdint>

namespace bertcl::onnx_io {
namespace {

using Bytes = std::span<const std::byte>;

// Field numbers of onnx.proto.
constexpr std::uint64_t kModelGraph = 7, kGraphInitializer = 5, kTensorRawData = 9;

struct Field {
  std::uint64_t number;
  Bytes whole;                   // tag, length and payload
  std::optional<Bytes> payload;  // of length-delimited fields
};

/// Reads the fields of one message in turn.
class FieldReader {
 public:
  explicit FieldReader(Bytes message) : rest_(message) {}
  bool at_end() const { return rest_.empty(); }

  /// Empty if the bytes are not a field.
  std::optional<Field> next() {
    const Bytes start = rest_;
    const auto tag = varint();
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    Field field{*tag >> 3, {}, std::nullopt};
    std::uint64_t skip = 0;
    switch (*tag & 7u) {
      case 0:
        if (!varint()) return std::nullopt;
        break;
      case 1:
        skip = 8;
        break;
      case 2: {
        const auto length = varint();
        if (!length || *length > rest_.size()) return std::nullopt;
        field.payload = rest_.first(*length);
        skip = *length;
        break;
      }
      case 5:
        skip = 4;
        break;
      default:  // groups are not used by ONNX
        return std::nullopt;
    }
    if (skip > rest_.size()) return std::nullopt;
    rest_ = rest_.subspan(skip);
    field.whole = start.first(start.size() - rest_.size());
    return field;
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<std::uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      value |= (byte & 0x7fu) << shift;
      if (byte < 0x80u) return value;
    }
    return std::nullopt;
  }
  Bytes rest_;
};

void append(std::string& out, Bytes bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
void append_message(std::string& out, std::uint64_t number, const std::string& payload) {
  const auto varint = [&](std::uint64_t v) {
    for (; v >= 0x80u; v >>= 7) out.push_back(static_cast<char>(v | 0x80u));
    out.push_back(static_cast<char>(v));
  };
  varint(number << 3 | 2u);
  varint(payload.size());
  out += payload;
}

/// Copies a message field by field; `replace` may write something else and return true, or set ok
/// to false.
template <class Replace>
bool copy_fields(Bytes message, std::string& out, Replace&& replace) {
  FieldReader reader(message);
  while (!reader.at_end()) {
    const auto field = reader.next();
    if (!field) return false;
    bool ok = true;
    if (!replace(*field, ok)) append(out, field->whole);
    if (!ok) return false;
  }
  return true;
}

}  // namespace

std::optional<StrippedModel> strip_weights(Bytes file) {
  StrippedModel skeleton;
  const auto tensor = [&](Bytes message, std::string& out) {
    auto& weight = skeleton.weights.emplace_back();
    return copy_fields(message, out, [&](const Field& f, bool&) {
      if (f.number != kTensorRawData || !f.payload) return false;
      weight = *f.payload;
      return true;
    });
  };
  const auto graph = [&](Bytes message, std::string& out) {
    return copy_fields(message, out, [&](const Field& f, bool& ok) {
      if (f.number != kGraphInitializer || !f.payload) return false;
      std::string inner;
      ok = tensor(*f.payload, inner);
      append_message(out, kGraphInitializer, inner);
      return true;
    });
  };
  const bool ok = copy_fields(file, skeleton.model, [&](const Field& f, bool& inner_ok) {
    if (f.number != kModelGraph || !f.payload) return false;
    std::string inner;
    inner_ok = graph(*f.payload, inner);
    append_message(skeleton.model, kModelGraph, inner);
    return true;
  });
  if (!ok) return std::nullopt;
  return skeleton;
}

}  // namespace bertcl::onnx_io
