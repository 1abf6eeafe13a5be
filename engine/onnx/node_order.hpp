// SPDX-License-Identifier: Apache-2.0
// The order of the nodes of a graph.
#pragma once
#include <vector>

#include "onnx/proto.hpp"

namespace bertcl::onnx_io {

/// The nodes in an order in which each stands after what it and its bodies read. Files that are not
/// sorted exist though ONNX asks for it; nodes of a cycle stay where they are, and are refused
/// later.
std::vector<const onnx::NodeProto*> sorted(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

}  // namespace bertcl::onnx_io
