// SPDX-License-Identifier: Apache-2.0
// A model loaded on one device, ready to run batches of any shape.
#include "runtime/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "bertcl/error.hpp"
#include "ir/text.hpp"
#include "opencl/base/exit_guard.hpp"
#include "opencl/queue.hpp"
#include "ops/operands.hpp"
#include "passes/pass.hpp"
#include "plan/builder.hpp"
#include "plan/precision.hpp"
#include "runtime/request.hpp"
#include "runtime/self_check.hpp"
#include "runtime/sequence_groups.hpp"
#include "runtime/sequences.hpp"
#include "support/option_name.hpp"
#include "support/parse_number.hpp"
#include "support/stopwatch.hpp"
#include "support/with_code.hpp"

namespace bertcl::runtime {
namespace {

/// Marks the tensors that calibration wants to see by a user of their own, so that no fusion
/// swallows them.
void add_observers(ir::Graph& graph, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    ir::Value* value = graph.find_value(name);
    if (!value)
      throw Error(fmt::format("cannot observe tensor '{}': the graph has none of that name", name));
    graph.add_node(ops::operands::observe::op, {value}, {{"name", name}}, {});
  }
}

}  // namespace

/// The shared part, and the requests that run it.
struct Session::State {
  std::filesystem::path path;
  std::vector<onnx_io::FileStamp> files;  // that tables are read from
  std::map<std::string, std::string> metadata;
  plan::Plan plan;
  LoadTimes times;
  std::vector<passes::NodeStatus> node_statuses;
  std::function<std::unique_ptr<Request>()> make_request;
  std::size_t max_requests = 1;
  bool pads = false;  // sequences, on their way in

  Arenas arenas{.free_idle = [this] { free_idle(); }};  // of all requests

  mutable std::mutex mutex;  // of what follows
  std::condition_variable returned;
  std::vector<std::shared_ptr<Request>> requests;  // all of them
  std::vector<Request*> idle;                      // the one that ran last at the end
  std::size_t in_use = 0;                          // runs, one whose request is being made included
  TapFunction tap;                                 // set while nothing runs
  RunStatistics statistics;

  void prepare_requests(const SessionOptions& session, const RequestOptions& options);
  Request& take(bool wait);
  void give_back(Request& request) noexcept;
  void free_idle();
};

/// Once there is a plan; makes none of them yet.
void Session::State::prepare_requests(const SessionOptions& session,
                                      const RequestOptions& options) {
  pads = !options.drop_padding || !takes_packed(plan);
  max_requests = static_cast<std::size_t>(std::max(1, session.requests));
  requests.reserve(max_requests);
  idle.reserve(max_requests);
  make_request = [this, options] { return std::make_unique<Request>(plan, options, arenas); };
}

/// A request that is idle, or a new one.
Request& Session::State::take(bool wait) {
  opencl::refuse_fork();
  std::unique_lock lock(mutex);
  const auto is_free = [&] { return in_use < max_requests; };
  if (!wait && !is_free())
    throw Error(fmt::format("the limit of {} concurrent runs is reached; wait for one, or raise {}",
                            in_use, option_name("requests")),
                ErrorCode::busy);
  returned.wait(lock, is_free);
  ++in_use;
  if (!idle.empty()) {
    Request& request = *idle.back();
    idle.pop_back();
    return request;
  }
  lock.unlock();  // others finish their runs while this one's request is made
  std::unique_ptr<Request> made;
  try {
    made = make_request();
  } catch (...) {
    lock.lock();
    --in_use;
    lock.unlock();
    returned.notify_one();
    throw;
  }
  lock.lock();
  return *requests.emplace_back(std::move(made));
}

void Session::State::give_back(Request& request) noexcept {
  {
    const std::scoped_lock lock(mutex);
    statistics = request.statistics();
    idle.push_back(&request);  // has the room
    --in_use;
  }
  returned.notify_one();
}

/// Drops requests whose runs were waited for, with their memory: others are made when they are
/// needed. Under the lock, so that whoever comes next finds the memory free.
void Session::State::free_idle() {
  const std::scoped_lock lock(mutex);
  std::vector<std::shared_ptr<Request>> freed;
  for (std::shared_ptr<Request>& request : requests)
    if (std::ranges::find(idle, request.get()) != idle.end() && request->is_settled())
      std::erase(idle, freed.emplace_back(std::move(request)).get());
  std::erase(requests, nullptr);
}

Session::Run::Run(State& state, bool wait, const Begin& begin)
    : state_(&state), request_(&state.take(wait)) {
  try {
    onnx_io::check_not_overwritten(state.files);
    begin(*request_, state.tap);
    event_ = request_->completion_event();
  } catch (...) {
    state.give_back(*request_);
    throw;
  }
}

Session::Run::Run(Run&& other) noexcept
    : state_(other.state_),
      request_(std::exchange(other.request_, nullptr)),
      event_(std::move(other.event_)) {}

