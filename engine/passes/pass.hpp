// SPDX-License-Identifier: Apache-2.0
// What a pass is: a name and a rewrite of the whole graph.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"
#include "ir/limits.hpp"

namespace bertcl::passes {

/// The arithmetic of float linear and attention: f32, f16 or bf16, and for the report, why it is
/// not the requested one.
struct Precision {
  ir::DType type = ir::DType::f32;
  std::string reason = {};
};

/// The caller's compile options.
struct Options {
  std::vector<std::string> disabled;  // names of passes to skip
  ir::Limits limits = {};
  Precision precision = {};
  /// Results for padding are not read. If false, they match the ONNX graph, at extra cost where its
  /// mask hides the rows of padding as well as the keys; rows of padding that have no key in their
  /// window are 0 nevertheless.
  bool drop_padding = true;
};

/// One rewrite. `run` returns true if it changed the graph. Each pass is one file in the
/// folder of its group, with a test of the same name that compares graphs as text.
struct Pass {
  std::string name;
  std::function<bool(ir::Graph&)> run;
};

/// A pass that applies `rewrite` to each node until it changes none any more.
Pass rewriting(std::string name, std::function<bool(ir::Graph&, ir::Node&)> rewrite);

/// The whole compiler: the passes in order, without the disabled ones and those that only serve
/// them. Throws Error if a disabled pass is needed by every graph.
std::vector<Pass> pipeline(const Options& options);

/// The passes up to the last one of that name. Throws Error if there is none.
std::vector<Pass> pipeline_up_to(std::string_view last);

/// Runs the pipeline, verifying after each pass. `after` is called with each pass that changed
/// the graph, and the graph (for --dump-passes).
void compile(ir::Graph& graph, const Options& options,
             const std::function<void(const Pass&, const ir::Graph&)>& after = {});

}  // namespace bertcl::passes
