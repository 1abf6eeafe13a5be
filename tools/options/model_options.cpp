// SPDX-License-Identifier: Apache-2.0
// Options of the commands that run a model, and the session made from them.
#include "tools/options/model_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"
#include "ir/port.hpp"
#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"
#include "ops/operands.hpp"
#include "ops/precision.hpp"
#include "passes/pass.hpp"
#include "plan/options.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "text/pad_token_id.hpp"
#include "tools/terminal/progress.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

/// Extents of an input: numbers stay, the first symbol is the batch, any other the sequence.
ir::Sizes sizes_of(const ir::Shape& shape, BatchSize size) {
  ir::Sizes sizes;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    ir::Bindings bindings;
    for (const std::string& symbol : shape[axis].symbols()) {
      bindings[symbol] = axis == 0 && symbol != "seq" ? size.batch : size.seq;
    }
    sizes.push_back(shape[axis].evaluate(bindings));
  }
  return sizes;
}

/// A misspelt name would otherwise be ignored.
void check_passes(const std::vector<std::string>& disabled) {
  std::vector<std::string> known;  // each once, though some run more than once
  for (const passes::Pass& pass : passes::pipeline({}))
    if (std::ranges::find(known, pass.name) == known.end()) known.push_back(pass.name);
  for (const std::string& name : disabled) {
    if (std::ranges::find(known, name) == known.end()) {
      fail("unknown compiler pass '{}'{}", name, suggestion(name, known, 3));
    }
  }
}

