// SPDX-License-Identifier: Apache-2.0
// The report of `bertcl inspect` as text and as JSON.
#include "tools/report/model_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "ir/port.hpp"
#include "plan/persistent_kernel.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

using nlohmann::ordered_json;

std::string one_line(std::string text) {
  for (std::size_t at; (at = text.find('\n')) != std::string::npos;) text.replace(at, 1, "; ");
  return text;
}

/// The last column: a choice by measurement, then the reasons of the variants.
std::string why_text(const plan::Step& step) {
  if (step.tunable && !step.tunable->predicted_for.empty())
    return fmt::format("tiles predicted for {}, not measured{}{}", step.tunable->predicted_for,
                       step.why_not_faster.empty() ? "" : "; ", one_line(step.why_not_faster));
  if (!step.tunable || step.tunable->gain == 0) return one_line(step.why_not_faster);
  return fmt::format("tuned: {:.2f}x as fast as the default, {}", step.tunable->gain,
                     step.tunable->default_variant);
}

/// The architecture for which tiles were predicted; null where they were not.
ordered_json predicted_json(const plan::Step& step) {
  if (!step.tunable || step.tunable->predicted_for.empty()) return nullptr;
  return step.tunable->predicted_for;
}

/// Null without tuning.
ordered_json tuned_json(const plan::Step& step) {
  if (!step.tunable || step.tunable->gain == 0) return nullptr;
  ordered_json by_rows = ordered_json::array();
  for (const plan::Alternative& other : step.alternatives)
    if (other.up_to_rows > 0)
      by_rows.push_back({{"up_to_rows", other.up_to_rows}, {"variant", other.variant}});
  return {{"gain", step.tunable->gain},
          {"default", step.tunable->default_variant},
          {"by_rows", std::move(by_rows)}};
}

/// What became of the nodes of the file: those of one status, and where they went.
struct NodeAccount {
  std::array<std::int64_t, kNodeStatuses.size()> counts{};
  std::map<std::string, int> absorbed_by;  // pass
  std::vector<ordered_json> nodes;
};

NodeAccount account_of(const runtime::Session& session) {
  std::set<std::string> launched;
  for (const plan::Step& step : session.plan().steps)
    launched.insert(step.sources.begin(), step.sources.end());
  NodeAccount account;
  for (const passes::NodeStatus& node : session.node_statuses()) {
    // In the order of passes::Status, whose computed nodes are launched or views.
    const bool is_launched =
        node.status == passes::Status::computed && launched.contains(node.name);
    const std::size_t status = static_cast<std::size_t>(node.status) + (is_launched ? 0 : 1);
    ++account.counts[status];
    if (node.status == passes::Status::absorbed) ++account.absorbed_by[node.pass];
    account.nodes.push_back({{"name", node.name},
                             {"op", node.op},
                             {"status", kNodeStatuses[status].status},
                             {"pass", node.pass}});
  }
  return account;
}

ordered_json ports_json(const std::vector<ir::Port>& ports) {
  ordered_json json = ordered_json::array();
  for (const ir::Port& port : ports) {
    ordered_json shape = ordered_json::array();
    for (const ir::Dim& dim : port.type.shape) {
      if (dim.is_constant()) {
        shape.push_back(dim.constant());
      } else {
        shape.push_back(dim.str());
      }
    }
    json.push_back({{"name", port.name}, {"type", ir::name_of(port.type.dtype)}, {"shape", shape}});
  }
  return json;
}

void add_rows(Table& table, const runtime::Session& session, const plan::Section& section,
              const std::string& title, const ir::Bindings& sizes) {
  const plan::Plan& plan = session.plan();
  bool first = true;
  for (const std::size_t i : section.steps) {
    const plan::Step& step = plan.steps[i];
    if (!plan::runs(step, sizes)) continue;
    const plan::StepCost cost = plan::cost_of(plan, step, sizes);
    table.add({std::exchange(first, false) ? title : "", std::to_string(i), step.op,
               step.type.str(), plan::launched_by(plan, step, sizes).variant,
               operations_text(cost.operations), bytes_cell(cost.weight_bytes),
               bytes_cell(cost.activation_bytes), why_text(step)});
  }
}

/// Steps that run for these sizes.
std::size_t launches_of(const plan::Plan& plan, const ir::Bindings& sizes) {
  return static_cast<std::size_t>(std::ranges::count_if(
      plan.steps, [&](const plan::Step& step) { return plan::runs(step, sizes); }));
}

}  // namespace

std::string FoldedSection::same_title() const {
  if (same.empty()) return "";
  if (same.size() == 1) return fmt::format("{} as {}", same.front().title, first.title);
  const auto number = [](const plan::Section& s) { return s.title.substr(s.title.find(' ') + 1); };
  return fmt::format("layers {} to {} as {}", number(same.front()), number(same.back()),
                     first.title);
}

std::vector<FoldedSection> folded_sections(const plan::Plan& plan) {
  std::vector<FoldedSection> folded;
  for (plan::Section& section : plan::sections_of(plan)) {
    if (!folded.empty() && plan::same_launches(plan, folded.back().first, section))
      folded.back().same.push_back(std::move(section));
    else
      folded.push_back({std::move(section), {}});
  }
  return folded;
}

