// SPDX-License-Identifier: Apache-2.0
// Slots, constants and steps of a plan under construction.
#include "plan/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "opencl/persistent_kernel.hpp"
#include "opencl/queue.hpp"
#include "plan/split_k.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::plan {
namespace {

// Of weights that wait to be prepacked. On a CPU their pages of the file take memory until they are
// released, elsewhere their copies do.
constexpr std::size_t kQueuedBytes = 64 << 20;

opencl::Buffer hold(opencl::Context& context, const ir::Tensor& tensor) {
  return context.wrap_host_memory(tensor.bytes(), ir::size_of(tensor.dtype()),
                                  std::make_shared<const ir::Tensor>(tensor));
}

}  // namespace

Builder::Builder(Plan& plan, const Options& options)
    : plan_(plan), options_(options), tuning_(options.tuning) {
  if (tuning_) return;
  tuning_ = std::make_shared<const Tuning>(
      plan.context ? stored_tuning(*plan.context, plan.tuning_note) : Tuning());
}

bool Options::is_disabled(std::string_view variant) const {
  return fmt::format(",{},", disabled).find(fmt::format(",{},", variant)) != std::string::npos;
}

std::string Options::why_refused(std::string_view op, std::string_view variant) const {
  const auto found = refused.find(fmt::format("{}:{}", op, variant));
  return found == refused.end() ? "" : found->second;
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

Argument Builder::constant(const ir::Tensor& tensor) {
  const std::span bytes = tensor.bytes();
  const auto [it, added] = uploaded_.try_emplace({bytes.data(), bytes.size(), tensor.dtype()}, 0);
  if (added) {
    kept_.push_back(tensor);
    opencl::Buffer buffer = context().allocate(bytes.size());
    if (!bytes.empty()) buffer.write(bytes);
    it->second = std::get<Constant>(constant(std::move(buffer), tensor, false)).index;
  }
  return Constant{it->second};
}

Argument Builder::constant(opencl::Buffer buffer) {
  plan_.constants.push_back(std::move(buffer));
  return Constant{static_cast<int>(plan_.constants.size()) - 1};
}

Argument Builder::constant(opencl::Buffer buffer, const ir::Tensor& tensor, bool is_weight) {
  const Argument argument = constant(std::move(buffer));
  const int index = std::get<Constant>(argument).index;
  constant_types_[index] = tensor.dtype();
  if (weights_) unchecked_.push_back({index, tensor, is_weight, node_});
  return argument;
}

Argument Builder::constant_in_place(const ir::Tensor& tensor) {
  plan_.tables_in_place |= context().info().type == "cpu";
  return constant(hold(context(), tensor), tensor, true);
}

void Builder::make_constant(opencl::Kernel kernel, const ir::Tensor& tensor, std::size_t count) {
  const kernels::TypedArgument weights{.is_buffer = true, .type = tensor.dtype()};
  kernels::check_first_argument(node_ ? node_->describe() : "weights", kernel.name(), weights);
  prepackings_.push_back({std::move(kernel), tensor, count, node_});
}

void Builder::check(const opencl::Buffer& data, const ir::Tensor& tensor, bool is_weight,
                    const ir::Node* node) {
  if (weights_) weights_->queue(data, tensor, is_weight, node ? node->describe() : "the graph");
}

void Builder::queue_checks() {
  for (const Unchecked& u : unchecked_)
    check(plan_.constants[u.constant], u.tensor, u.is_weight, u.node);
  unchecked_.clear();
}

void Builder::give_up_persistent_kernel(const std::string& reason) {
  plan_.persistent_kernel = {};
  plan_.why_no_persistent_kernel = reason.substr(0, reason.find('\n'));
  for (Step& step : plan_.steps) {
    step.persistent_index = -1;
    for (Alternative& other : step.alternatives) other.persistent_index = -1;
  }
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
    if (const auto* constant = std::get_if<Constant>(&argument)) {
      t.is_buffer = true;
      if (const auto it = constant_types_.find(constant->index); it != constant_types_.end())
        t.type = it->second;
    }
    return t;
  };
  for (const Step& step : plan_.steps) {
    std::vector<kernels::TypedArgument> arguments;
    for (const Argument& argument : step.arguments) arguments.push_back(typed(argument));
    const std::string who = fmt::format("{} '{}'", step.op, step.name);
    const auto check = [&](const opencl::Kernel& kernel) {
      kernels::check_contract(who, kernel.name(), arguments);
    };
    if (step.call) {
      kernels::check_contract(who, fmt::format("{}_{}", step.variant, step.type.str()), arguments);
      continue;
    }
    check(step.kernel);
    for (const Alternative& other : step.alternatives) check(other.kernel);
  }
}

