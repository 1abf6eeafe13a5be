// SPDX-License-Identifier: Apache-2.0
// bertcl inspect: what a model compiles to, which kernels run it, and why not faster ones.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "tools/model_options.hpp"
#include "tools/option_checks.hpp"
#include "tools/output.hpp"

namespace bertcl::tools {
namespace {

struct InspectOptions : ModelOptions {
  std::string model;
  bool dump_passes = false;
  std::optional<int> batch, seq;
};

void print_ports(const char* title, const std::vector<plan::Port>& ports) {
  fmt::print("{}\n", title);
  for (const plan::Port& port : ports) fmt::print("  {}: {}\n", port.name, ir::str(port.type));
}

void print_plan(const plan::Plan& plan) {
  Table table({">", "op", "type", "implementation", "value", "why not faster"});
  std::map<std::pair<std::string, std::string>, int> totals;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    std::string reason = step.why_not_faster;
    for (std::size_t at; (at = reason.find('\n')) != std::string::npos;)
      reason.replace(at, 1, "; ");
    table.add({std::to_string(i), step.op, step.type, step.implementation, step.name, reason});
    ++totals[{step.op, step.type}];
  }
  fmt::print("\n{}\n", table.str());
  Table sums({"op", "type", ">launches"});
  for (const auto& [key, count] : totals) {
    sums.add({key.first, key.second, std::to_string(count)});
  }
  fmt::print("{}\n{} launches\n", sums.str(), plan.steps.size());
}

nlohmann::ordered_json ports_json(const std::vector<plan::Port>& ports) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const plan::Port& port : ports) {
    nlohmann::ordered_json shape = nlohmann::ordered_json::array();
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

nlohmann::ordered_json to_json(const runtime::Session& session, const InspectOptions& options,
                               BatchSize size) {
  const plan::Plan& plan = session.plan();
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (const plan::Step& step : plan.steps) {
    ops.push_back({{"name", step.name},
                   {"op", step.op},
                   {"type", step.type},
                   {"implementation", step.implementation},
                   {"why_not_faster", step.why_not_faster},
                   {"source_nodes", step.sources}});
  }
  return {{"path", options.model},
          {"device", session.context().info().name},
          {"precision", precision_of(plan, options)},
          {"inputs", ports_json(session.inputs())},
          {"outputs", ports_json(session.outputs())},
          {"ops", std::move(ops)},
          {"launches", plan.steps.size()},
          {"batch", size.batch},
          {"seq", size.seq},
          {"arena_bytes", session.arena_bytes()},
          {"notes", plan.notes}};
}

int run_inspect(const InspectOptions& options) {
  runtime::SessionOptions session_options = to_session_options(options);
  if (options.dump_passes && options.prints_text()) {
    session_options.dump_passes = [](const std::string& pass, const std::string& graph) {
      fmt::print("== after {}\n{}\n", pass, graph);
    };
  }
  runtime::Session session = load_model(options.model, session_options);
  // The planner places the values of a batch when it is run; id 0 is in every table.
  const BatchSize size = batch_size(session, options.batch, options.seq);
  session.run(random_inputs(session, size, 1));

  const plan::Plan& plan = session.plan();
  if (options.prints_text()) {
    print_ports("inputs", session.inputs());
    print_ports("outputs", session.outputs());
    print_plan(plan);
    fmt::print("{} of arena for batch {}, sequence {}\n",
               bytes_text(static_cast<std::uint64_t>(session.arena_bytes())), size.batch, size.seq);
    if (!plan.notes.empty()) {
      fmt::print("\nquantized in the file, but run in float:\n  {}\n",
                 fmt::join(plan.notes, "\n  "));
    }
  }
  write_json(options.json, to_json(session, options, size));
  return meets_requirement(session, options) ? kOk : kCheckFailed;
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App* command = add_model_command(
      program, "inspect",
      "Show what a model compiles to and which kernel runs each operation\n\n"
      "For each launch: the operation, the type of its arithmetic, the implementation that was\n"
      "chosen on this device and why each faster one was not. Products that the file quantizes "
      "and\n"
      "that run in float are listed with the reason; --require int8 makes them an error.",
      "bertcl inspect int8.onnx --require int8", *options);
  command->add_option("MODEL", options->model, "ONNX model")->required()->type_name("");
  command->add_flag("--dump-passes", options->dump_passes,
                    "Print the graph after each compiler pass that changed it");
  positive(*command, "--batch", options->batch,
           "Batch for which memory is reported; 1, or as the model fixes it");
  positive(*command, "--seq", options->seq,
           "Sequence length for that; 128, or as the model fixes it");
  command->callback([options, &action] { action = [options] { return run_inspect(*options); }; });
}

}  // namespace bertcl::tools
