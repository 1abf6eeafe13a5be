// SPDX-License-Identifier: Apache-2.0
// Checks all models of a folder against stored outputs, and against a table of expected outcomes.
#include "tools/verify/verify_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string_view>

#include "bertcl/error.hpp"
#include "ir/port.hpp"
#include "onnx/read_model.hpp"
#include "ops/interpret.hpp"
#include "support/fail.hpp"
#include "text/base/data_file.hpp"
#include "text/base/file.hpp"

namespace bertcl::tools {
namespace {

namespace fs = std::filesystem;

/// Half precision keeps 11 bits, and the reference rounds after every operator where kernels do
/// not.
constexpr double kHalfShare = 1e-2;

std::vector<std::string> models_below(const fs::path& folder) {
  if (!fs::is_directory(folder))
    fail("--all: {}: {}", folder.string(),
         fs::exists(folder) ? "is a file, expected a folder (give one model as MODEL)"
                            : "no such folder");
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".onnx") {
      files.push_back(fs::relative(entry.path(), folder).generic_string());
    }
  }
  std::ranges::sort(files);
  if (files.empty()) fail("--all: {}: no .onnx file below it", folder.string());
  return files;
}

/// Where the stored tensors of a model may be, below its folder.
std::array<std::string, 2> golden_names(const std::string& file) {
  const std::string stem = file.substr(0, file.size() - std::string(".onnx").size());
  std::string flat = stem;
  std::ranges::replace(flat, '/', '~');
  return {"goldens/" + flat + ".npz", stem + ".npz"};
}

/// The stored tensors of a model; empty where there are none.
fs::path golden_of(const fs::path& folder, const std::string& file) {
  for (const std::string& name : golden_names(file)) {
    if (fs::exists(folder / name)) return folder / name;
  }
  return {};
}

/// Why a model was compared with the reference, where the table does not ask for that.
std::string why_no_golden(const std::string& file) {
  return fmt::format("no golden with all of its inputs and outputs ({})",
                     fmt::join(golden_names(file), " or "));
}

/// A tensor of small random numbers: ids and masks of 0 and 1, any byte, positive scales, other
/// floats around 0.
ir::Tensor random_tensor(const ir::Value& input, const ir::Sizes& shape, std::mt19937& random) {
  const ir::DType dtype = input.type.dtype;
  const bool scale = input.name.find("scale") != std::string::npos;
  const auto from = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  std::vector<double> values(ir::element_count(shape));
  for (double& value : values) {
    if (ir::is_float(dtype)) {
      value = scale ? from(1, 16) / 64.0 : from(-256, 256) / 128.0;
    } else if (ir::is_int8(dtype)) {
      value = dtype == ir::DType::u8 ? from(0, 255) : from(-128, 127);
    } else {
      value = from(0, 1);
    }
  }
  if (!values.empty() && !ir::is_float(dtype)) values[0] = 1;  // no mask without any key
  return ir::Tensor::of(shape, std::move(values)).converted(dtype);
}

/// False if the operators need sizes to be equal that are not.
bool may_hold(const ir::Graph& graph, const ir::Bindings& bindings) {
  const auto known = [&](const ir::Dim& dim) {
    return std::ranges::all_of(
        dim.symbols(), [&](const std::string& symbol) { return bindings.contains(symbol); });
  };
  return std::ranges::all_of(graph.assumptions(), [&](const auto& pair) {
    return !known(pair.first) || !known(pair.second) ||
           pair.first.evaluate(bindings) == pair.second.evaluate(bindings);
  });
}

/// Made-up inputs, and what the plain definitions of the operators give for them. Sizes that the
/// file leaves open are tried until the operators accept them: which ones must be equal is rarely
/// stated.
Golden reference_of(const ir::Graph& graph) {
  constexpr int tries = 2000;
  constexpr std::int64_t sizes[] = {2, 3, 4, 1, 8};
  std::mt19937 random(1);
  std::string why;
  for (int attempt = 0; attempt < tries; ++attempt) {
    ir::Bindings bindings;
    for (const ir::Value* input : graph.inputs()) {
      for (const ir::Dim& dim : input->type.shape) {
        for (const std::string& symbol : dim.symbols()) {
          bindings.emplace(symbol, sizes[attempt == 0 ? bindings.size() % 3 : random() % 5]);
        }
      }
    }
    if (!may_hold(graph, bindings)) continue;
    ops::Tensors inputs;
    for (const ir::Value* input : graph.inputs()) {
      inputs[input->name] =
          random_tensor(*input, ir::evaluate(input->type.shape, bindings), random);
    }
    try {
      const std::vector<ir::Tensor> outputs = ops::interpret(graph, inputs);
      Golden golden{"", inputs, {}};
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        golden.outputs[graph.outputs()[i].name] = outputs[i];
      }
      return golden;
    } catch (const Error& error) {
      if (why.empty()) why = error.what();
    }
  }
  fail("found no inputs that the operators accept: {}",
       why.empty() ? "found no consistent sizes" : why);
}

class Folder {
 public:
  Folder(fs::path folder, const ModelOptions& options, const Tolerance& tolerance)
      : folder_(std::move(folder)), options_(to_session_options(options)), tolerance_(tolerance) {
    options_.drop_padding = false;  // stored outputs have rows of padding
    options_.context = opencl::Context::create(options.device);
  }

