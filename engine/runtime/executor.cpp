// SPDX-License-Identifier: Apache-2.0
// Runs a plan, which several executors may share, one run at a time.
#include "runtime/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "bertcl/error.hpp"
#include "opencl/base/exit_guard.hpp"
#include "opencl/queue.hpp"
#include "plan/programs.hpp"
#include "support/option_name.hpp"

namespace bertcl::runtime {

Executor::Executor(plan::Plan& plan, bool record, std::int64_t max_memory, Arenas& arenas)
    : plan_(plan),
      record_(record),
      memory_(plan, max_memory, arenas, [this] { kernels_.clear(); }),
      tables_(plan) {
  if (plan.error_constant >= 0) index_error_ = plan.context->allocate(sizeof(std::int32_t));
  if (plan.persistent_kernel)
    persistent_kernel_ = std::make_unique<PersistentKernel>(plan, index_error_);
  index_error_.fill(0);
  if (!record) return;
  for (const plan::Step& step : plan.steps)
    if (step.call)
      throw Error(fmt::format(
          "{} '{}' is computed by {}, which a command buffer cannot record; use {}, or omit {}",
          step.op, step.name, step.variant, option_name("gemm", "own"),
          option_name("command-buffer")));
  const opencl::CommandBuffer available(*plan.context);  // throws where there are none
}

Executor::~Executor() {
  if (settled_ || opencl::process_is_ending()) return;
  // What is queued reads the staged inputs, tables and steps, and finds the memory of merged steps
  // by its address: the queue keeps none of them.
  try {
    plan_.context->queue().finish();
  } catch (const Error&) {  // of work that nobody waited for
  }
}

void Executor::bind(const ir::Bindings& sizes) {
  // An earlier run may still read what is staged, and memory that it finds by address.
  if (!settled_) plan_.context->queue().finish();
  settled_ = true;
  if (bound_ && bound_->sizes == sizes) return;
  bound_.reset();
  memory_.place(sizes);
  bound_ = Bound{sizes, choose_launches(sizes)};
}

void Executor::upload() {
  settled_ = false;
  if (!bound_->uploaded) {
    tables_.write(bound_->sizes);
    if (merges_steps()) persistent_kernel_->bind(bound_->launches, memory_, tables_, bound_->sizes);
    bound_->uploaded = true;
  }
  memory_.upload();
}

ir::Sizes Executor::shape(int slot) const {
  return ir::evaluate(plan_.slots[slot].type.shape, bound_->sizes);
}

void Executor::end_run() {
  opencl::Queue& queue = plan_.context->queue();
  end_ = queue.mark();
  queue.flush();
}

void Executor::wait() {
  plan_.context->queue().wait(end_);
  settled_ = true;
}

opencl::Buffer& Executor::constant(int index) {
  return index == plan_.error_constant ? index_error_ : plan_.constants[index];
}

std::vector<Launch> Executor::choose_launches(const ir::Bindings& sizes) const {
  std::vector<Launch> launches;
  std::size_t tables = 0;
  for (const plan::Step& step : plan_.steps) {
    Launch& launch = launches.emplace_back();
    launch.first_table = tables;
    for (const plan::Argument& a : step.arguments)
      tables += std::holds_alternative<plan::SizeTable>(a);
    if (step.call) continue;
    const plan::StepKernel& variant = plan::chosen_kernel(step, sizes, plan_.context->info());
    launch.kernel = &variant.kernel;
    launch.persistent_index = variant.persistent_index;
    if (plan::runs(step, sizes)) launch.grid = launch_grid(plan_.context->queue(), variant, sizes);
  }
  return launches;
}

opencl::Kernel Executor::with_arguments(std::size_t s, const opencl::Kernel& of_plan) {
  const plan::Step& step = plan_.steps[s];
  const auto found = kernels_.find(&of_plan);
  const bool has_constants = found != kernels_.end();
  opencl::Kernel kernel = has_constants ? found->second : of_plan.duplicate();
  std::size_t table = bound_->launches[s].first_table;
  for (unsigned i = 0; i < step.arguments.size(); ++i) {
    const plan::Argument& a = step.arguments[i];
    if (const auto* r = std::get_if<plan::Reads>(&a))
      kernel.set(i, buffer(r->slot));
    else if (const auto* w = std::get_if<plan::Writes>(&a))
      kernel.set(i, buffer(w->slot));
    else if (const auto* size = std::get_if<plan::SizeExpr>(&a))
      kernel.set(i, as_int(size->evaluate(bound_->sizes), step));
    else if (has_constants)
      continue;
    else if (std::holds_alternative<plan::SizeTable>(a))
      kernel.set(i, tables_.buffer(table++));
    else if (const auto* c = std::get_if<plan::Constant>(&a))
      kernel.set(i, constant(c->index));
    else if (const auto* n = std::get_if<std::int32_t>(&a))
      kernel.set(i, *n);
    else if (const auto* f = std::get_if<float>(&a))
      kernel.set(i, *f);
    else
      kernel.set(i, nullptr);
  }
  kernels_.emplace(&of_plan, kernel);
  return kernel;
}

const opencl::Kernel& Executor::kernel_of(std::size_t s) {
  Launch& launch = bound_->launches[s];
  if (!launch.with_arguments) launch.with_arguments = with_arguments(s, *launch.kernel);
  return launch.with_arguments;
}

/// Of a library call, in the order of its arguments.
std::vector<opencl::Buffer*> Executor::buffers_of(const plan::Step& call) {
  std::vector<opencl::Buffer*> buffers;
  for (const plan::Argument& a : call.arguments) {
    if (const auto* r = std::get_if<plan::Reads>(&a)) buffers.push_back(&buffer(r->slot));
    if (const auto* w = std::get_if<plan::Writes>(&a)) buffers.push_back(&buffer(w->slot));
    if (const auto* c = std::get_if<plan::Constant>(&a)) buffers.push_back(&constant(c->index));
  }
  return buffers;
}

void Executor::enqueue_recorded() {
  std::unique_ptr<opencl::CommandBuffer>& recorded = bound_->recorded;
  if (!recorded || !recorded->is_for(*plan_.context)) {
    auto recording = std::make_unique<opencl::CommandBuffer>(*plan_.context);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const opencl::Grid& grid = bound_->launches[s].grid;
      recording->add(kernel_of(s), grid.global, grid.local, plan_.steps[s].name);
    }
    recording->finalize();
    recorded = std::move(recording);
  }
  recorded->enqueue();
}

