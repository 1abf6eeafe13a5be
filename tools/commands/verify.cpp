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
#include "tools/options/file_options.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/option_checks.hpp"
#include "tools/report/json_report.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"
#include "tools/verify/golden.hpp"
#include "tools/verify/self_check.hpp"
#include "tools/verify/verify_folder.hpp"

namespace bertcl::tools {
namespace {

// Default tolerances, as shares of the largest value of an output. Quantized steps may differ by
// one at ties of rounding, which the layers after them spread: 2 % of the range for int8 models.
constexpr double kFloatShare = 1e-3;
constexpr double kIntegerShare = 2e-2;
constexpr double kMadeUpShare = 0.1;  // of made-up tokens, as at the first load of a model

struct VerifyOptions : ModelOptions {
  std::string model;
  std::vector<std::string> goldens;
  bool self = false;     // against its own reference kernels, in place of goldens
  std::string folder;    // every model below it, in place of model and goldens
  std::string expected;  // table of what is expected of them
  std::optional<double> relative, absolute;
};

struct Verdict {
  std::string golden;
  std::string status;  // pass, fail, refused, error
  double max_abs = 0.0, max_rel = 0.0;
  std::string message;

  bool compared() const { return status == "pass" || status == "fail"; }
};

Verdict verify_golden(runtime::Session& session, const std::string& path,
                      const Tolerance& tolerance) {
  Verdict verdict{path, "pass", 0.0, 0.0, ""};
  try {
    const Golden golden = load_golden(path, session.inputs(), session.outputs());
    const Difference difference = compare_outputs(session.run(golden.inputs), golden, tolerance);
    verdict.status = difference.agrees ? "pass" : "fail";
    verdict.max_abs = difference.max_abs;
    verdict.max_rel = difference.max_rel;
    verdict.message = difference.message;
  } catch (const std::exception& error) {
    verdict.status = "error";
    verdict.message = error.what();
  }
  return verdict;
}

/// The model, or the verdict "refused" for each golden.
std::optional<runtime::Session> load_or_refuse(const VerifyOptions& options,
                                               const std::vector<std::string>& goldens,
                                               std::vector<Verdict>& verdicts) {
  const auto context = opencl::ContextFuture::open(options.device);
  // Goldens hold what the graph gives for rows of padding too, so these are computed as well.
  VerifyOptions padded = options;
  padded.keep_padding = true;
  try {
    return load_model(padded.model, padded, context);
  } catch (const Error& refusal) {
    context.get();  // its errors are not refusals
    for (const std::string& path : goldens) {
      verdicts.push_back({path, "refused", 0.0, 0.0, refusal.what()});
    }
    return std::nullopt;
  }
}

Tolerance tolerance_for(const runtime::Session& session, const VerifyOptions& options) {
  Tolerance tolerance;
  const bool int8 = precision_of(session.plan(), options) == "int8";
  tolerance.share = !int8 ? kFloatShare : options.self ? kMadeUpShare : kIntegerShare;
  tolerance.relative = options.relative.value_or(tolerance.relative);
  tolerance.absolute = options.absolute;
  return tolerance;
}

std::vector<Verdict> verify_all(runtime::Session& session, const VerifyOptions& options,
                                const std::vector<std::string>& goldens) {
  std::vector<Verdict> verdicts;
  const Tolerance tolerance = tolerance_for(session, options);
  for (const std::string& path : goldens) {
    verdicts.push_back(verify_golden(session, path, tolerance));
  }
  return verdicts;
}

nlohmann::ordered_json number_if(bool compared, double value) {
  return compared && std::isfinite(value) ? nlohmann::ordered_json(value)
                                          : nlohmann::ordered_json();
}
nlohmann::ordered_json number(const Verdict& verdict, double value) {
  return number_if(verdict.compared(), value);
}

int run_verify(const VerifyOptions& options) {
  std::vector<std::string> goldens;
  for (const std::string& path : options.goldens) {
    for (const auto& set : expand_golden(path)) goldens.push_back(set.string());
  }
  std::vector<Verdict> verdicts;
  if (auto session = load_or_refuse(options, goldens, verdicts)) {
    if (!meets_requirement(*session, options)) return kCheckFailed;
    verdicts = verify_all(*session, options, goldens);
  }
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  Table table({"golden", "status", ">largest difference", ">relative", ""});
  for (const Verdict& verdict : verdicts) {
    files.push_back({{"golden", verdict.golden},
                     {"status", verdict.status},
                     {"max_abs", number(verdict, verdict.max_abs)},
                     {"max_rel", number(verdict, verdict.max_rel)},
                     {"message", verdict.message}});
    const auto figure = [&](double value) {
      return verdict.compared() ? fmt::format("{:.3g}", value) : std::string();
    };
    table.add({verdict.golden, verdict.status, figure(verdict.max_abs), figure(verdict.max_rel),
               verdict.message});
  }
  if (options.prints_text()) print_text("{}", table.str());
  write_report(options, opencl::select_device(options.device),
               {{"path", options.model}, {"files", std::move(files)}});

  const auto first = [&](std::initializer_list<std::string> states) {
    return std::ranges::find_if(verdicts, [&](const Verdict& verdict) {
      return std::ranges::find(states, verdict.status) != states.end();
    });
  };
  if (const auto bad = first({"refused", "error"}); bad != verdicts.end()) {
    const bool names =
        bad->status == "refused" || bad->message.find(bad->golden) != std::string::npos;
    throw Error(names ? bad->message : bad->golden + ": " + bad->message);
  }
  return first({"fail"}) == verdicts.end() ? kOk : kCheckFailed;
}

int run_self_check(const VerifyOptions& options) {
  const auto context = opencl::ContextFuture::open(options.device);
  runtime::Session session = load_model(options.model, options, context);
  if (!meets_requirement(session, options)) return kCheckFailed;
  runtime::SessionOptions plain = reference_options(to_session_options(options));
  plain.context = context;
  runtime::Session reference = load_model(options.model, plain);
  const auto checks = self_check(session, reference, tolerance_for(session, options));
  nlohmann::ordered_json sequences = nlohmann::ordered_json::array();
  Table table({">tokens", "status", ">largest difference", ">relative", ""});
  bool agrees = true;
  for (const auto& [tokens, difference] : checks) {
    const char* status = difference.agrees ? "pass" : "fail";
    sequences.push_back({{"tokens", tokens},
                         {"status", status},
                         {"max_abs", number_if(true, difference.max_abs)},
                         {"max_rel", number_if(true, difference.max_rel)},
                         {"message", difference.message}});
    table.add({std::to_string(tokens), status, fmt::format("{:.3g}", difference.max_abs),
               fmt::format("{:.3g}", difference.max_rel), difference.message});
    agrees = agrees && difference.agrees;
  }
  if (options.prints_text()) print_text("{}", table.str());
  const opencl::DeviceInfo& device = session.context().info();
  write_report(options, device, {{"path", options.model}, {"sequences", std::move(sequences)}});
  if (agrees) return kOk;
  write_error(
      fmt::format("{}: the kernels chosen for '{}' ({}) disagree with the "
                  "reference kernels; find the variant with --disable-kernels (`bertcl "
                  "inspect` lists them)",
                  options.model, device.name, device.platform_version));
  return kCheckFailed;
}

/// Sums by the first part of the path, and over all: a row for each with its counts.
Table totals_of(const std::vector<Outcome>& outcomes) {
  const std::vector<std::string> states = {"pass", "reference", "refused", "fail"};
  std::map<std::string, std::map<std::string, int>> counts;
  for (const Outcome& outcome : outcomes) {
    const std::string top = outcome.file.substr(0, outcome.file.find('/'));
    for (const std::string& name : {top, std::string("total")}) {
      ++counts[name][outcome.status];
      ++counts[name]["all"];
    }
  }
  Table table({"folder", ">pass", ">reference", ">refused", ">fail", ">all", ">runs and agrees"});
  const auto add = [&](const std::string& name) {
    auto& count = counts[name];
    std::vector<std::string> row = {name};
    for (const std::string& state : states) row.push_back(std::to_string(count[state]));
    row.push_back(std::to_string(count["all"]));
    row.push_back(
        fmt::format("{:.1f} %", 100.0 * (count["pass"] + count["reference"]) / count["all"]));
    table.add(std::move(row));
  };
  for (const auto& [name, count] : std::map(counts)) {
    if (name != "total") add(name);
  }
  add("total");
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
  const std::vector<Outcome> outcomes = verify_folder(options.folder, options, tolerance, expected);
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  Table table({"file", "status", ">relative difference", ""});
  for (const Outcome& outcome : outcomes) {
    const bool compared = outcome.status != "refused";
    files.push_back({{"file", outcome.file},
                     {"status", outcome.status},
                     {"max_abs", number_if(compared, outcome.max_abs)},
                     {"max_rel", number_if(compared, outcome.max_rel)},
                     {"message", outcome.message}});
    constexpr std::size_t widest = 160;
    table.add({outcome.file, outcome.status, compared ? fmt::format("{:.3g}", outcome.max_rel) : "",
               outcome.message.substr(0, widest)});
  }
  if (options.prints_text()) print_text("{}\n{}", table.str(), totals_of(outcomes).str());
  write_report(options, opencl::select_device(options.device),
               {{"path", options.folder}, {"files", std::move(files)}});
  const std::vector<std::string> surprises =
      has_table ? unexpected(outcomes, expected) : std::vector<std::string>{};
  for (const std::string& sentence : surprises) write_error(sentence);
  const bool failed = std::ranges::any_of(
      outcomes, [](const Outcome& outcome) { return outcome.status == "fail"; });
  return (has_table ? surprises.empty() : !failed) ? kOk : kCheckFailed;
}

}  // namespace

void add_verify(CLI::App& program, Action& action) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = add_model_command(
      program, "verify",
      "Compare a model with stored outputs of another program\n\nA GOLDEN is a .npz file with "
      "arrays in__NAME and out__NAME, or an ONNX test_data_set folder\n(input_K.pb, output_K.pb). "
      "A value agrees if |found - expected| <= ATOL + RTOL * |expected|;\n8-bit outputs may differ "
      "by 1, other integers must be equal. Relative differences are\nrelative to the largest "
      "expected value. Exit code 1 if anything differs, 2 if the model is\nrefused or a file "
      "cannot be read.\n\n--all FOLDER takes every model below a folder, each with "
      "FOLDER/goldens/A~b.npz or A/b.npz\nfor A/b.onnx; one without either is compared with the "
      "plain definitions of its operators\non the host (status \"reference\"). A refused model is "
      "not a failure there, unless the table\nof --expect says otherwise.\n\n--self compares the "
      "kernels chosen for this device with "
      "the reference kernels, on made-up\nsequences of 1 to 129 tokens: exit code 1 means a wrong "
      "driver or kernel.",
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
                 "With --all: lines FILE<tab>STATUS<tab>REASON<tab>TIES; exit code 1 if\nthey "
                 "differ. TIES: share of the values that may be off by a rounding step"))
      ->type_name("TABLE")
      ->needs(all);
  not_negative(*command, "--rtol", options->relative, "Relative tolerance (0.001)", "RTOL");
  not_negative(*command, "--atol", options->absolute,
               "Absolute tolerance; by default 0.001 of the largest value of the output, for\nint8 "
               "models 0.02",
               "ATOL");
  command->callback([options, &action] {
    if (options->folder.empty()) {
      if (options->model.empty()) throw CLI::RequiredError("MODEL");
      if (options->goldens.empty() && !options->self) throw CLI::RequiredError("GOLDEN or --self");
      action = [options] {
        return options->self ? run_self_check(*options) : run_verify(*options);
      };
    } else {
      action = [options] { return run_verify_folder(*options); };
    }
  });
}

}  // namespace bertcl::tools