void Builder::build(std::span<const Wanted> programs) {
  const Stopwatch clock;
  for (const Wanted& wanted : programs) {
    const bool alone = !plan_.why_no_persistent_kernel.empty();  // so that merged_ are built, too
    if (options_.on_program)
      options_.on_program(built_, wanted_.size() + (alone ? merged_.size() : 0));
    try {
      target().build(wanted.kernel);
    } catch (const Error& error) {
      const std::string message = error.what();
      const Error placed(
          wanted.node ? fmt::format("{}: {}", wanted.node->describe(), message) : message,
          error.code());
      if (error.code() != ErrorCode::out_of_memory)  // which may pass
        refuse(wanted.kernel,
               "the driver refuses its kernel: " + message.substr(0, message.find('\n')), placed);
      if (wanted.node && !is_refused(wanted.kernel)) throw placed;
      if (!wanted.node) give_up_persistent_kernel(error.what());
    }
    ++built_;
  }
  plan_.program_ms += clock.milliseconds();
}

void Builder::refuse(opencl::Kernel kernel, const std::string& reason, const Error& error) {
  if (context().info().type == "cpu") return;
  const auto is_same = [&](const opencl::Kernel& other) {
    return other && other.program_name() == kernel.program_name() &&
           other.defines() == kernel.defines();
  };
  for (Step& step : plan_.steps) {
    if (!is_same(step.kernel)) continue;
    context().queue().finish();  // prepacking reads tensors that go with this attempt
    throw VariantUnsupported(step, reason, error);
  }
  for (Step& step : plan_.steps) {
    const auto dropped = std::erase_if(
        step.alternatives, [&](const Alternative& other) { return is_same(other.kernel); });
    if (dropped > 0) refused_.emplace(kernel.program_name(), kernel.defines());
  }
}

bool Builder::is_refused(const opencl::Kernel& kernel) const {
  return refused_.contains({kernel.program_name(), kernel.defines()});
}

void Builder::check_group_sizes() {
  if (context().info().type == "cpu") return;
  const auto check = [&](const opencl::Kernel& kernel, const std::array<std::size_t, 3>& local) {
    const std::string reason = target().why_not_in_groups(kernel, local);
    if (reason.empty()) return true;
    refuse(kernel, reason, Error(reason, ErrorCode::device));
    return false;
  };
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    Step& step = plan_.steps[s];
    if (step.call) continue;
    for (std::size_t a = 0; a < step.alternatives.size();)
      a += check(step.alternatives[a].kernel, step.alternatives[a].local);
    check(step.kernel, step.local);
  }
}

std::span<Builder::Prepacking> Builder::queue_prepackings() {
  std::size_t bytes = 0;
  auto queued = prepackings_.begin();
  for (auto p = prepackings_.begin(); p != prepackings_.end(); ++p) {
    const opencl::Buffer held = hold(context(), p->tensor);
    check(held, p->tensor, true, p->node);
    p->kernel.set(0, held);
    context().queue().launch_items(p->kernel, {p->count, 1, 1}, "prepack");
    bytes += p->tensor.bytes().size();
    if (bytes < kQueuedBytes) continue;
    wait_for({queued, p + 1});
    queued = p + 1;
    bytes = 0;
  }
  return {queued, prepackings_.end()};
}

void Builder::wait_for(std::span<Prepacking> queued) {
  context().queue().finish();
  for (Prepacking& prepacking : queued) {
    prepacking.tensor.release_pages();
    prepacking = {};
  }
}

