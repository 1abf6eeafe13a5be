// SPDX-License-Identifier: Apache-2.0
// Launch steps of linear: float products with weights that are packed once, while planning.
#include <utility>

#include "opencl/capabilities.hpp"
#include "passes/operands.hpp"
#include "plan/bf16.hpp"
#include "plan/ladder.hpp"
#include "plan/ops/linear.hpp"
#include "plan/ops/ops.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

/// With weights in half CLBlast computes in half too; of the own kernels only matrix_f16 does.
std::string needs_clblast(Builder& b) {
  if (b.options().half_weights && !b.context().capabilities().fp16)
    return "weights in half need arithmetic in half, which the device does not have";
  return "";
}

const ProductRung f16_rung{"matrix_f16",     "gemm_f16_matrix", {},  128, 64, 2,
                           needs_matrix_f16, nullptr,           256, 128};
const ProductRung bf16_rung{kBf16Rung, "gemm_bf16_x86", {}, 8, 48, 2, needs_bf16};
/// Panels of a work-item of that kernel: with more, A in f32 is rounded less often; with fewer,
/// there is work for more cores.
std::int32_t bf16_item_panels(Builder& b) { return b.context().info().compute_units <= 8 ? 4 : 2; }
const std::vector<ProductRung> float_ladder{
    {"clblast", nullptr, {}, 0, 0, 0, needs_clblast},
    {"x86_avx512", "gemm_f32_x86", {{"LANES", 16}}, 8, 48, 1, needs_avx512, "gemm_f32_x86_few"},
    {"x86_avx2", "gemm_f32_x86", {{"LANES", 8}}, 6, 16, 1, needs_avx2, "gemm_f32_x86_few"},
    {"portable", "gemm_f32_portable", {}, 6, 16, 1, always},
    {"ref", "gemm_f32_ref", {}, 1, 1, 1, always}};

/// What is asked for stands first: bf16, CLBlast.
std::vector<ProductRung> float_ladder_of(const Builder& b) {
  std::vector<ProductRung> ladder{float_ladder.begin() + (b.options().gemm == "clblast" ? 0 : 1),
                                  float_ladder.end()};
  if (b.options().bf16) ladder.insert(ladder.begin(), bf16_rung);
  if (b.options().half_weights)
    ladder.insert(ladder.begin() + (b.options().gemm == "clblast" ? 1 : 0), f16_rung);
  return ladder;
}

void lower_float(Builder& b, const ir::Graph& graph, const ir::Node& node) {
  namespace o = passes::linear;
  const ir::Value* w = node.inputs[o::w];
  if (!w->is_constant())
    throw Error(
        fmt::format("{}: its weight is still quantized; float products need the pass "
                    "fold_dequantize",
                    node.describe()));
  const std::vector<ProductRung> ladder = float_ladder_of(b);
  const auto choice = choose(b, node, ladder);
  const std::int64_t k = w->constant->shape()[0], n = w->constant->shape()[1];
  // Which library and which precision multiplies may have been asked for; tuning has the rest.
  const bool is_free = b.options().gemm == "auto" && !b.options().bf16;
  std::vector<ProductRung> candidates;
  if (is_free) {
    candidates = candidates_of(b, ladder);
    const std::vector<ProductRung> clblast = candidates_of(b, {float_ladder.front()});
    candidates.insert(candidates.end(), clblast.begin(), clblast.end());
  }
  const char* key = b.options().half_weights ? "fp16" : "fp32";
  const std::vector<TunedRung> tuned = tuned_rungs(b, candidates, "linear", key, n, k);
  const ProductRung rung = tuned.empty() ? tiles_of(*choice.rung, b) : *tuned.back().rung;
  TunableProduct tunable = tunable_of(candidates, n, k, choice.rung->name);
  if (!tuned.empty()) tunable.gain = b.tuning().find("linear", key, n, k)->gain();
  if (!rung.program) return lower_clblast(b, node, std::move(tunable));
  const bool bf16 = rung.name == bf16_rung.name, pairs = rung.k_group == 2;
  const int half = b.options().half_weights;

  opencl::Buffer packed = b.context().allocate(packed_size(rung, n, k) * (half || pairs ? 2 : 4));
  pack_parts(b, *w->constant, rung.panel, [&](const ir::Tensor& part, std::int32_t first) {
    const opencl::Defines stored{{"W_HALF", part.dtype() == ir::DType::f16},
                                 {"B_HALF", bf16 ? 0 : half}};
    const char* program = pairs ? "pack_pairs" : "pack_f32";
    opencl::Kernel kernel = b.kernel(program, program, stored);
    kernel.set(1, packed);
    kernel.set(2, static_cast<std::int32_t>(part.shape()[1]));
    kernel.set(3, static_cast<std::int32_t>(k));
    kernel.set(4, rung.panel);
    kernel.set(5, first);
    kernel.set(6, static_cast<std::int32_t>(n));
    return kernel;
  });

  opencl::Defines defines = rung.defines;
  const std::int32_t item_panels = bf16 ? bf16_item_panels(b) : 1;
  if (bf16)
    defines["ITEM_PANELS"] = item_panels;
  else if (!pairs)
    defines["B_HALF"] = half;
  const ir::Dim rows = row_count(node.output()->type.shape);
  const ir::Value* bias = node.input(o::bias);
  const Argument x16 = bf16 ? b.in_bf16(node.inputs[o::x]) : nullptr;
  const bool has_x16 = !std::holds_alternative<std::nullptr_t>(x16);
  const bool out16 = bf16 && is_read_in_bf16_only(b, graph, node.output());
  std::vector<Argument> arguments{has_x16 ? x16 : b.in(node.inputs[o::x]),
                                  b.constant(std::move(packed)),
                                  b.in(bias),
                                  out16 ? b.out_bf16(node.output()) : b.out(node.output()),
                                  Size{rows},
                                  static_cast<std::int32_t>(n),
                                  static_cast<std::int32_t>(k),
                                  static_cast<std::int32_t>(bias != nullptr),
                                  activation_code(activation_of(node))};
  if (bf16)
    for (const bool is_bf16 : {has_x16, out16})
      arguments.push_back(type_code(is_bf16 ? ir::DType::bf16 : ir::DType::f32));
  const char* type = bf16 ? "bf16" : pairs ? "fp16" : half ? "fp16w" : "fp32";
  std::array<Size, 3> grid{Size{rows, rung.tile_rows},
                           Size{ir::Dim(n), rung.tile_columns * item_panels}, Size{}};
  if (rung.items > 1) grid = grid_of(rung, rows, n);
  Step& step =
      b.launch(node, type, rung.name, b.kernel(rung.program, "gemm_f32", defines), arguments, grid);
  step.local[0] = static_cast<std::size_t>(rung.items);
  if (tuned.empty())
    if (auto few = build_for_few_rows(b, rung, "gemm_f32", defines, rows, n))
      step.by_rows.push_back(std::move(*few));
  step.why_not_faster = choice.why_not_faster;
  if (node.has("float_reason")) step.why_not_faster = node.string_attribute("float_reason");
  step.tunable = std::move(tunable);
  count_operations(step, rows, n, k);
}

}  // namespace

void add_linear(LoweringTable& table) { table["linear"] = lower_float; }

void add_linear_implementations(std::vector<std::string>& names) {
  names.push_back(bf16_rung.name);
  names.push_back(f16_rung.name);
  add_product_names(float_ladder, names);
}

}  // namespace bertcl::plan
