// SPDX-License-Identifier: Apache-2.0
// bertcl bench: latency and throughput of one shape, and where the time goes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "plan/persistent_kernel.hpp"
#include "support/stopwatch.hpp"
#include "tools/measure/kernel_profile.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/option_checks.hpp"
#include "tools/report/json_report.hpp"
#include "tools/report/model_report.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/progress.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

struct BenchOptions : ModelOptions {
  std::string model;
  std::optional<int> batch, seq;
  std::int64_t ids = 20000;
  int runs = 50, warmup = 5, profiled = 5, threads = 0;
};

/// Milliseconds of each run, host time: inputs to the device, kernels, outputs back.
std::vector<double> measure(runtime::Session& session, const runtime::Tensors& inputs,
                            const BenchOptions& options) {
  for (int i = 0; i < options.warmup; ++i) session.run(inputs);
  Progress progress("bench", "runs");
  std::vector<double> times;
  for (int i = 0; i < options.runs; ++i) {
    const Stopwatch clock;
    session.run(inputs);
    times.push_back(clock.milliseconds());
    progress.update(times.size(), static_cast<std::size_t>(options.runs));
  }
  std::sort(times.begin(), times.end());
  return times;
}

/// The smallest value that at least `percent` of the sorted values do not exceed.
double percentile(const std::vector<double>& sorted, double percent) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent / 100.0 * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

int run_bench(const BenchOptions& options) {
  if (options.threads > 0) {
    // Read by PoCL when its first device is opened.
    setenv("POCL_MAX_PTHREAD_COUNT", std::to_string(options.threads).c_str(), 1);
  }
  runtime::Session session = load_model(options.model, options);
  if (!meets_requirement(session, options)) return kCheckFailed;
  const BatchSize size = batch_size(session, options.batch, options.seq);
  const runtime::Tensors inputs = random_inputs(session, size, options.ids);
  const std::vector<double> times = measure(session, inputs, options);
  const std::vector<KernelTime> kernels =
      profile_kernels(session, inputs, size.batch, size.seq, options.profiled);

  const double mean =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  const double p50 = percentile(times, 50), p95 = percentile(times, 95);
  const double p99 = percentile(times, 99);
  const auto tokens = size.batch * size.seq;
  const double rate = static_cast<double>(tokens) / (p50 / 1000.0);
  const std::string device = session.context().info().name;
  const std::string precision = precision_of(session.plan(), options);

  if (options.prints_text()) {
    print_text("{} ({}), batch {}, sequence {}, on {}\n", options.model, precision, size.batch,
               size.seq, device);
    print_text(
        "latency of {} runs in ms: min {:.3f}, p50 {:.3f}, p95 {:.3f}, p99 {:.3f}, mean {:.3f}\n",
        times.size(), times.front(), p50, p95, p99, mean);
    print_text("{} tokens/s (at p50)\n\n{}", grouped(std::llround(rate)), kernel_table(kernels));
    if (const int merged = plan::merged_steps(session.plan()))
      print_text("\nLatency: {} steps in merged launches. Table: one launch per step.\n", merged);
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const KernelTime& kernel : kernels) {
    rows.push_back({{"name", kernel.name},
                    {"op", kernel.op},
                    {"type", kernel.type},
                    {"variant", kernel.variant},
                    {"calls", kernel.calls},
                    {"ms", kernel.ms},
                    {"gops", kernel.gops()},
                    {"gbps", kernel.gbps()}});
  }
  write_report(
      options, session.context().info(),
      {{"path", options.model},
       {"precision", precision},
       {"batch", size.batch},
       {"seq", size.seq},
       {"tokens", tokens},
       {"runs", options.runs},
       {"load_ms", load_times_json(session.load_times())},
       {"latency_ms",
        {{"min", times.front()}, {"p50", p50}, {"p95", p95}, {"p99", p99}, {"mean", mean}}},
       {"tokens_per_second", rate},
       {"kernels", std::move(rows)}});
  return kOk;
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* command = add_model_command(
      program, "bench",
      "Measure the latency and throughput of a model, and the time of each kernel\n\nRuns the "
      "model on random token ids in full-length sequences. Latency is host time "
      "including\ntransfers; the kernel table comes from separate runs with device events and one "
      "launch per\nstep, and shows one run. GOP/s counts a multiplication and an addition as two; "
      "GB/s counts\neach operand once.",
      "bertcl bench models/minilm-l6-squad/model.onnx --batch 8 --seq 128", *options);
  input_file(command->add_option("MODEL", options->model, "ONNX model"))->required()->type_name("");
  const auto number = [&](const char* name, auto& value, const char* text) {
    return positive(*command, name, value, text);
  };
  number("--batch", options->batch, "Sequences per batch; 1, or the model's fixed size");
  number("--seq", options->seq, "Tokens per sequence; 128, or the model's fixed size");
  number("--runs", options->runs, "Measured runs");
  not_negative(*command, "--warmup", options->warmup, "Warm-up runs");
  number("--profiled", options->profiled, "Runs for the kernel table");
  number("--ids", options->ids, "Random token ids are below this; at most the vocabulary size");
  not_negative(*command, "--threads", options->threads, "PoCL's CPU threads; 0 is all");
  command->callback([options, &action] { action = [options] { return run_bench(*options); }; });
}

}  // namespace bertcl::tools
