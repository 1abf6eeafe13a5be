// SPDX-License-Identifier: Apache-2.0
// bertcl verify: compares a model's outputs with those of another program.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/context_future.hpp"
#include "support/option_checks.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/options/model_options.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"
#include "tools/verify/golden.hpp"
#include "tools/verify/reference_check.hpp"
#include "tools/verify/verify_folder.hpp"

namespace bertcl::tools {
namespace {

// Default tolerances, as shares of the largest value of an output. Quantized steps may differ by
// one at ties of rounding, which the layers after them spread: 2 % of the range for int8 models.
constexpr double kFloatShare = 1e-3;
constexpr double kIntegerShare = 2e-2;
constexpr double kSyntheticShare = 0.1;  // of synthetic tokens, as at the first load of a model

struct VerifyOptions : ModelOptions {
  std::string model;
  std::vector<std::string> goldens;
  bool self = false;     // against its own reference kernels, in place of goldens
  std::string folder;    // every model below it, in place of model and goldens
  std::string expected;  // table of what is expected of them
  std::optional<double> relative, absolute;
};

Comparison verify_golden(runtime::Session& session, const std::string& path,
                         const Tolerance& tolerance) {
  Comparison comparison{path, "pass", {}};
  try {
    const Golden golden = load_golden(path, session.inputs(), session.outputs());
    const runtime::Tensors found = session.run(golden.inputs);
    comparison.difference = compare_outputs(found, golden, tolerance);
    if (!comparison.difference.agrees) comparison.status = "fail";
    std::string& message = comparison.difference.message;
    for (const auto& [name, tensor] : found)
      if (!golden.outputs.contains(name))
        message += fmt::format("{}{} is not compared", message.empty() ? "" : "; ", name);
  } catch (const std::exception& error) {
    comparison.status = "error";
    comparison.difference.message = error.what();
  }
  return comparison;
}

/// The model, or the status "refused" for each golden.
std::optional<runtime::Session> load_or_refuse(const VerifyOptions& options,
                                               const std::vector<std::string>& goldens,
                                               std::vector<Comparison>& comparisons) {
  const auto context = opencl::ContextFuture::open(options.device);
  // Goldens hold what the graph gives for rows of padding too, so these are computed as well.
  VerifyOptions padded = options;
  padded.keep_padding = true;
  try {
    return load_model(padded.model, padded, context);
  } catch (const Error& refusal) {
    context.get();  // its errors are not refusals
    for (const std::string& path : goldens)
      comparisons.push_back({path, "refused", {.message = refusal.what()}});
    return std::nullopt;
  }
}

Tolerance tolerance_for(const runtime::Session& session, const VerifyOptions& options) {
  Tolerance tolerance;
  const bool int8 = plan::computes_in(session.plan(), plan::Arithmetic::Kind::int8);
  tolerance.share = !int8 ? kFloatShare : options.self ? kSyntheticShare : kIntegerShare;
  tolerance.relative = options.relative.value_or(tolerance.relative);
  tolerance.absolute = options.absolute;
  return tolerance;
}

std::string figure(const Comparison& comparison, double value) {
  return comparison.compared() ? fmt::format("{:.3g}", value) : "";
}

Table table_of(const std::string& head, const std::vector<Comparison>& comparisons) {
  Table table({head, "status", ">largest difference", ">relative", ""});
  for (const Comparison& one : comparisons)
    table.add({one.name, one.status, figure(one, one.difference.max_abs),
               figure(one, one.difference.max_rel), one.difference.message});
  return table;
}

/// An object for each, with its name by `key`.
nlohmann::ordered_json list_json(const char* key, const std::vector<Comparison>& comparisons) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Comparison& one : comparisons) {
    const auto number = [&](double value) {
      return one.compared() && std::isfinite(value) ? nlohmann::ordered_json(value)
                                                    : nlohmann::ordered_json();
    };
    list.push_back({{key, one.name},
                    {"status", one.status},
                    {"max_abs", number(one.difference.max_abs)},
                    {"max_rel", number(one.difference.max_rel)},
                    {"message", one.difference.message}});
  }
  return list;
}

