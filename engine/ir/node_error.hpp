// SPDX-License-Identifier: Apache-2.0
// An error at one node, for callers that can skip that node.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"

namespace bertcl::ir {

/// An Error that carries the names of the ONNX nodes it is about, as Node::sources.
class NodeError : public Error {
 public:
  NodeError(std::vector<std::string> sources, const std::string& message, ErrorCode code)
      : Error(message, code), sources(std::move(sources)) {}
  std::vector<std::string> sources;
};

}  // namespace bertcl::ir
