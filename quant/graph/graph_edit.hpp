// SPDX-License-Identifier: Apache-2.0
// Adds nodes to an ONNX graph and removes unused ones.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quant/graph/constants.hpp"
#include "quant/graph/model.hpp"

namespace bertcl::quant {

/// A node with a fresh name: NAME, or that with a number after it.
onnx::NodeProto make_node(Model& model, const std::string& op, const std::string& name,
                          const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs);
/// A node with one result, named as torch's exporter does: NAME_output_0.
onnx::NodeProto make_node(Model& model, const std::string& op, const std::string& name,
                          const std::vector<std::string>& inputs);

void set_attribute(onnx::NodeProto& node, const std::string& name, std::int64_t value);
void set_attribute(onnx::NodeProto& node, const std::string& name,
                   const std::vector<std::int64_t>& values);

/// A reduction (ReduceMax, ReduceSum, ...) over the last axis, which stays with extent 1: its axes
/// are an attribute or, from opset 18 on (ReduceSum: 13), a constant, called `axes`, which is added
/// unless it is there.
onnx::NodeProto make_row_reduction(Model& model, const std::string& op, const std::string& name,
                                   const std::string& input, const std::string& output,
                                   std::string& axes);

/// Puts nodes after those they follow (by index; -1: in front of all), so that the list stays in
/// topological order.
void insert_nodes(Model& model, std::map<int, std::vector<onnx::NodeProto>> added);

/// Puts nodes in the place of others (by index).
void replace_nodes(Model& model, std::map<int, std::vector<onnx::NodeProto>> replacements);

/// Removes the nodes all of whose results are among `sources` and unread, then its unread
/// initializers.
void remove_unread(Model& model, const Sources& sources);

}  // namespace bertcl::quant