void Builder::finish() {
  const auto prepacks = [&](const Wanted& wanted) {
    return std::ranges::any_of(prepackings_, [&](const Prepacking& prepacking) {
      return prepacking.kernel.program_name() == wanted.kernel.program_name();
    });
  };
  // Those that prepack come first: the device does it while the host builds the others.
  std::stable_partition(wanted_.begin(), wanted_.end(), prepacks);
  const auto others = std::span(wanted_).subspan(std::ranges::count_if(wanted_, prepacks));
  build(std::span(wanted_).first(wanted_.size() - others.size()));
  if (weights_) weights_->begin(context(), prepackings_.size() + unchecked_.size());
  queue_checks();
  const std::span<Prepacking> queued = queue_prepackings();
  build(others);
  if (!plan_.persistent_kernel) build(merged_);
  check_group_sizes();
  wait_for(queued);
  if (weights_) weights_->finish();
  const auto is_merged = [&](int number) { return plan_.persistent_kernel && number >= 0; };
  for (const Step& step : plan_.steps) {
    const auto check = [&step](const opencl::Kernel& kernel) {
      if (kernel.argument_count() != step.arguments.size())
        throw Error(fmt::format("{} '{}': kernel {} takes {} arguments, got {}", step.op, step.name,
                                kernel.name(), kernel.argument_count(), step.arguments.size()));
    };
    if (step.call) continue;
    if (!is_merged(step.persistent_index)) check(step.kernel);
    for (const Alternative& other : step.alternatives)
      if (!is_merged(other.persistent_index)) check(other.kernel);
  }
}

Argument Builder::error_flag() {
  if (plan_.error_constant < 0) {
    opencl::Buffer flag = context().allocate(sizeof(std::int32_t));
    flag.fill(0);
    plan_.error_constant = std::get<Constant>(constant(std::move(flag))).index;
    constant_types_[plan_.error_constant] = ir::DType::i32;
  }
  return Constant{plan_.error_constant};
}

Argument Builder::partial_sums() {
  if (plan_.partial_sums < 0) {
    opencl::Buffer buffer = context().allocate(bytes_of_partial_sums(context().info()));
    plan_.partial_sums = std::get<Constant>(constant(std::move(buffer))).index;
  }
  return Constant{plan_.partial_sums};
}

opencl::Kernel Builder::kernel(std::string_view program, std::string_view name,
                               const opencl::Defines& defines) {
  opencl::Kernel kernel = context().unbuilt_kernel(program, name, defines);
  if (known_.emplace(program, defines).second) wanted_.push_back({kernel, node_});
  return kernel;
}

void Builder::merge(std::span<const opencl::Kernel> kernels) {
  plan_.persistent_kernel = opencl::persistent_kernel_of(context(), kernels);
  std::set<std::pair<std::string, opencl::Defines>> alone;  // programs of launches of their own
  const auto keep = [&](const opencl::Kernel& kernel, int persistent_index) {
    if (kernel && persistent_index < 0) alone.emplace(kernel.program_name(), kernel.defines());
  };
  for (const Step& step : plan_.steps) {
    keep(step.kernel, step.persistent_index);
    for (const Alternative& other : step.alternatives) keep(other.kernel, other.persistent_index);
  }
  for (const Prepacking& prepacking : prepackings_) keep(prepacking.kernel, -1);
  const auto merged = std::stable_partition(wanted_.begin(), wanted_.end(), [&](const Wanted& w) {
    return alone.contains({w.kernel.program_name(), w.kernel.defines()});
  });
  merged_.assign(merged, wanted_.end());
  wanted_.erase(merged, wanted_.end());
  wanted_.push_back({plan_.persistent_kernel, nullptr});
}

namespace {

Step step_for(const ir::Node& node, Arithmetic type, std::string variant,
              std::vector<Argument> arguments) {
  Step step;
  step.name = node.outputs.empty() ? node.op : node.output()->name;
  step.op = node.op;
  step.type = type;
  step.variant = std::move(variant);
  step.sources = node.sources;
  step.arguments = std::move(arguments);
  return step;
}

}  // namespace

Step& Builder::launch(const ir::Node& node, Arithmetic type, std::string variant,
                      opencl::Kernel kernel, std::vector<Argument> arguments,
                      std::array<SizeExpr, 3> global) {
  plan_.steps.push_back(step_for(node, type, std::move(variant), std::move(arguments)));
  plan_.steps.back().kernel = std::move(kernel);
  plan_.steps.back().global = global;
  return plan_.steps.back();
}

Step& Builder::call(const ir::Node& node, Arithmetic type, std::string variant, LibraryCall call,
                    const kernels::LibraryGemm<Argument>& arguments) {
  plan_.steps.push_back(step_for(node, type, std::move(variant), kernels::in_order(arguments)));
  plan_.steps.back().call = std::move(call);
  return plan_.steps.back();
}

std::int32_t Builder::chunk() const { return target().chunk(); }

std::int32_t Builder::vector_chunk() const { return target().vector_chunk(); }

std::int32_t Builder::rows_per_item() const { return target().rows_per_item(); }

}  // namespace bertcl::plan
