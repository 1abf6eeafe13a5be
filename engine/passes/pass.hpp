// SPDX-License-Identifier: Apache-2.0
// What a pass is: a name and a rewrite of the whole graph.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "ir/limits.hpp"

namespace bertcl::passes {

/// What float linear and attention compute in: f32, f16 or bf16, and for the report, why it is not
/// what was asked for.
struct Precision {
  ir::DType type = ir::DType::f32;
  std::string reason = {};
};

/// What the caller wants of the compiled graph.
struct Options {
  std::vector<std::string> disabled;  // names of passes to leave out
  ir::Limits limits = {};
  Precision precision = {};
};

/// One rewrite. `run` returns true if it changed the graph. Each pass lives in one file of this
/// folder, with a test of the same name that compares graphs as text.
struct Pass {
  std::string name;
  std::function<bool(ir::Graph&)> run;
};

/// The whole compiler: the passes in their order, less those that are disabled and those that serve
/// these alone. Throws Error if one is disabled that every graph needs.
std::vector<Pass> pipeline(const Options& options);

/// Runs the pipeline, verifying after each pass. `after` is called with the name of each pass that
/// changed the graph (for --dump-passes).
void compile(ir::Graph& graph, const Options& options,
             const std::function<void(const Pass&, const ir::Graph&)>& after = {});

}  // namespace bertcl::passes
