// SPDX-License-Identifier: Apache-2.0
// A plan for reports: its steps by part of the model, and the cost of each.
#include "plan/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bertcl/error.hpp"
#include "ir/port.hpp"
#include "ops/op.hpp"
#include "ops/symbols.hpp"

namespace bertcl::plan {
namespace {

double evaluate(const ir::Dim& dim, const ir::Bindings& sizes) {
  try {
    return static_cast<double>(dim.evaluate(sizes));
  } catch (const Error&) {
    return 0.0;
  }
}

/// Whether a MatMul reads the result of step i, also quantized, masked or in another shape.
bool feeds_matmul(const Plan& plan, std::size_t i) {
  std::set<int> roots;  // of the slots that hold this result
  const auto add_results = [&](const Step& step) {
    for (const Argument& argument : step.arguments)
      if (const auto* w = std::get_if<Writes>(&argument)) roots.insert(plan.slots[w->slot].root);
  };
  add_results(plan.steps[i]);
  while (++i < plan.steps.size()) {
    const Step& step = plan.steps[i];
    const bool reads = std::ranges::any_of(step.arguments, [&](const Argument& argument) {
      const auto* r = std::get_if<Reads>(&argument);
      return r && roots.contains(plan.slots[r->slot].root);
    });
    if (!reads) continue;
    if (step.op.starts_with("MatMul")) return true;
    const ops::Traits& traits = ops::traits(step.op);
    if (traits.by_element || traits.moves_elements) add_results(step);
  }
  return false;
}

/// Not the Softmax that ends a classifier: that of attention has weights for a MatMul.
bool is_attention(const Plan& plan, std::size_t i) {
  const std::string& op = plan.steps[i].op;
  return op == "Softmax" ? feeds_matmul(plan, i) : ops::traits(op).is_attention;
}

bool is_norm(const Step& step) { return ops::traits(step.op).is_norm; }

}  // namespace

StepCost cost_of(const Plan& plan, const Step& step, const ir::Bindings& sizes) {
  double writes = 0, constants = 0, tables = 0;
  std::set<int> read;  // each once: q, k and v of attention may lie in one slot
  const auto slot_bytes = [&](int slot) {
    const ir::Type& type = plan.slots[slot].type;
    return evaluate(ir::element_count(type.shape), sizes) *
           static_cast<double>(ir::size_of(type.dtype));
  };
  for (const Argument& argument : step.arguments) {
    if (const auto* r = std::get_if<Reads>(&argument)) read.insert(r->slot);
    if (const auto* w = std::get_if<Writes>(&argument)) writes += slot_bytes(w->slot);
  }
  for (const Argument& argument : step.arguments)
    if (const auto* c = std::get_if<Constant>(&argument); c && c->index != plan.partial_sums) {
      const auto bytes = static_cast<double>(plan.constants[c->index].size());
      constants += bytes;
      tables += std::min(bytes, writes);
    }
  double reads = 0;
  for (const int slot : read) reads += slot_bytes(slot);
  const double units = evaluate(step.work_units, sizes);
  // GEMMs read all of their weights; look-ups only as much of each table as they write.
  return {step.operations_per_unit * units, step.operations_per_unit == 0 ? tables : constants,
          reads + writes + step.partial_sums_per_unit * units};
}

Arithmetic precision_of(const Plan& plan) {
  for (const Arithmetic& type : {Arithmetic::int8, Arithmetic::bf16, Arithmetic::fp16})
    if (computes_in(plan, type.kind())) return type;
  return Arithmetic::fp32;
}

Launched launched_by(const Plan& plan, const Step& step, const ir::Bindings& sizes) {
  if (step.call) return {"CLBlast", "CLBlast", step.variant};
  const StepKernel* launch = &step;
  try {
    launch = &chosen_kernel(step, sizes, plan.context->info());
  } catch (const Error&) {  // a size that only a run knows
  }
  return {launch->kernel.program_name(), launch->kernel.name(), launch->variant};
}

ir::Bindings sizes_of_batch(const Plan& plan, std::int64_t batch, std::int64_t seq) {
  namespace symbols = ops::symbols;
  ir::Bindings sizes{{"batch", batch},
                     {"seq", seq},
                     {symbols::batch, batch},
                     {symbols::offsets, batch + 1},
                     {symbols::tokens, batch * seq},
                     {symbols::longest, seq}};
  for (const ir::Port& port : plan.model_inputs)
    for (std::size_t axis = 0; axis < port.type.shape.size(); ++axis)
      for (const std::string& symbol : port.type.shape[axis].symbols())
        sizes.emplace(symbol, axis == 0 ? batch : seq);
  return sizes;
}

std::vector<Section> sections_of(const Plan& plan) {
  const std::size_t count = plan.steps.size();
  std::vector<std::size_t> starts;  // first step of each layer
  std::size_t end = count;          // of the last layer
  std::size_t after_norm = 0;       // the step after the last LayerNorm so far
  int norms = 0;                    // since the last attention
  for (std::size_t i = 0; i < count; ++i) {
    if (is_attention(plan, i)) {
      starts.push_back(after_norm);
      norms = 0;
      end = count;
    } else if (is_norm(plan.steps[i])) {
      after_norm = i + 1;
      // One for few rows does the work of the step before it.
      const bool is_another = plan.steps[i].up_to_rows == Step().up_to_rows;
      if (is_another) ++norms;
      if (!starts.empty() && norms == 2) end = i + 1;
    }
  }
  // Two kernels of one layer, as the pieces of an attention, do not start a layer each.
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());

  std::vector<Section> sections;
  const auto add = [&](std::string title, std::size_t from, std::size_t to) {
    if (from >= to) return;
    Section section{std::move(title), {}};
    for (std::size_t i = from; i < to; ++i) section.steps.push_back(i);
    sections.push_back(std::move(section));
  };
  if (starts.empty()) {
    add("model", 0, count);
    return sections;
  }
  add("embeddings", 0, starts.front());
  for (std::size_t i = 0; i < starts.size(); ++i)
    add(fmt::format("layer {}", i), starts[i], i + 1 < starts.size() ? starts[i + 1] : end);
  add("head", end, count);
  return sections;
}

std::vector<std::string> host_work(const Plan& plan) {
  std::set<std::string> packed;
  std::vector<std::string> work{
      "shape inference and memory planning, once per set of input shapes"};
  for (const Input& in : plan.inputs) {
    if (in.kind != InputKind::dense) {
      if (!in.source.empty()) packed.insert(in.source);
      continue;
    }
    work.push_back(
        fmt::format("input '{}' is uploaded as {}", in.source, ir::str(plan.slots[in.slot].type)));
  }
  if (!packed.empty())
    work.push_back(
        fmt::format("{} are checked and uploaded with the offset of each sequence; padding rows "
                    "are dropped where the mask is ones followed by zeros",
                    fmt::join(packed, ", ")));
  for (const Output& out : plan.outputs)
    if (out.slot < 0) work.push_back(fmt::format("output '{}' is a constant", out.name));
  return work;
}

namespace {

double gain_of(const Step& step) { return step.tunable ? step.tunable->gain : 0; }

}  // namespace

bool same_launches(const Plan& plan, const Section& a, const Section& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [&](std::size_t x, std::size_t y) {
                      const Step &s = plan.steps[x], &t = plan.steps[y];
                      return s.op == t.op && s.type == t.type && s.variant == t.variant &&
                             s.why_not_faster == t.why_not_faster && gain_of(s) == gain_of(t) &&
                             s.operations_per_unit == t.operations_per_unit;
                    });
}

}  // namespace bertcl::plan
