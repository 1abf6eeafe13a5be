// SPDX-License-Identifier: Apache-2.0
// Extracts the weights from a serialized model without parsing them.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bertcl::onnx_io {

/// A serialized ModelProto without the raw_data of its initializers, and the locations of these.
struct StrippedModel {
  std::string model;
  /// One for each initializer of the main graph in file order; empty where it has no raw_data.
  std::vector<std::optional<std::span<const std::byte>>> weights;
};

/// Walks the wire format of the file. Protobuf's own parser would copy each weight and stops at
/// 2 GiB. Empty if the bytes are not a well-formed message.
std::optional<StrippedModel> strip_weights(std::span<const std::byte> file);

}  // namespace bertcl::onnx_io
