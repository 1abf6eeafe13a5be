// SPDX-License-Identifier: Apache-2.0
// Launch steps of attention and attention_q.
#include "passes/operands.hpp"
#include "passes/quant_params.hpp"
#include "passes/symbols.hpp"
#include "plan/ladder.hpp"
#include "plan/ops/ops.hpp"
#include "plan/requirements.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

namespace symbols = passes::symbols;

struct Rung {
  std::string name;
  const char* program;
  bool takes_blocks;  // whether a work-item gains from many query rows
  WhyNot why_not;
};

const std::vector<Rung> float_ladder{{"x86", "attention_f32_x86", true, needs_cpu},
                                     {"ref", "attention_f32_ref", false, always}};
const std::vector<Rung> integer_ladder{{"x86_vnni", "attention_s8_x86_vnni", true, needs_vnni},
                                       {"x86_avx2", "attention_s8_x86_avx2", true, needs_avx2},
                                       {"portable", "attention_s8_portable", true, needs_cpu},
                                       {"ref", "attention_s8_ref", false, always}};

constexpr std::int32_t max_head_size = 256;  // HEAD_MAX of the kernels

struct Geometry {
  std::int32_t heads, head_size;
  std::array<std::int32_t, 3> strides, offsets;
};

Geometry geometry_of(const ir::Node& node, const ir::Value* seq_offsets) {
  Geometry g{};
  g.heads = static_cast<std::int32_t>(node.int_attribute("heads"));
  const std::int64_t hidden = node.output()->type.shape.back().constant();
  g.head_size = static_cast<std::int32_t>(hidden / g.heads);
  if (g.head_size > max_head_size)
    throw Error(fmt::format("{}: heads of {} columns, the attention kernels take up to {}",
                            node.describe(), g.head_size, max_head_size));
  for (std::size_t i = 0; i < 3; ++i) {
    g.strides[i] = static_cast<std::int32_t>(node.inputs[i]->type.shape.back().constant());
    if (node.has("offsets"))
      g.offsets[i] = static_cast<std::int32_t>(node.ints_attribute("offsets")[i]);
  }
  if (!seq_offsets)
    throw Error(fmt::format("{}: attention outside of packed tokens", node.describe()));
  return g;
}

/// Query rows of a work-item, and the grid that follows.
std::pair<Argument, std::array<Size, 3>> grid_of(const Rung& rung, const Geometry& g) {
  const ir::Dim rows = rung.takes_blocks ? symbols::dim(symbols::attention_rows) : ir::Dim(1);
  return {Size{rows},
          {Size{symbols::dim(symbols::longest), rows}, Size{g.heads},
           Size{symbols::dim(symbols::batch)}}};
}

/// QK^T and PV: 4 * head_size operations for each pair of rows of each head. Pairs are bounded by
/// tokens * longest.
void count_operations(Step& step, const Geometry& g) {
  step.operations_per_unit = 4.0 * g.head_size * g.heads;
  step.unit = symbols::dim(symbols::tokens) * symbols::dim(symbols::longest);
}

void lower_float(Builder& b, const ir::Graph&, const ir::Node& node) {
  if (node.input(passes::attention::p_scale))
    throw Error(fmt::format("{}: its probabilities are quantized and its operands are not",
                            node.describe()));
  const ir::Value* seq_offsets = node.input(passes::attention::seq_offsets);
  const Geometry g = geometry_of(node, seq_offsets);
  const auto choice = choose(b, node, float_ladder);
  auto [rows, grid] = grid_of(*choice.rung, g);
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < 3; ++i) {
    arguments.push_back(b.in(node.inputs[i]));
    arguments.push_back(g.strides[i]);
    arguments.push_back(g.offsets[i]);
  }
  arguments.push_back(b.out(node.output()));
  arguments.push_back(b.in(seq_offsets));
  arguments.push_back(b.in(node.inputs[passes::attention::key_mask]));
  arguments.push_back(static_cast<std::int32_t>(node.int_attribute("masked", 0)));
  arguments.push_back(g.heads);
  arguments.push_back(g.head_size);
  arguments.push_back(static_cast<float>(node.float_attribute("scale")));
  arguments.push_back(rows);
  Step& step = b.launch(node, "fp32", choice.rung->name,
                        b.kernel(choice.rung->program, "attention_f32"), arguments, grid);
  step.why_not_faster = choice.why_not_faster;
  count_operations(step, g);
  b.plan().attention_heads = g.heads;
}

void lower_integer(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = passes::attention_q;
  const ir::Value* seq_offsets = node.input(o::seq_offsets);
  const Geometry g = geometry_of(node, seq_offsets);
  const auto choice = choose(b, node, integer_ladder);
  auto [rows, grid] = grid_of(*choice.rung, g);
  const float q_scale = scalar_or(node.inputs[o::q_scale], 1);
  const float k_scale = scalar_or(node.inputs[o::k_scale], 1);
  const float v_scale = scalar_or(node.inputs[o::v_scale], 1);
  const float p_scale = scalar_or(node.inputs[o::p_scale], 1);
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < 3; ++i) {
    arguments.push_back(b.in(node.inputs[i]));
    arguments.push_back(g.strides[i]);
    arguments.push_back(g.offsets[i]);
    arguments.push_back(type_code(node.inputs[i]->type.dtype));
    arguments.push_back(zero_point_or_0(node.inputs[o::q_zero_point + 2 * i]));
  }
  arguments.push_back(b.out(node.output()));
  arguments.push_back(type_code(node.output()->type.dtype));
  arguments.push_back(1.0f / scalar_or(node.input(o::out_scale), 1));
  arguments.push_back(zero_point_or_0(node.input(o::out_zero_point)));
  arguments.push_back(b.in(seq_offsets));
  arguments.push_back(b.in(node.inputs[o::key_mask]));
  arguments.push_back(static_cast<std::int32_t>(node.int_attribute("masked", 0)));
  arguments.push_back(g.heads);
  arguments.push_back(g.head_size);
  const float qk_scale = q_scale * k_scale * static_cast<float>(node.float_attribute("scale"));
  const auto score_scale = static_cast<float>(node.float_attribute("score_scale", 0));
  arguments.push_back(score_scale == 0
                          ? qk_scale
                          : score_scale * static_cast<float>(node.float_attribute("score_factor")));
  arguments.push_back(1.0f / p_scale);
  arguments.push_back(node.string_attribute("p_type") == "u8" ? 255 : 127);
  const auto deferred = static_cast<std::int32_t>(node.int_attribute("deferred", 0));
  arguments.push_back(deferred);
  arguments.push_back(deferred ? v_scale : p_scale * v_scale);
  const auto lowest = static_cast<std::int32_t>(node.int_attribute("score_lowest", 0));
  arguments.push_back(score_scale == 0 ? 0.0f : qk_scale / score_scale);
  arguments.push_back(lowest);
  arguments.push_back(lowest + 255);
  arguments.push_back(rows);
  Step& step = b.launch(node, "int8", choice.rung->name,
                        b.kernel(choice.rung->program, "attention_s8"), arguments, grid);
  step.why_not_faster = choice.why_not_faster;
  count_operations(step, g);
  b.plan().attention_heads = g.heads;
  b.plan().max_keys = passes::max_exact_products();  // each output sums over the keys
}

}  // namespace

void add_attention(LoweringTable& table) {
  table["attention"] = lower_float;
  table["attention_q"] = lower_integer;
}

void add_attention_implementations(std::vector<std::string>& names) {
  add_names(float_ladder, names);
  add_names(integer_ladder, names);
}

}  // namespace bertcl::plan