Session::Run::~Run() {
  if (request_) state_->give_back(*request_);
}

Tensors Session::Run::finish() {
  if (!request_) throw Error("this run has already finished");
  const Run ended = std::move(*this);  // gives the request back
  return ended.request_->finish();
}

void Session::Settle::operator()(State* state) const noexcept {
  const std::shared_ptr<State> owned(state);
  const std::shared_ptr<opencl::Context> context = state->plan.context;
  if (context && !opencl::process_is_ending()) context->queue().settle(owned);
}

Session::Session(std::unique_ptr<State, Settle> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

std::int64_t memory_limit(std::int64_t asked) {
  const char* text = std::getenv("BERTCL_MAX_MEMORY");
  if (asked > 0 || !text || !*text) return asked;
  const auto bytes = parse_number<std::int64_t>(text);
  if (!bytes || *bytes <= 0)
    throw Error(fmt::format("BERTCL_MAX_MEMORY: '{}' is not a number of bytes", text));
  return *bytes;
}

namespace {

/// Before any of it is brought to the device.
void check_constants(const ir::Graph& graph, std::int64_t limit) {
  std::int64_t bytes = 0;
  for (const ir::Value* c : graph.constants())
    bytes += c->constant->size() * static_cast<std::int64_t>(ir::size_of(c->constant->dtype()));
  if (limit > 0 && bytes > limit)
    throw Error(fmt::format("{} bytes of weights are needed, {} allows {}", bytes,
                            option_name("max-memory"), limit),
                ErrorCode::out_of_memory);
}

}  // namespace

Session Session::load_any(const std::function<ir::Graph(const onnx_io::ReadOptions&)>& read,
                          const std::filesystem::path& path, const SessionOptions& options) {
  SessionOptions with_device = options;
  if (!options.context) with_device.context = opencl::ContextFuture::open(options.device);
  const Stopwatch clock;
  onnx_io::ReadOptions reading;
  reading.limits.memory = memory_limit(options.max_memory);
  std::vector<onnx_io::FileStamp> files;
  reading.files = &files;
  ir::Graph graph = with_code(ErrorCode::invalid_file, [&] { return read(reading); });
  const double parse = clock.milliseconds();
  with_device.self_check = options.observe.empty() && options.disabled_kernels.empty();
  Session session = compile(std::move(graph), with_device, path);
  session.state_->times.parse = parse;
  if (session.plan().tables_in_place) session.state_->files = std::move(files);
  return session;
}

Session Session::load(const std::filesystem::path& model, const SessionOptions& options) {
  return load_any([&](const auto& reading) { return onnx_io::read_model(model, reading); }, model,
                  options);
}

Session Session::load(const onnx_io::ModelBytes& model, const SessionOptions& options) {
  return load_any([&](const auto& reading) { return onnx_io::read_model(model, reading); },
                  kModelInMemory, options);
}

/// The first time on a device; with a request of its own, whose memory is free afterwards.
void Session::check_once(const ir::Graph& graph, State& state) {
  if (needs_check(state.plan) &&
      check_results(graph, state.plan, *state.make_request(), state.path))
    remember_check(state.plan);
}

namespace {

plan::Options plan_options_of(const SessionOptions& options) {
  plan::Options made;
  made.gemm = plan::gemm_library_named(options.gemm);
  made.allow_nonfinite = options.allow_nonfinite;
  made.merge_launches = !options.command_buffer && options.observe.empty();
  made.disabled = plan::variants_to_disable(options.disabled_kernels);
  made.tuning = options.tuning;
  made.on_program = options.on_program;
  return made;
}

/// Runs the passes and dumps the graph after each where that is asked for. Returns what became of
/// the nodes of the file, if options.follow_nodes asks for that.
std::vector<passes::NodeStatus> run_passes(ir::Graph& graph, const passes::Options& pass_options,
                                           const SessionOptions& options) {
  if (options.dump_passes) options.dump_passes("import", ir::print(graph));
  std::optional<passes::NodeStatuses> statuses;
  if (options.follow_nodes) statuses.emplace(graph);
  with_code(ErrorCode::unsupported, [&] {
    passes::compile(graph, pass_options, [&](const passes::Pass& pass, const ir::Graph& g) {
      if (options.dump_passes) options.dump_passes(pass.name, ir::print(g));
      if (statuses) statuses->after(pass.name, g);
    });
  });
  return statuses ? statuses->result() : std::vector<passes::NodeStatus>();
}

/// Throws Error with the nodes that have to run in float.
void check_int8(const plan::Plan& plan, const std::filesystem::path& path) {
  if (const auto reasons = plan::why_not_int8(plan); !reasons.empty())
    throw Error(
        fmt::format("{}: int8 is required, but\n  {}", path.string(), fmt::join(reasons, "\n  ")),
        ErrorCode::unsupported);
}

}  // namespace

Session Session::compile(ir::Graph graph, const SessionOptions& options,
                         const std::filesystem::path& path) {
  std::unique_ptr<State, Settle> state(new State);
  state->path = path;
  state->metadata = graph.metadata;
  const std::int64_t limit = memory_limit(options.max_memory);
  plan::Options plan_options = plan_options_of(options);
  std::shared_ptr<opencl::Context> context;
  const auto open = [&] {
    if (context) return;
    const Stopwatch opening;
    context = options.context ? options.context.get() : opencl::Context::create(options.device);
    state->times.device = opening.milliseconds();
  };
  if (options.precision != ir::DType::f32) open();  // which has a say in it

  const Stopwatch clock;
  if (options.pooling) add_pooling(graph, *options.pooling);
  add_observers(graph, options.observe);
  passes::Options pass_options{.disabled = options.disabled_passes};
  pass_options.limits.memory = limit;
  pass_options.drop_padding = options.drop_padding;
  if (context)
    pass_options.precision = plan::precision_on(*context, options.precision, plan_options);
  state->node_statuses = run_passes(graph, pass_options, options);
  state->times.passes = clock.milliseconds();

  open();
  const Stopwatch planning;
  check_constants(graph, limit);
  const RequestOptions requests{options.drop_padding, options.command_buffer, limit};
  plan_options.try_launches = [&](plan::Plan& plan) {
    Arenas arenas;
    Request(plan, requests, arenas).try_launches();
  };
  state->plan = with_code(ErrorCode::unsupported,
                          [&] { return plan::make_plan(graph, context, plan_options); });
  if (options.require_int8) check_int8(state->plan, path);
  if (options.pad_token_id && !state->plan.compared_pad_ids.empty())
    state->plan.pad_token_id = options.pad_token_id();
  state->prepare_requests(options, requests);
  if (options.self_check) check_once(graph, *state);
  state->idle.push_back(state->requests.emplace_back(state->make_request()).get());
  state->times.programs = state->plan.program_ms;
  state->times.plan = planning.milliseconds() - state->times.programs;
  return Session(std::move(state));
}

namespace {

auto beginning(const auto& inputs, const OutputNames& wanted) {
  return [&](Request& request, const TapFunction& tap) { request.start(inputs, wanted, tap); };
}

}  // namespace

Session::Run Session::start(const Tensors& inputs, const OutputNames& wanted) {
  return {*state_, false, beginning(inputs, wanted)};
}

Session::Run Session::start(const DeviceSequences& sequences, DeviceOutputs outputs,
                            std::span<_cl_event* const> wait_for) {
  return {*state_, false, [&](Request& request, const TapFunction& tap) {
            request.start(sequences, outputs, wait_for, tap);
          }};
}

Session::Run Session::start(const Sequences& sequences, const OutputNames& wanted) {
  return {*state_, false, beginning(sequences, wanted)};
}

Tensors Session::run(const Tensors& inputs, const OutputNames& wanted) {
  return Run(*state_, true, beginning(inputs, wanted)).finish();
}

Tensors Session::run(const Sequences& sequences, const OutputNames& wanted) {
  return run_in_groups(state_->plan, sequences, state_->pads, [&](const Sequences& group) {
    return Run(*state_, true, beginning(group, wanted)).finish();
  });
}

void Session::set_tap(TapFunction tap) { state_->tap = std::move(tap); }

RunStatistics Session::statistics() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->statistics;
}

