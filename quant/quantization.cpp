// SPDX-License-Identifier: Apache-2.0
// The quantizer's work before and after calibration.
#include "quant/quantization.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bertcl/error.hpp"
#include "ir/copy.hpp"
#include "quant/checks.hpp"
#include "quant/graph/graph_edit.hpp"
#include "quant/graph/opset.hpp"
#include "quant/placement/nested_matmuls.hpp"
#include "quant/writing/rewrite.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "support/pending_file.hpp"

namespace bertcl::quant {
namespace {

std::string scheme_name(Scheme s) {
  return fmt::format("{} {}{}", ir::name_of(s.type), s.symmetric ? "symmetric" : "asymmetric",
                     s.used_bits() == 8 ? "" : fmt::format(" {} bits", s.used_bits()));
}

void set_metadata(onnx::ModelProto& model, const std::string& key, const std::string& value) {
  for (auto& entry : *model.mutable_metadata_props())
    if (entry.key() == key) return entry.set_value(value);
  auto* entry = model.add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
}

void record(onnx::ModelProto& model, const Report& report) {
  set_metadata(model, "bertcl.quantizer.method", report.method);
  set_metadata(model, "bertcl.quantizer.activations", scheme_name(report.activations));
  set_metadata(model, "bertcl.quantizer.weights",
               scheme_name(report.weights.scheme) +
                   (report.weights.per_channel ? " per channel" : " per tensor") +
                   (report.weights.scale == WeightScale::mse ? ", mse scales" : ""));
  set_metadata(model, "bertcl.quantizer.smoothed", std::to_string(report.smoothed.tensors.size()));
  set_metadata(model, "bertcl.quantizer.gptq", std::to_string(report.gptq_weights));
  if (report.corrected_biases > 0)
    set_metadata(model, "bertcl.quantizer.corrected_biases",
                 std::to_string(report.corrected_biases));
  if (report.unnormalized_softmaxes > 0)
    set_metadata(model, "bertcl.quantizer.softmax", "unnormalized");
  set_metadata(model, "bertcl.quantizer.samples", std::to_string(report.samples));
  set_metadata(model, "bertcl.quantizer.tokens", std::to_string(report.tokens));
  set_metadata(model, "bertcl.quantizer.data_sha256", report.data_sha256);
}

/// A table of another program has no ranges of what is inside of fused operators. FusedMatMul may
/// have nothing inside: then all that its MatMuls need is named.
bool knows_expanded(const ScaleTable& table, const Options& options, Workspace& workspace) {
  const auto has = [&](const std::string& tensor) { return table.ranges.contains(tensor); };
  const Expanded& expanded = workspace.expanded();
  if (expanded.count == 0 || std::ranges::any_of(expanded.tensors, has)) return true;
  try {
    return std::ranges::all_of(Quantization(options, workspace).activations(), has);
  } catch (const Error&) {  // the options may suit whole operators alone
    return false;
  }
}

std::set<std::string> tensors_of(const Placement& placement, Role role) {
  std::set<std::string> tensors;
  for (const Site& site : placement.sites)
    for (const Operand& operand : site.operands)
      if (operand.role == role) tensors.insert(operand.tensor);
  return tensors;
}

TensorReport tensor_report(const std::string& tensor, const Encoding& e) {
  TensorReport t{
      tensor, e.role, e.range, e.parameters.scale, e.parameters.scale, e.parameters.zero_point,
      1,      0,      e.nodes};
  if (e.role != Role::activation && !e.constant.scales.empty()) {
    const auto& scales = e.constant.scales;
    const auto [min, max] = std::minmax_element(scales.begin(), scales.end());
    t.smallest_scale = *min;
    t.scale = *max;
    t.channels = std::ssize(scales);
    t.zero_channels = e.constant.zero_channels;
  }
  return t;
}

}  // namespace

TypeOf Quantization::type_of() const {
  return [this](const std::string& tensor) { return workspace_.type_of(tensor); };
}

/// The results of Softmax that can be unnormalized if their MatMul is quantized.
std::set<std::string> Quantization::unnormalizable() const {
  return unnormalizable_softmaxes(placement_, index_, structure_, type_of());
}

Quantization::Quantization(const Options& options, Workspace& workspace, ActivationScales scales)
    : options_(options),
      workspace_(workspace),
      scales_(scales),
      model_((check_output(), load())),
      index_(model_.graph()),
      constants_(model_, index_),
      structure_(recognize(ir::copy(workspace.graph()), index_)),
      placement_(place(index_, constants_, structure_, options.placement, type_of(),
                       workspace.expanded().unexpanded, nested_matmuls(model_.proto()))),
      unnormalized_(options.softmax == Softmax::unnormalized ? unnormalizable()
                                                             : std::set<std::string>()) {
  check_types(options);
  if (scales != ActivationScales::calibrated) keep_dynamic(placement_, index_);
}

/// Throws Error if the output overwrites the model, or cannot be written.
void Quantization::check_output() const {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::equivalent(options_.model, options_.output, ignored))
    fail("{}: the model would overwrite itself; give another output", options_.output.string());
  // The second is written where the weights are beyond protobuf's limit.
  for (const auto& made : {options_.output, fs::path(options_.output.string() + ".data")})
    for (const auto& weights : workspace_.weight_files())
      if (fs::equivalent(weights, made, ignored))
        fail("{} would overwrite weights of {}; give another output", made.string(),
             options_.model.string());
  if (is_special_file(options_.output))
    fail("{}: it is a device or a pipe; name a file for the model", options_.output.string());
  const auto folder = options_.output.parent_path();
  if (!folder.empty() && !fs::is_directory(folder))
    fail("{}: its folder does not exist", options_.output.string());
}