/// What is wrong with the value of --disable-kernels; "" if nothing is.
std::string unknown_kernel(const std::string& disabled) {
  try {
    plan::variants_to_disable(disabled);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// One line on standard error where float GEMMs have not the precision that was asked for.
void note_precision(const runtime::Session& session, const ModelOptions& options) {
  const auto& steps = session.plan().steps;
  if (std::ranges::none_of(
          steps, [](const plan::Step& step) { return step.op == ops::operands::linear::op; }))
    return;
  const opencl::Capabilities& device = session.context().capabilities();
  const auto note = [&](std::string_view what) { warn("{}: {}", session.path().string(), what); };
  if (options.precision == ir::DType::bf16 && !device.avx512_bf16)
    note("--precision bf16: the device has no avx512_bf16, float GEMMs run in fp32");
  if (options.precision == ir::DType::f16 && options.gemm == "clblast" && !device.fp16)
    note(
        "--precision fp16: the device has no fp16 arithmetic for CLBlast; bertcl's kernels are "
        "used instead: they read fp16 weights, and multiply in fp16 if the device has matrix_f16");
}

}  // namespace

CLI::App* add_model_command(CLI::App& program, const std::string& name,
                            const std::string& description, const std::string& example,
                            ModelOptions& options) {
  CLI::App* command = add_command(program, name, description, example, options);
  const OptionGroup group(*command, "How models run");
  add_precision_option(
      *command, options.precision,
      "Float GEMMs: fp32; fp16 stores weights in fp16, and multiplies in fp16 on a matrix unit or "
      "with CLBlast if the device can (matrix_f16, fp16 in `bertcl devices`); bf16 multiplies in "
      "bf16 if the CPU can (avx512_bf16), else in fp32");
  one_of(command->add_option("--gemm", options.gemm,
                             "Float GEMMs: bertcl's kernels or CLBlast's; auto: bertcl's, unless "
                             "`bertcl tune` found CLBlast's to be faster"),
         {"auto", "own", "clblast"});
  command->add_flag("--keep-padding", options.keep_padding,
                    "Compute padding too, instead of packing the real tokens");
  command->add_flag("--command-buffer", options.command_buffer,
                    "Record the launches for each input shape on its first run and replay them as "
                    "one command; needs a device with command_buffer (see `bertcl devices`)");
  command->add_flag("--allow-nonfinite", options.allow_nonfinite,
                    "Continue if weights or outputs hold NaN or infinity, normally an error");
  one_of(command->add_option("--require", options.require,
                             "int8: exit with 1 if the model is float, or a quantized MatMul of "
                             "the file would run in float"),
         {"int8"});
  const auto disable = [&options](const std::vector<std::string>& names) {
    options.disabled_kernels = fmt::format("{}", fmt::join(names, ","));
  };
  add_list(
      *command, "--disable-kernels", disable, "NAME,...",
      "Kernel variants to skip, by their names in `bertcl inspect`; persistent: one launch per "
      "step")
      ->check(CLI::Validator(unknown_kernel, ""));
  add_list(
      *command, "--disable-passes",
      [&options](const std::vector<std::string>& names) { options.disabled_passes = names; },
      "NAME,...", "Compiler passes to skip");
  return command;
}

void add_precision_option(CLI::App& command, ir::DType& precision, const std::string& help) {
  const auto set = [&precision](const std::string& name) {
    precision = ops::precision_named(name).value();
  };
  one_of(command.add_option_function<std::string>("--precision", set, help),
         {"fp32", "fp16", "bf16"})
      ->default_str("fp32");
}

void take_any_outputs(CLI::App& command) {
  command.get_option("--allow-nonfinite")
      ->description(
          "Continue if weights hold NaN or infinity, normally an error; outputs are not checked");
}

runtime::SessionOptions to_session_options(const ModelOptions& options) {
  check_passes(options.disabled_passes);
  runtime::SessionOptions session;
  session.device = options.device;
  session.drop_padding = !options.keep_padding;
  session.gemm = options.gemm;
  if (options.requests > 0) session.requests = options.requests;
  session.command_buffer = options.command_buffer;
  session.allow_nonfinite = options.allow_nonfinite;
  session.pooling = options.pooling;
  session.precision = options.precision;
  session.disabled_passes = options.disabled_passes;
  session.disabled_kernels = options.disabled_kernels;
  return session;
}

runtime::Session load_model(const std::filesystem::path& path, const ModelOptions& options,
                            const opencl::ContextFuture& context) {
  runtime::SessionOptions session = to_session_options(options);
  session.context = context;
  runtime::Session loaded = load_model(path, session);
  note_precision(loaded, options);
  static std::atomic<bool> told = false;  // every model of a command has the same note
  if (const std::string& note = loaded.plan().tuning_note; !note.empty() && !told.exchange(true))
    write_error(note);
  return loaded;
}

runtime::Session load_model(const std::filesystem::path& path,
                            const runtime::SessionOptions& options) {
  return make_session(path, options, [&](const runtime::SessionOptions& all) {
    return runtime::Session::load(path, all);
  });
}

runtime::Session make_session(
    const std::filesystem::path& path, const runtime::SessionOptions& options,
    const std::function<runtime::Session(const runtime::SessionOptions&)>& make) {
  runtime::SessionOptions session = options;
  session.pad_token_id = [&path] { return text::read_pad_token_id(path); };
  if (!session.context) session.context = opencl::ContextFuture::open(session.device);
  // At the first start of a model this takes seconds, later it is over before a line is drawn.
  std::optional<Progress> building;
  if (!session.on_program)
    session.on_program = [&](std::size_t built, std::size_t programs) {
      if (!building)
        building.emplace("building kernels", "programs", std::chrono::milliseconds(100));
      building->update(built, programs);
    };
  // Inside of it the model is named: what is wrong with the device is not the model's fault.
  return session.context.meanwhile(
      [&] { return naming_model(path, [&] { return make(session); }); });
}

bool meets_requirement(const runtime::Session& session, const ModelOptions& options) {
  if (options.require.empty()) return true;
  const std::vector<std::string> reasons = plan::why_not_int8(session.plan());
  if (reasons.empty()) return true;
  warn("{}: int8 is required, but\n  {}", session.path().string(), fmt::join(reasons, "\n  "));
  return false;
}

BatchSize batch_size(const runtime::Session& session, std::optional<int> batch,
                     std::optional<int> seq) {
  const auto choose = [&](std::size_t axis, std::optional<int> asked, std::int64_t default_value,
                          const char* option) {
    for (const ir::Port& port : session.inputs()) {
      const ir::Shape& shape = port.type.shape;
      // Positions may be one row for all sequences.
      if (shape.size() != 2 || ir::role_of_input(port.name) == ir::InputRole::positions ||
          !shape[axis].is_constant())
        continue;
      const std::int64_t fixed = shape[axis].constant();
      if (asked && *asked != fixed)
        fail("{}: its input '{}' is {}, so it cannot run with {} {}", session.path().string(),
             port.name, ir::str(port.type), option, *asked);
      return fixed;
    }
    return asked ? std::int64_t{*asked} : default_value;
  };
  std::int64_t tokens = 128;
  for (const std::int64_t limit : {session.plan().max_positions, session.plan().max_keys})
    if (limit > 0) tokens = std::min(tokens, limit);
  return {choose(0, batch, 1, "--batch"), choose(1, seq, tokens, "--seq")};
}

std::map<std::string, ir::Sizes, std::less<>> input_sizes(const runtime::Session& session,
                                                          BatchSize size) {
  std::map<std::string, ir::Sizes, std::less<>> sizes;
  for (const ir::Port& port : session.inputs())
    sizes.emplace(port.name, sizes_of(port.type.shape, size));
  return sizes;
}

runtime::Tensors random_inputs(const runtime::Session& session, BatchSize size, std::int64_t ids) {
  std::mt19937 random(1);
  runtime::Tensors inputs;
  for (const ir::Port& port : session.inputs()) {
    const ir::Sizes sizes = sizes_of(port.type.shape, size);
    const auto count = static_cast<std::size_t>(ir::element_count(sizes));
    const ir::InputRole role = ir::role_of_input(port.name);
    if (ir::is_float(port.type.dtype) && role != ir::InputRole::mask) {
      std::normal_distribution<float> normal;
      std::vector<float> values(count);
      for (float& value : values) value = normal(random);
      inputs[port.name] = ir::Tensor::of(sizes, std::move(values)).converted(port.type.dtype);
      continue;
    }
    std::vector<std::int64_t> values(count, 0);
    if (role == ir::InputRole::mask) {
      std::ranges::fill(values, 1);
    } else if (role == ir::InputRole::positions) {
      for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(i) % size.seq;
    } else if (role == ir::InputRole::ids) {
      std::uniform_int_distribution<std::int64_t> id(0, ids - 1);
      for (std::int64_t& value : values) value = id(random);
    }
    inputs[port.name] = ir::Tensor::of(sizes, std::move(values)).converted(port.type.dtype);
  }
  return inputs;
}

}  // namespace bertcl::tools