MemoryUse Session::memory() const {
  MemoryUse use{constant_bytes(state_->plan), state_->arenas.bytes};
  const std::scoped_lock lock(state_->mutex);
  use.requests = static_cast<int>(state_->requests.size());
  return use;
}

std::int64_t Session::arena_bytes(
    const std::map<std::string, ir::Sizes, std::less<>>& inputs) const {
  std::unique_lock lock(state_->mutex);
  const std::shared_ptr<const Request> request = state_->requests.front();
  lock.unlock();
  return request->arena_bytes(inputs);
}

const std::vector<ir::Port>& Session::inputs() const { return state_->plan.model_inputs; }
const std::vector<ir::Port>& Session::outputs() const { return state_->plan.model_outputs; }
const plan::Plan& Session::plan() const { return state_->plan; }
opencl::Context& Session::context() const { return *state_->plan.context; }
std::shared_ptr<opencl::Context> Session::shared_context() const { return state_->plan.context; }
const std::filesystem::path& Session::path() const { return state_->path; }
const std::map<std::string, std::string>& Session::metadata() const { return state_->metadata; }
const LoadTimes& Session::load_times() const { return state_->times; }
const std::vector<passes::NodeStatus>& Session::node_statuses() const {
  return state_->node_statuses;
}

}  // namespace bertcl::runtime
