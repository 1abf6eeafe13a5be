// SPDX-License-Identifier: Apache-2.0
// From a float ONNX model to one in int8: what `bertcl quantize` does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bertcl/export.h"
#include "bertcl/sequences.hpp"

namespace bertcl {

/// The usual options by name, the others as `settings`; what is not given is as the preset has it
/// (docs/quantizer.md).
struct QuantizeOptions {
  std::string preset = "default";
  std::optional<std::string> method = {};    ///< of calibration: "minmax", "percentile", ...
  std::optional<bool> smooth = {};           ///< none: as the preset, likewise below
  std::optional<bool> gptq = {};             ///< round weights by GPTQ
  std::optional<bool> bias_correction = {};  ///< take the mean error out of biases
  std::vector<std::string> exclude = {};     ///< nodes that stay float; * and ? as in file names
  std::string device = {};                   ///< as SessionOptions::device
  /// Any other option of `bertcl quantize` for what is quantized, and how: its name without "--"
  /// (per-tensor or per_tensor), and its value, "" for a flag: {"activations", "i8"},
  /// {"per_tensor", ""}.
  std::vector<std::pair<std::string, std::string>> settings = {};

  // Other sources of ranges. Both take no samples.
  bool dynamic = false;    ///< each run finds them
  bool per_token = false;  ///< with `dynamic`: a scale for each token
  std::filesystem::path read_table = {};

  std::filesystem::path write_table = {};  ///< also write the ranges
  std::string table_format = {};           ///< by name; empty: by the extension of the table
  /// Copy vocabulary, tokenizer and config.json of the model beside the output. Throws Error before
  /// any work if the folder holds those of another model.
  bool copy_companions = false;
  std::filesystem::path vocabulary = {};  ///< the one to copy; empty: that beside the model
  bool replace_companions = false;        ///< that differ
};

/// The flags among QuantizeOptions::settings, named with _ between words, each with the one that
/// undoes it ("head", "no_head"); "" where it is only off by default.
BERTCL_API std::map<std::string, std::string> quantizer_flags();

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
  std::vector<std::string> copied;  ///< companions
  std::string json;                 ///< all that is known, as `bertcl quantize --json` writes it
};

/// Called with the name of a pass over the samples and how many of them are done, by the thread
/// that called quantize(). False ends it: an Error of the code `cancelled`.
using QuantizeProgress = std::function<bool(std::string_view pass, std::int64_t done)>;

/// Calibrates `model` on the samples, 100 or more of the kind that it will read (none where the
/// options name another source of ranges), and writes `output`, ordinary ONNX with QuantizeLinear
/// and DequantizeLinear, and what the options want beside it: all of them or, on an Error, none. An
/// `output` that exists is replaced, as the last of them. The same model, samples and options give
/// the same file on the same device. Throws Error naming file, node or tensor.
BERTCL_API QuantizeReport quantize(const std::filesystem::path& model,
                                   const std::filesystem::path& output, const Sequences& samples,
                                   const QuantizeOptions& options = {},
                                   const QuantizeProgress& progress = {});

/// Which samples of a file, and how long.
struct SampleOptions {
  /// "question-answering": the first window of a question of a SQuAD file; "text": what fits of
  /// a text, of any of the files that `bertcl quantize --task text` reads; "classify", "tag",
  /// "fill-mask", "similarity": of an item of such a file (docs/tasks.md).
  std::string task = "question-answering";
  std::size_t count = 128;    ///< spread evenly over the file; 0: all
  bool first = false;         ///< the first of the file instead
  int max_length = 384;       ///< tokens of a sample
  int max_query_length = 64;  ///< tokens of its question
};

/// What `bertcl quantize --data` calibrates on. Throws Error if the data are not those of the task.
BERTCL_API Sequences read_samples(const std::filesystem::path& data, const Tokenizer& tokenizer,
                                  const SampleOptions& options = {});

/// The same of a SQuAD file.
BERTCL_API Sequences read_squad_samples(const std::filesystem::path& data,
                                        const Tokenizer& tokenizer, std::size_t count = 128,
                                        int max_length = 384);

}  // namespace bertcl
