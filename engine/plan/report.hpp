// SPDX-License-Identifier: Apache-2.0
// A plan for reports: its steps by part of the model, and the cost of each.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace bertcl::plan {

/// Work of one step for the sizes of a run; 0 where a symbol has no size.
struct StepCost {
  double operations = 0;        // arithmetic, a multiplication and an addition are two
  double weight_bytes = 0;      // constants that it reads; of a table, the rows that it reads
  double activation_bytes = 0;  // operands and results
};
StepCost cost_of(const Plan& plan, const Step& step, const ir::Bindings& sizes);

/// What a step launches for the sizes of a run: its large tiles where a symbol has no size.
struct Launched {
  std::string program;  // file of kernels_cl/ without .cl, or CLBlast
  std::string kernel;   // function in it, or CLBlast
  std::string variant;
};
Launched launched_by(const Plan& plan, const Step& step, const ir::Bindings& sizes);

/// The symbols of a plan for a batch without padding. Symbols that an input
/// names itself are the batch on its first axis, the sequence on any other.
ir::Bindings sizes_of_batch(const Plan& plan, std::int64_t batch, std::int64_t seq);

/// int8 if linears run in integers, else the arithmetic of the float ones: bf16 or fp16 if any runs
/// in it, else fp32.
Arithmetic precision_of(const Plan& plan);

/// The steps of the embeddings, of one encoder layer or of the head.
struct Section {
  std::string title;  // "embeddings", "layer 3", "head"
  std::vector<std::size_t> steps;
};
/// The sections of a plan, in the order of its steps: a layer begins after the LayerNorm before its
/// attention, and the last layer ends with its second LayerNorm. A plan without attention is one
/// section.
std::vector<Section> sections_of(const Plan& plan);

/// What the host does in a run, as sentences: the steps do everything else.
std::vector<std::string> host_work(const Plan& plan);

/// True if both consist of the same launches: op, type, variant, reasons and arithmetic.
bool same_launches(const Plan& plan, const Section& a, const Section& b);

}  // namespace bertcl::plan
