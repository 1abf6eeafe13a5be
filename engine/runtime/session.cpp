// SPDX-License-Identifier: Apache-2.0
// A model loaded on one device, ready to run batches of any shape.
#include "runtime/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bertcl/error.hpp"
#include "bertcl/stopwatch.hpp"
#include "ir/text.hpp"
#include "onnx/read_model.hpp"
#include "passes/pass.hpp"
#include "passes/symbols.hpp"
#include "plan/builder.hpp"
#include "runtime/executor.hpp"

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

/// Ids or the mask as integers. An input that the file declares as float, because its graph casts
/// or compares it, may hold whole numbers.
std::vector<std::int64_t> integers_of(const ir::Tensor& t, const plan::Port& port) {
  if (!ir::is_float(t.dtype())) return t.to_ints();
  if (!ir::is_float(port.type.dtype))
    throw Error(
        fmt::format("input '{}' is {}, integers are expected", port.name, ir::name_of(t.dtype())));
  std::vector<std::int64_t> integers;
  for (const double v : t.to_doubles()) {
    if (v != std::trunc(v) || std::abs(v) > std::numeric_limits<std::int32_t>::max())
      throw Error(
          fmt::format("input '{}' holds {} at element {}; ids and masks are whole numbers, "
                      "a mask is 1 for tokens and 0 for padding",
                      port.name, v, integers.size()));
    integers.push_back(static_cast<std::int64_t>(v));
  }
  return integers;
}

/// The mask. What a graph makes of other numbers than 0 and 1 is not what a mask says.
std::vector<std::int64_t> mask_of(const ir::Tensor& t, const plan::Port& port) {
  std::vector<std::int64_t> values = integers_of(t, port);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0 && values[i] != 1)
      throw Error(
          fmt::format("input '{}' holds {} at element {}; a mask is 1 for tokens and 0 for "
                      "padding",
                      port.name, values[i], i));
  return values;
}

}  // namespace

struct Session::State {
  std::filesystem::path path;
  SessionOptions options;
  plan::Plan plan;
  std::unique_ptr<Executor> executor;
  Tap tap;
  RunStatistics statistics;
  LoadTimes times;
  std::vector<passes::NodeFate> node_fates;
  // Uploads read these until the queue has passed them.
  std::vector<std::vector<std::byte>> staging;

  const plan::Port& port(const std::string& name) const {
    const auto it = std::find_if(plan.model_inputs.begin(), plan.model_inputs.end(),
                                 [&](const plan::Port& p) { return p.name == name; });
    return *it;
  }
  bool may_be_absent(const std::string& name) const;
  void check_names(const Tensors& inputs) const;
  ir::Bindings bind_shapes(const Tensors& inputs) const;
  std::vector<std::int64_t> packed_source(const Tensors& inputs, const std::string& name) const;
  void bind_packing(const Packing& packing, ir::Bindings& sizes);
  void upload(const Tensors& inputs, const Packing* packing);
  template <class T>
  void upload_slot(int slot, std::vector<T> values);
  void check_index_flag();
};

/// Token types and the mask have defaults, unless the shape of the batch is read off them.
bool Session::State::may_be_absent(const std::string& name) const {
  bool has_default = false;
  for (const plan::Input& in : plan.inputs) {
    if (in.source != name) continue;
    if (in.kind == plan::InputKind::packed_ids) return false;
    has_default |= in.kind == plan::InputKind::packed_types || in.kind == plan::InputKind::key_mask;
  }
  return has_default;
}

void Session::State::check_names(const Tensors& inputs) const {
  std::vector<std::string> known;
  for (const plan::Port& p : plan.model_inputs) {
    known.push_back(p.name);
    if (!inputs.contains(p.name) && !may_be_absent(p.name))
      throw Error(fmt::format("input '{}' ({}) is missing", p.name, ir::str(p.type)));
  }
  for (const auto& [name, tensor] : inputs)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(fmt::format("the model has no input '{}'; its inputs are {}", name,
                              fmt::join(known, ", ")));
}

