// SPDX-License-Identifier: Apache-2.0
// A synthetic sequence through the device and through the plain definitions of the ops.
#include "runtime/self_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"
#include "ops/interpret.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "runtime/inputs.hpp"
#include "support/pending_file.hpp"

namespace bertcl::runtime {
namespace {

constexpr std::int64_t kMaxTokens = 8;
constexpr std::int64_t kMultiplications = 200'000'000;  // on the host: less than half a second
constexpr double kTolerance = 0.1;  // rounding ties move an int8 model by a few percent
constexpr int kSequences = 4;  // ties move a coarsely quantized model by more, not in each of them
constexpr double kMinValue = 1e-6;

/// As many as the host can interpret in the time.
std::int64_t token_count(const ir::Graph& graph, const plan::Plan& plan) {
  std::int64_t weights = 1;
  for (const ir::Value* c : graph.constants())
    if (c->constant->shape().size() == 2) weights += c->constant->size();
  const std::int64_t most =
      plan.max_positions > 0 ? std::min(kMaxTokens, plan.max_positions) : kMaxTokens;
  return std::clamp<std::int64_t>(kMultiplications / weights, 1, most);
}

std::vector<std::int64_t> values_of(ir::InputRole role, std::int64_t count, std::int64_t words,
                                    int sequence) {
  std::vector<std::int64_t> values(count, 0);
  if (role == ir::InputRole::mask) std::ranges::fill(values, 1);
  if (role == ir::InputRole::positions) std::iota(values.begin(), values.end(), 0);
  if (role == ir::InputRole::ids)
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::int64_t>(7919 * (i + 1) + 104729 * sequence) % words;
  return values;
}

/// True if rows of a table are chosen by the values, as they are or moved or cast.
bool chooses_rows(const ir::Value* v) {
  return std::ranges::any_of(v->users, [&](const ir::Node* user) {
    if (user->op == "Gather" && user->inputs[1] == v) return true;
    if (user->op == ops::operands::embed_norm::op || user->op == ops::operands::pack_inputs::op)
      return true;
    return (user->op == "Cast" || ops::traits(*user).moves_elements) && user->inputs[0] == v &&
           chooses_rows(user->output());
  });
}

/// By the name, unless that says nothing: what chooses no rows is most likely a mask.
ir::InputRole role_of(const ir::Value& input, const plan::Plan& plan) {
  if (input.name == plan.mask_input) return ir::InputRole::mask;
  const ir::InputRole role = ir::role_of_input(input.name);
  return role == ir::InputRole::ids && !chooses_rows(&input) ? ir::InputRole::mask : role;
}

/// One sequence, of other ids for each number; empty for a model that reads anything but rows of
/// tokens.
Tensors make_inputs(const ir::Graph& graph, const plan::Plan& plan, int sequence) {
  const std::int64_t tokens = token_count(graph, plan);
  ir::Bindings sizes;
  Tensors inputs;
  for (const ir::Value* input : graph.inputs()) {
    const ir::Shape& shape = input->type.shape;
    if (shape.size() > 2) return {};
    const ir::Sizes extents = synthetic_extents(shape, tokens, sizes);
    const std::int64_t count = ir::element_count(extents);
    if (count > kMaxTokens) return {};
    const std::int64_t words = std::max<std::int64_t>(plan.word_rows, 2);
    inputs[input->name] =
        ir::Tensor::of(extents, values_of(role_of(*input, plan), count, words, sequence))
            .converted(input->type.dtype);
  }
  return inputs;
}

/// The output that differs most.
struct Difference {
  std::string output;
  double relative;
};

/// Of one sequence; empty where nothing was compared.
std::optional<Difference> difference_of(const ir::Graph& graph, const plan::Plan& plan,
                                        Request& request, int sequence) {
  Tensors inputs;
  std::vector<ir::Tensor> expected;
  try {
    inputs = make_inputs(graph, plan, sequence);
    if (inputs.empty()) return std::nullopt;
    bind_shapes(plan, shapes_of(inputs));  // which the model may refuse
    expected = ops::interpret(graph, inputs);
  } catch (const Error&) {
    return std::nullopt;
  }
  try {
    request.start(inputs, OutputNames{}, TapFunction{});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    return std::nullopt;  // inputs that mean something else than their names and uses say
  }
  const Tensors found = request.finish();
  std::optional<Difference> most;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string& name = graph.outputs()[i].name;
    if (!ir::is_float(expected[i].dtype())) continue;
    const auto relative = relative_difference(found.at(name), expected[i]);
    if (relative && (!most || *relative > most->relative)) most = {name, *relative};
  }
  return most;
}

/// The programs of a plan, and those that a run of few rows takes, with their options.
struct Programs {
  std::vector<std::string> names;
  std::string options;
};

Programs programs_of(const plan::Plan& plan) {
  std::map<std::string, std::set<opencl::Defines>> programs;
  for (const plan::Step& step : plan.steps)
    plan::for_each_kernel(step, [&](const plan::StepKernel& launch) {
      if (launch.kernel) programs[launch.kernel.program_name()].insert(launch.kernel.defines());
    });
  Programs result;
  for (const auto& [name, builds] : programs) {
    result.names.push_back(name);
    for (const opencl::Defines& defines : builds) {
      result.options += name;
      for (const auto& [define, value] : defines)
        result.options += fmt::format(" -D{}={}", define, value);
      result.options += '\n';
    }
  }
  return result;
}

std::filesystem::path file_of(const plan::Plan& plan) {
  const auto [names, options] = programs_of(plan);
  return plan.context->cache_file("self-check", names, options);
}

std::string key_of(const plan::Plan& plan) {
  const auto [names, options] = programs_of(plan);
  return plan.context->key_of(names, options);
}

/// By Context::key_of() of their programs.
struct Remembered {
  std::mutex mutex;
  std::set<std::string> checks;
};

Remembered& remembered() {
  static Remembered all;
  return all;
}

}  // namespace

