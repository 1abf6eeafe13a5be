// SPDX-License-Identifier: Apache-2.0
// bertcl tune: measures which variant of each GEMM of a model is the fastest on this
// device.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "plan/arithmetic.hpp"
#include "support/option_checks.hpp"
#include "tools/measure/tuner.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/options/model_options.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

using nlohmann::ordered_json;

struct TuneOptions : ModelOptions {
  std::string model;
  std::vector<std::int64_t> rows;  // none: default_rows()
  double seconds = 60;
};

/// Tokens of a sequence, and of batches as large as suit the device.
std::vector<std::int64_t> default_rows(const opencl::DeviceInfo& device) {
  if (device.is_cpu()) return {32, 128, 512, 2048};
  return {32, 128, 512, 2048, 12288};
}

/// As tuning files have it: fp16 also where the kernel only reads weights in it.
plan::Arithmetic tuned_type(const plan::Step& step) {
  using plan::Arithmetic;
  using Kind = Arithmetic::Kind;
  const Kind kind = step.type.kind();
  return kind == Kind::int8   ? Arithmetic::int8
         : kind == Kind::fp16 ? Arithmetic::fp16
                              : Arithmetic::fp32;
}

/// The GEMMs of a plan that can be tuned, each once.
std::vector<TunedStep> gemms_of(const plan::Plan& plan) {
  std::vector<TunedStep> gemms;
  for (const plan::Step& step : plan.steps) {
    if (!step.tunable || step.tunable->variants.size() < 2) continue;
    const bool known = std::ranges::any_of(gemms, [&](const TunedStep& p) {
      return p.op == step.op && p.gemm.n == step.tunable->n && p.gemm.k == step.tunable->k;
    });
    if (!known) gemms.push_back({step.op, tuned_type(step), *step.tunable});
  }
  return gemms;
}

ordered_json measured_json(const Measured& m) {
  return {{"variant", m.variant},
          {"layout", m.layout},
          {"right", m.wrong.empty()},
          {"wrong", m.wrong},
          {"us", m.us}};
}

std::string times_text(const std::vector<double>& us) {
  std::vector<std::string> cells;
  for (const double t : us) cells.push_back(fmt::format("{:.4g}", t));
  return fmt::format("{}", fmt::join(cells, " / "));
}

/// Each variant once, with the rows from which it is taken: "dot4_32x64, dot4 from 512
/// rows".
std::string chosen_text(const std::vector<plan::TunedRows>& by_rows) {
  std::string text, last;
  for (const plan::TunedRows& row : by_rows) {
    if (row.variant == last) continue;
    text += last.empty() ? row.variant : fmt::format(", {} from {} rows", row.variant, row.rows);
    last = row.variant;
  }
  return text;
}

using Clock = std::chrono::steady_clock;

TuneSettings settings_of(const TuneOptions& options,
                         const std::shared_ptr<opencl::Context>& context, Clock::time_point start) {
  TuneSettings settings;
  settings.rows = options.rows.empty() ? default_rows(context->info()) : options.rows;
  std::ranges::sort(settings.rows);
  settings.rows.erase(std::unique(settings.rows.begin(), settings.rows.end()), settings.rows.end());
  settings.session = to_session_options(options);
  settings.session.context = context;
  settings.session.tuning = std::make_shared<const plan::Tuning>();
  settings.deadline = start + std::chrono::milliseconds(
                                  static_cast<std::int64_t>(1e3 * std::min(options.seconds, 1e9)));
  return settings;
}

/// The file for the result. Throws Error, before any work, if it cannot be written.
std::filesystem::path writable_tuning_file(const opencl::Context& context) {
  std::filesystem::path file = plan::tuning_file(context);
  if (file.empty())
    throw Error(
        "cannot store the result: BERTCL_TUNING or BERTCL_CACHE is off, or HOME is not set; "
        "BERTCL_TUNING=FILE names a file");
  plan::check_tuning_file(file);
  std::error_code ignored;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  check_writable(file);
  std::string note;
  plan::stored_tuning(context, note);
  if (!note.empty() && std::filesystem::exists(file, ignored)) write_error(note);
  return file;
}

struct StepResult {
  TunedStep step;
  TuneResult result;
};

/// In order; stops after the first that reaches the time limit.
std::vector<StepResult> tune_all(const std::vector<TunedStep>& gemms,
                                 const TuneSettings& settings) {
  std::vector<StepResult> tuned;
  for (const TunedStep& step : gemms) {
    tuned.push_back({step, tune_gemm(step, settings)});
    const TuneResult& result = tuned.back().result;
    for (const Measured& m : result.variants)
      if (!m.wrong.empty())
        warn("{} for {} {}x{} computes wrong results and was skipped: {}", m.variant, step.op,
             step.gemm.k, step.gemm.n, m.wrong);
    if (!result.complete) break;
  }
  return tuned;
}

