// SPDX-License-Identifier: Apache-2.0
// Device time of each kernel of a plan, with its arithmetic and its traffic.
#include "tools/kernel_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include "bertcl/error.hpp"
#include "opencl/queue.hpp"
#include "passes/symbols.hpp"
#include "tools/output.hpp"

namespace bertcl::tools {
namespace {

/// Sizes of a run; 0 where a symbol of the graph is not known out here.
double evaluate(const ir::Dim& dim, const ir::Bindings& sizes) {
  try {
    return static_cast<double>(dim.evaluate(sizes));
  } catch (const Error&) {
    return 0.0;
  }
}

/// Bytes that one launch moves: of slots and of constants.
std::pair<double, double> bytes_of(const plan::Plan& plan, const plan::Step& step,
                                   const ir::Bindings& sizes) {
  double slots = 0.0, results = 0.0, constants = 0.0;
  const auto slot_bytes = [&](int slot) {
    const ir::Type& type = plan.slots[static_cast<std::size_t>(slot)].type;
    return evaluate(ir::element_count(type.shape), sizes) *
           static_cast<double>(ir::size_of(type.dtype));
  };
  for (const plan::Argument& argument : step.arguments) {
    if (const auto* reads = std::get_if<plan::Reads>(&argument)) slots += slot_bytes(reads->slot);
    if (const auto* writes = std::get_if<plan::Writes>(&argument)) {
      results += slot_bytes(writes->slot);
    }
    if (const auto* constant = std::get_if<plan::Constant>(&argument)) {
      constants +=
          static_cast<double>(plan.constants[static_cast<std::size_t>(constant->index)].size());
    }
  }
  // Products read all of their weights; look-ups only as much of a table as they write.
  if (step.operations_per_unit == 0) constants = std::min(constants, results);
  return {slots + results, constants};
}

}  // namespace

std::vector<StepTime> profile_steps(runtime::Session& session, const runtime::Tensors& inputs,
                                    std::int64_t batch, std::int64_t seq, int runs) {
  opencl::Queue& queue = session.context().queue();
  queue.enable_profiling(true);
  session.run(inputs);
  queue.clear_profile();
  for (int i = 0; i < runs; ++i) session.run(inputs);
  const std::vector<opencl::ProfileEntry> profile = queue.profile();
  queue.enable_profiling(false);

  const plan::Plan& plan = session.plan();
  const std::int64_t tokens = session.statistics().tokens;
  namespace symbols = passes::symbols;
  const ir::Bindings sizes = {{"batch", batch},          {"seq", seq},
                              {symbols::batch, batch},   {symbols::offsets, batch + 1},
                              {symbols::tokens, tokens}, {symbols::longest, seq}};
  // Launches bear the name of their step; an op may have several with different kernels.
  std::map<std::pair<std::string, std::string>, const plan::Step*> steps;
  for (const plan::Step& step : plan.steps) {
    steps.emplace(std::pair(step.name, step.call ? std::string("CLBlast") : step.kernel.name()),
                  &step);
  }

  std::vector<StepTime> times;
  for (const opencl::ProfileEntry& entry : profile) {
    const auto found = steps.find({entry.label, entry.kernel});
    const plan::Step* step = found == steps.end() ? nullptr : found->second;
    StepTime& time = times.emplace_back();
    time.step = step;
    time.calls = static_cast<double>(entry.calls) / runs;
    time.ms = static_cast<double>(entry.ns) / 1e6 / runs;
    time.name = step && !step->call ? step->kernel.program_name() : entry.kernel;
    if (!step) continue;
    time.op = step->op;
    time.type = step->type;
    time.implementation = step->implementation;
    time.operations = time.calls * step->operations_per_unit * evaluate(step->unit, sizes);
    const auto [slots, constants] = bytes_of(plan, *step, sizes);
    time.bytes = time.calls * (slots + constants);
    time.constant_bytes = time.calls * constants;
  }
  return times;
}

std::vector<KernelTime> profile_kernels(runtime::Session& session, const runtime::Tensors& inputs,
                                        std::int64_t batch, std::int64_t seq, int runs) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, KernelTime> sums;
  for (const StepTime& time : profile_steps(session, inputs, batch, seq, runs)) {
    const auto [place, is_new] =
        sums.emplace(std::tuple(time.name, time.op, time.type, time.implementation), time);
    if (is_new) continue;
    KernelTime& sum = place->second;
    sum.calls += time.calls;
    sum.ms += time.ms;
    sum.operations += time.operations;
    sum.bytes += time.bytes;
  }
  std::vector<KernelTime> kernels;
  for (auto& [key, sum] : sums) kernels.push_back(std::move(sum));
  std::sort(kernels.begin(), kernels.end(),
            [](const KernelTime& a, const KernelTime& b) { return a.ms > b.ms; });
  return kernels;
}

std::string kernel_table(const std::vector<KernelTime>& kernels) {
  double all = 0.0, calls = 0.0;
  for (const KernelTime& kernel : kernels) {
    all += kernel.ms;
    calls += kernel.calls;
  }
  const auto figure = [](double value) {
    return value > 0.0 ? fmt::format("{:.1f}", value) : std::string();
  };
  Table table(
      {"kernel", "op", "type", "implementation", ">calls", ">ms", ">share", ">GOP/s", ">GB/s"});
  for (const KernelTime& kernel : kernels) {
    table.add({kernel.name, kernel.op, kernel.type, kernel.implementation,
               fmt::format("{:g}", kernel.calls), fmt::format("{:.3f}", kernel.ms),
               fmt::format("{:.1f} %", all > 0.0 ? 100.0 * kernel.ms / all : 0.0),
               figure(kernel.gops()), figure(kernel.gbps())});
  }
  table.add(
      {"all", "", "", "", fmt::format("{:g}", calls), fmt::format("{:.3f}", all), "", "", ""});
  return table.str();
}

}  // namespace bertcl::tools
