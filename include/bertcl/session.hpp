// SPDX-License-Identifier: Apache-2.0
// A model on a device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bertcl/export.h"
#include "bertcl/sequences.hpp"
#include "bertcl/tensor.hpp"

namespace bertcl {

/// The arithmetic of float linears and attention. Quantized ones always compute in int8.
enum class Precision { fp32, fp16, bf16 };

/// How the vectors of a sequence's tokens become one.
struct Pooling {
  /// "mean" or "max" of the tokens that the mask keeps, "cls" (the first) or "last" of them; "":
  /// the model does it itself, by an output [batch, hidden].
  std::string kind = {};
  bool or_own = false;     ///< a model without hidden states does it itself, whatever the kind
  bool normalize = false;  ///< to L2 norm 1
  /// How many are kept before that, the first ones (Matryoshka); 0: all.
  std::int64_t dimensions = 0;
  /// Folders of Dense modules of sentence-transformers (config.json, model.safetensors), whose
  /// layers follow the pooling in this order; not where the model pools itself.
  std::vector<std::filesystem::path> dense = {};
};

/// The largest SessionOptions::requests.
inline constexpr int max_requests = 1024;

struct SessionOptions {
  std::string device = {};  ///< part of a name, or "gpu", "cpu"; empty: first GPU, else CPU
  Precision precision = Precision::fp32;
  int requests = 4;  ///< runs in flight at most, 1 to max_requests; each takes run_memory()
  std::int64_t max_memory = 0;   ///< bytes of weights and values; 0: what the device has
  bool require_int8 = false;     ///< Error if a quantized MatMul runs in float, or there is none
  bool allow_nonfinite = false;  ///< weights may hold NaN and infinity
  /// The outputs are replaced by one, "sentence_embedding" [batch, dimensions], pooled on the
  /// device from the hidden states. Error where there are none.
  std::optional<Pooling> pooling = {};
};

/// An input or output of a model.
struct Port {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;  ///< -1 where the extent is free
};

/// An ONNX file in memory.
struct ModelBytes {
  std::span<const std::byte> bytes;
  /// Keeps the bytes alive while the session reads them: on a CPU, where tables are read in place,
  /// for its lifetime; on other devices until it is loaded. Null: the bytes are copied first.
  std::shared_ptr<const void> owner = {};
  std::filesystem::path folder = {};  ///< of external data; empty: such data are an Error
};

/// What a model is for, by the names and shapes of its outputs.
enum class Task {
  unknown,
  question_answering,    ///< start and end logits [batch, seq], or both [batch, seq, 2]
  text_classification,   ///< logits [batch, classes]
  token_classification,  ///< logits [batch, seq, classes]
  fill_mask,             ///< logits [batch, seq, vocabulary]
  feature_extraction     ///< hidden states, or a pooled one
};

struct ModelInfo {
  std::vector<Port> inputs, outputs;
  Task task = Task::unknown;
  std::int64_t max_length = 0;  ///< tokens of the longest sequence; 0: no limit is known
  std::int64_t vocab_size = 0;  ///< rows of the token embedding table; 0: not known
  std::int64_t heads = 0;       ///< of attention; 0: none was recognized
  /// The arithmetic of float linears and attention on this device, which may not support the
  /// requested one.
  Precision precision = Precision::fp32;
  bool int8 = false;              ///< linears or attention compute in int8
  bool takes_packed = false;      ///< the model runs on packed sequences, without padding
  std::int64_t weight_bytes = 0;  ///< on the device, shared by all runs
  std::string device;             ///< its name
  std::map<std::string, std::string> metadata;  ///< metadata_props of the file
};

struct RunOptions {
  std::vector<std::string> outputs = {};  ///< names of those that are wanted; empty: all
};

/// Bytes of device memory that a session holds.
struct MemoryUse {
  std::int64_t weights = 0;  ///< shared by all runs
  std::int64_t runs = 0;     ///< each request keeps what its largest batch so far needed
  int requests = 0;          ///< that have such memory, at most SessionOptions::requests
};

/// Any thread may call it at any time: weights and programs are shared. Each run in flight has its
/// own memory; at most SessionOptions::requests are in flight, and further callers of run() wait.
class BERTCL_API Session {
 public:
  /// Reads an ONNX file, of a folder model.onnx or onnx/model.onnx in it, and compiles it for a
  /// device. Throws Error naming file, node and reason.
  static Session load(const std::filesystem::path& model, const SessionOptions& options = {});
  /// The same for the content of a file.
  static Session load(const ModelBytes& model, const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const ModelInfo& info() const;
  MemoryUse memory() const;
  /// Bytes of values that a run of `batch` sequences of `length` tokens needs, of inputs and
  /// outputs too; nothing is allocated. Throws Error where run() would.
  std::int64_t run_memory(std::int64_t batch, std::int64_t length) const;

  /// One batch. Integers may have another integer type than the model's, which must hold them;
  /// floats in place of integers are an Error. Inputs that are left out are an Error, except token
  /// types (zeros) and the mask (ones) that have the shape of the ids. Rows of padding in the
  /// outputs are 0, or what operators after the encoder make of 0, where the mask of each sequence
  /// is a prefix of ones, and what the ONNX graph gives otherwise.
  Tensors run(const Tensors& inputs, const RunOptions& options = {}) const;
  /// Sequences without padding, for models of token ids. An output [batch, seq, ...] becomes
  /// [tokens, ...] in the order of `sequences`; others, and further axes of tokens, stay as for the
  /// longest sequence. Where ModelInfo::takes_packed is false they are padded for the model, and
  /// where it has no mask for that, those of each length run apart. Where the file fixes the batch,
  /// that many run at a time, the last one repeated to make them full. Several such runs are
  /// unsupported for outputs that do not have rows of sequences or tokens.
  Tensors run(const Sequences& sequences, const RunOptions& options = {}) const;

  /// A run that is queued; its session outlives it. Without finish() its outputs are lost.
  class BERTCL_API Run {
   public:
    Run(Run&&) noexcept;
    Run& operator=(Run&&) noexcept;
    ~Run();
    /// Waits for the outputs, not for runs that were started later; once.
    Tensors finish();

   private:
    friend class Session;
    struct Impl;
    explicit Run(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
  };
  /// Queues a run and returns at once. Throws Error if SessionOptions::requests runs are in flight.
  Run start(const Tensors& inputs, const RunOptions& options = {}) const;
  /// The same; throws Error also if the model needs more than one run for the sequences.
  Run start(const Sequences& sequences, const RunOptions& options = {}) const;

 private:
  friend struct SessionAccess;
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bertcl
