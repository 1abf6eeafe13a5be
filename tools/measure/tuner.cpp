// SPDX-License-Identifier: Apache-2.0
// Measures the variants of one GEMM of a model on a device, after checking their results.
#include "tools/measure/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <utility>

#include "ir/graph.hpp"
#include "kernels/variants.hpp"
#include "opencl/queue.hpp"
#include "ops/operands.hpp"
#include "plan/report.hpp"
#include "support/fail.hpp"

namespace bertcl::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPeriod = 129;  // rows of the operand that repeat: more than a tile has
constexpr double kTooSlow = 4;         // this many times the fastest: no further rows
constexpr double kSecondsOfSeries = 0.05;
// Before a series. A run of microseconds wakes the device's threads and fills its caches only when
// repeated.
constexpr auto kWarmUp = std::chrono::milliseconds(20);
constexpr int kMaxRuns = 20, kMinRuns = 3;

template <class T>
ir::Tensor random_tensor(ir::Sizes shape, int lowest, int highest, double scale, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<T> values(ir::element_count(shape));
  const auto range = static_cast<unsigned>(highest - lowest + 1);
  for (T& value : values)
    value = static_cast<T>(scale * (lowest + static_cast<int>((random() >> 8) % range)));
  return ir::Tensor::of(std::move(shape), std::move(values));
}

/// The graph of the GEMM alone. In int8: its sums as they are, or the whole epilogue.
ir::Graph graph_of(const TunedStep& step, bool with_epilogue) {
  const std::int64_t n = step.gemm.n, k = step.gemm.k;
  const bool integer = step.op == ops::operands::linear_q::op;
  const ir::Shape in{ir::Dim::symbol("rows"), ir::Dim(k)}, out{in[0], ir::Dim(n)};
  ir::Graph graph;
  ir::Value* x = graph.add_input("x", {integer ? ir::DType::u8 : ir::DType::f32, in});
  const auto constant = [&](const char* name, ir::Tensor tensor) {
    return graph.add_constant(name, std::move(tensor));
  };
  ir::Attributes attributes;
  if (with_epilogue && n > k) attributes["activation"] = std::string("gelu");
  std::vector<ir::Value*> operands{x};
  ir::DType result = ir::DType::f32;
  if (integer) {
    operands.push_back(constant("w", random_tensor<std::int8_t>({k, n}, -127, 127, 1, 1)));
    // A power of two rounds nothing. Else results of about one, before the activation.
    const float scale = with_epilogue ? 1 / (74.0f * 74.0f * std::sqrt(static_cast<float>(k))) : 1;
    ir::Value* bias =
        with_epilogue ? constant("b", random_tensor<float>({n}, -64, 64, 0.01, 2)) : nullptr;
    operands.insert(operands.end(), {bias, constant("xs", ir::Tensor::scalar(scale)),
                                     constant("xz", ir::Tensor::scalar(std::uint8_t{128})),
                                     constant("ws", ir::Tensor::scalar(1.0f))});
    if (with_epilogue) {
      operands.push_back(constant("os", ir::Tensor::scalar(0.03f)));
      operands.push_back(constant("oz", ir::Tensor::scalar(std::uint8_t{100})));
      result = ir::DType::u8;
    }
  } else {
    const double scale = 1 / (64 * std::sqrt(static_cast<double>(k)));
    operands.push_back(constant("w", random_tensor<float>({k, n}, -127, 127, scale, 1)));
    operands.push_back(constant("b", random_tensor<float>({n}, -64, 64, 0.01, 2)));
  }
  graph.add_output("y", graph.add(step.op, operands, attributes, {result, out}));
  return graph;
}