/// The model at an opset that knows per-axis Q/DQ.
Model Quantization::load() const {
  Model model = workspace_.model().copy();
  check_float(model.graph(), model.path());
  raise_opset(model, type_of(), options_.opset);
  return model;
}

std::set<std::string> Quantization::channel_tensors() const {
  return tensors_of(placement_, Role::channels);
}

std::set<std::string> Quantization::activations() const {
  std::set<std::string> tensors = tensors_of(placement_, Role::activation);
  tensors.insert(placement_.outputs.begin(), placement_.outputs.end());
  for (const std::string& tensor : unnormalized_) tensors.erase(tensor);
  return tensors;
}

std::vector<std::string> Quantization::nodes_quantizing(const std::string& tensor) const {
  std::vector<std::string> nodes;
  const auto has = [&](const auto& tensors) {
    return std::ranges::find(tensors, tensor) != tensors.end();
  };
  for (const Site& site : placement_.sites)
    if (const onnx::NodeProto& node = index_.node(site.node); has(node.input()))
      nodes.push_back(label_of(node));
  if (has(placement_.outputs)) nodes.push_back(label_of(index_.node(index_.producer(tensor))));
  return nodes;
}

Smoothed Quantization::smooth(std::span<const Sample> samples, const PassProgress& progress) {
  const AccuracyOptions& accuracy = options_.accuracy;
  const SmoothOptions options{accuracy.alpha, options_.activations, options_.weights,
                              options_.ranges.symmetric, accuracy.gptq};
  Smoothed result =
      smooth_model(model_, index_, constants_, placement_, options, workspace_, samples, progress);
  if (!result.tensors.empty()) workspace_.replace(std::move(model_));
  return result;
}

void Quantization::encode(Ranges ranges, ChannelRanges channels) {
  apply(options_.ranges, options_.weights, index_, constants_, structure_, ranges, channels);
  for (const std::string& tensor : unnormalized_) {
    ranges[tensor] = kExponentials;
    if (const auto it = options_.overrides.find(tensor); it != options_.overrides.end())
      fail("{}: an unnormalized Softmax has a known range; overrides need {}", it->second.place,
           option_name("softmax", "plain"));
  }
  const std::int64_t largest_activation = scales_ == ActivationScales::calibrated  ? 0
                                          : scales_ == ActivationScales::per_token ? 127
                                                                                   : 255;
  encodings_ = quant::encode(placement_, index_, constants_, ranges,
                             {options_.activations, options_.weights, std::move(channels),
                              options_.overrides, largest_activation});
}

void Quantization::round_weights(std::span<const Sample> samples, const PassProgress& progress) {
  rounded_ = quant::round_weights(encodings_, placement_, index_, constants_, workspace_, samples,
                                  progress);
}

