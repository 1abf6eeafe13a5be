// SPDX-License-Identifier: Apache-2.0
// Compares the plans of the default model in int8, for pretended devices, with golden_plans.txt,
// whose diff shows what a change does to plans.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "onnx/read_model.hpp"
#include "passes/pass.hpp"
#include "plan/persistent_kernel.hpp"
#include "plans.hpp"
#include "quant/presets.hpp"
#include "quant/quantizer.hpp"
#include "tests/support/files.hpp"
#include "tests/support/golden_text.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::plan {
namespace {

struct Device {
  std::string title;
  opencl::DeviceInfo info;
  opencl::Capabilities capabilities;
};

Device device_of(std::string title, const char* type, const char* vendor, unsigned compute_units,
                 std::initializer_list<bool opencl::Capabilities::*> capabilities) {
  Device device{.title = std::move(title), .info = {}, .capabilities = {}};
  device.info.type = type, device.info.vendor = vendor, device.info.name = device.title;
  device.info.compute_units = compute_units;
  device.info.global_mem_bytes = device.info.max_alloc_bytes = std::uint64_t{1} << 34;
  device.info.local_mem_bytes = 48 * 1024, device.info.max_work_group_size = 1024;
  for (const auto flag : capabilities) device.capabilities.*flag = true;
  return device;
}

std::vector<Device> devices() {
  using C = opencl::Capabilities;
  std::vector<Device> all{
      device_of("Intel CPU with AVX-512 VNNI", "cpu", "GenuineIntel", 8,
                {&C::in_process_cpu, &C::persistent_kernel, &C::overlapping_views, &C::avx2,
                 &C::avx512, &C::avx512_vnni}),
      device_of("AMD CPU with AVX2", "cpu", "AuthenticAMD", 8,
                {&C::in_process_cpu, &C::persistent_kernel, &C::overlapping_views, &C::avx2}),
      device_of("NVIDIA A100-SXM4-80GB", "gpu", "NVIDIA Corporation", 108,
                {&C::ptx_dp4a, &C::ptx_mma_s8, &C::ptx_cp_async, &C::matrix_f16, &C::fp64}),
      device_of("GPU without extensions", "gpu", "a vendor", 16, {}),
  };
  all[2].info.platform = "NVIDIA CUDA";
  return all;
}

/// "x86_vnni_small_m up to 32 rows", "dot4_32x64 where units idle".
std::string text_of(const Alternative& other) {
  return other.up_to_rows > 0 ? fmt::format("{} up to {} rows", other.variant, other.up_to_rows)
                              : other.variant + " where units idle";
}

std::string text_of(const Step& step) {
  std::string text = fmt::format("{}, {}: {} of {}", step.op, step.type.str(), step.variant,
                                 step.call ? "CLBlast" : step.kernel.program_name());
  if (step.above_rows >= 0) text += fmt::format(", above {} rows", step.above_rows);
  if (step.up_to_rows != std::numeric_limits<std::int64_t>::max())
    text += fmt::format(", up to {} rows", step.up_to_rows);
  text += '\n';
  for (const Alternative& other : step.alternatives) text += "    or " + text_of(other) + '\n';
  if (step.why_not_faster.empty()) return text;
  static const std::regex next("; ");
  return text + "    not " + std::regex_replace(step.why_not_faster, next, "\n    not ") + '\n';
}

/// Each step that is different, in the order of the plan, and how often it occurs.
std::string text_of(const Plan& plan) {
  std::vector<std::pair<std::string, int>> distinct;
  for (const Step& step : plan.steps) {
    const std::string step_text = text_of(step);
    const auto found = std::ranges::find(distinct, step_text, &std::pair<std::string, int>::first);
    if (found == distinct.end())
      distinct.emplace_back(step_text, 1);
    else
      ++found->second;
  }
  std::string text;
  for (const auto& [step_text, count] : distinct) text += fmt::format("{:3} {}", count, step_text);
  for (const std::string& note : plan.notes) text += "note: " + note + '\n';
  return text + fmt::format("{} of {} steps merged\n", merged_steps(plan), plan.steps.size());
}

/// The compiled graph. One sample is enough: plans do not depend on the ranges.
ir::Graph quantized_model() {
  const tests::ScratchFolder folder;
  quant::Options options = quant::presets().front().options();
  options.model = tests::source_file("models/minilm-l6-squad/model.onnx");
  options.output = folder / "q.onnx";
  options.device = "cpu";
  const quant::Sample sample{.ids = {101, 2040, 2626, 9587, 102, 2002, 2626, 9587, 102},
                             .token_type_ids = {0, 0, 0, 0, 0, 1, 1, 1, 1}};
  bool given = false;
  quant::quantize(options, [&]() -> std::optional<quant::Sample> {
    return std::exchange(given, true) ? std::nullopt : std::optional(sample);
  });
  ir::Graph graph = onnx_io::read_model(options.output);
  passes::compile(graph, {});
  return graph;
}

TEST(GoldenPlans, OfTheDefaultModel) {
  const ir::Graph graph = quantized_model();
  Options options;
  options.tuning = std::make_shared<const Tuning>();
  std::string found;
  for (const Device& pretended : devices()) {
    Plan plan;
    plan.context = device()->pretend(pretended.info, pretended.capabilities);
    Builder builder(plan, options);
    lower(builder, graph);
    found += fmt::format("{}# {}\n{}", found.empty() ? "" : "\n", pretended.title, text_of(plan));
  }
  tests::expect_golden_text(found, "tests/plan/golden_plans.txt");
}

}  // namespace
}  // namespace bertcl::plan
