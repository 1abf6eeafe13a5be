// SPDX-License-Identifier: Apache-2.0
// bertcl inspect: what a model compiles to, which kernels run it, and why not faster ones.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ir/port.hpp"
#include "support/option_checks.hpp"
#include "support/pending_file.hpp"
#include "support/stopwatch.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/options/model_options.hpp"
#include "tools/report/model_report.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

struct InspectOptions : ModelOptions {
  std::string model;
  std::string html;
  bool dump_passes = false, run = false;
  std::optional<int> batch, seq;
};

void print_ports(const char* title, const std::vector<ir::Port>& ports) {
  print_text("{}\n", title);
  for (const ir::Port& port : ports) print_text("  {}: {}\n", port.name, ir::str(port.type));
}

int run_inspect(const InspectOptions& options) {
  runtime::SessionOptions session_options = to_session_options(options);
  session_options.follow_nodes = true;
  if (options.dump_passes && !options.prints_text())
    throw Error("--dump-passes and --json - both write to standard output; give --json a file");
  if (options.dump_passes) {
    session_options.dump_passes = [](const std::string& pass, const std::string& graph) {
      print_text("== after {}\n{}\n", pass, graph);
    };
  }
  runtime::Session session = load_model(options.model, session_options);
  const BatchSize size = batch_size(session, options.batch, options.seq);
  const std::int64_t arena_bytes =
      naming_model(options.model, [&] { return session.arena_bytes(input_sizes(session, size)); });
  std::optional<double> run_ms;
  if (options.run) {
    const runtime::Tensors inputs = random_inputs(session, size, 1);  // id 0 is in every table
    const Stopwatch clock;
    naming_model(options.model, [&] { return session.run(inputs); });
    run_ms = clock.milliseconds();
  }

  const plan::Plan& plan = session.plan();
  if (options.prints_text()) {
    print_ports("inputs", session.inputs());
    print_ports("outputs", session.outputs());
    print_text("\n{}", report_text(session, size));
    print_text("{} of arena for batch {}, sequence {}\n",
               bytes_text(static_cast<std::uint64_t>(arena_bytes)), size.batch, size.seq);
    if (run_ms) print_text("its first run took {}\n", duration_text(*run_ms / 1000));
    if (!plan.notes.empty()) {
      print_text("\nquantized in the file, but run in float:\n  {}\n",
                 fmt::join(plan.notes, "\n  "));
    }
  }
  if (!options.json.empty() || !options.html.empty()) {
    nlohmann::ordered_json report = report_json(session, size);
    if (run_ms) report["run_ms"] = *run_ms;
    if (!options.html.empty()) write_file(options.html, inspect_page(report, plan.steps));
    write_report(options, session.context().info(), report);
  }
  return meets_requirement(session, options) ? kOk : kCheckFailed;
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App* command = add_model_command(
      program, "inspect",
      "Show what a model compiles to and which kernel runs each operation\n\n"
      "For each launch: the operation, its arithmetic type, the variant chosen on this device, and "
      "why no faster one was. MatMuls that the file quantizes but that run in float are listed "
      "with the reason; --require int8 makes them an error.",
      "bertcl inspect int8.onnx --require int8", *options);
  take_any_outputs(*command);
  model_file(command->add_option("MODEL", options->model, "ONNX model"))->required();
  output_file(
      command->add_option("--html", options->html,
                          "Write the report as one HTML page: launches by layer, their cost, why "
                          "MatMuls run in float, and the status of each node of the file"),
      OutputFileKind::report);
  command->add_flag("--run", options->run, "Also run it once, on synthetic inputs");
  command->add_flag("--dump-passes", options->dump_passes,
                    "Print the graph after each compiler pass that changed it");
  positive(*command, "--batch", options->batch,
           "Batch size for memory and arithmetic; by default 1, or the model's fixed size");
  positive(*command, "--seq", options->seq,
           "Sequence length for memory and arithmetic; by default 128, or the model's fixed size");
  command->callback([options, &action] { action = [options] { return run_inspect(*options); }; });
}

}  // namespace bertcl::tools
