// SPDX-License-Identifier: Apache-2.0
// One run of a plan at a time: named tensors to staged inputs, and results to named tensors.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/packing.hpp"
#include "plan/plan.hpp"
#include "runtime/executor.hpp"
#include "runtime/inputs.hpp"
#include "runtime/session.hpp"

namespace bertcl::runtime {

struct RequestOptions {
  bool drop_padding = true;
  bool record = false;          // as Executor
  std::int64_t max_memory = 0;  // likewise
};

/// Several requests share a plan, with its weights and programs; each has values of its own. Used
/// by one thread at a time.
class Request {
 public:
  /// Throws Error as Executor.
  Request(plan::Plan& plan, const RequestOptions& options, std::atomic<std::int64_t>& arenas)
      : plan_(plan),
        drop_padding_(options.drop_padding),
        executor_(plan, options.record, options.max_memory, arenas) {}

  /// Queues a run, after waiting for an unfinished one.
  void start(const Tensors& inputs, const Tap& tap);
  /// Waits for its outputs.
  Tensors finish();

  /// Of the last run.
  const RunStatistics& statistics() const { return statistics_; }
  std::int64_t arena_bytes() const { return executor_.arena_bytes(); }
  /// For inputs of these extents. Any thread may ask.
  std::int64_t arena_bytes(const Shapes& inputs) const;

 private:
  std::vector<std::int64_t> packed_source(const Tensors& inputs, const std::string& name) const;
  ir::Tensor default_of(const plan::Input& in) const;
  void bind_packing(const ops::Packing& packing, ir::Bindings& sizes) const;
  const plan::Input* packed_ids() const;  // null where the model does not pack
  void upload(const Tensors& inputs, const ops::Packing* packing);

  plan::Plan& plan_;
  const bool drop_padding_;
  Executor executor_;
  RunStatistics statistics_;
};

}  // namespace bertcl::runtime
