// SPDX-License-Identifier: Apache-2.0
// Launch steps of linear and linear_q: products with weights that are packed once, while planning.
#include <cmath>
#include <functional>
#include <utility>

#include "opencl/capabilities.hpp"
#include "passes/operands.hpp"
#include "passes/quant_params.hpp"
#include "plan/bf16.hpp"
#include "plan/ladder.hpp"
#include "plan/ops/linear.hpp"
#include "plan/ops/ops.hpp"
#include "plan/requirements.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

/// A kernel family: the head of its .cl file says the same numbers.
struct Rung {
  std::string name;
  const char* program;  // null for CLBlast
  opencl::Defines defines;
  std::int32_t tile_rows, panel, k_group;
  WhyNot why_not;
  std::int32_t items = 1;  // of the work-group that makes a tile
  std::int32_t tile_columns = panel;
};

/// A work-item makes a tile, or all of a work-group do.
std::array<Size, 3> grid_of(const Rung& rung, const ir::Dim& rows, std::int64_t columns) {
  const Size tiles{ir::Dim(columns), rung.tile_columns};
  if (rung.items == 1) return {Size{rows, rung.tile_rows}, tiles, Size{}};
  return {Size{ir::Dim(rung.items)}, Size{rows, rung.tile_rows}, tiles};
}

/// `rung` with tiles of other sizes; kernels of work-groups have these as options.
Rung with_tiles(Rung rung, std::int32_t rows, std::int32_t columns) {
  rung.defines["TILE_M"] = rung.tile_rows = rows;
  rung.defines["TILE_N"] = rung.tile_columns = columns;
  return rung;
}

/// What the kernels of work-groups take from the device: its instructions, as probes have shown
/// them, and tiles that its registers hold (from gfx11 on AMD's compiler spills at 128 x 128).
Rung tiles_of(Rung rung, Builder& b) {
  const opencl::Capabilities& device = b.context().capabilities();
  const bool by_matrix_unit = rung.program && std::string_view(rung.program).ends_with("_matrix");
  if (by_matrix_unit) {
    rung.defines["MATRIX_UNIT"] = opencl::matrix_unit_of(device)->code;
    rung.defines["MATRIX_EMULATED"] = 0;
    if (device.ptx_cp_async) rung.defines["COPY_ASYNC"] = 2;
    return device.amd_wmma ? with_tiles(rung, 64, 128) : rung;
  }
  if (rung.name != "dot4") return rung;
  rung.defines["DOT4"] = opencl::dot4_of(device).code;
  return device.amd_sudot4 ? with_tiles(rung, 64, 128) : rung;
}

/// The rung of work-groups for few rows: gemm_s8_dot4 with small tiles, which reads the same
/// panels.
Rung few_rows(Rung rung, Builder& b) {
  rung.name = "dot4_32x64";
  rung.program = "gemm_s8_dot4";
  rung.defines = {{"DOT4", opencl::dot4_of(b.context().capabilities()).code}};
  return with_tiles(rung, 32, 64);
}

/// With weights in half CLBlast computes in half too; of the own kernels only matrix_f16 does.
std::string needs_clblast(Builder& b) {
  if (b.options().half_weights && !b.context().capabilities().fp16)
    return "weights in half need arithmetic in half, which the device does not have";
  return "";
}

const std::vector<Rung> integer_ladder{
    {"mma", "gemm_s8_matrix", {}, 128, 64, 4, needs_mma, 256, 128},
    {"dpas", "gemm_s8_matrix", {}, 128, 64, 4, needs_dpas, 256, 128},
    {"mfma", "gemm_s8_matrix", {}, 128, 64, 4, needs_mfma, 256, 128},
    {"wmma", "gemm_s8_matrix", {}, 128, 64, 4, needs_wmma, 256, 128},
    {"x86_vnni", "gemm_s8_x86_vnni", {}, 8, 48, 4, needs_vnni},
    {"x86_avx_vnni", "gemm_s8_x86_avx_vnni", {}, 6, 16, 4, needs_avx_vnni},
    {"x86_avx2", "gemm_s8_x86_avx2", {}, 6, 64, 2, needs_avx2},
    {"portable", "gemm_s8_portable", {}, 6, 64, 1, needs_cpu},
    {"dot4", "gemm_s8_dot4", {}, 128, 64, 4, needs_groups_of_256, 256, 128},
    {"ref", "gemm_s8_ref", {}, 1, 1, 1, always}};
