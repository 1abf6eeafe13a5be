// SPDX-License-Identifier: Apache-2.0
// The quantizer: a float ONNX model and token sequences in, a Q/DQ model and a report out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "opencl/context_future.hpp"
#include "quant/calibration/observer.hpp"
#include "quant/calibration/parameters.hpp"
#include "quant/calibration/samples.hpp"
#include "quant/encoding/overrides.hpp"
#include "quant/encoding/range_rules.hpp"
#include "quant/placement/placement.hpp"
#include "quant/tables/table.hpp"
#include "quant/transforms/smooth.hpp"
#include "quant/transforms/unnormalized_softmax.hpp"
#include "quant/writing/dynamic.hpp"
#include "support/written_files.hpp"

namespace bertcl::quant {

/// Accuracy measures beyond ranges. All need samples.
struct AccuracyOptions {
  /// Move scale from channels into weights: smooth.hpp. Not with options that quantize tensors for
  /// other readers or clip GELU, which refer to the original tensors.
  bool smooth = false;
  std::optional<double> alpha{};  ///< as SmoothOptions
  bool gptq = false;              ///< round weights by GPTQ, where they are written as integers
  bool bias_correction = false;   ///< subtract the mean error of MatMuls from biases
};

struct Report;

/// What to quantize, and how. By default: asymmetric u8 at the inputs of MatMul by MinMax, the
/// residual stream in float. presets.hpp has others.
struct Options {
  std::filesystem::path model;    ///< f32 ONNX model, opset 9 or newer
  std::filesystem::path output;   ///< the Q/DQ model; large weights go to OUTPUT.data
  std::string device;             ///< as opencl::select_device
  opencl::ContextFuture context;  ///< the same, opened by the caller

  PlacementOptions placement;  ///< which tensors
  std::string method = "minmax";
  MethodOptions method_options;  ///< how ranges are found; `scheme` is that of `activations`
  int batch = 1;                 ///< samples that run together
  RangeOptions ranges;           ///< how they are changed then
  Overrides overrides;           ///< of individual tensors of the original model: no smoothing
  Scheme activations{ir::DType::u8, false};
  WeightOptions weights;
  AccuracyOptions accuracy;
  std::optional<Softmax> softmax;  ///< none: plain, but a search may choose
  bool dedicated_pairs = false;    ///< as RewriteOptions
  bool all_readers = false;        ///< as RewriteOptions
  std::int64_t opset = 0;          ///< of the file at least; 13, or the model's, if that is more
  /// Called before the model is written, if it is set: the model comes last, and where it is there,
  /// nothing is missing.
  std::function<void(const Report&)> before_output;
  /// The files that the model is added to, for the caller to commit; null: it is written alone.
  WrittenFiles* written = nullptr;
};

/// Why a model is not smoothed although `options.accuracy` asks for it: other options refer to its
/// original tensors. "" if it is.
std::string why_not_smoothed(const Options& options);

/// One quantized tensor.
struct TensorReport {
  std::string tensor;
  Role role = Role::activation;
  Range range;                  ///< used for the scale
  float scale = 0.0f;           ///< of a weight per channel: the largest
  float smallest_scale = 0.0f;  ///< the same as `scale` where there is one
  std::int32_t zero_point = 0;
  std::int64_t channels = 1;       ///< number of scales
  std::int64_t zero_channels = 0;  ///< channels of zeros alone
  std::vector<std::string> nodes;  ///< that read it
};

/// Where the scales of a model come from.
struct Origin {
  std::string method;
  std::string device{};  ///< that ran the samples
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::string data_sha256{};
  double calibrate_seconds = 0.0;
  /// Tensors whose range a histogram with more bins would give more finely (is_coarse()).
  std::vector<std::string> coarse_ranges{};
  Ranges given{};  ///< of the table that was read
  Smoothed smoothed{};
};

struct Report : Origin {
  explicit Report(Origin origin = {}) : Origin(std::move(origin)) {}