/// Gives every symbol of the input shapes its size; throws where two inputs disagree.
ir::Bindings Session::State::bind_shapes(const Tensors& inputs) const {
  ir::Bindings sizes;
  std::map<std::string, std::string, std::less<>> given_by;  // symbol -> input
  for (const auto& [name, tensor] : inputs) {
    const ir::Shape& shape = port(name).type.shape;
    const auto fail = [&, &n = name, &t = tensor] {
      throw Error(fmt::format("input '{}' has shape [{}], expected {}", n,
                              fmt::join(t.shape(), ", "), ir::str(shape)));
    };
    if (tensor.shape().size() != shape.size()) fail();
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t size = tensor.shape()[i];
      if (shape[i].is_constant()) {
        if (shape[i].constant() != size) fail();
      } else if (shape[i].symbols().size() == 1 &&
                 shape[i] == ir::Dim::symbol(shape[i].symbols()[0])) {
        const auto [it, added] = sizes.emplace(shape[i].symbols()[0], size);
        if (added)
          given_by[it->first] = name;
        else if (it->second != size)
          throw Error(fmt::format("input '{}' has {} = {} but input '{}' has {}", name, it->first,
                                  size, given_by[it->first], it->second));
      }
    }
  }
  for (const auto& [a, b] : plan.equal_sizes)
    if (a.evaluate(sizes) != b.evaluate(sizes))
      throw Error(
          fmt::format("the model needs {} and {} to be equal, the inputs make them {} and {}",
                      a.str(), b.str(), a.evaluate(sizes), b.evaluate(sizes)));
  return sizes;
}