void Executor::enqueue_segments() {
  for (std::size_t s = 0; s < plan_.steps.size();) {
    const std::size_t steps = persistent_kernel_->enqueue(s, memory_.arena());
    if (steps == 0) launch(s);
    s += std::max<std::size_t>(1, steps);
  }
}

void Executor::launch(std::size_t s) {
  const plan::Step& step = plan_.steps[s];
  if (step.call) return step.call(buffers_of(step), bound_->sizes);
  const opencl::Grid& grid = bound_->launches[s].grid;
  plan_.context->queue().launch(kernel_of(s), grid.global, grid.local, step.name);
}

void Executor::enqueue(const TapFunction& tap) {
  // Other sessions of the context queue their runs before or after this one.
  const auto held = plan_.context->queue().lock();
  settled_ = false;
  const bool by_step = tap || plan_.context->queue().profiling();
  if (record_ && !by_step) return enqueue_recorded();
  if (merges_steps() && !by_step) return enqueue_segments();
  const auto run_taps = [&](int after) {
    if (!tap) return;
    for (const plan::TapPoint& t : plan_.taps)
      if (t.after == after)
        tap(t.name, buffer(t.slot), plan_.slots[t.slot].type.dtype, shape(t.slot));
  };
  run_taps(-1);
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    launch(s);
    if (!plan_.taps.empty()) run_taps(static_cast<int>(s));
  }
}

namespace {

/// What a driver says to launches of kernels in groups of some size: each is tried once, however
/// many steps have it.
class TriedLaunches {
 public:
  /// `launch` returns false where it could not try.
  template <class Launch>
  void try_once(const plan::StepKernel& as, const Launch& launch) {
    const Key key = key_of(as);
    if (accepted_.contains(key) || refused_.contains(key)) return;
    try {
      if (launch()) accepted_.insert(key);
    } catch (const opencl::LaunchError& error) {
      refused_.emplace(key, reason_of(error));
    }
  }
  /// Null: it is not refused.
  const std::string* why_refused(const plan::StepKernel& as) const {
    const auto found = refused_.find(key_of(as));
    return found == refused_.end() ? nullptr : &found->second;
  }
  static std::string reason_of(const opencl::LaunchError& error) {
    return fmt::format("the driver refuses its launch: {}", error.what());
  }

 private:
  using Key = std::tuple<std::string, std::string, opencl::Defines, std::array<std::size_t, 3>>;
  static Key key_of(const plan::StepKernel& launch) {
    return {launch.kernel.program_name(), launch.kernel.name(), launch.kernel.defines(),
            launch.local};
  }
  std::set<Key> accepted_;
  std::map<Key, std::string> refused_;  // with the reasons
};

void drop_refused(plan::Step& step, const TriedLaunches& tried) {
  std::erase_if(step.alternatives, [&](const plan::Alternative& other) {
    const std::string* reason = tried.why_refused(other);
    if (!reason) return false;
    step.why_not_faster +=
        fmt::format("{}{}: {}", step.why_not_faster.empty() ? "" : "; ", other.variant, *reason);
    return true;
  });
}

}  // namespace

bool Executor::launch_as(std::size_t s, const plan::StepKernel& with) {
  const opencl::Kernel kernel = with_arguments(s, with.kernel);
  const auto is_empty = [&](const plan::SizeExpr& size) {
    return size.evaluate(bound_->sizes) <= 0;
  };
  if (std::ranges::any_of(with.global, is_empty)) return false;
  opencl::Queue& queue = plan_.context->queue();
  launch_or_retry(queue, kernel, launch_grid(queue, with, bound_->sizes), plan_.steps[s].name);
  return true;
}

void Executor::try_launches() {
  const auto held = plan_.context->queue().lock();
  TriedLaunches tried;
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const plan::Step& step = plan_.steps[s];
    if (step.call || step.work_units.evaluate(bound_->sizes) > step.up_to_rows) continue;
    for (const plan::Alternative& other : step.alternatives)
      tried.try_once(other, [&] { return launch_as(s, other); });
    // Its own kernel goes last and always: the next steps read what it writes.
    try {
      launch_as(s, step);
    } catch (const opencl::LaunchError& error) {
      throw plan::VariantUnsupported(step, TriedLaunches::reason_of(error), error);
    }
  }
  end_run();
  for (plan::Step& step : plan_.steps) drop_refused(step, tried);
}

}  // namespace bertcl::runtime