const Rung f16_rung{"matrix_f16", "gemm_f16_matrix", {}, 128, 64, 2, needs_matrix_f16, 256, 128};
const Rung bf16_rung{kBf16Rung, "gemm_bf16_x86", {}, 8, 48, 2, needs_bf16};
/// Panels of a work-item of that kernel: with more, A in f32 is rounded less often; with fewer,
/// there is work for more cores.
std::int32_t bf16_item_panels(Builder& b) { return b.context().info().compute_units <= 8 ? 4 : 2; }
const std::vector<Rung> float_ladder{
    {"clblast", nullptr, {}, 0, 0, 0, needs_clblast},
    {"x86_avx512", "gemm_f32_x86", {{"LANES", 16}}, 8, 48, 1, needs_avx512},
    {"x86_avx2", "gemm_f32_x86", {{"LANES", 8}}, 6, 16, 1, needs_avx2},
    {"portable", "gemm_f32_portable", {}, 6, 16, 1, always},
    {"ref", "gemm_f32_ref", {}, 1, 1, 1, always}};

/// What is asked for stands first: bf16, CLBlast.
std::vector<Rung> float_ladder_of(const Builder& b) {
  std::vector<Rung> ladder{float_ladder.begin() + (b.options().gemm == "clblast" ? 0 : 1),
                           float_ladder.end()};
  if (b.options().bf16) ladder.insert(ladder.begin(), bf16_rung);
  if (b.options().half_weights)
    ladder.insert(ladder.begin() + (b.options().gemm == "clblast" ? 1 : 0), f16_rung);
  return ladder;
}

/// The rungs that can run here, without the reference, and those of work-groups with smaller tiles
/// too: what a device can be tuned to.
std::vector<Rung> candidates_of(Builder& b, const std::vector<Rung>& ladder) {
  std::vector<Rung> candidates;
  for (const Rung& rung : ladder) {
    if (rung.name == "ref" || b.is_disabled(rung.name) || !rung.why_not(b).empty()) continue;
    candidates.push_back(tiles_of(rung, b));
    if (rung.name != "dot4") continue;
    for (const auto& [rows, columns] : {std::pair{64, 128}, {64, 64}, {32, 64}}) {
      candidates.push_back(with_tiles(tiles_of(rung, b), rows, columns));
      candidates.back().name += fmt::format("_{}x{}", rows, columns);
    }
  }
  return candidates;
}

TunableProduct tunable_of(const std::vector<Rung>& candidates, std::int64_t n, std::int64_t k,
                          const std::string& otherwise) {
  TunableProduct product{n, k, {}, otherwise, 0};
  for (const Rung& c : candidates) {
    const std::string rung = c.name.starts_with("dot4") ? "dot4" : c.name;
    product.candidates.push_back(
        {c.name, c.items > 1 ? fmt::format("{}x{}", c.panel, c.k_group) : c.name, rung});
  }
  return product;
}

