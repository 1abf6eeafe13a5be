// SPDX-License-Identifier: Apache-2.0
// Slots and steps of a plan under construction.
#include "plan/builder.hpp"

#include <fmt/format.h>

#include "bertcl/error.hpp"

namespace bertcl::plan {

Builder::Builder(Plan& plan, const Options& options)
    : plan_(plan), options_(options), tuning_(options.tuning), constants_(plan), programs_(plan) {
  if (tuning_) return;
  tuning_ = std::make_shared<const Tuning>(
      plan.context ? stored_tuning(*plan.context, plan.tuning_note) : Tuning());
}

int Builder::slot_of(const ir::Value* value) const {
  const auto it = slots_.find(value);
  if (it == slots_.end())
    throw Error(fmt::format("'{}' is read before any step writes it", value->name));
  return it->second;
}

int Builder::add_slot(const ir::Value* value) {
  const int index = static_cast<int>(plan_.slots.size());
  plan_.slots.push_back({value->name, value->type, index});
  slots_[value] = index;
  return index;
}

Argument Builder::in(const ir::Value* value) {
  if (!value) return nullptr;
  if (value->is_constant()) return constant(*value->constant);
  return Reads{slot_of(value)};
}

Argument Builder::out(const ir::Value* value) { return Writes{add_slot(value)}; }

Argument Builder::out_if_used(const ir::Value* value, const ir::Graph& graph) {
  if (value->users.empty() && !graph.is_output(value)) return nullptr;
  return out(value);
}

Argument Builder::scratch_out(std::string name, ir::Type type) {
  const int index = static_cast<int>(plan_.slots.size());
  plan_.slots.push_back({std::move(name), std::move(type), index});
  return Writes{index};
}

Argument Builder::read(const Argument& written) { return Reads{std::get<Writes>(written).slot}; }

void Builder::alias(const ir::Value* result, const ir::Value* operand) {
  if (operand->is_constant())
    throw Error(fmt::format("'{}' is a view of a constant; do not disable the pass fold_constants",
                            result->name));
  const int operand_slot = slot_of(operand);
  if (result->type.dtype != operand->type.dtype)
    throw Error(fmt::format("'{}' {} is a view of '{}' {}", result->name, ir::str(result->type),
                            operand->name, ir::str(operand->type)));
  const int index = add_slot(result);
  plan_.slots[index].root = plan_.slots[operand_slot].root;
}

void Builder::check_contracts() const {
  const auto typed = [&](const Argument& argument) {
    kernels::TypedArgument t;
    if (const auto* read = std::get_if<Reads>(&argument))
      t = {.is_buffer = true, .type = plan_.slots[read->slot].type.dtype};
    else if (const auto* written = std::get_if<Writes>(&argument))
      t = {.is_buffer = true, .type = plan_.slots[written->slot].type.dtype};
    else if (std::holds_alternative<SizeTable>(argument))
      t = {.is_buffer = true, .type = ir::DType::i32};
    else if (const auto* number = std::get_if<std::int32_t>(&argument))
      t.number = *number;
    else if (std::holds_alternative<float>(argument))
      t.is_float = true;
    else if (std::holds_alternative<std::nullptr_t>(argument))
      t.is_absent = true;
    else if (const auto* constant = std::get_if<Constant>(&argument))
      t = {.is_buffer = true, .type = constants_.type_of(*constant)};
    return t;
  };
  for (const Step& step : plan_.steps) {
    std::vector<kernels::TypedArgument> arguments;
    for (const Argument& argument : step.arguments) arguments.push_back(typed(argument));
    const std::string who = fmt::format("{} '{}'", step.op, step.name);
    if (step.call) {
      kernels::check_contract(who, fmt::format("{}_{}", step.variant, step.type.str()), arguments);
      continue;
    }
    for_each_kernel(step, [&](const StepKernel& launch) {
      kernels::check_contract(who, launch.kernel.name(), arguments);
    });
  }
}

void Builder::finish() {
  programs_.build_prepacking(target());
  constants_.queue();
  programs_.build_others(target());  // while the device prepacks
  constants_.wait();
  for (const Step& step : plan_.steps) {
    if (step.call) continue;
    for_each_kernel(step, [&](const StepKernel& launch) {
      if (plan_.persistent_kernel && launch.persistent_index >= 0) return;
      const opencl::Kernel& kernel = launch.kernel;
      if (kernel.argument_count() != step.arguments.size())
        throw Error(fmt::format("{} '{}': kernel {} takes {} arguments, got {}", step.op, step.name,
                                kernel.name(), kernel.argument_count(), step.arguments.size()));
    });
  }
}

Step& Builder::add_step(const ir::Node& node, Arithmetic type, std::string variant,
                        std::vector<Argument> arguments) {
  Step& step = plan_.steps.emplace_back();
  step.name = node.outputs.empty() ? node.op : node.output()->name;
  step.op = node.op;
  step.type = type;
  step.variant = std::move(variant);
  step.sources = node.sources;
  step.arguments = std::move(arguments);
  return step;
}

Step& Builder::launch(const ir::Node& node, Arithmetic type, std::string variant,
                      opencl::Kernel kernel, std::vector<Argument> arguments,
                      std::array<SizeExpr, 3> global) {
  Step& step = add_step(node, type, std::move(variant), std::move(arguments));
  step.kernel = std::move(kernel);
  step.global = std::move(global);
  return step;
}

Step& Builder::call(const ir::Node& node, Arithmetic type, std::string variant, LibraryCall call,
                    const kernels::LibraryGemm<Argument>& arguments) {
  Step& step = add_step(node, type, std::move(variant), kernels::in_order(arguments));
  step.call = std::move(call);
  return step;
}

}  // namespace bertcl::plan
