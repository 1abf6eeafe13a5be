// SPDX-License-Identifier: Apache-2.0
// Subtracts the mean error of quantized MatMuls from the biases after them.
#pragma once
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "opencl/context.hpp"
#include "quant/calibration/sample_pass.hpp"
#include "quant/encoding/encode.hpp"
#include "quant/graph/constants.hpp"
#include "quant/graph/graph_index.hpp"
#include "quant/graph/structure.hpp"
#include "quant/placement/placement.hpp"

namespace bertcl::quant {

/// What quantization does to a tensor x, by channel.
struct ChannelShift {
  std::vector<double> mean;   ///< of x
  std::vector<double> shift;  ///< mean of Q/DQ(x) - x
};

/// Collects ChannelShift of one tensor on the device.
class ShiftObserver {
 public:
  /// Q/DQ is that of `parameters` in integers of `type`, u8 or i8. `tensor` is named in messages.
  ShiftObserver(opencl::Context& context, std::string tensor, Parameters parameters, ir::DType type)
      : context_(&context), tensor_(std::move(tensor)), parameters_(parameters), type_(type) {}

  /// Queues taking in `values` [rows][channels].
  void observe(const opencl::Buffer& values, std::int64_t rows, std::int64_t channels);
  /// Waits. Throws Error naming the tensor if nothing was observed.
  ChannelShift shift() const;

 private:
  opencl::Context* context_;
  std::string tensor_;
  Parameters parameters_;
  ir::DType type_;
  opencl::Buffer state_;
  std::int64_t channels_ = 0, rows_ = 0;
};

/// E[x_q W_q] - E[x W] by column: shift W_q + mean (W_q - W).
std::vector<double> output_shift(const ChannelShift& x, std::span<const float> weight,
                                 const QuantizedConstant& quantized);

/// A bias [columns] to be read by input `input` of the Add `node` in place of `tensor`.
struct BiasCorrection {
  int node = 0;
  int input = 0;
  std::string tensor;
  ir::Tensor corrected_bias;
};

struct CorrectedBiases {
  std::map<int, BiasCorrection> by_site;  ///< by its node
  std::vector<SkippedNode> skipped;       ///< other nodes with weights
};

/// For each site x W with constant W and one reader of its result, the Add of a constant bias that
/// is not a site itself: bias - output_shift() (Nagel et al., "Data-Free Quantization", 2019, with
/// means that are measured over samples in place of derived ones). x is that of the float model, so
/// that each correction holds whatever else is quantized.
CorrectedBiases correct_biases(const Encodings& encodings, const Placement& placement,
                               const GraphIndex& index, Constants& constants,
                               const Structure& structure, const Workspace& workspace,
                               std::span<const Sample> samples, const PassProgress& progress = {});

}  // namespace bertcl::quant
