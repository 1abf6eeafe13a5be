// SPDX-License-Identifier: Apache-2.0
// bertcl bench: latency and throughput of shapes, and where the time goes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/persistent_kernel.hpp"
#include "plan/report.hpp"
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "support/pending_file.hpp"
#include "tools/measure/kernel_profile.hpp"
#include "tools/measure/request_load.hpp"
#include "tools/measure/roofline.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/options/model_options.hpp"
#include "tools/report/bench_page.hpp"
#include "tools/report/model_report.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/progress.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

struct BenchOptions : ModelOptions {
  std::string model, html;
  std::vector<int> batches, seqs;
  std::optional<std::int64_t> ids;
  LoadOptions load;
  std::optional<int> profiled;
  int threads = 0;
};

/// What was measured at one shape.
struct BenchRow {
  BatchSize size;
  LoadResult load;
  std::vector<StepTime> steps;      ///< empty: not asked for
  std::vector<KernelTime> kernels;  ///< these summed up

  double sequences_per_second() const {
    return load.runs_per_second() * static_cast<double>(size.batch);
  }
  double tokens_per_second() const {
    return sequences_per_second() * static_cast<double>(size.seq);
  }
};

/// Every batch with every sequence length; what the model fixes where none is asked for.
std::vector<BatchSize> shapes_of(const runtime::Session& session, const BenchOptions& options) {
  const auto choices = [](const std::vector<int>& asked) {
    std::vector<std::optional<int>> all(asked.begin(), asked.end());
    if (all.empty()) all.emplace_back();
    return all;
  };
  std::vector<BatchSize> shapes;
  for (const auto batch : choices(options.batches))
    for (const auto seq : choices(options.seqs)) shapes.push_back(batch_size(session, batch, seq));
  return shapes;
}

/// Random token ids are below this.
std::int64_t bound_of_ids(const runtime::Session& session, const BenchOptions& options) {
  constexpr std::int64_t default_value = 20000;
  const std::int64_t rows = session.plan().word_rows;
  return options.ids.value_or(rows > 0 ? std::min(rows, default_value) : default_value);
}

BenchRow measure_inputs(runtime::Session& session, const runtime::Tensors& inputs, BatchSize size,
                        const BenchOptions& options, int profiled) {
  BenchRow row{size, {}, {}, {}};
  {
    Progress progress("bench", "runs");
    row.load = measure_load(
        [&] { session.run(inputs); }, options.load,
        [&](std::size_t done, std::size_t of) { progress.update(done, of == 0 ? done : of); });
  }
  if (profiled > 0) {
    row.steps = profile_steps(session, inputs, size.batch, size.seq, profiled);
    row.kernels = sum_kernels(row.steps);
  }
  return row;
}

BenchRow measure_shape(runtime::Session& session, BatchSize size, const BenchOptions& options,
                       int profiled) {
  const std::int64_t ids = bound_of_ids(session, options);
  try {
    return measure_inputs(session, random_inputs(session, size, ids), size, options, profiled);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::invalid_argument || session.plan().error_constant < 0) throw;
    fail("{}; random token ids are below {} (--ids)", e.what(), ids);
  }
}

std::string streams_text(const BenchOptions& options) {
  return options.load.streams == 1 ? "" : fmt::format(" in {} streams", options.load.streams);
}

void print_kernels(const BenchRow& row, const runtime::Session& session) {
  if (row.kernels.empty()) return;
  print_text("\n{}", kernel_table(row.kernels));
  if (const int merged = plan::merged_steps(session.plan()))
    print_text(
        "\nLatency was measured with {} steps in merged launches, the table with one launch per "
        "step.\n",
        merged);
}