void store_tuning(const std::filesystem::path& file, const opencl::Context& context,
                  const std::vector<StepResult>& tuned) {
  // Read now: another process may have stored its choices meanwhile.
  std::string ignored;
  plan::Tuning tuning = plan::stored_tuning(context, ignored);
  for (const auto& [step, result] : tuned) {
    // What was measured in part says nothing; what is known from before stays then.
    if (!result.complete) continue;
    tuning.erase(step.op, step.type.str(), step.gemm.n, step.gemm.k);
    if (result.chosen) tuning.put(*result.chosen);
  }
  tuning.device = context.info().name;
  tuning.driver = context.info().driver;
  tuning.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  plan::write_tuning(file, tuning);
}

Table tuning_table(const std::vector<StepResult>& tuned) {
  Table table({"op", "type", ">k", ">n", "default", ">us", "fastest", ">us", ">gain"});
  for (const auto& [step, result] : tuned) {
    std::vector<double> us;
    if (result.chosen)
      for (const plan::TunedRows& row : result.chosen->by_rows) us.push_back(row.us);
    table.add({step.op, step.type.str(), std::to_string(step.gemm.k), std::to_string(step.gemm.n),
               result.standard.variant, times_text(result.standard.us),
               result.chosen     ? chosen_text(result.chosen->by_rows)
               : result.complete ? "the default"
                                 : "not measured",
               times_text(us), result.chosen ? fmt::format("{:.2f}", result.chosen->gain()) : ""});
  }
  return table;
}

ordered_json to_json(const StepResult& tuned) {
  const auto& [step, result] = tuned;
  ordered_json variants = ordered_json::array(), chosen = ordered_json::array();
  for (const Measured& m : result.variants) variants.push_back(measured_json(m));
  if (result.chosen)
    for (const plan::TunedRows& row : result.chosen->by_rows)
      chosen.push_back({{"rows", row.rows},
                        {"variant", row.variant},
                        {"us", row.us},
                        {"default_us", row.default_us}});
  return {{"op", step.op},
          {"type", step.type.str()},
          {"n", step.gemm.n},
          {"k", step.gemm.k},
          {"default", measured_json(result.standard)},
          {"variants", std::move(variants)},
          {"chosen", std::move(chosen)},
          {"gain", result.chosen ? result.chosen->gain() : 1.0},
          {"complete", result.complete}};
}

int run_tune(const TuneOptions& options) {
  const std::shared_ptr<opencl::Context> context = opencl::Context::create(options.device);
  const Clock::time_point start = Clock::now();
  const TuneSettings settings = settings_of(options, context, start);
  const std::filesystem::path file = writable_tuning_file(*context);
  std::vector<TunedStep> gemms;
  {
    const runtime::Session session = load_model(options.model, settings.session);
    if (!meets_requirement(session, options)) return kCheckFailed;
    gemms = gemms_of(session.plan());
  }
  check_memory(gemms, settings.rows.back(), context->info());
  const std::vector<StepResult> tuned = tune_all(gemms, settings);
  store_tuning(file, *context, tuned);

  const bool complete = tuned.empty() || tuned.back().result.complete;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (options.prints_text()) {
    print_text("{} GEMMs on {}; times in us for {} rows\n\n{}\n", gemms.size(),
               context->info().name, fmt::join(settings.rows, " / "), tuning_table(tuned).str());
    print_text("{} in {}{}\n", file.string(), duration_text(seconds),
               complete ? "" : "; stopped at the time limit (raise --seconds)");
  }
  std::ptrdiff_t wrong = 0;
  ordered_json rows = ordered_json::array();
  for (const StepResult& gemm : tuned) {
    wrong += std::ranges::count_if(gemm.result.variants,
                                   [](const Measured& m) { return !m.wrong.empty(); });
    rows.push_back(to_json(gemm));
  }
  write_report(options, context->info(),
               {{"path", options.model},
                {"file", file.string()},
                {"rows", settings.rows},
                {"seconds", seconds},
                {"complete", complete},
                {"wrong", wrong},
                {"gemms", std::move(rows)}});
  return kOk;
}

}  // namespace

void add_tune(CLI::App& program, Action& action) {
  const auto options = std::make_shared<TuneOptions>();
  CLI::App* command = add_model_command(
      program, "tune",
      "Find the fastest variant of each GEMM of a model on this device\n\n"
      "By default variants are chosen by device capabilities, which is right for most. Tuning "
      "checks each variant that can run against the reference and measures it at several numbers "
      "of rows (tokens of a batch). Improvements are stored for this device and driver and used by "
      "all commands; `bertcl inspect` shows them. BERTCL_TUNING=off ignores them.",
      "bertcl tune int8.onnx --seconds 30", *options);
  take_any_outputs(*command);
  // A GEMM alone has no padding, and what is profiled is launched one by one.
  for (const char* option : {"--keep-padding", "--command-buffer"})
    command->remove_option(command->get_option(option));
  model_file(command->add_option("MODEL", options->model, "ONNX model"))->required();
  number_list(*command, "--rows", options->rows,
              "Numbers of rows to measure; by default 32,128,512,2048, on GPUs also 12288", 1,
              1 << 20, "1 to 1048576");
  positive(*command, "--seconds", options->seconds, "Time budget");
  command->callback([options, &action] { action = [options] { return run_tune(*options); }; });
}

}  // namespace bertcl::tools
