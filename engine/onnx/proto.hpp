// SPDX-License-Identifier: Apache-2.0
// The protobuf classes of ONNX, with the warnings of their headers disabled, and what their names
// and domains mean.
#pragma once
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop

#include <string>
#include <string_view>

namespace bertcl::onnx_io {

/// Whether a domain is that of ONNX's own operators.
inline bool is_onnx_domain(std::string_view domain) {
  return domain.empty() || domain == "ai.onnx";
}

/// The node's name, or that of its first output.
inline const std::string& label_of(const onnx::NodeProto& node) {
  return node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
}

}  // namespace bertcl::onnx_io
