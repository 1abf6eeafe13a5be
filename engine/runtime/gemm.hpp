// SPDX-License-Identifier: Apache-2.0
// int8 GEMMs without a model, on the OpenCL objects of a caller: what bertcl/gemm.h gives in C.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ir/dtype.hpp"
#include "opencl/context.hpp"
#include "opencl/launch/caller.hpp"
#include "plan/gemm_s8.hpp"
#include "plan/options.hpp"
#include "runtime/gemm_trial.hpp"

namespace bertcl::runtime {

/// One device of the caller's cl_context. Several threads may use it.
class GemmContext {
 public:
  /// Uses the context and the device of `queue`, which it keeps. `disabled`: variants, separated by
  /// commas.
  GemmContext(_cl_command_queue* queue, const std::string& disabled);

  const std::shared_ptr<opencl::Context>& device() const { return device_; }
  plan::Target target() const { return {*device_, options_, tuning_}; }
  /// Waits for all that the queue was given before.
  void wait() const;

 private:
  std::shared_ptr<opencl::Context> device_;
  opencl::QueueHandle queue_;
  plan::Options options_;
  plan::Tuning tuning_;
};

/// Weights as a caller gives them: s8 [k, n], or [n, k] where they are transposed, of the host or
/// in a buffer.
struct GemmWeightsDesc {
  std::int64_t k = 0, n = 0;
  const void* data = nullptr;
  _cl_mem* buffer = nullptr;
  std::size_t offset = 0;
  bool transposed = false;
  std::span<const float> scales = {};              // one, or one for each column
  std::span<const std::int32_t> zero_points = {};  // likewise; none: 0
};

/// Prepacked weights, for any number of GEMMs.
class GemmWeights {
 public:
  /// Returns when they are prepacked: what `desc` names may change then.
  GemmWeights(std::shared_ptr<const GemmContext> context, const GemmWeightsDesc& desc);

  std::int64_t n() const { return gemm_.tunable.n; }
  std::int64_t k() const { return gemm_.tunable.k; }
  /// Bytes of device memory.
  std::size_t bytes() const;

 private:
  friend class Gemm;
  /// The fastest variants that the driver launches, and memory for what they read.
  void choose_variants(const std::string& who, std::int64_t n, std::int64_t k);
  void prepack(const GemmWeightsDesc& desc);

  std::shared_ptr<const GemmContext> context_;
  plan::GemmS8 gemm_;
  plan::PrepackedS8 prepacked_;
  std::vector<float> scales_;   // [n]
  opencl::Buffer zero_points_;  // i32 [n], or none
};

/// Everything of a GEMM but its rows.
struct GemmDesc {
  ir::DType a_type = ir::DType::u8, out_type = ir::DType::f32;
  std::int32_t a_zero_point = 0;
  float a_scale = 1;
  std::span<const float> bias = {};        // [n] or none
  std::string activation = {};             // "": none
  std::span<const float> out_scales = {};  // of u8 and i8: one, or one for each column
  std::span<const std::int32_t> out_zero_points = {};
};

/// What one call reads and writes.
struct GemmCall {
  std::int64_t m = 0;
  _cl_mem* a = nullptr;
  std::size_t a_offset = 0;
  _cl_mem* out = nullptr;
  std::size_t out_offset = 0;
  _cl_mem* a_scale = nullptr;       // f32 [1], a factor
  _cl_mem* a_zero_point = nullptr;  // one byte, in place of GemmDesc::a_zero_point
  _cl_mem* row_scales = nullptr;    // f32 [m], factors
};

/// out[m, n] = requantize(activation(scale * sum of (a - a_zero) * (w - w_zero) + bias)), with its
/// programs built and, on a GPU, tried. Several threads may use it, one after the other.
class Gemm {
 public:
  Gemm(std::shared_ptr<const GemmWeights> weights, const GemmDesc& desc);

  /// Queues it and returns; `command.event` is that of its last kernel.
  void enqueue(const GemmCall& call, const opencl::Command& command);

  /// The variant that a call of m rows runs, and why no faster one.
  const std::string& variant(std::int64_t m) const;
  const std::string& why_not_faster() const { return step_.why_not_faster; }
  const GemmWeights& weights() const { return *weights_; }

 private:
  opencl::Buffer queue_row_sums(const opencl::Buffer& a, const opencl::Buffer& a_zero_point,
                                std::int32_t m, const opencl::Command& command);
  /// Builds the kernels. On a GPU drops alternatives that its driver refuses with this epilogue,
  /// and throws Error if it refuses the kernel of the others.
  void try_kernels();
  /// All that a call does not give.
  GemmArguments base_arguments() const;

  std::shared_ptr<const GemmWeights> weights_;
  GemmDesc desc_;  // without what its spans point to
  plan::Step step_;
  opencl::Kernel row_sums_;  // none where the weights have no zero points
  opencl::Buffer scale_, bias_, out_inv_scale_, out_zero_point_;
  std::mutex mutex_;  // held while the arguments of a kernel are set and it is queued
};

}  // namespace bertcl::runtime
