// SPDX-License-Identifier: Apache-2.0
// Pooling at the end of a model that gives a vector for each token.
#include "runtime/pooling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"
#include "ops/operands.hpp"
#include "support/option_name.hpp"

namespace bertcl::runtime {
namespace {

namespace operands = ops::operands::pool;

bool names_any(const ir::GraphOutput& output, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return output.name.find(word) != std::string::npos; });
}

bool is_float(const ir::GraphOutput& output, std::size_t rank) {
  return output.value->type.shape.size() == rank && ir::is_float(output.value->type.dtype);
}

/// True if `value` is computed from `source`.
bool follows_from(const ir::Value* value, const ir::Value* source) {
  std::set<const ir::Value*> seen;
  std::vector<const ir::Value*> open{value};
  while (!open.empty()) {
    const ir::Value* at = open.back();
    open.pop_back();
    if (at == source) return true;
    if (!at || !at->producer || !seen.insert(at).second) continue;
    open.insert(open.end(), at->producer->inputs.begin(), at->producer->inputs.end());
  }
  return false;
}

/// The output [batch, seq, hidden] by its name, else the only one, unless a vector [batch, hidden]
/// beside it is computed from other hidden states, such as ColBERT's token vectors; null if
/// there is none.
ir::Value* find_hidden_states(const ir::Graph& graph) {
  std::vector<ir::Value*> all;
  for (const ir::GraphOutput& output : graph.outputs())
    if (is_float(output, 3) && !names_any(output, {"logit"})) all.push_back(output.value);
  for (const char* word : {"last_hidden_state", "token_embeddings", "hidden"})
    for (const ir::GraphOutput& output : graph.outputs())
      if (is_float(output, 3) && names_any(output, {word})) return output.value;
  if (all.size() != 1) return nullptr;
  const bool is_hidden = std::ranges::all_of(graph.outputs(), [&](const ir::GraphOutput& output) {
    return !is_float(output, 2) || follows_from(output.value, all.front());
  });
  return is_hidden ? all.front() : nullptr;
}

[[noreturn]] void fail(const ir::Graph& graph, std::string_view what) {
  std::vector<std::string> found;
  for (const ir::GraphOutput& output : graph.outputs())
    found.push_back(output.name + " " + ir::str(output.value->type));
  throw Error(fmt::format("{}; the outputs are {}", what, fmt::join(found, ", ")),
              ErrorCode::unsupported);
}

/// As the model takes it; null if it has none.
ir::Value* find_mask(const ir::Graph& graph) {
  for (ir::Value* input : graph.inputs())
    if (ir::role_of_input(input->name) == ir::InputRole::mask) return input;
  return nullptr;
}

/// The vector of a sequence that the model gives: by its name, or the only output if it is not
/// named as scores; null if there is none. BERT's pooler_output is another.
ir::Value* find_own(const ir::Graph& graph) {
  for (const ir::GraphOutput& output : graph.outputs())
    if (is_float(output, 2) && names_any(output, {"sentence", "embed"})) return output.value;
  for (const ir::GraphOutput& output : graph.outputs())  // of bge-m3's three
    if (is_float(output, 2) && (output.name == "dense_vecs" || output.name == "dense"))
      return output.value;
  const ir::GraphOutput& first = graph.outputs().front();
  const bool is_own = graph.outputs().size() == 1 && is_float(first, 2) &&
                      !names_any(first, {"logit", "score", "prob"});
  return is_own ? first.value : nullptr;
}

/// The vectors of x [batch, seq, hidden] in one, or those of [batch, hidden] cut and normalized.
ir::Value* add_pool(ir::Graph& graph, ir::Value* x, const std::string& kind, ir::Value* mask,
                    ir::Attributes attributes) {
  const auto cut = attributes.find("columns");
  const ir::Dim columns =
      cut == attributes.end() ? x->type.shape.back() : std::get<std::int64_t>(cut->second);
  attributes["kind"] = kind;
  return graph.add(operands::op, {x, mask}, std::move(attributes),
                   {ir::DType::f32, {x->type.shape[0], columns}}, nullptr, kPooledOutput);
}

ir::Value* add_dense(ir::Graph& graph, ir::Value* x, const ir::DenseLayer& layer) {
  const ir::Sizes& weight = layer.weight.shape();
  if (x->type.shape.back() != ir::Dim(weight[0]))
    throw Error(fmt::format("{}: the layer takes {} dimensions, but vectors have {}", layer.name,
                            weight[0], x->type.shape.back().str()),
                ErrorCode::invalid_file);
  const ir::Type type{ir::DType::f32, {x->type.shape[0], weight[1]}};
  ir::Value* y =
      graph.add("MatMul", {x, graph.add_constant(layer.name + ".weight", layer.weight)}, {}, type);
  if (layer.bias)
    y = graph.add("Add", {y, graph.add_constant(layer.name + ".bias", *layer.bias)}, {}, type);
  return layer.activation.empty() ? y : graph.add(layer.activation, {y}, {}, type);
}

}  // namespace

void add_pooling(ir::Graph& graph, const Pooling& pooling) {
  if (!pooling.kind.empty() &&
      std::ranges::find(operands::kinds, pooling.kind) == std::end(operands::kinds))
    throw Error(fmt::format("unknown pooling '{}' (choose from {})", pooling.kind,
                            fmt::join(operands::kinds, ", ")));
  ir::Value* x = pooling.kind.empty() ? nullptr : find_hidden_states(graph);
  bool pooled = !x && (pooling.kind.empty() || pooling.or_own);
  if (pooled) x = find_own(graph);
  if (!x && pooled)
    fail(graph,
         find_hidden_states(graph)
             ? "no output is a vector [batch, hidden]; copy modules.json and 1_Pooling of "
               "sentence-transformers beside the model, or use " +
                   option_name("pooling", "mean") + ", cls, max or last" +
                   (use_command_line_names() ? " (not in eval)" : "")
             : "no output is a vector [batch, hidden] or holds hidden states [batch, seq, hidden]");
  if (!x && find_own(graph))
    fail(graph, "no output holds hidden states [batch, seq, hidden] to pool; omit " +
                    option_name("pooling") + ", the model pools itself");
  if (!x) fail(graph, "no output holds hidden states [batch, seq, hidden] to pool");
  if (!x->type.shape.back().is_constant())
    fail(graph, "the width of the hidden states is not constant");
  if (x->type.dtype != ir::DType::f32)
    x = graph.add("Cast", {x}, {{"to", std::string(ir::name_of(ir::DType::f32))}},
                  {ir::DType::f32, x->type.shape});
  if (!pooled && pooling.dense) {
    x = add_pool(graph, x, pooling.kind, find_mask(graph), {});
    for (const ir::DenseLayer& layer : pooling.dense()) x = add_dense(graph, x, layer);
    pooled = true;
  }
  const std::int64_t width = x->type.shape.back().constant();
  if (pooling.columns < 0 || pooling.columns > width)
    throw Error(
        fmt::format("{} dimensions requested, but the model has {}", pooling.columns, width));
  ir::Attributes attributes;
  if (pooling.columns > 0 && pooling.columns != width) attributes["columns"] = pooling.columns;
  if (pooling.normalize) attributes["normalize"] = std::int64_t{1};
  if (!pooled)
    x = add_pool(graph, x, pooling.kind, find_mask(graph), attributes);
  else if (!attributes.empty())
    x = add_pool(graph, x, "mean", nullptr, attributes);  // of rows that are vectors already
  graph.outputs().clear();
  graph.add_output(kPooledOutput, x);
}

}  // namespace bertcl::runtime
