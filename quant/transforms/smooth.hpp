// SPDX-License-Identifier: Apache-2.0
// Moves scale from the channels of an activation into the weights it is multiplied with.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quant/calibration/channel_statistics.hpp"
#include "quant/calibration/parameters.hpp"
#include "quant/calibration/sample_pass.hpp"
#include "quant/encoding/encode.hpp"
#include "quant/graph/constants.hpp"
#include "quant/graph/graph_index.hpp"
#include "quant/graph/model.hpp"
#include "quant/placement/placement.hpp"

namespace bertcl::quant {

/// An activation whose channels may be scaled: all its quantized readers are MatMuls x W with
/// constant W that nothing else reads.
struct SmoothTarget {
  std::string tensor;
  std::vector<int> nodes;            ///< the MatMuls
  std::vector<std::string> weights;  ///< their second inputs
};

/// The targets of a placement, by tensor. Results of Reshape, Transpose and the like are excluded:
/// a factor there would cost a pass over memory, and belongs before them.
std::vector<SmoothTarget> smooth_targets(const GraphIndex& index, Constants& constants,
                                         const Placement& placement);

/// Channel factors s of one activation: x / s is quantized, row k of each W is multiplied by s[k].
struct Smoothing {
  std::string tensor;
  std::vector<float> factors;                    ///< empty: nothing would be gained
  std::string choice;                            ///< the formula, for reports
  double error_before = 0.0, error_after = 0.0;  ///< expected_error() without and with factors
};

/// A weight [channels][columns].
struct WeightView {
  std::span<const float> values;
  std::int64_t columns = 0;
};

/// How factors are chosen, and how x / s and s W are then quantized.
struct SmoothOptions {
  /// s = max|x|^alpha / max|W|^(1 - alpha) by channel, as SmoothQuant (Xiao et al., 2022). Empty:
  /// the formula of least expected error, of that one with several alpha and of
  /// max(1, max|x| / (m median of max|x|))^alpha, which touches outliers alone.
  std::optional<double> alpha{};
  Scheme activations{};
  WeightOptions weights{};
  bool symmetric_ranges = false;  ///< as RangeOptions
  bool gptq = false;              ///< as AccuracyOptions
};

/// Mean squared error to expect in the MatMuls x W when x / s and s W are quantized: with steps
/// evenly spread, each value of x / s errs by its step^2 / 12, and each of s W by that of its
/// column, row or matrix, as `options` say; GPTQ leaves about half of the latter. Summed over
/// columns, per row of x.
double expected_error(const ChannelStatistics& x, std::span<const WeightView> weights,
                      std::span<const float> factors, const SmoothOptions& options);

/// Chooses the factors of one target; their geometric mean is 1.
Smoothing choose_factors(const std::string& tensor, const ChannelStatistics& x,
                         std::span<const WeightView> weights, const SmoothOptions& options);

/// Puts x -> Mul(1 / s) in front of the targets' MatMuls and scales their weights; the float model
/// computes what it did. Other readers of x keep it as it is. `smoothings` are in the order of
/// `targets`.
void apply_smoothing(Model& model, std::span<const SmoothTarget> targets,
                     std::span<const Smoothing> smoothings);

/// What smoothing did with a model.
struct Smoothed {
  std::vector<Smoothing> tensors{};
  std::string why_not{};               ///< why_not_smoothed()
  std::vector<SkippedNode> skipped{};  ///< nodes with weights that it leaves as they are
};

/// Gathers statistics of the channels of all smooth_targets() of `placement` by running the model
/// of the workspace, of which `model` is a copy, chooses factors and applies them to `model`; its
/// function stays the same. If no tensor gains, `model` is as it was. `index` and `constants` are
/// not valid afterwards.
Smoothed smooth_model(Model& model, const GraphIndex& index, Constants& constants,
                      const Placement& placement, const SmoothOptions& options,
                      const Workspace& workspace, std::span<const Sample> samples,
                      const PassProgress& progress = {});

}  // namespace bertcl::quant