/// The first `rows` of kPeriod rows that repeat.
ir::Tensor operand(const TunedStep& step, std::int64_t rows) {
  const ir::Sizes period{kPeriod, step.gemm.k};
  const ir::Tensor once = step.op == ops::operands::linear_q::op
                              ? random_tensor<std::uint8_t>(period, 0, 255, 1, 3)
                              : random_tensor<float>(period, -64, 64, 1.0 / 32, 3);
  ir::Tensor repeated = ir::Tensor::zeros(once.dtype(), {rows, step.gemm.k});
  const auto from = once.bytes();
  const auto to = repeated.mutable_bytes();
  for (std::size_t at = 0; at < to.size(); at += from.size())
    std::copy_n(from.begin(), std::min(from.size(), to.size() - at),
                to.begin() + static_cast<std::ptrdiff_t>(at));
  return repeated;
}

/// How `found` differs from the rows of `expected`, repeated; "" if it does not.
std::string difference(const ir::Tensor& found, const ir::Tensor& expected, double allowed) {
  const std::vector<double> a = found.to_doubles(), once = expected.to_doubles();
  const bool bytes = ir::is_int8(expected.dtype());
  double largest = 0;
  std::size_t differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - once[i % once.size()]);
    if (d != 0) ++differ;
    largest = std::isnan(d) ? INFINITY : std::max(largest, d);
  }
  if (bytes && largest <= 1 && differ <= a.size() / 1000 + 1) return "";
  if (!bytes && largest <= allowed) return "";
  return fmt::format("{} of {} results differ from those of ref, by up to {:.4g}", differ, a.size(),
                     largest);
}

struct RunningVariant {
  std::string name;         // "mma_split_k_4" with split-K
  std::int64_t up_to_rows;  // where it runs
};

/// What the plan of one GEMM runs.
RunningVariant running_variant(const plan::Plan& plan) {
  RunningVariant running{"", std::numeric_limits<std::int64_t>::max()};
  for (const plan::Step& step : plan.steps) {
    if (step.splits > 1)
      return {kernels::split_k_variants().partial_of(step.splits), step.up_to_rows};
    if (step.tunable) running.name = step.variant;
  }
  return running;
}

/// The variant that the plan of one GEMM runs on `rows` rows.
std::string variant_for(const plan::Plan& plan, std::int64_t rows) {
  const ir::Bindings sizes{{"rows", rows}};
  for (const plan::Step& step : plan.steps) {
    if (!plan::runs(step, sizes)) continue;
    if (step.splits > 1) return running_variant(plan).name;
    if (step.tunable) return plan::launched_by(plan, step, sizes).variant;
  }
  return "";
}

class Tuner {
 public:
  Tuner(const TunedStep& step, const TuneSettings& settings) : step_(step), settings_(settings) {
    runtime::Session exact = reference(false), whole = reference(true);
    const runtime::Tensors inputs{{"x", operand(step, kPeriod)}};
    exact_ = exact.run(inputs).at("y");
    whole_ = whole.run(inputs).at("y");
    for (const double v : whole_.to_doubles()) largest_ = std::max(largest_, std::abs(v));
  }

  TuneResult run();

 private:
  runtime::Session reference(bool with_epilogue) const;
  runtime::Session session(const std::string& variant, bool with_epilogue) const;
  /// Microseconds of a run on `rows` rows; nothing where its results are wrong, with the reason.
  std::optional<double> measure(runtime::Session& session, std::int64_t rows, Measured& measured);
  /// Nothing where the device refuses the variant's kernels.
  std::optional<Measured> check_and_measure(const plan::TunableVariant& variant);
  /// Whether a variant, measured before, was the fastest, or about as fast, for some number of
  /// rows.
  bool was_fastest(const TuneResult& result, const std::string& variant) const;
  bool time_is_up() const { return Clock::now() >= settings_.deadline; }

  const TunedStep& step_;
  const TuneSettings& settings_;
  ir::Tensor exact_, whole_;                // of ref, kPeriod rows
  double largest_ = 0;                      // of whole_
  std::map<std::int64_t, double> fastest_;  // by rows
  bool complete_ = true;
};