void print_row(const BenchRow& row, const runtime::Session& session, const BenchOptions& options) {
  const LoadResult& load = row.load;
  print_text(
      "{}{}, latency in ms: min {:.3f}, p50 {:.3f}, p95 {:.3f}, p99 {:.3f}, "
      "mean {:.3f}\n",
      counted(std::ssize(load.latencies), "runs"), streams_text(options), load.latencies.front(),
      load.percentile(50), load.percentile(95), load.percentile(99), load.mean());
  print_text("{:.1f} sequences/s, {} tokens/s\n", row.sequences_per_second(),
             grouped(std::llround(row.tokens_per_second())));
  print_text("loaded in {:.0f} ms, first run {:.1f} ms\n", session.load_times().total(),
             load.first_ms);
  print_kernels(row, session);
}

void print_rows(const std::vector<BenchRow>& rows, const runtime::Session& session,
                const BenchOptions& options) {
  Table table({">batch", ">seq", ">runs", ">p50 ms", ">p95 ms", ">p99 ms", ">first ms",
               ">sequences/s", ">tokens/s"});
  for (const BenchRow& row : rows)
    table.add(
        {std::to_string(row.size.batch), std::to_string(row.size.seq),
         std::to_string(row.load.latencies.size()), fmt::format("{:.3f}", row.load.percentile(50)),
         fmt::format("{:.3f}", row.load.percentile(95)),
         fmt::format("{:.3f}", row.load.percentile(99)), fmt::format("{:.1f}", row.load.first_ms),
         fmt::format("{:.1f}", row.sequences_per_second()),
         grouped(std::llround(row.tokens_per_second()))});
  print_text("{}loaded in {:.0f} ms", table.str(), session.load_times().total());
  if (options.load.streams > 1) print_text(", {} streams", options.load.streams);
  print_text("\n");
  for (const BenchRow& row : rows) {
    if (row.kernels.empty()) continue;
    print_text("\nbatch {}, sequence {}\n", row.size.batch, row.size.seq);
    print_kernels(row, session);
  }
}

nlohmann::ordered_json to_json(const BenchRow& row) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const KernelTime& kernel : row.kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"op", kernel.op},
                       {"type", kernel.type.str()},
                       {"variant", kernel.variant},
                       {"calls", kernel.calls},
                       {"ms", kernel.ms},
                       {"gops", kernel.gops()},
                       {"gbps", kernel.gbps()}});
  }
  const LoadResult& load = row.load;
  return {{"batch", row.size.batch},
          {"seq", row.size.seq},
          {"tokens", row.size.batch * row.size.seq},
          {"runs", load.latencies.size()},
          {"seconds", load.seconds},
          {"first_run_ms", load.first_ms},
          {"latency_ms",
           {{"min", load.latencies.front()},
            {"p50", load.percentile(50)},
            {"p95", load.percentile(95)},
            {"p99", load.percentile(99)},
            {"mean", load.mean()}}},
          {"sequences_per_second", row.sequences_per_second()},
          {"tokens_per_second", row.tokens_per_second()},
          {"kernels", std::move(kernels)}};
}

/// Adds the peaks of the device and the roofline to the report, and writes the page of its one row.
void write_page(const BenchOptions& options, const BenchRow& row, runtime::Session& session,
                nlohmann::ordered_json& report) {
  const Peaks peaks = measure_peaks(session.context());
  const std::vector<RooflineRow> roof = roofline(row.steps, peaks);
  nlohmann::ordered_json page = report;
  page.update(report.at("rows").at(0));
  page["device"] = session.context().info().name;
  report.update(to_json(roof, peaks));
  page.update(to_json(roof, peaks));
  write_file(options.html, bench_page(page, roof, peaks));
}

