// SPDX-License-Identifier: Apache-2.0
// The options of `bertcl quantize` for what is quantized, and how.
#include "quant/settings/quantize_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quant/placement/operators.hpp"
#include "quant/presets.hpp"
#include "support/option_checks.hpp"
#include "support/parse_number.hpp"

namespace bertcl::quant {
namespace {

const Choices<Place> kPlaces = {{"linear", Place::linear},
                                {"scores", Place::scores},
                                {"probabilities", Place::probabilities},
                                {"context", Place::context},
                                {"gelu", Place::gelu},
                                {"sum", Place::sum},
                                {"layer-norm", Place::layer_norm}};
const Choices<Adds> kAdds = {
    {"layer-norm", Adds::layer_norm}, {"encoder", Adds::encoder}, {"all", Adds::all}};
/// Signed weights are symmetric, unsigned ones not, unless named otherwise: onnxruntime's rule.
const Choices<Scheme> kSchemes = {{"u8", {ir::DType::u8, false}},
                                  {"i8", {ir::DType::i8, true}},
                                  {"u8-symmetric", {ir::DType::u8, true}},
                                  {"i8-asymmetric", {ir::DType::i8, false}}};
const Choices<Softmax> kSoftmax = {{"unnormalized", Softmax::unnormalized},
                                   {"plain", Softmax::plain}};

const Choices<WeightScale> kWeightScales = {{"max", WeightScale::max}, {"mse", WeightScale::mse}};
const Choices<bool> kRoundings = {{"gptq", true}, {"nearest", false}};

/// The names of methods or presets.
template <class T>
std::vector<std::string> names_in(std::span<const T> items) {
  std::vector<std::string> names;
  for (const T& item : items) names.emplace_back(item.name);
  return names;
}
template <class T>
std::string summaries_of(std::span<const T> items) {
  std::string lines;
  for (const T& item : items) lines += fmt::format("\n{}: {}", item.name, item.summary);
  return lines;
}

/// Other tools' name of i8, s8, is taken, too.
template <class Set>
void add_scheme(CLI::App& command, const std::string& name, Set set, const std::string& help) {
  const auto rename = [](std::string& text) -> std::string {
    if (text == "s8" || text == "s8-asymmetric") text.front() = 'i';
    return "";
  };
  add_choice(command, name, kSchemes, set, help)->transform(CLI::Validator(rename, ""));
}

void set_axis(Options& options, const std::string& text) {
  const auto equals = std::min(text.find('='), text.size());
  const std::string op = text.substr(0, equals);
  const auto axis = parse_number<int>(text.substr(std::min(equals + 1, text.size())));
  if (op.empty() || !axis)
    throw CLI::ValidationError("--axis", "'" + text + "' is not OPERATOR=AXIS, such as MatMul=1");
  if (const auto known = weight_operators(); std::ranges::find(known, op) == known.end())
    throw CLI::ValidationError("--axis",
                               fmt::format("'{}' has no weights{}", op, suggestion(op, known)));
  options.weights.axes[op] = *axis;
}

void add_options_of_adds(CLI::App& command, PlacementOptions& placement, MarkedOptions& marked) {
  const OptionMark of_activations(command, marked.of_activations), of_adds(command, marked.of_adds);
  command.add_flag("--add-channels,!--no-add-channels", placement.add_channels,
                   "Per-channel scales for the inputs of residual Adds, or per-tensor (default)");
  add_choice(
      command, "--adds", kAdds, [&](Adds adds) { placement.adds = adds; },
      "Adds to quantize: layer-norm: those that feed a LayerNorm or RMSNorm; encoder: the same "
      "without\nthe embeddings; all: every float Add, biases included, and operands that a norm "
      "also reads");
}

void add_placement_options(CLI::App& command, PlacementOptions& placement, MarkedOptions& marked) {
  const OptionGroup group(command, "What is quantized");
  add_list(
      command, "--op-types",
      [&](const std::vector<std::string>& ops) {
        placement.op_types = {ops.begin(), ops.end()};
      },
      "OP,...",
      fmt::format("Operators whose inputs are quantized; MatMul by default.\nOf {}",
                  fmt::join(quantizable_operators(), ", ")));
  add_switch(
      command, "--residual,!--no-residual",
      [&](bool yes) {
        if (yes)
          placement.op_types.insert("Add");
        else
          placement.op_types.erase("Add");
      },
      "Also quantize Adds (see --adds), or leave them in float");
  add_options_of_adds(command, placement, marked);
  command.add_flag("--head,!--no-head", placement.head,
                   "Quantize (or leave in float) the last MatMul of the model");
  add_list(
      command, "--outputs",
      [&](const std::vector<std::string>& ops) {
        placement.output_op_types = {ops.begin(), ops.end()};
      },
      "OP,...", "Also quantize these operators' outputs (must be in --op-types)");
  one_of(add_list(
             command, "--places",
             [&](const std::vector<std::string>& names) {
               placement.places.clear();
               for (const auto& name : names) placement.places.insert(chosen(kPlaces, name));
             },
             "",
             fmt::format("Also quantize these outputs, for all their readers; choose from\n{}",
                         fmt::join(names_of(kPlaces), ", "))),
         names_of(kPlaces), true)
      ->type_name("PLACE,...");
  const auto add_patterns = [&](const char* name, std::vector<std::string>& patterns,
                                const char* type, const char* help) {
    command.add_option(name, patterns, help)->type_name(type)->allow_extra_args(false);
  };
  add_patterns("--include", placement.include, "PATTERN",
               "Only nodes with these names; * and ? as in file names; repeatable");
  add_patterns("--exclude", placement.exclude, "PATTERN",
               "Nodes to leave in float, by name as for --include; repeatable");
  add_patterns("--disable-keyword", placement.disable_keywords, "REGEX",
               "Quantizers to disable, by QDQBERT names, such "
               "as\nbert.encoder.layer.0.attention.self.matmul_a_input_quantizer; repeatable");
  add_patterns("--disable-layer-module", placement.disable_layer_modules, "REGEX",
               "Quantizers to disable, by the part of the name after \"layer.N.\"; repeatable");
  add_patterns("--enable-layer-module", placement.enable_layer_modules, "REGEX",
               "Exceptions to --disable-layer-module; repeatable");
}

void add_method_options(CLI::App& command, Options& options) {
  MethodOptions& method = options.method_options;
  one_of(command.add_option("--method", options.method,
                            "How activation ranges are chosen:" + summaries_of(methods())),
         names_in(methods()));
  add_switch(
      command, "--two-sided,!--absolute", [&method](bool yes) { method.symmetric = !yes; },
      "Choose each end of the range separately, or -a .. a from magnitudes. By "
      "default\npercentile is absolute, minmax and entropy two-sided, the others follow the "
      "integers");
  any_number(command, "--percentile", method.percentile,
             "Percentage of the values inside the range; by default 99.999, torch-percentile 99.99",
             "P");
  positive(command, "--bins", method.bins,
           "Initial histogram bins; by default 2048, entropy 128. Values beyond them add bins");
  positive(command, "--quantized-bins", method.quantized_bins,
           "entropy: bins that represent the integers; by default 128");
  positive(command, "--start-bin", method.start_bin,
           "torch-entropy, mse of symmetric ranges: first bound to try, in bins; by default 128");
  positive(command, "--stride", method.stride,
           "torch-entropy, mse of symmetric ranges: step between bounds, in bins; by default 1");
  command.add_flag(
      "--moving-average", method.moving_average,
      "minmax: moving averages of smallest and largest value, instead of the extremes");
  any_number(command, "--averaging-constant", method.averaging_constant,
             "With --moving-average: weight of new values; by default 0.01", "C");
  not_negative(command, "--averaged-samples", method.averaged_samples,
               "With --moving-average: questions averaged per update; by default 1 (0: all)");
  positive(command, "--batch", options.batch, "Questions per batch; does not change the ranges");
}

void add_calibration_options(CLI::App& command, Options& options, MarkedOptions& marked) {
  const OptionGroup group(command, "How ranges are found");
  {
    const OptionMark of_samples(command, marked.of_samples);
    add_method_options(command, options);
  }
  command.add_flag("--fuse-qkv", options.ranges.fuse_qkv,
                   "One range for Q, K and V of an attention, and for their per-tensor weights, "
                   "whatever\n--weight-scale says");
  const OptionMark of_activations(command, marked.of_activations);
  positive(command, "--clip-gelu", options.ranges.clip_gelu,
           "Clip at N the GELU outputs that feed MatMuls");
  command.add_flag("--recalibrate-weights", options.ranges.recalibrate_weights,
                   "Compute weight ranges from the weights instead of the table");
  command.add_flag("--symmetric-ranges", options.ranges.symmetric,
                   "Make every calibrated range -a .. a, also for asymmetric integers");
  check_number<float>(command
                          .add_option_function<float>(
                              "--minimum-range",
                              [&](float width) {
                                options.activations.min_range = options.weights.scheme.min_range =
                                    width;
                              },
                              "Minimum width of each range, including those of weights")
                          ->type_name("X"),
                      0.0f, std::numeric_limits<float>::max(), "0 or more");
}

void add_number_options(CLI::App& command, Options& options) {
  const OptionGroup group(command, "Integers");
  // The type is set alone: what a preset says of steps and bits stays.
  const auto set = [](Scheme& to) {
    return [&to](Scheme from) {
      to.type = from.type;
      to.symmetric = from.symmetric;
    };
  };
  add_scheme(command, "--activations", set(options.activations),
             "u8: asymmetric unsigned (the default); i8: symmetric signed");
  add_scheme(command, "--weights", set(options.weights.scheme),
             "As --activations, for weights; i8 by default. Per channel they are always symmetric");
  command.add_flag("--per-channel,!--per-tensor", options.weights.per_channel,
                   "Per-channel weight scales (default), or per-tensor");
  add_list(
      command, "--axis",
      [&](const std::vector<std::string>& texts) {
        std::set<std::string> given;
        for (const auto& text : texts) {
          set_axis(options, text);
          const std::string op = text.substr(0, text.find('='));
          if (!given.insert(op).second)
            throw CLI::ValidationError("--axis", "'" + op + "' is given twice");
        }
      },
      "OP=AXIS",
      "Channel axis of an operator's weights, from the end if negative; MatMul=-1 by default");
  add_choice(
      command, "--weight-scale", kWeightScales,
      [&](WeightScale scale) { options.weights.scale = scale; },
      "max: weight scales cover all values (default); mse: clip to the range with the "
      "least\nsquared error; helps with --per-tensor or fewer than 8 bits");
  in_range(command, "--weight-bits", options.weights.scheme.bits, 2, 8, "Bits of weights, 2 to 8");
  add_switch(
      command, "--reduce-range",
      [&](bool yes) {
        Steps& steps = options.weights.scheme.steps;
        if (yes)
          steps = Steps::reduced;
        else if (steps == Steps::reduced)
          steps = Steps::standard;
      },
      "7 bits for weights: -64 .. 64, or 0 .. 127");
  add_switch(
      command, "--full-range,!--narrow-range",
      [&](bool yes) {
        const auto steps = yes ? Steps::full : Steps::standard;
        Steps& of_weights = options.weights.scheme.steps;
        options.activations.steps = steps;
        // --reduce-range, which stands before, is of weights alone.
        if (of_weights != Steps::reduced)
          of_weights = steps;
        else if (yes)
          throw CLI::ValidationError(
              "--full-range",
              "cannot be combined with --reduce-range, which quantizes weights to 7 bits");
      },
      "Symmetric i8: -128 .. 127 with scale 2 * absmax / 255 (as torch), or -127 .. 127 "
      "with\nscale absmax / 127 (default)");
}

void add_accuracy_options(CLI::App& command, AccuracyOptions& options) {
  const OptionGroup group(command, "Accuracy");
  command
      .add_option_function<std::string>(
          "--smooth",
          [&](const std::string& text) {
            options.smooth = text != "off";
            options.alpha.reset();
            if (text == "off" || text == "auto") return;
            options.alpha = parse_number<double>(text);
            if (!options.alpha || !(*options.alpha >= 0.0 && *options.alpha <= 1.0))
              throw CLI::ValidationError("--smooth", "'" + text + "' is not auto, off or 0 .. 1");
          },
          "Smooth MatMul inputs by moving per-channel scale into the weights: auto: the "
          "formula\nwith the least error for each (default); off; or ALPHA as in SmoothQuant")
      ->type_name("auto|off|ALPHA");
  add_choice(
      command, "--weight-rounding", kRoundings, [&](bool gptq) { options.gptq = gptq; },
      "gptq: minimize the error of MatMuls (default); nearest: round each weight separately");
  command.add_flag(
      "--bias-correction,!--no-bias-correction", options.bias_correction,
      "Subtract the mean error of MatMuls over the samples from the biases after them, "
      "or\nnot (default)");
}

void add_form_options(CLI::App& command, Options& options, MarkedOptions& marked) {
  const OptionGroup group(command, "What is written");
  add_choice(
      command, "--softmax", kSoftmax, [&](Softmax softmax) { options.softmax = softmax; },
      "plain: quantize probabilities (default); unnormalized: quantize exp(s - max), and "
      "divide\nthe result of the MatMul after it by its sum");
  command.add_flag("--weights-qdq,!--weights-int8", options.weights.as_float,
                   "Store weights as float before Q -> DQ, as TensorRT expects, or as int8 before "
                   "DQ\n(default)");
  command.add_flag("--weights-transposed,!--weights-plain", options.weights.transposed,
                   "Store MatMul weights as [out, in] followed by Transpose, as torch does, or as "
                   "[in, out]\n(default)");
  in_range(command, "--opset", options.opset, 13, 23,
           "Upgrade the file to this opset: 13 (default) to 17, or the model's if newer")
      ->default_str("");
  const OptionMark of_activations(command, marked.of_activations);
  command.add_flag("--dedicated-pairs,!--shared-pairs", options.dedicated_pairs,
                   "One Q/DQ pair per reader of a tensor, or one for all (default)");
  command.add_flag("--all-readers,!--quantized-readers", options.all_readers,
                   "All readers of a quantized tensor read it quantized, or only the quantized "
                   "nodes\n(default)");
}

}  // namespace

void add_quantizer_options(CLI::App& command, Options& options, MarkedOptions& marked) {
  // The first option that is added is the first to take effect.
  one_of(command.add_option_function<std::string>(
             "--preset", [&](const std::string& name) { options = preset(name).options(); },
             "Sets of options, which other options override:" + summaries_of(presets())),
         names_in(presets()))
      ->default_str("default");
  add_placement_options(command, options.placement, marked);
  add_calibration_options(command, options, marked);
  add_number_options(command, options);
  add_accuracy_options(command, options.accuracy);
  add_form_options(command, options, marked);
}

std::string scheme_text(Scheme scheme) {
  for (const auto& [name, known] : kSchemes)
    if (known.type == scheme.type && known.symmetric == scheme.symmetric) return name;
  return "";
}

}  // namespace bertcl::quant
