// SPDX-License-Identifier: Apache-2.0
// A model loaded on one device, ready to run batches of any shape.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/port.hpp"
#include "ir/tensor.hpp"
#include "onnx/read_model.hpp"
#include "opencl/context.hpp"
#include "opencl/context_future.hpp"
#include "passes/node_statuses.hpp"
#include "plan/plan.hpp"
#include "plan/tuning.hpp"
#include "runtime/device_run.hpp"
#include "runtime/pooling.hpp"

namespace bertcl::runtime {

/// Named tensors, as a model takes and gives them.
using Tensors = std::map<std::string, ir::Tensor, std::less<>>;

struct SessionOptions {
  std::string device;  // selector of opencl::select_device; empty: first GPU, else CPU
  /// Run packed where the mask is a prefix of ones. If false, rows of padding are what the file
  /// gives, by passes::Options::drop_padding.
  bool drop_padding = true;
  std::string gemm = "auto";  // float GEMMs: as plan::gemm_library_named() says
  /// Arithmetic of float linear and attention. f16: fp16 weights, and products if the device has
  /// the kernels; bf16: both, if the device multiplies bf16.
  ir::DType precision = ir::DType::f32;
  int requests = 4;  // most runs in flight
  /// For compile(); load() always does it, unless kernels are disabled or tensors observed. The
  /// first time on a device and driver, compare a run with the host's results (self_check.hpp).
  bool self_check = false;
  bool command_buffer = false;          // record the launches of a shape once and replay them
  std::optional<bool> allow_nonfinite;  // weights may hold NaN and infinity, as plan::Options says
  /// Bytes: of constants that compiling makes, and of weights and values on the device together. 0:
  /// those of the environment variable BERTCL_MAX_MEMORY, else what the device has.
  std::int64_t max_memory = 0;
  bool require_int8 = false;  // error if plan::why_not_int8() knows a reason
  /// The id of padding. Called only if plan::compared_pad_ids() is not empty, as of decoders with a
  /// classification head; null or nullopt: 0.
  std::function<std::optional<std::int64_t>()> pad_token_id;
  std::optional<Pooling> pooling;  // in place of the model's outputs, by add_pooling()
  std::vector<std::string> disabled_passes;
  bool follow_nodes = false;     // for Session::node_statuses()
  std::string disabled_kernels;  // comma-separated names of variants
  /// Choices of variants; null: those stored for the device (plan/tuning.hpp).
  std::shared_ptr<const plan::Tuning> tuning;
  std::vector<std::string> observe;  // ONNX tensors that calibration wants to see
  /// Called before each program of kernels is built or loaded: how many are, of how many.
  std::function<void(std::size_t built, std::size_t programs)> on_program;
  /// Called with the name of each pass that changed the graph, and the graph as text.
  std::function<void(const std::string&, const std::string&)> dump_passes;
  /// Shared by several sessions on one device; if empty, the session opens `device` itself while it
  /// reads the model.
  opencl::ContextFuture context;
};

/// Sequences without padding: sequence i is [offsets[i], offsets[i + 1]) of the ids.
struct Sequences {
  std::span<const std::int64_t> ids;
  std::span<const std::int64_t> token_type_ids;  // as many as ids; empty: all 0
  std::span<const std::int64_t> offsets;
};

/// Names of outputs; empty: all.
using OutputNames = std::vector<std::string>;

/// What a run worked on.
struct RunStatistics {
  std::int64_t batch = 0, seq = 0;
  std::int64_t tokens = 0;  // rows that were computed
};

/// Bytes on the device.
struct MemoryUse {
  std::int64_t weights = 0;  // shared by all runs
  std::int64_t values = 0;   // of all requests: each keeps what its largest batch so far needed
  int requests = 0;          // that exist
};

/// Milliseconds from a model's file to a session.
struct LoadTimes {
  double parse = 0;     // file to graph
  double passes = 0;    // the compiler
  double device = 0;    // waited for until it was open; its driver starts meanwhile
  double programs = 0;  // of kernels: from the cache on disk, or built
  double plan = 0;      // graph to steps, with the weights brought to the device and packed

