// SPDX-License-Identifier: Apache-2.0
// The launches of an executor: their kernels for the sizes of a run, their arguments, their order.
#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "bertcl/error.hpp"
#include "opencl/queue.hpp"
#include "plan/builder.hpp"
#include "runtime/executor.hpp"

namespace bertcl::runtime {

opencl::Kernel& Executor::own(const opencl::Kernel& kernel) {
  opencl::Kernel& mine = kernels_[&kernel];
  if (!mine) mine = kernel.duplicate();
  return mine;
}

opencl::Buffer& Executor::constant(int index) {
  return index == plan_.error_constant ? index_error_ : plan_.constants[index];
}

void Executor::choose_launches() {
  launches_.clear();
  std::size_t tables = 0;
  for (const plan::Step& step : plan_.steps) {
    Launch& launch = launches_.emplace_back();
    launch.first_table = tables;
    for (const plan::Argument& a : step.arguments)
      tables += std::holds_alternative<plan::SizeTable>(a);
    if (step.call) continue;
    const auto take = [&](const opencl::Kernel& kernel, int persistent_index,
                          const std::array<plan::SizeExpr, 3>& global,
                          const std::array<std::size_t, 3>& local) {
      launch.kernel = &own(kernel);
      launch.persistent_index = persistent_index;
      for (std::size_t d = 0; d < 3 && plan::runs(step, sizes_); ++d)
        launch.grid.global[d] = static_cast<std::size_t>(global[d].evaluate(sizes_));
      launch.grid.local = local;
      plan_.context->queue().group_items(kernel, launch.grid);
    };
    if (const plan::Alternative* other = plan::alternative_for(step, sizes_, plan_.context->info()))
      take(other->kernel, other->persistent_index, other->global, other->local);
    else
      take(step.kernel, step.persistent_index, step.global, step.local);
  }
}

void Executor::bind_arguments() {
  calls_.clear();
  for (std::size_t s = 0; s < plan_.steps.size(); ++s)
    if (plan_.steps[s].call)
      bind_call(plan_.steps[s]);
    else
      bind_arguments(s, *launches_[s].kernel);
  arguments_bound_ = true;
}

void Executor::bind_arguments(std::size_t s, const opencl::Kernel& built) {
  const plan::Step& step = plan_.steps[s];
  opencl::Kernel kernel = built;
  std::size_t table = launches_[s].first_table;
  const bool has_constants = with_constants_.contains(&built);
  for (unsigned i = 0; i < step.arguments.size(); ++i) {
    const plan::Argument& a = step.arguments[i];
    if (const auto* r = std::get_if<plan::Reads>(&a))
      kernel.set(i, buffer(r->slot));
    else if (const auto* w = std::get_if<plan::Writes>(&a))
      kernel.set(i, buffer(w->slot));
    else if (std::holds_alternative<plan::SizeTable>(a))
      kernel.set(i, table_views_[table++]);
    else if (const auto* size = std::get_if<plan::SizeExpr>(&a))
      kernel.set(i, as_int(size->evaluate(sizes_), step));
    else if (has_constants)
      continue;
    else if (const auto* c = std::get_if<plan::Constant>(&a))
      kernel.set(i, constant(c->index));
    else if (const auto* n = std::get_if<std::int32_t>(&a))
      kernel.set(i, *n);
    else if (const auto* f = std::get_if<float>(&a))
      kernel.set(i, *f);
    else
      kernel.set(i, nullptr);
  }
  with_constants_.insert(&built);
}

void Executor::bind_call(const plan::Step& step) {
  std::vector<opencl::Buffer*> buffers;
  for (const plan::Argument& a : step.arguments) {
    if (const auto* r = std::get_if<plan::Reads>(&a)) buffers.push_back(&buffer(r->slot));
    if (const auto* w = std::get_if<plan::Writes>(&a)) buffers.push_back(&buffer(w->slot));
    if (const auto* c = std::get_if<plan::Constant>(&a)) buffers.push_back(&constant(c->index));
  }
  calls_[&step] = std::move(buffers);
}

void Executor::enqueue_recorded() {
  if (!arguments_bound_) bind_arguments();
  if (!recorded_ || !recorded_->is_for(*plan_.context)) {
    auto recording = std::make_unique<opencl::CommandBuffer>(*plan_.context);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s)
      recording->add(*launches_[s].kernel, launches_[s].grid.global, launches_[s].grid.local,
                     plan_.steps[s].name);
    recording->finalize();
    recorded_ = std::move(recording);
  }
  recorded_->enqueue();
}

