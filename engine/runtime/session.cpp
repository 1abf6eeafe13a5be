// SPDX-License-Identifier: Apache-2.0
// A model loaded on one device, ready to run batches of any shape.
#include "runtime/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "bertcl/error.hpp"
#include "bertcl/stopwatch.hpp"
#include "ir/checked.hpp"
#include "ir/text.hpp"
#include "onnx/read_model.hpp"
#include "opencl/exit_guard.hpp"
#include "opencl/queue.hpp"
#include "ops/symbols.hpp"
#include "passes/pass.hpp"
#include "plan/builder.hpp"
#include "plan/precision.hpp"
#include "runtime/executor.hpp"
#include "runtime/inputs.hpp"

namespace bertcl::runtime {
namespace {

namespace symbols = ops::symbols;

/// Marks the tensors that calibration wants to see by a user of their own, so that no fusion
/// swallows them.
void add_observers(ir::Graph& graph, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    ir::Value* value = graph.find_value(name);
    if (!value)
      throw Error(
          fmt::format("tensor '{}' was to be observed but the graph has none of that name", name));
    graph.add_node("observe", {value}, {{"name", name}}, {});
  }
}

}  // namespace

struct Session::State {
  std::filesystem::path path;
  bool drop_padding = true;
  plan::Plan plan;
  std::unique_ptr<Executor> executor;
  Tap tap;
  RunStatistics statistics;
  LoadTimes times;
  std::vector<passes::NodeStatus> node_statuses;
  std::atomic<std::thread::id> inside;  // the thread in a call, see Turn
  std::thread::id started_by;           // of the run that is not finished yet
  void start(const Tensors& inputs);
  Tensors finish();
  std::vector<std::int64_t> packed_source(const Tensors& inputs, const std::string& name) const;
  ir::Tensor default_of(const plan::Input& in) const;
  void bind_packing(const ops::Packing& packing, ir::Bindings& sizes) const;
  const plan::Input* packed_ids() const;  // null where the model does not pack
  std::int64_t arena_bytes(const Shapes& inputs) const;
  void upload(const Tensors& inputs, const ops::Packing* packing);
};