std::string report_text(const runtime::Session& session, BatchSize size) {
  const plan::Plan& plan = session.plan();
  const ir::Bindings sizes = plan::sizes_of_batch(plan, size.batch, size.seq);
  Table table({"part", ">", "op", "type", "variant", ">arithmetic", ">weights", ">activations",
               "why not faster"});
  for (const FoldedSection& folded : folded_sections(plan)) {
    add_rows(table, session, folded.first, folded.first.title, sizes);
    if (!folded.same.empty()) table.add({folded.same_title(), "", "", "", "", "", "", "", ""});
  }
  std::map<std::pair<std::string, std::string>, int> totals;
  for (const plan::Step& step : plan.steps)
    totals[{step.op, step.type.str()}] += plan::runs(step, sizes);
  Table sums({"op", "type", ">launches"});
  for (const auto& [key, count] : totals) sums.add({key.first, key.second, std::to_string(count)});
  std::string text =
      fmt::format("{}\n{}\n{}", table.str(), sums.str(),
                  counted(static_cast<std::int64_t>(launches_of(plan, sizes)), "launches"));
  if (const int merged = plan::merged_steps(plan))
    text += fmt::format(", {} of them merged", merged);
  text += "\n";
  if (!plan.why_no_persistent_kernel.empty())
    text += fmt::format("launches are not merged: {}\n", plan.why_no_persistent_kernel);
  if (const NodeAccount a = account_of(session); !a.nodes.empty())
    text += fmt::format(
        "{} in the file: {} in launches, {}, {}, {}, {} absorbed by others; none runs on the "
        "host\n",
        counted(std::ssize(a.nodes), "nodes"), a.counts[0], counted(a.counts[1], "views"),
        counted(a.counts[2], "constants"), counted(a.counts[3], "sizes"), a.counts[4]);
  if (!plan.padding_reader.empty())
    text += fmt::format("padding is kept: {} reads padding rows\n", plan.padding_reader);
  if (!plan.tuning_note.empty()) text += plan.tuning_note + "\n";
  const runtime::LoadTimes& times = session.load_times();
  text += fmt::format(
      "loaded in {:.0f} ms: {:.0f} to parse, {:.0f} in passes, {:.0f} waiting for the device, "
      "{:.0f} for programs, {:.0f} to plan and prepack weights\n",
      times.total(), times.parse, times.passes, times.device, times.programs, times.plan);
  return text;
}

ordered_json load_times_json(const runtime::LoadTimes& times) {
  return {{"parse", times.parse},       {"passes", times.passes}, {"device", times.device},
          {"programs", times.programs}, {"plan", times.plan},     {"total", times.total()}};
}

ordered_json report_json(const runtime::Session& session, BatchSize size) {
  const plan::Plan& plan = session.plan();
  const ir::Bindings sizes = plan::sizes_of_batch(plan, size.batch, size.seq);
  std::vector<std::string> layer_of(plan.steps.size());
  ordered_json layers = ordered_json::array();
  for (const plan::Section& section : plan::sections_of(plan)) {
    for (const std::size_t i : section.steps) layer_of[i] = section.title;
    layers.push_back({{"name", section.title}, {"launches", section.steps}});
  }
  ordered_json ops = ordered_json::array();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    const plan::StepCost cost = plan::cost_of(plan, step, sizes);
    const plan::Launched launched = plan::launched_by(plan, step, sizes);
    ops.push_back({{"name", step.name},
                   {"op", step.op},
                   {"type", step.type.str()},
                   {"variant", launched.variant},
                   {"kernel", launched.program},
                   {"layer", layer_of[i]},
                   {"operations", cost.operations},
                   {"weight_bytes", cost.weight_bytes},
                   {"activation_bytes", cost.activation_bytes},
                   {"why_not_faster", step.why_not_faster},
                   {"tuned", tuned_json(step)},
                   {"predicted", predicted_json(step)},
                   {"source_nodes", step.sources}});
    if (!plan::runs(step, sizes)) ops.back()["runs"] = false;
  }
  const NodeAccount account = account_of(session);
  ordered_json source_nodes = {{"total", account.nodes.size()}};
  for (std::size_t i = 0; i < account.counts.size(); ++i)
    source_nodes[kNodeStatuses[i].key] = account.counts[i];
  source_nodes["absorbed_by"] = account.absorbed_by;
  return {{"path", session.path().string()},
          {"device", session.context().info().name},
          {"precision", plan::precision_of(plan).str()},
          {"inputs", ports_json(session.inputs())},
          {"outputs", ports_json(session.outputs())},
          {"ops", std::move(ops)},
          {"layers", std::move(layers)},
          {"launches", launches_of(plan, sizes)},
          {"merged_steps", plan::merged_steps(plan)},
          {"why_not_merged", plan.why_no_persistent_kernel},
          {"batch", size.batch},
          {"seq", size.seq},
          {"arena_bytes", session.arena_bytes(input_sizes(session, size))},
          {"load_ms", load_times_json(session.load_times())},
          {"source_nodes", std::move(source_nodes)},
          {"nodes", account.nodes},
          {"padding_reader", plan.padding_reader},
          {"host_work", plan::host_work(plan)},
          {"notes", plan.notes},
          {"tuning_note", plan.tuning_note},
          {"why_not_int8", plan::why_not_int8(plan)}};
}

}  // namespace bertcl::tools