int run_verify(const VerifyOptions& options) {
  std::vector<std::string> goldens;
  for (const std::string& path : options.goldens) {
    for (const auto& set : expand_golden(path)) goldens.push_back(set.string());
  }
  std::vector<Comparison> comparisons;
  if (auto session = load_or_refuse(options, goldens, comparisons)) {
    if (!meets_requirement(*session, options)) return kCheckFailed;
    const Tolerance tolerance = tolerance_for(*session, options);
    for (const std::string& path : goldens)
      comparisons.push_back(verify_golden(*session, path, tolerance));
  }
  if (options.prints_text()) print_text("{}", table_of("golden", comparisons).str());
  write_report(options, opencl::select_device(options.device),
               {{"path", options.model}, {"files", list_json("golden", comparisons)}});

  const auto first = [&](std::initializer_list<std::string> states) {
    return std::ranges::find_if(comparisons, [&](const Comparison& comparison) {
      return std::ranges::find(states, comparison.status) != states.end();
    });
  };
  if (const auto bad = first({"refused", "error"}); bad != comparisons.end()) {
    const std::string& message = bad->difference.message;
    const bool names = bad->status == "refused" || message.find(bad->name) != std::string::npos;
    throw Error(names ? message : bad->name + ": " + message);
  }
  return first({"fail"}) == comparisons.end() ? kOk : kCheckFailed;
}

int run_reference_check(const VerifyOptions& options) {
  const auto context = opencl::ContextFuture::open(options.device);
  runtime::Session session = load_model(options.model, options, context);
  if (!meets_requirement(session, options)) return kCheckFailed;
  runtime::SessionOptions plain = reference_options(to_session_options(options));
  plain.context = context;
  runtime::Session reference = load_model(options.model, plain);
  const auto checks = compare_with_reference(session, reference, tolerance_for(session, options));
  std::vector<Comparison> comparisons;
  for (const auto& [tokens, difference] : checks)
    comparisons.push_back(
        {std::to_string(tokens), difference.agrees ? "pass" : "fail", difference});
  nlohmann::ordered_json sequences = list_json("tokens", comparisons);
  for (std::size_t i = 0; i < checks.size(); ++i) sequences[i]["tokens"] = checks[i].tokens;
  if (options.prints_text()) print_text("{}", table_of(">tokens", comparisons).str());
  const opencl::DeviceInfo& device = session.context().info();
  write_report(options, device, {{"path", options.model}, {"sequences", std::move(sequences)}});
  if (std::ranges::all_of(checks,
                          [](const ReferenceCheck& check) { return check.difference.agrees; }))
    return kOk;
  write_error(fmt::format(
      "{}: the kernels chosen for '{}' ({}) disagree with the reference kernels; disable variants "
      "one by one with --disable-kernels to find the faulty one (`bertcl inspect` lists them)",
      options.model, device.name, device.platform_version));
  return kCheckFailed;
}

/// Sums by the first part of the path, and over all: a row for each with its counts.
Table totals_of(const std::vector<Comparison>& comparisons) {
  const std::vector<std::string> states = {"pass", "reference", "refused", "fail"};
  using Counts = std::map<std::string, int>;
  std::map<std::string, Counts> folders;
  Counts total;
  for (const auto& [name, status, difference] : comparisons)
    for (Counts* counts : {&folders[name.substr(0, name.find('/'))], &total}) {
      ++(*counts)[status];
      ++(*counts)["all"];
    }
  Table table({"folder", ">pass", ">reference", ">refused", ">fail", ">all", ">runs and agrees"});
  const auto add = [&](const std::string& name, Counts& count) {
    std::vector<std::string> row = {name};
    for (const std::string& state : states) row.push_back(std::to_string(count[state]));
    row.push_back(std::to_string(count["all"]));
    row.push_back(
        fmt::format("{:.1f} %", 100.0 * (count["pass"] + count["reference"]) / count["all"]));
    table.add(std::move(row));
  };
  for (auto& [name, counts] : folders) add(name, counts);
  add("total", total);
  return table;
}