/// The time that a thread spends in a call of a session.
class Session::Turn {
 public:
  explicit Turn(State& state) : state_(state) {
    std::thread::id other;
    if (!state_.inside.compare_exchange_strong(other, std::this_thread::get_id())) refuse(other);
  }
  ~Turn() { state_.inside = std::thread::id(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Throws Error if a thread other than this one is in a call: for what a tap may ask.
  static void check(const State& state) {
    const std::thread::id thread = state.inside;
    if (thread != std::thread::id() && thread != std::this_thread::get_id()) refuse(thread);
  }
  [[noreturn]] static void refuse(std::thread::id running) {
    if (running == std::this_thread::get_id())
      throw Error("this session is running: its tap cannot start or change another run of it");
    throw Error(
        "this session is already running in another thread; make a session for each thread");
  }

 private:
  State& state_;
};

void Session::Settle::operator()(State* state) const noexcept {
  const std::shared_ptr<State> owned(state);
  const std::shared_ptr<opencl::Context> context = state->plan.context;
  if (context && !opencl::process_is_ending()) context->queue().settle(owned);
}

void Session::State::bind_packing(const ops::Packing& packing, ir::Bindings& sizes) const {
  sizes[symbols::batch] = packing.batch;
  sizes[symbols::tokens] = packing.tokens();
  sizes[symbols::offsets] = packing.batch + 1;
  sizes[symbols::longest] = packing.longest;
  // One work-item for all rows of a head packs its keys once; more items keep more units busy.
  const std::int64_t heads = std::max<std::int64_t>(1, plan.attention_heads * packing.batch);
  const std::int64_t wanted = 4 * static_cast<std::int64_t>(plan.context->info().compute_units);
  const std::int64_t blocks = std::max<std::int64_t>(1, (wanted + heads - 1) / heads);
  const std::int64_t rows = (packing.longest + blocks - 1) / blocks;
  sizes[symbols::attention_rows] = std::max<std::int64_t>(32, (rows + 31) / 32 * 32);
}

/// An absent mask or absent token types that a generic op reads.
ir::Tensor Session::State::default_of(const plan::Input& in) const {
  const ir::Sizes shape = executor->shape(in.slot);
  return ir::Tensor::of(
      shape, std::vector<std::int64_t>(static_cast<std::size_t>(ir::element_count(shape)),
                                       in.source == plan.mask_input ? 1 : 0));
}

void Session::State::upload(const Tensors& inputs, const ops::Packing* packing) {
  for (const plan::Input& in : plan.inputs) {
    const auto stage = [&](const auto& values) {
      const auto from = std::as_bytes(std::span(values));
      const std::span<std::byte> to = executor->staging(in.slot);
      if (from.size() != to.size())
        throw Error(fmt::format("input '{}': {} bytes where the plan takes {}", in.source,
                                from.size(), to.size()));
      std::ranges::copy(from, to.begin());
    };
    switch (in.kind) {
      case plan::InputKind::dense: {
        const ir::DType wanted = plan.slots[static_cast<std::size_t>(in.slot)].type.dtype;
        const auto given = inputs.find(in.source);
        const ir::Tensor t = given != inputs.end() ? given->second.converted(wanted)
                                                   : default_of(in).converted(wanted);
        stage(t.bytes());
        break;
      }
      case plan::InputKind::packed_ids:
      case plan::InputKind::packed_types:
        stage(packing->gather(packed_source(inputs, in.source)));
        break;
      case plan::InputKind::positions:
        stage(in.source.empty() ? packing->positions
                                : packing->gather(packed_source(inputs, in.source)));
        break;
      case plan::InputKind::seq_offsets:
        stage(packing->seq_offsets);
        break;
      case plan::InputKind::key_mask:
        stage(packing->key_mask);
        break;
    }
  }
  executor->upload();
}

/// Values [batch, seq] of an input; zeros where it is absent.
std::vector<std::int64_t> Session::State::packed_source(const Tensors& inputs,
                                                        const std::string& name) const {
  if (inputs.contains(name)) return integers_of(plan, inputs, name);
  return std::vector<std::int64_t>(static_cast<std::size_t>(statistics.batch * statistics.seq));
}

Session::Session(std::unique_ptr<State, Settle> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

namespace {

/// 0: none is set.
std::int64_t memory_limit(const SessionOptions& options) {
  const char* text = std::getenv("BERTCL_MAX_MEMORY");
  if (options.max_memory > 0 || !text || !*text) return options.max_memory;
  std::int64_t bytes = 0;
  const char* end = text + std::strlen(text);
  if (std::from_chars(text, end, bytes).ptr != end || bytes <= 0)
    throw Error(fmt::format("BERTCL_MAX_MEMORY: '{}' is not a number of bytes", text));
  return bytes;
}

/// Before any of it is brought to the device.
void check_constants(const ir::Graph& graph, std::int64_t limit) {
  std::int64_t bytes = 0;
  for (const ir::Value* c : graph.constants())
    bytes += c->constant->size() * static_cast<std::int64_t>(ir::size_of(c->constant->dtype()));
  if (limit > 0 && bytes > limit)
    throw Error(
        fmt::format("{} bytes of weights are needed, --max-memory allows {}", bytes, limit));
}

}  // namespace

Session Session::load(const std::filesystem::path& model, const SessionOptions& options) {
  SessionOptions with_device = options;
  if (!options.context) with_device.context = opencl::ContextFuture::open(options.device);
  const Stopwatch clock;
  onnx_io::ReadOptions reading;
  reading.limits.memory = memory_limit(options);
  ir::Graph graph = onnx_io::read_model(model, reading);
  const double parse = clock.milliseconds();
  Session session = compile(std::move(graph), with_device, model);
  session.state_->times.parse = parse;
  return session;
}

Session Session::compile(ir::Graph graph, const SessionOptions& options,
                         const std::filesystem::path& path) {
  std::unique_ptr<State, Settle> state(new State);
  state->path = path;
  state->drop_padding = options.drop_padding;
  plan::Options plan_options;
  plan_options.gemm = options.gemm;
  plan_options.allow_nonfinite = options.allow_nonfinite;
  plan_options.merge_launches = !options.command_buffer && options.observe.empty();
  plan_options.disabled = options.disabled_kernels;
  plan_options.tuning = options.tuning;
  plan_options.on_program = options.on_program;
  std::shared_ptr<opencl::Context> context;
  const auto open = [&] {
    if (context) return;
    const Stopwatch opening;
    context = options.context ? options.context.get() : opencl::Context::create(options.device);
    state->times.device = opening.milliseconds();
  };
  if (options.precision != ir::DType::f32) open();  // which has a say in it
  const Stopwatch clock;
  add_observers(graph, options.observe);
  passes::Options pass_options;
  pass_options.disabled = options.disabled_passes;
  pass_options.limits.memory = memory_limit(options);
  if (context)
    pass_options.precision = plan::precision_on(*context, options.precision, plan_options);
  if (options.dump_passes) options.dump_passes("import", ir::print(graph));
  std::optional<passes::NodeStatuses> statuses;
  if (options.follow_nodes) statuses.emplace(graph);
  passes::compile(graph, pass_options, [&](const passes::Pass& pass, const ir::Graph& g) {
    if (options.dump_passes) options.dump_passes(pass.name, ir::print(g));
    if (statuses) statuses->after(pass.name, g);
  });
  if (statuses) state->node_statuses = statuses->result();
  state->times.passes = clock.milliseconds();
  if (options.gemm != "auto" && options.gemm != "own" && options.gemm != "clblast")
    throw Error(
        fmt::format("unknown GEMM library '{}' (choose from auto, own, clblast)", options.gemm));
  open();
  const Stopwatch planning;
  check_constants(graph, memory_limit(options));
  state->plan = plan::make_plan(graph, context, plan_options);
  if (options.require_int8)
    if (const auto reasons = plan::why_not_int8(state->plan); !reasons.empty())
      throw Error(fmt::format("{}: int8 is required, but\n  {}", path.string(),
                              fmt::join(reasons, "\n  ")));
  state->executor =
      std::make_unique<Executor>(state->plan, options.command_buffer, memory_limit(options));
  state->times.programs = state->plan.program_ms;
  state->times.plan = planning.milliseconds() - state->times.programs;
  return Session(std::move(state));
}

void Session::State::start(const Tensors& inputs) {
  if (started_by != std::thread::id() && started_by != std::this_thread::get_id())
    Turn::refuse(started_by);
  check_names(plan, inputs);
  ir::Bindings sizes = bind_shapes(plan, shapes_of(inputs));
  std::optional<ops::Packing> packing;
  if (const plan::Input* ids = packed_ids()) {
    const ir::Sizes& shape = inputs.find(ids->source)->second.shape();
    packing = ops::make_packing(shape[0], shape[1], mask_of(plan, inputs),
                                drop_padding && plan.keeps_padding.empty(), plan.mask_is_length);
    check_length(plan, *packing);
    bind_packing(*packing, sizes);
    statistics = {packing->batch, packing->seq, packing->tokens()};
  }
  executor->bind(sizes);
  upload(inputs, packing ? &*packing : nullptr);
  executor->enqueue(tap);
  started_by = std::this_thread::get_id();
}

const plan::Input* Session::State::packed_ids() const {
  const auto ids = std::find_if(plan.inputs.begin(), plan.inputs.end(), [](const plan::Input& in) {
    return in.kind == plan::InputKind::packed_ids;
  });
  return ids == plan.inputs.end() ? nullptr : &*ids;
}

std::int64_t Session::State::arena_bytes(const Shapes& inputs) const {
  ir::Bindings sizes = bind_shapes(plan, inputs);
  if (const plan::Input* ids = packed_ids()) {
    const auto shape = inputs.find(ids->source);
    if (shape == inputs.end()) throw Error(fmt::format("input '{}' is missing", ids->source));
    ops::Packing packing;  // of full sequences
    packing.batch = shape->second[0];
    packing.seq = packing.longest = shape->second[1];
    const std::int64_t tokens = ir::product(packing.batch, packing.seq, "a batch");
    if (tokens > std::numeric_limits<std::int32_t>::max())
      throw Error(fmt::format("a batch of {} tokens is too large", tokens));
    packing.seq_offsets = {static_cast<std::int32_t>(tokens)};
    check_length(plan, packing);
    bind_packing(packing, sizes);
  }
  return executor->arena_bytes(sizes);
}

Tensors Session::State::finish() {
  started_by = {};
  // Where the device cannot be waited for, queued reads write here after this call has thrown.
  struct Results {
    Tensors outputs;
    std::int32_t index_error = 0;
  };
  const auto results = std::make_shared<Results>();
  for (const plan::Output& out : plan.outputs)
    results->outputs[out.name] =
        out.slot < 0 ? out.constant
                     : ir::Tensor::zeros(plan.slots[static_cast<std::size_t>(out.slot)].type.dtype,
                                         executor->shape(out.slot));
  opencl::Queue& queue = plan.context->queue();
  opencl::Buffer* flag = plan.error_constant < 0
                             ? nullptr
                             : &plan.constants[static_cast<std::size_t>(plan.error_constant)];
  // All reads are queued before the one wait.
  try {
    for (const plan::Output& out : plan.outputs)
      if (ir::Tensor& t = results->outputs.at(out.name); out.slot >= 0 && !t.bytes().empty())
        executor->buffer(out.slot).read_async(t.mutable_bytes());
    if (flag) flag->read_async(std::as_writable_bytes(std::span(&results->index_error, 1)));
    queue.finish();
  } catch (...) {
    queue.settle(results);
    throw;
  }
  if (results->index_error == 0) return std::move(results->outputs);
  flag->fill(0);
  throw Error(
      "an index was outside its table: a token id beyond the vocabulary, a token type or a "
      "position beyond its table");
}

void Session::start(const Tensors& inputs) {
  const Turn turn(*state_);
  state_->start(inputs);
}

Tensors Session::finish() {
  const Turn turn(*state_);
  return state_->finish();
}

Tensors Session::run(const Tensors& inputs) {
  const Turn turn(*state_);
  state_->start(inputs);
  return state_->finish();
}

void Session::set_tap(Tap tap) {
  const Turn turn(*state_);
  state_->tap = std::move(tap);
}

const RunStatistics& Session::statistics() const {
  Turn::check(*state_);
  return state_->statistics;
}

std::int64_t Session::arena_bytes() const {
  Turn::check(*state_);
  return state_->executor->arena_bytes();
}

std::int64_t Session::arena_bytes(
    const std::map<std::string, ir::Sizes, std::less<>>& inputs) const {
  Turn::check(*state_);
  return state_->arena_bytes(inputs);
}

const std::vector<plan::Port>& Session::inputs() const { return state_->plan.model_inputs; }
const std::vector<plan::Port>& Session::outputs() const { return state_->plan.model_outputs; }
const plan::Plan& Session::plan() const { return state_->plan; }
opencl::Context& Session::context() const { return *state_->plan.context; }
std::shared_ptr<opencl::Context> Session::shared_context() const { return state_->plan.context; }
const std::filesystem::path& Session::path() const { return state_->path; }
const LoadTimes& Session::load_times() const { return state_->times; }
const std::vector<passes::NodeStatus>& Session::node_statuses() const {
  return state_->node_statuses;
}

}  // namespace bertcl::runtime