/// Without any of the variants that are tuned.
runtime::Session Tuner::reference(bool with_epilogue) const {
  runtime::SessionOptions options = settings_.session;
  for (const plan::TunableVariant& c : step_.gemm.variants)
    options.disabled_kernels += (options.disabled_kernels.empty() ? "" : ",") + c.variant;
  options.tuning = std::make_shared<plan::Tuning>();
  return runtime::Session::compile(graph_of(step_, with_epilogue), options);
}

/// With that variant, or with the default where the device refuses its kernels; "" is what runs
/// without tuning.
runtime::Session Tuner::session(const std::string& variant, bool with_epilogue) const {
  runtime::SessionOptions options = settings_.session;
  auto tuning = std::make_shared<plan::Tuning>();
  if (!variant.empty())
    tuning->put({step_.op, step_.type.str(), step_.gemm.n, step_.gemm.k, {{1, variant, 1, 1}}});
  options.tuning = tuning;
  return runtime::Session::compile(graph_of(step_, with_epilogue), options);
}

std::optional<double> Tuner::measure(runtime::Session& session, std::int64_t rows,
                                     Measured& measured) {
  const runtime::Tensors inputs{{"x", operand(step_, rows)}};
  const double allowed =
      (step_.type.kind() == plan::Arithmetic::Kind::fp16 ? 5e-3 : 1e-4) * largest_;
  const Clock::time_point warm = Clock::now() + kWarmUp;
  const ir::Tensor result = session.run(inputs).at("y");
  while (Clock::now() < warm && !time_is_up()) session.run(inputs);
  opencl::Queue& queue = session.context().queue();
  queue.enable_profiling(true);
  double best = INFINITY;
  const Clock::time_point start = Clock::now();
  for (int run = 0; run < kMaxRuns; ++run) {
    if (run >= kMinRuns &&
        std::chrono::duration<double>(Clock::now() - start).count() > kSecondsOfSeries)
      break;
    if (run > 0 && time_is_up()) {
      complete_ = false;
      break;
    }
    queue.clear_profile();
    session.run(inputs);
    double us = 0;
    for (const opencl::ProfileEntry& entry : queue.profile())
      us += static_cast<double>(entry.ns) / 1e3;
    best = std::min(best, us);
  }
  queue.enable_profiling(false);
  // Only now: the device would cool down meanwhile.
  measured.wrong = difference(result, whole_, allowed);
  if (!measured.wrong.empty()) return std::nullopt;
  return std::max(best, 1e-3);
}

std::optional<Measured> Tuner::check_and_measure(const plan::TunableVariant& variant) {
  Measured measured{variant.name, variant.layout, {}, {}, {}, variant.splits};
  const auto is_refused = [&](const RunningVariant& running) {
    return !variant.name.empty() && running.name != variant.name;
  };
  if (step_.op == ops::operands::linear_q::op) {
    runtime::Session sums = session(variant.name, false);
    if (is_refused(running_variant(sums.plan()))) return std::nullopt;
    const runtime::Tensors inputs{{"x", operand(step_, kPeriod)}};
    measured.wrong = difference(sums.run(inputs).at("y"), exact_, 0);
    if (!measured.wrong.empty()) return measured;
  }
  if (time_is_up()) {
    complete_ = false;
    return measured;
  }
  runtime::Session whole = session(variant.name, true);
  const RunningVariant running = running_variant(whole.plan());
  if (is_refused(running)) return std::nullopt;
  for (const std::int64_t rows : settings_.rows) {
    if (time_is_up()) {
      complete_ = false;
      break;
    }
    if (variant.splits > 1 && rows > running.up_to_rows) break;
    const std::optional<double> us = measure(whole, rows, measured);
    if (!us) {
      measured.us.clear();
      break;
    }
    measured.us.push_back(*us);
    measured.ran.push_back(variant_for(whole.plan(), rows));
    const auto [fastest, first] = fastest_.emplace(rows, *us);
    if (!first) fastest->second = std::min(fastest->second, *us);
    if (*us > kTooSlow * fastest->second) break;
  }
  return measured;
}