  Comparison verify(const std::string& file, const Expectation& expected) const {
    Comparison outcome{file, "pass", {}};
    std::optional<runtime::Session> session;
    try {
      session = load_model(folder_ / file, options_);
    } catch (const Error& refusal) {
      outcome.status = "refused";
      outcome.difference.message = refusal.what();
      return outcome;
    }
    try {
      Golden golden;
      if (const fs::path path = golden_of(folder_, file); !path.empty()) {
        golden = load_golden(path, session->inputs(), session->outputs());
      }
      if (expected.status == "reference" || !is_complete(golden, *session)) {
        outcome.status = "reference";
        golden = reference_of(onnx_io::read_model(folder_ / file));
      }
      Tolerance tolerance = tolerance_;
      if (has_halves(*session)) tolerance.share = std::max(kHalfShare, tolerance.share);
      tolerance.mismatches = expected.mismatches;
      outcome.difference = compare_outputs(session->run(golden.inputs), golden, tolerance);
      if (!outcome.difference.agrees) outcome.status = "fail";
    } catch (const std::exception& error) {
      outcome.status = "fail";
      outcome.difference.message = error.what();
    }
    return outcome;
  }

 private:
  /// False if nothing was stored, or if large tensors were left out.
  static bool is_complete(const Golden& golden, const runtime::Session& session) {
    const auto holds = [](const runtime::Tensors& stored, const std::vector<ir::Port>& ports) {
      return std::ranges::all_of(ports,
                                 [&](const ir::Port& port) { return stored.contains(port.name); });
    };
    return holds(golden.inputs, session.inputs()) && holds(golden.outputs, session.outputs());
  }

  static bool has_halves(const runtime::Session& session) {
    const auto is_half = [](const ir::Port& port) {
      return ir::is_float(port.type.dtype) && ir::size_of(port.type.dtype) == 2;
    };
    return std::ranges::any_of(session.inputs(), is_half) ||
           std::ranges::any_of(session.outputs(), is_half);
  }

  fs::path folder_;
  runtime::SessionOptions options_;
  Tolerance tolerance_;
};

}  // namespace

Expectations read_expectations(const fs::path& path) {
  static const std::set<std::string> known = {"pass", "reference", "refused", "fail"};
  Expectations expected;
  text::each_line(text::read_file(path), [&](std::string_view line, std::size_t number) {
    if (line.empty() || line[0] == '#') return;
    std::istringstream row{std::string(line)};
    std::string file;
    Expectation entry;
    std::getline(row, file, '\t');
    std::getline(row, entry.status, '\t');
    std::getline(row, entry.reason, '\t');
    const auto fail = [&](const char* what) {
      bertcl::fail("{}:{}: {}", path.string(), number, what);
    };
    if (std::string mismatches; std::getline(row, mismatches, '\t')) {
      char* end = nullptr;
      entry.mismatches = std::strtod(mismatches.c_str(), &end);
      if (mismatches.empty() || *end != '\0' ||
          !(entry.mismatches >= 0.0 && entry.mismatches < 1.0)) {
        fail("MISMATCHES must be a number from 0 to below 1");
      }
      if (entry.reason.empty()) fail("MISMATCHES requires a REASON");
    }
    if (!known.contains(entry.status)) fail("the status must be pass, reference, refused or fail");
    if (entry.status != "pass" && entry.status != "reference" && entry.reason.empty()) {
      fail("a refused or failing file needs a reason");
    }
    if (!expected.emplace(file, entry).second) fail("the file is listed twice");
  });
  return expected;
}

std::vector<Comparison> verify_folder(const fs::path& folder, const ModelOptions& options,
                                      const Tolerance& tolerance, const Expectations& expected) {
  const Folder all(folder, options, tolerance);
  std::vector<Comparison> outcomes;
  for (const std::string& file : models_below(folder)) {
    const auto entry = expected.find(file);
    outcomes.push_back(all.verify(file, entry == expected.end() ? Expectation{} : entry->second));
  }
  return outcomes;
}

std::vector<std::string> unexpected(const std::vector<Comparison>& outcomes,
                                    const Expectations& expected) {
  std::vector<std::string> list;
  std::set<std::string> seen;
  for (const auto& [file, status, difference] : outcomes) {
    seen.insert(file);
    const auto entry = expected.find(file);
    if (entry == expected.end()) {
      list.push_back(fmt::format("{}: {}, but not listed in the table", file, status));
    } else if (status != entry->second.status) {
      const std::string why = status == "reference" ? why_no_golden(file) : difference.message;
      list.push_back(fmt::format("{}: '{}', but the table expects '{}'{}{}", file, status,
                                 entry->second.status, why.empty() ? "" : ": ", why));
    } else if (status == "refused" &&
               difference.message.find(entry->second.reason) == std::string::npos) {
      list.push_back(fmt::format("{}: refused, but not for the expected reason '{}': {}", file,
                                 entry->second.reason, difference.message));
    }
  }
  for (const auto& [file, entry] : expected) {
    if (!seen.contains(file))
      list.push_back(fmt::format("{}: listed in the table, but no such model in the folder", file));
  }
  return list;
}

}  // namespace bertcl::tools