void Quantization::correct_biases(std::span<const Sample> samples, const PassProgress& progress) {
  corrected_ = quant::correct_biases(encodings_, placement_, index_, constants_, structure_,
                                     workspace_, samples, progress);
}

/// The Softmax results that are unnormalized in `part`.
std::set<std::string> Quantization::unnormalized_of(const Placement& part, bool unnormalize) const {
  std::set<std::string> all = unnormalize ? unnormalizable() : unnormalized_;
  for (const auto& [tensor, override_] : options_.overrides) all.erase(tensor);
  // Without those whose MatMul is not in this part.
  std::set<std::string> unnormalized = tensors_of(part, Role::activation);
  std::erase_if(unnormalized, [&](const std::string& tensor) { return !all.contains(tensor); });
  return unnormalized;
}

/// The encodings that `part` uses, read by its nodes alone.
Encodings Quantization::encodings_of(const Placement& part,
                                     const std::set<std::string>& unnormalized) const {
  Encodings used;
  std::set<std::string> left;  // nodes
  for (const Site& site : placement_.sites) left.insert(label_of(index_.node(site.node)));
  for (const Site& site : part.sites) {
    left.erase(label_of(index_.node(site.node)));
    for (const Operand& o : site.operands) used.insert(*encodings_.find({o.tensor, o.role}));
  }
  for (const std::string& tensor : part.outputs)
    used.insert(*encodings_.find({tensor, Role::activation}));
  for (auto& [key, encoding] : used)
    std::erase_if(encoding.nodes, [&](const std::string& node) { return left.contains(node); });
  for (const std::string& tensor : unnormalized) {
    Encoding& exponentials = used.at({tensor, Role::activation});
    exponentials.range = kExponentials;
    exponentials.parameters = parameters_of(kExponentials, options_.activations);
  }
  return used;
}

std::vector<std::string> Quantization::without_column_scales(const Placement& part) const {
  std::vector<std::string> nodes;
  for (const Site& site : part.sites)
    for (const Operand& operand : site.operands) {
      const auto& node = index_.node(site.node);
      if (operand.role != Role::weight || !is_op(node, "MatMul")) continue;
      const QuantizedConstant& weight = encodings_.at({operand.tensor, operand.role}).constant;
      const auto columns = static_cast<int>(weight.values.shape().size()) - 1;
      if (weight.axis >= 0 && weight.axis != columns) nodes.push_back(label_of(node));
    }
  return nodes;
}

std::vector<SkippedNode> Quantization::not_rounded_by_gptq(const Placement& part) const {
  std::vector<SkippedNode> nodes;
  for (const Site& site : part.sites)
    for (const Operand& operand : site.operands)
      if (const auto it = rounded_.nearest.find(operand.tensor);
          operand.role == Role::weight && it != rounded_.nearest.end())
        nodes.push_back(
            {label_of(index_.node(site.node)), index_.node(site.node).op_type(), it->second});
  return nodes;
}

/// Gives the part's MatMuls their corrected biases. Returns the biases of before.
std::vector<std::string> Quantization::replace_biases(Model& model, const Placement& part) const {
  std::vector<std::string> before;
  for (const Site& site : part.sites) {
    const auto it = corrected_.by_site.find(site.node);
    if (it == corrected_.by_site.end()) continue;
    const BiasCorrection& c = it->second;
    model.proto().mutable_graph()->mutable_node(c.node)->set_input(
        c.input, model.add(model.fresh_name(c.tensor + "_corrected"), c.corrected_bias));
    before.push_back(c.tensor);
  }
  return before;
}

Model Quantization::quantized(const Placement& part, bool unnormalize) const {
  Model model = load();
  const GraphIndex index(model.graph());
  Constants constants(model, index);
  const auto results = matmul_results(part, index);
  Sources biases;
  for (const std::string& bias : replace_biases(model, part)) constants.collect(bias, biases);
  const auto unnormalized = unnormalized_of(part, unnormalize);
  rewrite(model, part, encodings_of(part, unnormalized), index, constants,
          {options_.weights.as_float, options_.dedicated_pairs, options_.all_readers,
           options_.weights.transposed});
  unnormalize_softmax(model, unnormalized, structure_);
  if (scales_ != ActivationScales::calibrated) quantize_dynamically(model, results, scales_);
  remove_unread(model, biases);
  return model;
}