  Scheme activations;
  WeightOptions weights;
  std::int64_t expanded_nodes = 0;  ///< expand_fused()
  std::int64_t unnormalized_softmaxes = 0;
  std::vector<TensorReport> tensors;  ///< by name
  std::vector<SkippedNode> skipped;   ///< left in float, and why
  /// MatMuls with scales along another axis of the weights than the columns: no integer GEMM.
  std::vector<std::string> without_column_scales;
  /// Nodes with weights that an accuracy measure of the options leaves as they are, by "smoothing",
  /// "GPTQ" or "bias correction".
  std::map<std::string, std::vector<SkippedNode>> not_applied;
  std::int64_t gptq_weights = 0;  ///< rounded by GPTQ
  std::int64_t corrected_biases = 0;
  std::int64_t quantized_nodes = 0;
  std::int64_t quantized_outputs = 0;  ///< tensors quantized for all their readers
  std::int64_t opset_before = 0, opset_after = 0;
  std::int64_t source_file_bytes = 0;  ///< of the source, with the files of its weights
  std::int64_t source_bytes = 0;       ///< of the weights of the source
  std::int64_t float_bytes = 0;        ///< of the weights of the source, if all of them were f32
  std::int64_t written_bytes = 0;      ///< files
  double total_seconds = 0.0;          ///< since the model was read

  std::int64_t count(Role role) const;
};

/// Called with the number of samples that are done in this pass over them, 0 while kernels are
/// built.
using Progress = std::function<void(std::string_view pass, std::int64_t samples)>;

/// Calibrates `options.model` with `samples`, places Q/DQ and writes `options.output` (temporary
/// name, then renamed; nothing is left of it on failure). Deterministic: the same model, samples
/// and options give the same file on the same device. Throws Error that names file, node or tensor
/// and says what to do.
Report quantize(const Options& options, const SampleSource& samples, const Progress& progress = {});

/// The same with a scale table. If it records the origin of its ranges, as bertcl's own tables do,
/// report and file record it, too.
Report quantize_with_table(const Options& options, const ScaleTable& table);

/// Quantizes without ranges: each run quantizes the inputs of MatMuls with weights by their values,
/// as onnxruntime's quantize_dynamic, or with a scale for each token (dynamic.hpp); weights and
/// tables are quantized now. `scales` is not `calibrated`; a scale for each token means i8,
/// symmetric. There are no samples, so there is neither smoothing nor GPTQ. Throws Error besides
/// where an option asks for what has no dynamic form: operators other than MatMul and Gather,
/// quantized results, activations in another type, weights in float.
Report quantize_dynamic(const Options& options,
                        ActivationScales scales = ActivationScales::per_tensor);

/// The ranges that the quantizer used for activations, those that a table gave for other tensors,
/// and their origin.
ScaleTable scale_table_of(const Report& report);

/// The report as JSON.
nlohmann::json to_json(const Report& report);

/// Where the ranges of activations come from, and what is written beside the model.
struct JobOptions {
  bool dynamic = false;                 ///< each run finds them
  bool per_token = false;               ///< with `dynamic`: a scale for each token
  std::string read_table, write_table;  ///< files; empty: none
  std::string table_format;             ///< of the one that is written; empty: by its extension
  bool copy_companions = false;  ///< copy the files beside the model; the next two as in Companions
  std::string vocabulary;
  bool replace_companions = false;

  bool calibrates() const { return !dynamic && read_table.empty(); }
};

struct JobResult {
  Report report;
  std::vector<std::string> left_out;  ///< what the options ask for and tables neither keep nor give
  std::vector<std::string> copied;    ///< companions
  const ScaleTableFormat* read_format = nullptr;     ///< of the table that was read; null: none
  const ScaleTableFormat* written_format = nullptr;  ///< of the table that was written; null: none
  std::size_t written_ranges = 0;                    ///< of that table
};

/// Throws Error unless there is exactly one source of ranges. `data`: the name of the caller's
/// option for samples; `has_data`: whether it is given.
void check_source(const JobOptions& job, std::string_view data, bool has_data);

/// Writes `options.output` and what `job` asks for beside it; all are committed in `written`. Where
/// the ranges come from samples, `calibrate` quantizes the model by the options that it gets:
/// without smoothing and scales per channel where there are tables, which exclude them. Else
/// nothing would run it, so `check_runs` is called first, which throws if it cannot run. Throws
/// Error before any work if a file cannot be written.
JobResult run_job(Options options, const JobOptions& job, WrittenFiles& written,
                  const std::function<void()>& check_runs,
                  const std::function<Report(const Options&)>& calibrate);

/// What tables left out, which companions were copied, and the report.
nlohmann::ordered_json to_json(const JobResult& result);

}  // namespace bertcl::quant