void Session::State::bind_packing(const Packing& packing, ir::Bindings& sizes) {
  if (plan.max_positions > 0 && packing.longest > plan.max_positions)
    throw Error(
        fmt::format("a sequence of {} tokens was given, the model's position table ends at {}",
                    packing.longest, plan.max_positions));
  if (plan.max_keys > 0 && packing.longest > plan.max_keys)
    throw Error(
        fmt::format("a sequence of {} tokens was given, integer attention sums up to {} in int32 "
                    "without overflow; use shorter sequences",
                    packing.longest, plan.max_keys));
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

template <class T>
void Session::State::upload_slot(int slot, std::vector<T> values) {
  if (values.empty()) return;
  const auto bytes = std::as_bytes(std::span(values));
  staging.emplace_back(bytes.begin(), bytes.end());
  executor->buffer(slot).write_async(staging.back());
}

void Session::State::upload(const Tensors& inputs, const Packing* packing) {
  plan.context->queue().finish();  // an earlier start() without finish() may still be uploading
  staging.clear();
  for (const plan::Input& in : plan.inputs) {
    switch (in.kind) {
      case plan::InputKind::dense: {
        const ir::DType wanted = plan.slots[static_cast<std::size_t>(in.slot)].type.dtype;
        const auto it = inputs.find(in.source);
        if (it == inputs.end()) {  // an absent mask or absent token types that a generic op reads
          const ir::Sizes shape = executor->shape(in.slot);
          std::vector<std::int64_t> all(static_cast<std::size_t>(ir::element_count(shape)),
                                        in.source == plan.mask_input ? 1 : 0);
          const ir::Tensor t = ir::Tensor::of(shape, std::move(all)).converted(wanted);
          upload_slot(in.slot, std::vector<std::byte>(t.bytes().begin(), t.bytes().end()));
        } else {
          const ir::Tensor t = it->second.converted(wanted);
          upload_slot(in.slot, std::vector<std::byte>(t.bytes().begin(), t.bytes().end()));
        }
        break;
      }
      case plan::InputKind::packed_ids:
      case plan::InputKind::packed_types:
        upload_slot(in.slot, packing->gather(packed_source(inputs, in.source)));
        break;
      case plan::InputKind::positions:
        upload_slot(in.slot, in.source.empty() ? packing->positions
                                               : packing->gather(packed_source(inputs, in.source)));
        break;
      case plan::InputKind::seq_offsets:
        upload_slot(in.slot, packing->seq_offsets);
        break;
      case plan::InputKind::key_mask:
        upload_slot(in.slot, packing->key_mask);
        break;
    }
  }
}

/// The integers of an input; zeros where it is absent, as token types may be.
std::vector<std::int64_t> Session::State::packed_source(const Tensors& inputs,
                                                        const std::string& name) const {
  const auto it = inputs.find(name);
  if (it != inputs.end()) return integers_of(it->second, port(name));
  return std::vector<std::int64_t>(static_cast<std::size_t>(statistics.batch * statistics.seq), 0);
}

void Session::State::check_index_flag() {
  if (plan.error_constant < 0) return;
  opencl::Buffer& flag = plan.constants[static_cast<std::size_t>(plan.error_constant)];
  if (flag.download<std::int32_t>().front() == 0) return;
  flag.fill(0);
  throw Error(
      "an index was outside its table: a token id beyond the vocabulary, a token type or a "
      "position beyond its table");
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session Session::load(const std::filesystem::path& model, const SessionOptions& options) {
  const Stopwatch clock;
  ir::Graph graph = onnx_io::read_model(model);
  const double parse = clock.milliseconds();
  Session session = compile(std::move(graph), options, model);
  session.state_->times.parse = parse;
  return session;
}

Session Session::compile(ir::Graph graph, const SessionOptions& options,
                         const std::filesystem::path& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->options = options;
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
  plan_options.disabled = options.disabled_kernels;
  plan_options.tuning = options.tuning;
  const auto context = options.context ? options.context : opencl::Context::create(options.device);
  const Stopwatch planning;
  state->plan = plan::make_plan(graph, context, plan_options);
  state->times.programs = state->plan.program_ms;
  state->times.plan = planning.milliseconds() - state->times.programs;
  if (options.require_int8)
    if (const auto reasons = plan::why_not_int8(state->plan); !reasons.empty())
      throw Error(fmt::format("{}: int8 is required, but\n  {}", path.string(),
                              fmt::join(reasons, "\n  ")));
  state->executor = std::make_unique<Executor>(state->plan, options.command_buffer);
  return Session(std::move(state));
}

void Session::start(const Tensors& inputs) {
  State& s = *state_;
  s.check_names(inputs);
  ir::Bindings sizes = s.bind_shapes(inputs);
  std::optional<Packing> packing;
  const auto ids =
      std::find_if(s.plan.inputs.begin(), s.plan.inputs.end(),
                   [](const plan::Input& in) { return in.kind == plan::InputKind::packed_ids; });
  if (ids != s.plan.inputs.end()) {
    const ir::Sizes& shape = inputs.find(ids->source)->second.shape();
    const auto mask = inputs.find(s.plan.mask_input);
    std::vector<std::int64_t> values;
    if (mask != inputs.end()) values = mask_of(mask->second, s.port(s.plan.mask_input));
    packing =
        make_packing(shape[0], shape[1], values,
                     s.options.drop_padding && s.plan.keeps_padding.empty(), s.plan.mask_counted);
    s.bind_packing(*packing, sizes);
  }
  s.executor->bind(sizes);
  s.upload(inputs, packing ? &*packing : nullptr);
  s.executor->enqueue(s.tap);
}

Tensors Session::finish() {
  State& s = *state_;
  Tensors outputs;
  for (const plan::Output& out : s.plan.outputs) {
    if (out.slot < 0) {
      outputs[out.name] = out.constant;
      continue;
    }
    ir::Tensor t = ir::Tensor::zeros(s.plan.slots[static_cast<std::size_t>(out.slot)].type.dtype,
                                     s.executor->shape(out.slot));
    if (!t.bytes().empty()) s.executor->buffer(out.slot).read(t.mutable_bytes());
    outputs[out.name] = std::move(t);
  }
  s.check_index_flag();
  return outputs;
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