  double total() const { return parse + passes + device + programs + plan; }
};

/// Called during a run with the device memory of an observed tensor and its shape in this run.
/// Queue kernels that read it; the memory is reused later.
using TapFunction = std::function<void(const std::string& name, const opencl::Buffer& buffer,
                                       ir::DType dtype, const ir::Sizes& shape)>;

class Request;

/// Bytes: `asked` if it is above 0, else what the environment variable BERTCL_MAX_MEMORY says; 0:
/// no limit. Throws Error where that is not a number.
std::int64_t memory_limit(std::int64_t asked = 0);

/// A loaded model. Threads: all of it may be called from any thread at any time. Weights and
/// programs are shared; each run in flight has a request, with an arena and arguments of kernels of
/// its own, of which there are at most SessionOptions::requests. Runs are queued one after the
/// other, since a context has one queue: while the device works on one, the host prepares others.
/// Moving and destroying a session are not safe during other calls.
class Session {
 public:
  /// Reads, compiles and plans a model. Throws bertcl::Error naming file, node and reason.
  static Session load(const std::filesystem::path& model, const SessionOptions& options = {});
  /// The same for the content of a file.
  static Session load(const onnx_io::ModelBytes& model, const SessionOptions& options = {});
  /// The same for a graph that is in memory; `path` stands for it in messages.
  static Session compile(ir::Graph graph, const SessionOptions& options = {},
                         const std::filesystem::path& path = "graph");
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const std::vector<ir::Port>& inputs() const;
  const std::vector<ir::Port>& outputs() const;
  const plan::Plan& plan() const;
  opencl::Context& context() const;
  std::shared_ptr<opencl::Context> shared_context() const;
  const std::filesystem::path& path() const;
  const std::map<std::string, std::string>& metadata() const;  // metadata_props of the file

  /// Runs one batch. Integer inputs may be int32 or int64; a mask or ids that the model declares as
  /// float hold integers; inputs that the model has but the caller leaves out are an error,
  /// except token types (zeros) and the mask (ones). Rows of padding in the outputs are 0, or made
  /// of 0, where padding was dropped, else what the ONNX graph gives. Waits for a request where all
  /// are in use. Outputs that are not wanted are not brought to the host.
  Tensors run(const Tensors& inputs, const OutputNames& wanted = {});
  /// Sequences without padding, for models of token ids. Outputs [batch, seq, ...] are [tokens,
  /// ...], in the order of the sequences; others stay. In several runs, one after the other, where
  /// the file fixes the batch or cannot tell padding (ignores_padding()): run_in_groups(). start()
  /// is one.
  Tensors run(const Sequences& sequences, const OutputNames& wanted = {});
  /// The same in two halves: start() queues everything and returns at once, Run::finish() waits for
  /// the outputs, not for runs that were started later. Throws Error where all requests are in use.
  class Run;
  Run start(const Tensors& inputs, const OutputNames& wanted = {});
  Run start(const Sequences& sequences, const OutputNames& wanted = {});
  /// Nothing goes to the host: Run::finish() gives no outputs. The run starts when `wait_for` is
  /// complete. Throws Error, before anything is queued, where a range is too small or the plan does
  /// not take packed sequences.
  Run start(const DeviceSequences& sequences, DeviceOutputs outputs,
            std::span<_cl_event* const> wait_for = {});

  /// For the runs that follow, which one thread makes. Not to be called during a run.
  void set_tap(TapFunction tap);
  /// Figures of the run that ended last.
  RunStatistics statistics() const;
  const LoadTimes& load_times() const;
  /// The outcome for each node of the file; empty without SessionOptions::follow_nodes.
  const std::vector<passes::NodeStatus>& node_statuses() const;
  MemoryUse memory() const;
  /// Bytes of the arena for inputs of these extents, without a run: nothing is allocated. Throws
  /// Error like run() if they do not match the model, or need too much memory.
  std::int64_t arena_bytes(const std::map<std::string, ir::Sizes, std::less<>>& inputs) const;

 private:
  struct State;
  /// Deletes what queued work may still use once none does.
  struct Settle {
    void operator()(State* state) const noexcept;
  };
  explicit Session(std::unique_ptr<State, Settle> state);
  static void check_once(const ir::Graph& graph, State& state);
  static Session load_any(const std::function<ir::Graph(const onnx_io::ReadOptions&)>& read,
                          const std::filesystem::path& path, const SessionOptions& options);
  std::unique_ptr<State, Settle> state_;
};

/// A run that is queued. Its session outlives it. Without finish() its outputs are lost.
class Session::Run {
 public:
  Run(Run&& other) noexcept;
  Run& operator=(Run&&) = delete;
  ~Run();
  /// Waits for the outputs; once. Any thread may call it.
  Tensors finish();
  /// Complete when the outputs of a run on the device are there; null of others.
  const opencl::EventHandle& event() const { return event_; }

 private:
  friend class Session;
  using Begin = std::function<void(Request&, const TapFunction&)>;
  Run(State& state, bool wait, const Begin& begin);
  State* state_;
  Request* request_;
  opencl::EventHandle event_;
};

}  // namespace bertcl::runtime