/// What the device was tuned to for this product, by rows; empty where it was not, where that is
/// not among the candidates here, or where these do not read the same weights.
struct TunedRung {
  std::int64_t rows;
  const Rung* rung;
};
std::vector<TunedRung> tuned_rungs(Builder& b, const std::vector<Rung>& candidates, const char* op,
                                   const char* type, std::int64_t n, std::int64_t k) {
  std::vector<TunedRung> tuned;
  const TunedProduct* product = b.tuning().find(op, type, n, k);
  if (!product) return {};
  for (const TunedRows& row : product->by_rows) {
    const auto found = std::find_if(candidates.begin(), candidates.end(),
                                    [&](const Rung& c) { return c.name == row.implementation; });
    if (found == candidates.end()) return {};
    const Rung* first = tuned.empty() ? &*found : tuned.front().rung;
    if (first->panel != found->panel || first->k_group != found->k_group) return {};
    tuned.push_back({row.rows, &*found});
  }
  return tuned;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Packs weights [K, N], part by part where they are made of such. `kernel_for` gives the kernel
/// for a part whose columns come to stand from `first` on, with all arguments but the part.
void pack(
    Builder& b, const ir::Tensor& w, std::int32_t panel,
    const std::function<opencl::Kernel(const ir::Tensor& part, std::int32_t first)>& kernel_for) {
  std::int64_t first = 0;
  for (const ir::Tensor& part : w.parts()) {
    const std::int64_t n = part.shape()[1];
    const std::int64_t panels = n == 0 ? 0 : (first + n - 1) / panel - first / panel + 1;
    b.make_constant(kernel_for(part, static_cast<std::int32_t>(first)), part,
                    static_cast<std::size_t>(panels));
    first += n;
  }
}

void lower_float(Builder& b, const ir::Graph& graph, const ir::Node& node) {
  namespace o = passes::linear;
  const ir::Value* w = node.inputs[o::w];
  if (!w->is_constant())
    throw Error(
        fmt::format("{}: its weight is still quantized; float products need the pass "
                    "fold_dequantize",
                    node.describe()));
  const std::vector<Rung> ladder = float_ladder_of(b);
  const auto choice = choose(b, node, ladder);
  const std::int64_t k = w->constant->shape()[0], n = w->constant->shape()[1];
  // Which library and which precision multiplies may have been asked for; tuning has the rest.
  const bool is_free = b.options().gemm == "auto" && !b.options().bf16;
  std::vector<Rung> candidates;
  if (is_free) {
    candidates = candidates_of(b, ladder);
    const std::vector<Rung> clblast = candidates_of(b, {float_ladder.front()});
    candidates.insert(candidates.end(), clblast.begin(), clblast.end());
  }
  const char* key = b.options().half_weights ? "fp16" : "fp32";
  const std::vector<TunedRung> tuned = tuned_rungs(b, candidates, "linear", key, n, k);
  const Rung rung = tuned.empty() ? tiles_of(*choice.rung, b) : *tuned.back().rung;
  TunableProduct tunable = tunable_of(candidates, n, k, choice.rung->name);
  if (!tuned.empty()) tunable.gain = b.tuning().find("linear", key, n, k)->gain();
  if (!rung.program) return lower_clblast(b, node, std::move(tunable));
  const std::int64_t panels = ceil_div(n, rung.panel);
  const bool bf16 = rung.name == bf16_rung.name, pairs = rung.k_group == 2;
  const int half = b.options().half_weights;

  opencl::Buffer packed = b.context().allocate(static_cast<std::size_t>(
      panels * rung.panel * ceil_div(k, rung.k_group) * rung.k_group * (half || pairs ? 2 : 4)));
  pack(b, *w->constant, rung.panel, [&](const ir::Tensor& part, std::int32_t first) {
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
  std::array<Size, 3> grid{Size{rows, rung.tile_rows}, Size{panels, item_panels}, Size{}};
  if (rung.items > 1) grid = grid_of(rung, rows, n);
  Step& step =
      b.launch(node, type, rung.name, b.kernel(rung.program, "gemm_f32", defines), arguments, grid);
  step.local[0] = static_cast<std::size_t>(rung.items);
  step.why_not_faster = choice.why_not_faster;
  if (node.has("float_reason")) step.why_not_faster = node.string_attribute("float_reason");
  step.tunable = std::move(tunable);
  count_operations(step, rows, n, k);
}

void lower_integer(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = passes::linear_q;
  const auto choice = choose(b, node, integer_ladder);
  const ir::Tensor& w = *node.inputs[o::w]->constant;
  const std::int64_t k = w.shape()[0], n = w.shape()[1];
  const std::vector<Rung> candidates = candidates_of(b, integer_ladder);
  const std::vector<TunedRung> tuned = tuned_rungs(b, candidates, "linear_q", "int8", n, k);
  const Rung rung = tuned.empty() ? tiles_of(*choice.rung, b) : *tuned.back().rung;
  if (const auto most = passes::max_exact_products(node.input(o::w_zero_point)); k > most)
    throw Error(fmt::format("{}: it sums {} products, an int32 holds the sum of up to {}",
                            node.describe(), k, most));
  const std::int64_t panels = ceil_div(n, rung.panel);

  opencl::Buffer packed = b.context().allocate(
      static_cast<std::size_t>(panels * rung.panel * ceil_div(k, rung.k_group) * rung.k_group));
  opencl::Buffer colsum = b.context().allocate(static_cast<std::size_t>(n) * sizeof(std::int32_t));
  pack(b, w, rung.panel, [&](const ir::Tensor& part, std::int32_t first) {
    opencl::Kernel kernel = b.kernel("pack_s8", "pack_s8");
    kernel.set(1, packed);
    kernel.set(2, colsum);
    kernel.set(3, static_cast<std::int32_t>(part.shape()[1]));
    kernel.set(4, static_cast<std::int32_t>(k));
    kernel.set(5, rung.panel);
    kernel.set(6, rung.k_group);
    kernel.set(7, first);
    kernel.set(8, static_cast<std::int32_t>(n));
    return kernel;
  });

  // Scale and zero point of x may be measured by an earlier step; they are read on the device then.
  const ir::Value* x_scale = node.inputs[o::x_scale];
  const ir::Value* x_zero = node.input(o::x_zero_point);
  const ir::Value* measured_scale = x_scale->is_constant() ? nullptr : x_scale;
  const ir::Value* row_scale = nullptr;
  if (measured_scale && element_count(measured_scale->type.shape) != ir::Dim(1))
    std::swap(measured_scale, row_scale);
  const ir::Value* measured_zero = !x_zero || x_zero->is_constant() ? nullptr : x_zero;
  const float static_scale = x_scale->is_constant() ? scalar_or(x_scale, 1) : 1;
  const std::int32_t static_zero = measured_zero ? 0 : zero_point_or_0(x_zero);
  std::vector<float> scale = per_column(node.inputs[o::w_scale], n, 1);
  for (float& s : scale) s *= static_scale;
  Argument inv_scale = nullptr, zero_point = nullptr;
  if (const ir::Value* out_scale = node.input(o::out_scale)) {
    std::vector<float> inverse = per_column(out_scale, n, 1);
    for (float& s : inverse) s = 1.0f / s;
    inv_scale = b.constant(ir::Tensor::of({n}, std::move(inverse)));
    zero_point = b.constant(ir::Tensor::of({n}, per_column(node.input(o::out_zero_point), n, 0)));
  }
  const ir::Value* x = node.inputs[o::x];
  const ir::Value* bias = node.input(o::bias);
  const ir::Dim rows = row_count(node.output()->type.shape);
  Argument w_zero = nullptr, row_sums = nullptr;
  if (const ir::Value* z = node.input(o::w_zero_point)) {
    w_zero = b.constant(ir::Tensor::of({n}, per_column(z, n, 0)).converted(ir::DType::i32));
    const Argument sums =
        b.scratch_out(node.output()->name + ".row_sums", {ir::DType::i32, {rows}});
    b.launch(node, "int8", "rows", b.kernel("row_sums", "row_sums"),
             {b.in(x), type_code(x->type.dtype), static_zero, b.in(measured_zero), sums, Size{rows},
              static_cast<std::int32_t>(k), b.rows_per_item()},
             {Size{rows, b.rows_per_item()}, Size{}, Size{}});
    row_sums = Builder::read(sums);
  }
  Step& step = b.launch(node, "int8", rung.name, b.kernel(rung.program, "gemm_s8", rung.defines),
                        {b.in(x),
                         b.constant(std::move(packed)),
                         b.constant(std::move(colsum)),
                         b.constant(ir::Tensor::of({n}, std::move(scale))),
                         b.in(bias),
                         inv_scale,
                         zero_point,
                         b.out(node.output()),
                         Size{rows},
                         static_cast<std::int32_t>(n),
                         static_cast<std::int32_t>(k),
                         static_zero,
                         static_cast<std::int32_t>(x->type.dtype == ir::DType::i8),
                         static_cast<std::int32_t>(bias != nullptr),
                         activation_code(activation_of(node)),
                         type_code(node.output()->type.dtype),
                         b.in(measured_scale),
                         b.in(measured_zero),
                         row_sums,
                         w_zero,
                         b.in(row_scale)},
                        grid_of(rung, rows, n));
  step.local[0] = static_cast<std::size_t>(rung.items);
  step.tunable = tunable_of(candidates, n, k, choice.rung->name);
  if (!tuned.empty()) {
    step.tunable->gain = b.tuning().find("linear_q", "int8", n, k)->gain();
    for (std::size_t i = 0; i + 1 < tuned.size(); ++i) {
      const Rung& r = *tuned[i].rung;
      // Between two measured numbers of rows their geometric mean parts them.
      const double border =
          std::sqrt(static_cast<double>(tuned[i].rows) * static_cast<double>(tuned[i + 1].rows));
      step.by_rows.push_back({static_cast<std::int64_t>(border),
                              r.name,
                              b.kernel(r.program, "gemm_s8", r.defines),
                              grid_of(r, rows, n),
                              {static_cast<std::size_t>(r.items), 1, 1}});
    }
  } else if (rung.items > 1) {
    const Rung few = few_rows(rung, b);
    step.small_tiles = {few.name, b.kernel(few.program, "gemm_s8", few.defines),
                        grid_of(few, rows, n)};
  }
  step.why_not_faster = choice.why_not_faster;
  count_operations(step, rows, n, k);
}

}  // namespace

void add_linear(LoweringTable& table) {
  table["linear"] = lower_float;
  table["linear_q"] = lower_integer;
}

void add_linear_implementations(std::vector<std::string>& names) {
  names.push_back(bf16_rung.name);
  names.push_back(f16_rung.name);
  add_names(float_ladder, names);
  add_names(integer_ladder, names);
}

}  // namespace bertcl::plan