Report Quantization::write(const Placement& part, bool unnormalize, const Origin& origin) const {
  const auto unnormalized = unnormalized_of(part, unnormalize);
  Model made = quantized(part, unnormalize);
  Report report(origin);
  report.activations =
      scales_ == ActivationScales::per_token ? Scheme{ir::DType::i8, true} : options_.activations;
  report.weights = options_.weights;
  report.weights.scheme = options_.weights.used_scheme();
  report.expanded_nodes = workspace_.expanded().count;
  report.unnormalized_softmaxes = std::ssize(unnormalized);
  for (const auto& [key, encoding] : encodings_of(part, unnormalized)) {
    report.tensors.push_back(tensor_report(key.first, encoding));
    report.gptq_weights += encoding.role == Role::weight && rounded_.rounded.contains(key.first);
  }
  report.skipped = part.skipped;
  report.without_column_scales = without_column_scales(part);
  report.not_applied = {{"smoothing", origin.smoothed.skipped},
                        {"GPTQ", not_rounded_by_gptq(part)},
                        {"bias correction", corrected_.skipped}};
  if (options_.softmax == Softmax::unnormalized)
    report.not_applied["unnormalized Softmax"] =
        normalized_softmaxes(unnormalized, index_, structure_, type_of());
  std::erase_if(report.not_applied, [](const auto& measure) { return measure.second.empty(); });
  report.corrected_biases = std::ranges::count_if(
      part.sites, [&](const Site& site) { return corrected_.by_site.contains(site.node); });
  report.quantized_nodes = std::ssize(part.sites);
  report.quantized_outputs = std::ssize(part.outputs);
  report.opset_before = workspace_.source().opset;
  report.opset_after = opset_of(made.proto());
  report.source_file_bytes = workspace_.source().file_bytes;
  report.source_bytes = workspace_.source().weight_bytes;
  report.float_bytes = workspace_.source().weight_bytes_as_f32;
  record(made.proto(), report);
  if (options_.before_output) options_.before_output(report);
  report.written_bytes = options_.written ? made.add_to(*options_.written, options_.output)
                                          : made.save(options_.output);
  report.total_seconds = workspace_.seconds_since_read();
  return report;
}

std::int64_t Report::count(Role role) const {
  return std::ranges::count_if(tensors, [&](const TensorReport& t) { return t.role == role; });
}

Report quantize_dynamic(const Options& options, ActivationScales scales) {
  check_dynamic(options, scales);
  Workspace workspace(options.model);
  Quantization quantization(options, workspace, scales);
  quantization.encode({});
  const bool per_token = scales == ActivationScales::per_token;
  return quantization.write(quantization.placement(), false,
                            {.method = per_token ? "dynamic per token" : "dynamic"});
}

/// Refuses a table of the same model in another form: optimizers name tensors anew. Where nothing
/// is fused, the encoder tells of ranges that are missing.
void check_ranges(const Options& options, const ScaleTable& table, const Quantization& quantization,
                  std::int64_t fused, bool expanded) {
  if (fused == 0) return;
  for (const std::string& tensor : quantization.activations())
    if (!table.ranges.contains(tensor))
      fail(
          "{}: the table does not name tensor '{}'; {} fused operators of this file were {}: give "
          "the file that the table was made from, or make a table of this one ({})",
          options.model.string(), tensor, fused,
          expanded
              ? "expanded into MatMuls"
              : "not expanded, because the table has no ranges of tensors inside them and not all "
                "that their MatMuls need",
          option_name("write-table"));
}

Report quantize_with_table(const Options& options, const ScaleTable& table) {
  std::optional<Workspace> workspace(std::in_place, options.model);
  const std::int64_t fused = workspace->expanded().count;
  const bool expanded = knows_expanded(table, options, *workspace);
  if (!expanded) workspace.emplace(options.model, FusedOperators::whole);
  Quantization quantization(options, *workspace);
  check_ranges(options, table, quantization, fused, expanded);
  quantization.encode(table.ranges);
  return quantization.write(quantization.placement(), false,
                            {.method = table.method.empty() ? "given ranges" : table.method,
                             .samples = table.samples,
                             .tokens = table.tokens,
                             .data_sha256 = table.data_sha256,
                             .given = table.ranges});
}

}  // namespace bertcl::quant