int run_verify_folder(const VerifyOptions& options) {
  if (!options.require.empty())
    throw Error("--require checks a single MODEL and cannot be combined with --all");
  Tolerance tolerance;
  tolerance.relative = options.relative.value_or(tolerance.relative);
  tolerance.absolute = options.absolute;
  const bool has_table = !options.expected.empty();
  const Expectations expected = has_table ? read_expectations(options.expected) : Expectations{};
  const std::vector<Comparison> comparisons =
      verify_folder(options.folder, options, tolerance, expected);
  Table table({"file", "status", ">relative difference", ""});
  constexpr std::size_t widest = 160;
  for (const Comparison& one : comparisons)
    table.add({one.name, one.status, figure(one, one.difference.max_rel),
               one.difference.message.substr(0, widest)});
  if (options.prints_text()) print_text("{}\n{}", table.str(), totals_of(comparisons).str());
  write_report(options, opencl::select_device(options.device),
               {{"path", options.folder}, {"files", list_json("file", comparisons)}});
  const std::vector<std::string> surprises =
      has_table ? unexpected(comparisons, expected) : std::vector<std::string>{};
  for (const std::string& sentence : surprises) write_error(sentence);
  const bool failed =
      std::ranges::any_of(comparisons, [](const Comparison& one) { return one.status == "fail"; });
  return (has_table ? surprises.empty() : !failed) ? kOk : kCheckFailed;
}

}  // namespace

void add_verify(CLI::App& program, Action& action) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = add_model_command(
      program, "verify",
      "Compare a model with stored outputs of another program\n\n"
      "A GOLDEN is a .npz file with arrays in__NAME and out__NAME, or an ONNX test_data_set folder "
      "(input_K.pb, output_K.pb). A value agrees if |found - expected| <= ATOL + RTOL * "
      "|expected|; 8-bit outputs may differ by 1, other integers must be equal. Relative "
      "differences are relative to the largest expected value. Exit code 1 if anything differs, 2 "
      "if the model is refused or a file cannot be read.\n\n"
      "--all FOLDER takes every model below a folder, each with FOLDER/goldens/A~b.npz or A/b.npz "
      "for A/b.onnx; one without either is compared with the plain definitions of its operators on "
      "the host (status \"reference\"). A refused model is not a failure there, unless the table "
      "of --expect says otherwise.\n\n"
      "--self compares the kernels chosen for this device with the reference kernels, on synthetic "
      "sequences of 1 to 129 tokens: exit code 1 means a faulty driver or kernel.",
      "bertcl verify model.onnx goldens/*.npz", *options);
  take_any_outputs(*command);
  CLI::Option* model = model_file(command->add_option("MODEL", options->model, "ONNX model"));
  CLI::Option* goldens =
      input_file(command->add_option("GOLDEN", options->goldens, "Files or folders"))
          ->type_name("");
  CLI::Option* self =
      command->add_flag("--self", options->self, "Compare with the model's own reference kernels")
          ->excludes(goldens);
  CLI::Option* all = command->add_option("--all", options->folder, "Every model below FOLDER")
                         ->type_name("FOLDER")
                         ->excludes(model)
                         ->excludes(goldens)
                         ->excludes(self);
  input_file(command->add_option(
                 "--expect", options->expected,
                 "With --all: lines FILE<tab>STATUS<tab>REASON<tab>MISMATCHES; exit code 1 if they "
                 "differ. MISMATCHES, for quantized models: fraction of an output's elements that "
                 "may exceed the tolerance, by at most 0.1 of its largest value; 0 to below 1"))
      ->type_name("TABLE")
      ->needs(all);
  not_negative(*command, "--rtol", options->relative, "Relative tolerance (0.001)", "RTOL");
  not_negative(*command, "--atol", options->absolute,
               "Absolute tolerance; by default 0.001 of the output's largest value; for int8 "
               "models 0.02, but 0.001 with --all (see MISMATCHES)",
               "ATOL");
  command->callback([options, &action] {
    if (options->folder.empty()) {
      if (options->model.empty()) throw CLI::RequiredError("MODEL");
      if (options->goldens.empty() && !options->self) throw CLI::RequiredError("GOLDEN or --self");
      action = [options] {
        return options->self ? run_reference_check(*options) : run_verify(*options);
      };
    } else {
      action = [options] { return run_verify_folder(*options); };
    }
  });
}

}  // namespace bertcl::tools