void Executor::launch(std::size_t s) {
  if (!arguments_bound_) bind_arguments();
  const plan::Step& step = plan_.steps[s];
  const Launch& l = launches_[s];
  if (step.call)
    step.call(calls_.at(&step), sizes_);
  else
    plan_.context->queue().launch(*l.kernel, l.grid.global, l.grid.local, step.name);
}

void Executor::enqueue_segments() {
  if (!persistent_kernel_->is_bound()) persistent_kernel_->bind(launches_, memory_, sizes_);
  for (std::size_t s = 0; s < plan_.steps.size();) {
    const std::size_t steps = persistent_kernel_->enqueue(s);
    if (steps == 0) launch(s);
    s += std::max<std::size_t>(1, steps);
  }
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

void Executor::try_launches() {
  using Tried = std::tuple<std::string, std::string, opencl::Defines, std::array<std::size_t, 3>>;
  const auto held = plan_.context->queue().lock();
  std::set<Tried> accepted;
  std::map<Tried, std::string> refused;  // with the reasons
  const auto launched_as = [](const auto& launch) {
    return Tried{launch.kernel.program_name(), launch.kernel.name(), launch.kernel.defines(),
                 launch.local};
  };
  // False for inputs with which nothing runs, as an axis that is shorter than what is cut from it.
  const auto launch = [&](std::size_t s, const auto& with) {
    opencl::Kernel& kernel = own(with.kernel);
    bind_arguments(s, kernel);
    opencl::Grid grid{.local = with.local};
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t size = with.global[d].evaluate(sizes_);
      if (size <= 0) return false;
      grid.global[d] = static_cast<std::size_t>(size);
    }
    opencl::Queue& queue = plan_.context->queue();
    queue.group_items(kernel, grid);
    try {
      queue.launch(kernel, grid.global, grid.local, plan_.steps[s].name);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      queue.finish();  // a shortage may pass
      queue.launch(kernel, grid.global, grid.local, plan_.steps[s].name);
    }
    return true;
  };
  const auto reason_of = [](const opencl::LaunchError& error) {
    return fmt::format("the driver refuses its launch: {}", error.what());
  };
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const plan::Step& step = plan_.steps[s];
    // Its own kernel goes last and always: the next steps read what it writes.
    if (step.call || step.work_units.evaluate(sizes_) > step.up_to_rows) continue;
    for (const plan::Alternative& other : step.alternatives) {
      const Tried key = launched_as(other);
      if (accepted.contains(key) || refused.contains(key)) continue;
      try {
        if (launch(s, other)) accepted.insert(key);
      } catch (const opencl::LaunchError& error) {
        refused.emplace(key, reason_of(error));
      }
    }
    try {
      launch(s, step);
    } catch (const opencl::LaunchError& error) {
      throw plan::VariantUnsupported(step, reason_of(error), error);
    }
  }
  end_run();
  for (plan::Step& step : plan_.steps)
    std::erase_if(step.alternatives, [&](const plan::Alternative& other) {
      const auto found = refused.find(launched_as(other));
      if (found == refused.end()) return false;
      step.why_not_faster += fmt::format("{}{}: {}", step.why_not_faster.empty() ? "" : "; ",
                                         other.variant, found->second);
      return true;
    });
}

}  // namespace bertcl::runtime
