// SPDX-License-Identifier: Apache-2.0
// The quantizer's work before and after calibration.
#pragma once
#include <set>
#include <span>
#include <string>
#include <vector>

#include "quant/calibration/sample_pass.hpp"
#include "quant/encoding/encode.hpp"
#include "quant/graph/constants.hpp"
#include "quant/graph/graph_index.hpp"
#include "quant/graph/model.hpp"
#include "quant/graph/workspace.hpp"
#include "quant/placement/placement.hpp"
#include "quant/placement/quantized_op.hpp"
#include "quant/quantizer.hpp"
#include "quant/transforms/bias_correction.hpp"
#include "quant/transforms/round_weights.hpp"
#include "quant/transforms/smooth.hpp"
#include "quant/writing/dynamic.hpp"

namespace bertcl::quant {

/// The quantization of one model: placed by the constructor, encoded, written. `options` and
/// `workspace` must live as long. The constructor throws Error for all that can be known before
/// calibration: files, opset, placement.
class Quantization {
 public:
  Quantization(const Options& options, Workspace& workspace,
               ActivationScales scales = ActivationScales::calibrated);
  Quantization(const Quantization&) = delete;
  Quantization& operator=(const Quantization&) = delete;

  /// The tensors that need a range; none if each run measures them.
  std::set<std::string> activations() const;
  /// The tensors that need per-channel ranges.
  std::set<std::string> channel_tensors() const;
  /// The nodes to exclude so that the tensor needs none.
  std::vector<std::string> nodes_quantizing(const std::string& tensor) const;
  /// Smooths the model of the workspace, if that reduces the error. Ends the use of this object.
  Smoothed smooth(std::span<const Sample> samples, const PassProgress& progress);
  /// Encodes the placement with these ranges. What cannot be encoded leaves the placement.
  void encode(Ranges ranges, ChannelRanges channels = {});
  /// Rounds the encoded weights again, by GPTQ.
  void round_weights(std::span<const Sample> samples, const PassProgress& progress);
  /// Finds the biases that cancel the mean error of MatMuls over the samples.
  void correct_biases(std::span<const Sample> samples, const PassProgress& progress);
  const Placement& placement() const { return placement_; }
  std::vector<QuantizedOp> ops() const { return quantized_ops(placement_, index_, structure_); }
  /// True if the options leave the choice where Softmax could be unnormalized.
  bool can_unnormalize() const {
    return !options_.softmax && !unnormalized_of(placement_, true).empty();
  }
  /// The model with Q/DQ for a part of the encoded placement; `unnormalize`: with unnormalized
  /// Softmax also where the options leave it plain.
  Model quantized(const Placement& part, bool unnormalize) const;
  /// Writes the same to the options' output.
  Report write(const Placement& part, bool unnormalize, const Origin& origin) const;

 private:
  void check_output() const;
  Model load() const;
  TypeOf type_of() const;
  std::set<std::string> unnormalizable() const;
  std::set<std::string> unnormalized_of(const Placement& part, bool unnormalize) const;
  Encodings encodings_of(const Placement& part, const std::set<std::string>& unnormalized) const;
  std::vector<std::string> without_column_scales(const Placement& part) const;
  std::vector<SkippedNode> not_rounded_by_gptq(const Placement& part) const;
  std::vector<std::string> replace_biases(Model& model, const Placement& part) const;

  const Options& options_;
  Workspace& workspace_;
  const ActivationScales scales_;
  Model model_;
  GraphIndex index_;
  Constants constants_;
  Structure structure_;
  Placement placement_;
  const std::set<std::string> unnormalized_;  // known to be in kExponentials
  Encodings encodings_;
  RoundedWeights rounded_;  // by GPTQ
  CorrectedBiases corrected_;
};

}  // namespace bertcl::quant
