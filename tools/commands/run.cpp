// SPDX-License-Identifier: Apache-2.0
// bertcl run: tensors or texts in, what the model gives for them out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "ir/port.hpp"
#include "npz/npz.hpp"
#include "support/fail.hpp"
#include "tools/commands/run.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/report/array_file.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

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
  for (const ir::Port& port : session.inputs()) {
    if (port.name == name) return true;
    inputs.push_back(port.name);
  }
  fail("{}: the model has no input '{}'; its inputs are {}", file, name, fmt::join(inputs, ", "));
}

int run_tensors(const RunOptions& options) {
  if (options.outputs.empty()) throw Error("--inputs needs --outputs Y.npz for the results");
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
  CLI::App* command = add_model_command(
      program, "run",
      "Run a model on texts, or on tensors of a NumPy .npz file\n\n"
      "Texts are the lines of TEXTS or of standard input, or JSON lines {\"text\": \"..\"} with "
      "text_pair for two texts, and id. Each gives a JSON line with its tokens and the outputs of "
      "the model; --outputs writes them as zero-padded arrays [texts, ..] instead. In JSON, null "
      "stands for NaN and infinity.\n\n"
      "The arrays of --inputs are named like the model's inputs; integers may have any width. An "
      "omitted mask is all ones, omitted token types are all zeros. If each row of the mask is "
      "ones followed by zeros, padding is not computed: its rows of the outputs are 0, or what "
      "operators after the encoder make of 0.",
      "bertcl run model.onnx texts.txt > outputs.jsonl", *options);
  take_any_outputs(*command);
  model_file(command->add_option("MODEL", options->model, "ONNX model"))->required();
  CLI::Option* inputs =
      input_file(command->add_option("--inputs", options->inputs, "Arrays by input name"))
          ->type_name("X.npz");
  input_file(command->add_option("TEXTS,--texts", options->texts,
                                 "Texts, one per line, instead of arrays; - is standard input, the "
                                 "default without --inputs"))
      ->excludes(inputs);
  output_file(
      command->add_option("--outputs", options->outputs, "File to write: arrays by output name"))
      ->type_name("Y.npz");
  add_max_length_option(*command, options->max_length)->excludes(inputs);
  add_vocabulary_options(*command, options->vocabulary);
  add_force_flag(*command, options->force);
  command->callback([options, &action] {
    action = [options] {
      if (!options->outputs.empty() && !has_ending(options->outputs, ".npz"))
        fail("--outputs: {}: must end in .npz, the only format that is written", options->outputs);
      return options->inputs.empty() ? run_texts(*options) : run_tensors(*options);
    };
  });
}

}  // namespace bertcl::tools
