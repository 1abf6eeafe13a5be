// SPDX-License-Identifier: Apache-2.0
// Measures the variants of one GEMM of a model on a device, after checking their results.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/tuning.hpp"
#include "runtime/session.hpp"

namespace bertcl::tools {

/// A GEMM with constant weights, as steps of a plan have it.
struct TunedStep {
  std::string op, type;  // linear_q in int8; linear in fp32 or fp16
  plan::TunableGemm gemm;
};

/// The result for one variant.
struct Measured {
  std::string variant, layout;
  std::string wrong;       // how its results differ from those of `ref`; then it was not measured
  std::vector<double> us;  // by rows, of the fastest run; fewer if it was dropped early
};

struct TuneResult {
  Measured standard;  // what runs without tuning
  std::vector<Measured> variants;
  std::optional<plan::TunedGemm> chosen;  // nothing where the default stays
  bool complete = true;                   // false if the time limit was reached
};

struct TuneSettings {
  std::vector<std::int64_t> rows;                  // ascending
  std::chrono::steady_clock::time_point deadline;  // no program is built and no run begins after it
  runtime::SessionOptions session;                 // with a context
};

/// The gain over all rows that a variant needs to be chosen.
inline constexpr double kLeastGain = 1.03;

/// Results are compared with those of `ref` on random operands: sums in int8 exactly, quantized
/// results within one step where at most one of a thousand differs at all, floats within 1e-4
/// (fp16: 5e-3) of the largest. Every further number of rows repeats the same rows, so that all
/// results are compared.
TuneResult tune_gemm(const TunedStep& step, const TuneSettings& settings);

}  // namespace bertcl::tools
