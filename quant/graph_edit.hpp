// SPDX-License-Identifier: Apache-2.0
// Adds nodes to an ONNX graph and removes what nothing reads any more.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "quant/model.hpp"

namespace bertcl::quant {

/// Puts nodes behind those they follow (by index; -1: in front of all), so that the list stays in
/// topological order.
void insert_nodes(Model& model, std::map<int, std::vector<onnx::NodeProto>> added);

/// Removes the nodes all of whose results are among `outputs` and unread, then the unread ones of
/// `initializers`.
void remove_unread(Model& model, const std::set<std::string>& outputs,
                   const std::set<std::string>& initializers);

}  // namespace bertcl::quant
