// SPDX-License-Identifier: Apache-2.0
// A model on a device.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bertcl/export.h"
#include "bertcl/sequences.hpp"
#include "bertcl/tensor.hpp"

namespace bertcl {

/// The arithmetic of float linears and attention. Quantized ones always compute in int8.
enum class Precision { fp32, fp16, bf16 };

struct SessionOptions {
  std::string device = {};  ///< part of a name, or "gpu", "cpu"; empty: first GPU, else CPU
  Precision precision = Precision::fp32;
  int requests = 4;              ///< most runs in flight; each takes an arena
  std::int64_t max_memory = 0;   ///< bytes of weights and values; 0: what the device has
  bool require_int8 = false;     ///< Error if a MatMul that the file quantizes runs in float
  bool allow_nonfinite = false;  ///< weights may hold NaN and infinity
};

/// An input or output of a model.
struct Port {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;  ///< -1 where the extent is free
};

struct ModelInfo {
  std::vector<Port> inputs, outputs;
  std::int64_t max_length = 0;  ///< tokens of the longest sequence; 0: no limit is known
  std::int64_t vocabulary = 0;  ///< rows of the word table; 0: not known
  std::int64_t heads = 0;       ///< of attention; 0: none was recognized
  bool int8 = false;            ///< linears or attention compute in int8
  std::string device;           ///< its name
};

/// Any thread may call it at any time: weights and programs are shared. Each run in flight has its
/// own memory; at most SessionOptions::requests are in flight, and further callers of run() wait.
class BERTCL_API Session {
 public:
  /// Reads an ONNX file and compiles it for a device. Throws Error naming file, node and reason.
  static Session load(const std::filesystem::path& model, const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const ModelInfo& info() const;

  /// One batch. Integer inputs may be i32 or i64. Inputs that are left out are an Error, except
  /// token types (zeros) and the mask (ones). Rows of padding in the outputs are 0 where the mask
  /// of each sequence is a prefix of ones, and what the ONNX graph gives otherwise.
  Tensors run(const Tensors& inputs) const;
  /// Sequences without padding, for models of token ids. An output [batch, seq, ...] becomes
  /// [tokens, ...] in the order of `sequences`; others stay.
  Tensors run(const Sequences& sequences) const;

  /// A run that is queued; its session outlives it. Without finish() its outputs are lost.
  class BERTCL_API Run {
   public:
    Run(Run&&) noexcept;
    ~Run();
    /// Waits for the outputs; once.
    Tensors finish();

   private:
    friend class Session;
    struct Impl;
    explicit Run(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
  };
  /// Queues a run and returns immediately. Throws Error if SessionOptions::requests are in flight.
  Run start(const Tensors& inputs) const;

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bertcl
