// SPDX-License-Identifier: Apache-2.0
// bertcl run: raw tensors in, raw tensors out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "npz/npz.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/model_options.hpp"
#include "tools/report/json_report.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

struct RunOptions : ModelOptions {
  std::string model, inputs, outputs;
  bool force = false;
};

nlohmann::ordered_json describe(const runtime::Tensors& tensors) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& [name, tensor] : tensors) {
    json.push_back(
        {{"name", name}, {"type", ir::name_of(tensor.dtype())}, {"shape", tensor.shape()}});
  }
  return json;
}

/// True; throws Error for an array that the model does not take, so that none is read for nothing.
bool is_input(const runtime::Session& session, const std::string& name, const std::string& file) {
  std::vector<std::string> inputs;
  for (const plan::Port& port : session.inputs()) {
    if (port.name == name) return true;
    inputs.push_back(port.name);
  }
  throw Error(fmt::format("{}: the model has no input '{}'; its inputs are {}", file, name,
                          fmt::join(inputs, ", ")));
}

int run_run(const RunOptions& options) {
  runtime::Session session = load_model(options.model, options);
  if (!meets_requirement(session, options)) return kCheckFailed;
  const runtime::Tensors inputs = npz::load(options.inputs, [&](const std::string& name) {
    return is_input(session, name, options.inputs);
  });
  const runtime::Tensors outputs = session.run(inputs);
  npz::save(options.outputs, outputs);
  if (options.prints_text()) {
    Table table({"output", "type", "shape"});
    for (const auto& [name, tensor] : outputs) {
      table.add({name, std::string(ir::name_of(tensor.dtype())),
                 fmt::format("[{}]", fmt::join(tensor.shape(), ", "))});
    }
    print_text("{}", table.str());
  }
  write_report(
      options, session.context().info(),
      {{"path", options.model}, {"inputs", describe(inputs)}, {"outputs", describe(outputs)}});
  return kOk;
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      add_model_command(program, "run",
                        "Run a model on tensors of a NumPy .npz file\n\nThe arrays in the input "
                        "file are named like the model's inputs; integers may have any\nwidth. The "
                        "mask defaults to ones, token types to zeros. If each row of the mask is "
                        "ones\nfollowed by zeros, padding is not computed and outputs are 0 there.",
                        "bertcl run model.onnx --inputs x.npz --outputs y.npz", *options);
  input_file(command->add_option("MODEL", options->model, "ONNX model"))->required()->type_name("");
  input_file(command->add_option("--inputs", options->inputs, "Arrays by input name"))
      ->required()
      ->type_name("X.npz");
  output_file(
      command->add_option("--outputs", options->outputs, "File to write: arrays by output name"))
      ->required()
      ->type_name("Y.npz");
  add_force_flag(*command, options->force);
  command->callback([options, &action] { action = [options] { return run_run(*options); }; });
}

}  // namespace bertcl::tools
