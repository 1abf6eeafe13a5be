// SPDX-License-Identifier: Apache-2.0
// Each kernel of a model compared with what the device could do: where time is lost, and how much.
#include "tools/measure/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <variant>

#include "kernels/contracts.hpp"

namespace bertcl::tools {
namespace {

constexpr double kCacheBytes = 16 << 20;

double min_ms(const StepTime& time, const Peaks& peaks, double weight_bytes) {
  const double activations = time.bytes - time.constant_bytes;
  const auto gbps = [&](double together) {
    return together > kCacheBytes ? peaks.memory_gbps : peaks.cache_gbps;
  };
  const double moving = time.constant_bytes / gbps(weight_bytes) +
                        activations / gbps(activations / std::max(1.0, time.calls));
  return std::max(time.operations / peak_gops_of(peaks, time.type), moving) / 1e6;
}

/// The argument of that name, where it is a number that is the same in every run; else null.
const std::int32_t* number_of(const plan::Step& step, std::string_view name) {
  const kernels::KernelContract* row = kernels::find_contract(step.kernel.name());
  const auto found = std::ranges::find(row->parameters, name, &kernels::Parameter::name);
  if (found == row->parameters.end()) return nullptr;
  const auto place = static_cast<std::size_t>(found - row->parameters.begin());
  return std::get_if<std::int32_t>(&step.arguments[place]);
}

/// GEMMs with weights of different sizes are different rows.
std::string row_name(const StepTime& time) {
  if (!time.step || time.step->call) return time.name;
  const std::int32_t *n = number_of(*time.step, "N"), *k = number_of(*time.step, "K");
  return n && k ? fmt::format("{} {}x{}", time.name, *n, *k) : time.name;
}

void add_to(RooflineRow& row, const KernelTime& time, double min_ms) {
  row.time.calls += time.calls;
  row.time.ms += time.ms;
  row.time.operations += time.operations;
  row.time.bytes += time.bytes;
  row.min_ms += min_ms;
}

}  // namespace

double peak_gops_of(const Peaks& peaks, plan::Arithmetic type) {
  if (type == plan::Arithmetic::int8) return peaks.int8_gops;
  return type == plan::Arithmetic::bf16 && peaks.bf16_gops > 0 ? peaks.bf16_gops : peaks.f32_gops;
}

std::vector<RooflineRow> roofline(const std::vector<StepTime>& steps, const Peaks& peaks) {
  double weight_bytes = 0.0;
  for (const StepTime& time : steps) weight_bytes += time.constant_bytes;
  std::map<std::string, RooflineRow> rows;
  for (const StepTime& time : steps) {
    const std::string name = row_name(time);
    RooflineRow& row = rows[name + '/' + time.op + '/' + time.type.str()];
    row.time.name = name;
    row.time.op = time.op;
    row.time.type = time.type;
    row.time.variant = time.variant;
    add_to(row, time, min_ms(time, peaks, weight_bytes));
  }
  std::vector<RooflineRow> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(
      sorted, [](const RooflineRow& a, const RooflineRow& b) { return a.lost_ms() > b.lost_ms(); });
  return sorted;
}

RooflineRow sum_of(const std::vector<RooflineRow>& rows) {
  RooflineRow sum;
  for (const RooflineRow& row : rows) add_to(sum, row.time, row.min_ms);
  return sum;
}

}  // namespace bertcl::tools