std::optional<double> relative_difference(const ir::Tensor& found, const ir::Tensor& expected) {
  const std::vector<double> f = found.to_doubles(), e = expected.to_doubles();
  if (f.size() != e.size()) return HUGE_VAL;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < e.size(); ++i) {
    if (!std::isfinite(e[i])) return std::nullopt;
    if (!std::isfinite(f[i])) return HUGE_VAL;
    difference += (f[i] - e[i]) * (f[i] - e[i]);
    size += e[i] * e[i];
  }
  const double least = static_cast<double>(e.size()) * kMinValue * kMinValue;
  return difference == 0 ? 0 : std::sqrt(difference / std::max(size, least));
}

bool check_results(const ir::Graph& graph, const plan::Plan& plan, Request& request,
                   const std::filesystem::path& path) {
  std::optional<Difference> found;
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    const auto next = difference_of(graph, plan, request, sequence);
    if (!next && !found) return false;
    if (!next) continue;
    if (next->relative <= kTolerance) return true;
    found = next;
    if (!std::isfinite(found->relative)) break;  // which no rounding does
  }
  const opencl::DeviceInfo& device = plan.context->info();
  throw Error(
      fmt::format("'{}' ({}) computes wrong results: output '{}' of {} differs from the "
                  "host reference by a relative error of {:.2g}; update the driver or "
                  "choose another device (BERTCL_SELF_CHECK=off skips this check)",
                  device.name, device.driver, found->output, path.string(), found->relative),
      ErrorCode::device);
}

bool needs_check(const plan::Plan& plan) {
  const char* wanted = std::getenv("BERTCL_SELF_CHECK");
  if (wanted && std::string_view(wanted) == "off") return false;
  std::error_code ignored;
  if (const std::filesystem::path file = file_of(plan); !file.empty())
    return !std::filesystem::exists(file, ignored);
  const std::lock_guard lock(remembered().mutex);
  return !remembered().checks.contains(key_of(plan));
}

void remember_check(const plan::Plan& plan) {
  const std::filesystem::path file = file_of(plan);
  if (file.empty()) {
    const std::lock_guard lock(remembered().mutex);
    remembered().checks.insert(key_of(plan));
    return;
  }
  try {
    write_file(file, "{\"agrees\": true}\n");
  } catch (const Error&) {  // it is checked again
  }
}

}  // namespace bertcl::runtime