int run_bench(const BenchOptions& options) {
  if (options.threads > 0) {
    // Read by PoCL when its first device is opened.
    setenv("POCL_MAX_PTHREAD_COUNT", std::to_string(options.threads).c_str(), 1);
  }
  ModelOptions model_options = options;
  model_options.requests = options.load.streams;
  runtime::Session session = load_model(options.model, model_options);
  if (!meets_requirement(session, options)) return kCheckFailed;
  const std::vector<BatchSize> shapes = shapes_of(session, options);
  if (!options.html.empty() && shapes.size() > 1)
    throw Error("--html shows one shape: give one --batch and one --seq");
  if (!options.html.empty() && options.profiled == 0)
    throw Error("--html shows the time of each kernel: leave out --profiled 0");
  const int profiled = options.profiled.value_or(shapes.size() == 1 ? 5 : 0);
  std::vector<BenchRow> rows;
  naming_model(options.model, [&] {
    // All sizes before any is measured, and before random ids fill the memory.
    for (const BatchSize& size : shapes) session.arena_bytes(input_sizes(session, size));
    for (const BatchSize& size : shapes)
      rows.push_back(measure_shape(session, size, options, profiled));
  });

  const std::string precision = plan::precision_of(session.plan()).str();
  if (options.prints_text()) {
    const std::string device = session.context().info().name;
    if (rows.size() == 1) {
      print_text("{} ({}), batch {}, sequence {}, on {}\n", options.model, precision,
                 rows[0].size.batch, rows[0].size.seq, device);
      print_row(rows[0], session, options);
    } else {
      print_text("{} ({}) on {}\n\n", options.model, precision, device);
      print_rows(rows, session, options);
    }
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BenchRow& row : rows) list.push_back(to_json(row));
  nlohmann::ordered_json report = {{"path", options.model},
                                   {"precision", precision},
                                   {"streams", options.load.streams},
                                   {"load_ms", load_times_json(session.load_times())},
                                   {"merged_steps", plan::merged_steps(session.plan())},
                                   {"rows", std::move(list)}};
  if (!options.html.empty()) write_page(options, rows[0], session, report);
  write_report(options, session.context().info(), report);
  return kOk;
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* command = add_model_command(
      program, "bench",
      "Measure the latency and throughput of a model, and the time of each kernel\n\n"
      "Runs the model on random token ids in sequences of full length. Latency is host time, "
      "including transfers of inputs and outputs. With --streams, that many threads share the "
      "session, each with one run at a time: throughput rises, and so does latency. The table of "
      "kernels comes from separate runs with device events and one launch per step, normalized to "
      "one run. GOP/s counts a multiply-add as two operations; GB/s counts each operand once.",
      "bertcl bench models/minilm-l6-squad/model.onnx --batch 1,8 --seq 128,384 --duration 5",
      *options);
  take_any_outputs(*command);
  model_file(command->add_option("MODEL", options->model, "ONNX model"))->required();
  const auto sizes = [&](const char* name, std::vector<int>& values, const char* help) {
    number_list(*command, name, values, help, 1, std::numeric_limits<int>::max(), "1 or more");
  };
  sizes("--batch", options->batches, "Batch sizes; by default 1, or the model's fixed one");
  sizes("--seq", options->seqs,
        "Sequence lengths; by default 128, or the model's fixed one. Every batch size is measured "
        "with every length");
  CLI::Option* runs =
      positive(*command, "--runs", options->load.runs, "Measured runs, of all streams together");
  positive(*command, "--duration", options->load.seconds,
           "Seconds to measure each shape for, in place of --runs", "S")
      ->excludes(runs);
  in_range(*command, "--streams", options->load.streams, 1, 1024,
           "Threads that run the model at the same time");
  not_negative(*command, "--warmup", options->load.warmup,
               "Warm-up runs of each stream, not measured; at least one run is always made");
  not_negative(*command, "--profiled", options->profiled,
               "Runs for the table of kernels; by default 5, or none for several shapes");
  positive(*command, "--ids", options->ids,
           "Random token ids are below this; by default 20000, or the vocabulary size if less");
  // PoCL makes as many, and ends the program where the system has no more.
  in_range(*command, "--threads", options->threads, 0, 4096, "CPU threads of PoCL; 0 is all");
  output_file(command->add_option("--html", options->html,
                                  "Write latency, kernels and their roofline as one HTML page; "
                                  "measures the peaks of the device for it"),
              OutputFileKind::report);
  command->callback([options, &action] { action = [options] { return run_bench(*options); }; });
}

}  // namespace bertcl::tools
