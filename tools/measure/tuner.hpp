// SPDX-License-Identifier: Apache-2.0
// Measures the variants of one GEMM of a model on a device, after checking their results.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "opencl/device/device.hpp"
#include "plan/arithmetic.hpp"
#include "plan/tuning.hpp"
#include "runtime/session.hpp"

namespace bertcl::tools {

/// A GEMM with constant weights, as steps of a plan have it.
struct TunedStep {
  std::string op;         // linear_q, linear
  plan::Arithmetic type;  // int8; fp32 or fp16
  plan::TunableGemm gemm;
};

/// The result for one variant.
struct Measured {
  std::string variant, layout;
  std::string wrong;  // how its results differ from those of `ref`; then it was not measured
  // By rows, of the fastest run. Fewer if it was dropped early, or divides K and the sums of its
  // parts do not fit.
  std::vector<double> us;
  std::vector<std::string> ran = {};  // of each of `us`: the default may run several variants
  std::int32_t splits = 1;            // of K
};

struct TuneResult {
  Measured standard;                      // what runs without tuning
  std::vector<Measured> variants;         // those whose kernels the device runs
  std::optional<plan::TunedGemm> chosen;  // nothing where the default stays
  bool complete = true;                   // false if the time limit was reached
};

struct TuneSettings {
  std::vector<std::int64_t> rows;  // ascending
  // Time budget: checked before the programs of a variant are built, and between runs.
  std::chrono::steady_clock::time_point deadline;
  runtime::SessionOptions session;  // with a context
};

/// The gain over all rows that a variant needs to be chosen.
inline constexpr double kMinGain = 1.03;

/// Gives `standard` the time of a variant where it ran the same and that was faster: the default
/// is measured first, when the device may be slower than later.
void use_faster_series(Measured& standard, const std::vector<Measured>& variants);

/// For each layout of weights the fastest variant by `rows`, and of the layouts the one that gains
/// most over `standard`. Nothing where the default stays. K is divided in one way, from the fewest
/// rows on, as the planner does.
std::optional<plan::TunedGemm> choose_by_rows(const TunedStep& step,
                                              const std::vector<std::int64_t>& rows,
                                              const Measured& standard,
                                              const std::vector<Measured>& variants);

/// Throws Error if the operands and results of a GEMM, on the device and compared in double on the
/// host, would take more than half of the device's memory.
void check_memory(const std::vector<TunedStep>& gemms, std::int64_t rows,
                  const opencl::DeviceInfo& device);

/// Results are compared with those of `ref` on random operands: sums in int8 exactly, quantized
/// results within one step where at most one of a thousand differs at all, floats within 1e-4
/// (fp16: 5e-3) of the largest. Every further number of rows repeats the same rows, so that all
/// results are compared.
TuneResult tune_gemm(const TunedStep& step, const TuneSettings& settings);

}  // namespace bertcl::tools
