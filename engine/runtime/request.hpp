// SPDX-License-Identifier: Apache-2.0
// One run of a plan at a time: named tensors to staged inputs, and results to named tensors.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/packing.hpp"
#include "plan/plan.hpp"
#include "runtime/device_run.hpp"
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
  Request(plan::Plan& plan, const RequestOptions& options, Arenas& arenas)
      : plan_(plan),
        drop_padding_(options.drop_padding),
        executor_(plan, options.record, options.max_memory, arenas) {}

  /// Queues a run. Waits for an earlier run that was not finished.
  void start(const Tensors& inputs, const OutputNames& wanted, const TapFunction& tap);
  void start(const Sequences& sequences, const OutputNames& wanted, const TapFunction& tap);
  /// Nothing of it is brought to the host, not even by finish().
  void start(const DeviceSequences& sequences, DeviceOutputs& outputs,
             std::span<_cl_event* const> wait_for, const TapFunction& tap);
  /// Executor::try_launches() for the smallest inputs that the model takes. Does nothing where
  /// these cannot run. The request runs nothing afterwards. Throws Error where the device fails.
  void try_launches();
  /// When the outputs of such a run are there.
  const opencl::EventHandle& completion_event() const { return completion_event_; }
  /// Waits for its outputs, not for runs that were started after it.
  Tensors finish();

  /// Figures of the last run.
  const RunStatistics& statistics() const { return statistics_; }
  bool is_settled() const { return executor_.is_settled(); }
  /// Bytes that inputs of these extents need. Any thread may ask.
  std::int64_t arena_bytes(const Shapes& inputs) const;

 private:
  std::vector<std::int64_t> packed_source(const Tensors& inputs, const std::string& name) const;
  std::int64_t default_of(const std::string& name) const;
  void bind_packing_sizes(const ops::Packing& packing, ir::Bindings& sizes) const;
  /// [batch, seq] of the rows that are packed; empty where the model does not pack.
  std::optional<ir::Sizes> packed_rows(const Shapes& inputs, const ir::Bindings& sizes) const;
  void begin(const OutputNames& wanted);
  void enqueue(const TapFunction& tap);
  int slot_of(const plan::Output& out) const;
  void bind(const ops::Packing& packing, ir::Bindings sizes);
  void bind_and_upload(const Tensors& inputs);
  void upload(const Tensors& inputs, const ops::Packing* packing);
  void upload(const Sequences& sequences, const ops::Packing& packing);
  bool is_wanted(const std::string& output) const;
  static int packed_slot(const plan::Output& out);
  std::size_t bytes_on_device(const plan::Output& out, std::size_t index) const;
  void copy_output(const plan::Output& out, std::size_t index,
                   std::span<const std::int32_t> seq_offsets, BufferRegion& to);

  plan::Plan& plan_;
  const bool drop_padding_;
  Executor executor_;
  std::unique_ptr<opencl::Queue> reads_;  // of results, which wait for no later run; by finish()
  RunStatistics statistics_;
  OutputNames wanted_;                     // of the run; empty: all
  std::vector<std::int32_t> seq_offsets_;  // of a run of sequences
  bool packed_ = false;                    // they were not padded on their way in
  bool to_device_ = false;                 // its outputs stay there
  bool unfinished_ = false;                // the previous run's result was not collected
  opencl::EventHandle completion_event_;
};

}  // namespace bertcl::runtime