bool Tuner::was_fastest(const TuneResult& result, const std::string& variant) const {
  for (const Measured& measured : result.variants)
    for (std::size_t i = 0; measured.variant == variant && i < measured.us.size(); ++i)
      if (measured.us[i] <= kMinGain * fastest_.at(settings_.rows[i])) return true;
  return false;
}

TuneResult Tuner::run() {
  TuneResult result;
  result.standard = *check_and_measure({"", "default", "", ""});
  result.standard.variant = step_.gemm.default_variant;
  if (!result.standard.wrong.empty())
    fail("{} {}x{}: the default, {}, computes wrong results on this device: {}", step_.op,
         step_.gemm.k, step_.gemm.n, step_.gemm.default_variant, result.standard.wrong);
  for (const plan::TunableVariant& variant : step_.gemm.variants) {
    if (time_is_up()) complete_ = false;
    if (!complete_) break;
    if (!variant.options_of.empty() && !was_fastest(result, variant.options_of)) continue;
    if (std::optional<Measured> measured = check_and_measure(variant))
      result.variants.push_back(*std::move(measured));
  }
  result.complete = complete_;
  use_faster_series(result.standard, result.variants);
  if (result.standard.us.size() == settings_.rows.size())
    result.chosen = choose_by_rows(step_, settings_.rows, result.standard, result.variants);
  return result;
}

}  // namespace

void use_faster_series(Measured& standard, const std::vector<Measured>& variants) {
  for (const Measured& m : variants)
    for (std::size_t i = 0; i < std::min(m.us.size(), standard.us.size()); ++i)
      if (!m.ran[i].empty() && m.ran[i] == standard.ran[i])
        standard.us[i] = std::min(standard.us[i], m.us[i]);
}

std::optional<plan::TunedGemm> choose_by_rows(const TunedStep& step,
                                              const std::vector<std::int64_t>& rows,
                                              const Measured& standard,
                                              const std::vector<Measured>& variants) {
  std::optional<plan::TunedGemm> best;
  for (const Measured& head : variants) {
    plan::TunedGemm gemm{step.op, step.type.str(), step.gemm.n, step.gemm.k, {}};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      plan::TunedRows row{rows[i], "", INFINITY, standard.us[i]};
      const auto is_possible = [&](const Measured& m) {
        if (m.layout != head.layout || m.us.size() <= i) return false;
        return i == 0 || m.splits == 1 || gemm.by_rows.empty() ||
               gemm.by_rows.back().variant == m.variant;
      };
      for (const Measured& m : variants)
        if (is_possible(m) && m.us[i] < row.us) row.us = m.us[i], row.variant = m.variant;
      if (!row.variant.empty()) gemm.by_rows.push_back(row);
    }
    const bool is_default = std::ranges::all_of(gemm.by_rows, [&](const plan::TunedRows& row) {
      return row.variant == step.gemm.default_variant;
    });
    if (!is_default && gemm.by_rows.size() == rows.size() && gemm.gain() >= kMinGain &&
        (!best || gemm.gain() > best->gain()))
      best = gemm;
  }
  return best;
}

void check_memory(const std::vector<TunedStep>& gemms, std::int64_t rows,
                  const opencl::DeviceInfo& device) {
  for (const TunedStep& step : gemms) {
    const double bytes =
        static_cast<double>(rows) * static_cast<double>(12 * step.gemm.k + 24 * step.gemm.n);
    if (bytes > static_cast<double>(device.global_mem_bytes) / 2)
      fail(
          "--rows {}: a GEMM of {} x {} would take {:.0f} MiB, more than half of "
          "the memory of '{}'; give fewer with --rows",
          rows, step.gemm.k, step.gemm.n, bytes / (1 << 20), device.name);
  }
}

TuneResult tune_gemm(const TunedStep& step, const TuneSettings& settings) {
  return Tuner(step, settings).run();
}

}  // namespace bertcl::tools
