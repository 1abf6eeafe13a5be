// SPDX-License-Identifier: Apache-2.0
// A model loaded on one device, ready to run batches of any shape.
#include "runtime/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bertcl/error.hpp"
#include "bertcl/stopwatch.hpp"
#include "ir/text.hpp"
#include "onnx/read_model.hpp"
#include "passes/pass.hpp"
#include "passes/symbols.hpp"
#include "plan/builder.hpp"
#include "runtime/executor.hpp"
#include "runtime/inputs.hpp"

namespace bertcl::runtime {
namespace {

namespace symbols = passes::symbols;

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
  std::vector<passes::NodeFate> node_fates;
  std::vector<std::int64_t> packed_source(const Tensors& inputs, const std::string& name) const;
  ir::Tensor default_of(const plan::Input& in) const;
  void bind_packing(const Packing& packing, ir::Bindings& sizes);
  void upload(const Tensors& inputs, const Packing* packing);
};

void Session::State::bind_packing(const Packing& packing, ir::Bindings& sizes) {
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
  statistics = {packing.batch, packing.seq, packing.tokens()};
}

/// An absent mask or absent token types that a generic op reads.
ir::Tensor Session::State::default_of(const plan::Input& in) const {
  const ir::Sizes shape = executor->shape(in.slot);
  return ir::Tensor::of(
      shape, std::vector<std::int64_t>(static_cast<std::size_t>(ir::element_count(shape)),
                                       in.source == plan.mask_input ? 1 : 0));
}

void Session::State::upload(const Tensors& inputs, const Packing* packing) {
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

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session Session::load(const std::filesystem::path& model, const SessionOptions& options) {
  SessionOptions with_device = options;
  if (!options.context) with_device.context = opencl::ContextFuture::open(options.device);
  const Stopwatch clock;
  ir::Graph graph = onnx_io::read_model(model);
  const double parse = clock.milliseconds();
  Session session = compile(std::move(graph), with_device, model);
  session.state_->times.parse = parse;
  return session;
}

Session Session::compile(ir::Graph graph, const SessionOptions& options,
                         const std::filesystem::path& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->drop_padding = options.drop_padding;
  const Stopwatch clock;
  add_observers(graph, options.observe);
  passes::Options pass_options;
  pass_options.disabled = options.disabled_passes;
  if (options.dump_passes) options.dump_passes("import", ir::print(graph));
  std::optional<passes::NodeFates> fates;
  if (options.follow_nodes) fates.emplace(graph);
  passes::compile(graph, pass_options, [&](const passes::Pass& pass, const ir::Graph& g) {
    if (options.dump_passes) options.dump_passes(pass.name, ir::print(g));
    if (fates) fates->after(pass.name, g);
  });
  if (fates) state->node_fates = fates->result();
  state->times.passes = clock.milliseconds();
  if (options.gemm != "auto" && options.gemm != "own" && options.gemm != "clblast")
    throw Error(fmt::format("unknown product library '{}'; 'auto', 'own' and 'clblast' are known",
                            options.gemm));
  plan::Options plan_options;
  plan_options.gemm = options.gemm;
  plan_options.half_weights = options.half_weights;
  plan_options.bf16 = options.bf16;
  plan_options.chain = !options.command_buffer && options.observe.empty();
  plan_options.disabled = options.disabled_kernels;
  plan_options.tuning = options.tuning;
  plan_options.on_program = options.on_program;
  const Stopwatch opening;
  const auto context =
      options.context ? options.context.get() : opencl::Context::create(options.device);
  state->times.device = opening.milliseconds();
  const Stopwatch planning;
  state->plan = plan::make_plan(graph, context, plan_options);
  if (options.require_int8)
    if (const auto reasons = plan::why_not_int8(state->plan); !reasons.empty())
      throw Error(fmt::format("{}: int8 is required, but\n  {}", path.string(),
                              fmt::join(reasons, "\n  ")));
  state->executor = std::make_unique<Executor>(state->plan, options.command_buffer);
  state->times.programs = state->plan.program_ms;
  state->times.plan = planning.milliseconds() - state->times.programs;
  return Session(std::move(state));
}

void Session::start(const Tensors& inputs) {
  State& s = *state_;
  check_names(s.plan, inputs);
  ir::Bindings sizes = bind_shapes(s.plan, inputs);
  std::optional<Packing> packing;
  const auto ids =
      std::find_if(s.plan.inputs.begin(), s.plan.inputs.end(),
                   [](const plan::Input& in) { return in.kind == plan::InputKind::packed_ids; });
  if (ids != s.plan.inputs.end()) {
    const ir::Sizes& shape = inputs.find(ids->source)->second.shape();
    packing = make_packing(shape[0], shape[1], mask_of(s.plan, inputs),
                           s.drop_padding && s.plan.keeps_padding.empty(), s.plan.mask_counted);
    check_length(s.plan, *packing);
    s.bind_packing(*packing, sizes);
  }
  s.executor->bind(sizes);
  s.upload(inputs, packing ? &*packing : nullptr);
  s.executor->enqueue(s.tap);
}

Tensors Session::finish() {
  State& s = *state_;
  Tensors outputs;
  for (const plan::Output& out : s.plan.outputs)
    outputs[out.name] =
        out.slot < 0
            ? out.constant
            : ir::Tensor::zeros(s.plan.slots[static_cast<std::size_t>(out.slot)].type.dtype,
                                s.executor->shape(out.slot));
  opencl::Buffer* flag = s.plan.error_constant < 0
                             ? nullptr
                             : &s.plan.constants[static_cast<std::size_t>(s.plan.error_constant)];
  std::int32_t index_error = 0;
  // All reads are queued before the one wait, which also has to come before an exception leaves
  // while the device still writes to the host.
  try {
    for (const plan::Output& out : s.plan.outputs)
      if (ir::Tensor& t = outputs.at(out.name); out.slot >= 0 && !t.bytes().empty())
        s.executor->buffer(out.slot).read_async(t.mutable_bytes());
    if (flag) flag->read_async(std::as_writable_bytes(std::span(&index_error, 1)));
  } catch (...) {
    s.plan.context->queue().finish();
    throw;
  }
  s.plan.context->queue().finish();
  if (index_error == 0) return outputs;
  flag->fill(0);
  throw Error(
      "an index was outside its table: a token id beyond the vocabulary, a token type or a "
      "position beyond its table");
}

Tensors Session::run(const Tensors& inputs) {
  start(inputs);
  return finish();
}

void Session::set_tap(Tap tap) { state_->tap = std::move(tap); }
const std::vector<plan::Port>& Session::inputs() const { return state_->plan.model_inputs; }
const std::vector<plan::Port>& Session::outputs() const { return state_->plan.model_outputs; }
const plan::Plan& Session::plan() const { return state_->plan; }
opencl::Context& Session::context() const { return *state_->plan.context; }
std::shared_ptr<opencl::Context> Session::shared_context() const { return state_->plan.context; }
const std::filesystem::path& Session::path() const { return state_->path; }
const LoadTimes& Session::load_times() const { return state_->times; }
const std::vector<passes::NodeFate>& Session::node_fates() const { return state_->node_fates; }
const RunStatistics& Session::statistics() const { return state_->statistics; }
std::int64_t Session::arena_bytes() const { return state_->executor->arena_bytes(); }

}  // namespace bertcl::runtime
