// SPDX-License-Identifier: Apache-2.0
// From a float ONNX model to one in int8: what `bertcl quantize` does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bertcl/export.h"
#include "bertcl/sequences.hpp"

namespace bertcl {

/// The usual options; all others are those of the preset (docs/quantizer.md).
struct QuantizeOptions {
  std::string preset = "default";
  std::optional<std::string> method = {};    ///< of calibration: "minmax", "percentile", ...
  std::optional<bool> smooth = {};           ///< none: as the preset, likewise below
  std::optional<bool> gptq = {};             ///< round weights by GPTQ
  std::optional<bool> bias_correction = {};  ///< take the mean error out of biases
  std::vector<std::string> exclude = {};     ///< nodes that stay float; * and ? as in file names
  std::string device = {};                   ///< as SessionOptions::device
};

struct SkippedNode {
  std::string node, reason;
};

struct QuantizeReport {
  std::string method, device;
  std::int64_t samples = 0, tokens = 0;
  std::int64_t quantized_nodes = 0;
  std::vector<SkippedNode> skipped;  ///< stayed in float
  std::int64_t float_bytes = 0;      ///< of the weights, were all of them float
  std::int64_t written_bytes = 0;    ///< of the new files
  double seconds = 0;
  std::string json;  ///< all that is known, as `bertcl quantize --json` writes it
};

/// Called with the name of a pass over the samples and how many of them are done, by the thread
/// that called quantize(). False ends it: an Error of the code `cancelled`.
using QuantizeProgress = std::function<bool(std::string_view pass, std::int64_t done)>;

/// Calibrates `model` on the samples, 100 or more of the kind that it will read, and writes
/// `output`, ordinary ONNX with QuantizeLinear and DequantizeLinear; nothing is left of it on
/// failure. The same model, samples and options give the same file on the same device. Throws Error
/// naming file, node or tensor.
BERTCL_API QuantizeReport quantize(const std::filesystem::path& model,
                                   const std::filesystem::path& output, const Sequences& samples,
                                   const QuantizeOptions& options = {},
                                   const QuantizeProgress& progress = {});

/// Samples of a SQuAD file: the first window of `count` questions, spread evenly over the file; 0:
/// of all. What `bertcl quantize --data` calibrates on.
BERTCL_API Sequences read_squad_samples(const std::filesystem::path& data,
                                        const Tokenizer& tokenizer, std::size_t count = 128,
                                        int max_length = 384);

}  // namespace bertcl
