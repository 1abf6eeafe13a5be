// SPDX-License-Identifier: Apache-2.0
// Launch steps of linear and linear_q: products with weights that are packed once, while planning.
#include <utility>

#include "opencl/blas.hpp"
#include "opencl/capabilities.hpp"
#include "opencl/queue.hpp"
#include "passes/operands.hpp"
#include "passes/quant_params.hpp"
#include "plan/ladder.hpp"
#include "plan/ops/ops.hpp"
#include "plan/requirements.hpp"
#include "plan/strided.hpp"
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

/// What gemm_s8_dot4 takes from the device: dot products as its probes have shown, and tiles that
/// its registers hold (from gfx11 on AMD's compiler spills at 128 x 128).
Rung tiles_of(Rung rung, Builder& b) {
  if (rung.name != "dot4") return rung;
  const opencl::Capabilities& device = b.context().capabilities();
  rung.defines["DOT4"] = opencl::dot4_of(device).code;
  return device.amd_sudot4 ? with_tiles(rung, 64, 128) : rung;
}

/// The rung of work-groups for few rows: gemm_s8_dot4 with small tiles, which reads the same
/// panels.
Rung few_rows(Rung rung, Builder& b) {
  rung.program = "gemm_s8_dot4";
  rung.defines = {{"DOT4", opencl::dot4_of(b.context().capabilities()).code}};
  return with_tiles(rung, 32, 64);
}

/// With weights in half CLBlast computes in half too; own kernels only store them so.
std::string needs_clblast(Builder& b) {
  if (b.options().half_weights && !b.context().capabilities().fp16)
    return "weights in half need arithmetic in half, which the device does not have";
  return "";
}

const std::vector<Rung> integer_ladder{
    {"mma", "gemm_s8_mma", {{"MMA_PTX", 1}}, 128, 64, 4, needs_mma, 256, 128},
    {"x86_vnni", "gemm_s8_x86_vnni", {}, 8, 48, 4, needs_vnni},
    {"x86_avx_vnni", "gemm_s8_x86_avx_vnni", {}, 6, 16, 4, needs_avx_vnni},
    {"x86_avx2", "gemm_s8_x86_avx2", {}, 6, 64, 2, needs_avx2},
    {"portable", "gemm_s8_portable", {}, 6, 64, 1, needs_cpu},
    {"dot4", "gemm_s8_dot4", {}, 128, 64, 4, needs_groups_of_256, 256, 128},
    {"ref", "gemm_s8_ref", {}, 1, 1, 1, always}};
const Rung bf16_rung{"x86_bf16", "gemm_bf16_x86", {}, 8, 48, 2, needs_bf16};
/// Panels of a work-item of that kernel: with more A is rounded less often, with fewer there is
/// work for more cores.
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
  return ladder;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Weights on the device as they lie in the file, for packing.
opencl::Buffer upload(Builder& b, const ir::Tensor& tensor) {
  opencl::Buffer raw = b.context().allocate(tensor.bytes().size());
  raw.write(tensor.bytes());
  return raw;
}

void run_packing(Builder& b, opencl::Kernel& kernel, std::int64_t panels) {
  b.context().queue().launch(kernel, {static_cast<std::size_t>(panels), 1, 1}, {1, 1, 1}, "pack");
  b.context().queue().finish();  // the unpacked weights go away behind this
}

void count_operations(Step& step, const ir::Dim& rows, std::int64_t n, std::int64_t k) {
  step.operations_per_unit = 2.0 * static_cast<double>(n) * static_cast<double>(k);
  step.unit = rows;
}

std::string activation_of(const ir::Node& node) {
  return node.has("activation") ? node.string_attribute("activation") : "";
}

/// One launch of cast.cl between float types.
void cast(Builder& b, const ir::Node& node, Argument from, ir::DType from_type, Argument to,
          ir::DType to_type, const ir::Dim& count) {
  b.launch(node, std::string(ir::name_of(to_type)), "elements", b.kernel("cast", "cast"),
           {from, type_code(from_type), to, type_code(to_type), Size{count}, b.chunk()},
           {Size{count, b.chunk()}, Size{}, Size{}});
}

/// y = activation(x w + bias) by CLBlast: the bias goes into the result first, the product adds to
/// it. In half, x is cast before and the result after.
void lower_clblast(Builder& b, const ir::Node& node) {
  namespace o = passes::linear;
  const bool half = b.options().half_weights;
  const ir::DType type = half ? ir::DType::f16 : ir::DType::f32;
  const ir::Tensor w = node.inputs[o::w]->constant->converted(type);
  const std::int64_t k = w.shape()[0], n = w.shape()[1];
  const ir::Value& input = *node.inputs[o::x];
  const ir::Shape& shape = node.output()->type.shape;
  const ir::Dim rows = row_count(shape), count = element_count(shape);
  const std::string label = node.output()->name;

  Argument x = b.in(&input);
  const Argument y = b.out(node.output());
  Argument product = y;
  if (half) {
    const Argument cast_x = b.scratch_out(label + ".x", {type, input.type.shape});
    cast(b, node, x, ir::DType::f32, cast_x, type, element_count(input.type.shape));
    x = Builder::read(cast_x);
    product = b.scratch_out(label + ".half", {type, shape});
  }
  const ir::Value* bias = node.input(o::bias);
  if (bias) {
    const View view{{rows, shape.back()}, {{ir::Dim(0), ir::Dim(1)}, {shape.back(), ir::Dim(1)}}};
    b.launch(node, "copy", "strided",
             b.kernel("copy_strided", fmt::format("copy_strided_{}", ir::size_of(type))),
             {b.constant(bias->constant->converted(type)), product, 0, 0, table_of(view), 2,
              Size{count}, b.chunk()},
             {Size{count, b.chunk()}, Size{}, Size{}});
  }
  opencl::Context* context = &b.context();
  const auto call = [=](std::span<opencl::Buffer* const> buffers, const ir::Bindings& sizes) {
    opencl::Gemm gemm;
    gemm.m = static_cast<std::size_t>(rows.evaluate(sizes));
    gemm.n = static_cast<std::size_t>(n);
    gemm.k = static_cast<std::size_t>(k);
    gemm.beta = bias ? 1.0f : 0.0f;
    (half ? opencl::gemm_f16 : opencl::gemm_f32)(*context, gemm, *buffers[0], *buffers[1],
                                                 *buffers[2], label);
  };
  Step& step = b.call(node, half ? "fp16" : "fp32", "clblast", call, {x, b.constant(w), product});
  if (node.has("float_reason")) step.why_not_faster = node.string_attribute("float_reason");
  count_operations(step, rows, n, k);
  if (half) cast(b, node, Builder::read(product), type, y, ir::DType::f32, count);
  const std::string activation = activation_of(node);
  if (activation.empty()) return;
  b.launch(node, "fp32", "elements", b.kernel("elementwise_unary", "unary_f32"),
           {Builder::read(y), y, unary_code(activation), Size{count}, b.chunk()},
           {Size{count, b.chunk()}, Size{}, Size{}});
}

void lower_float(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = passes::linear;
  const ir::Value* w = node.inputs[o::w];
  if (!w->is_constant())
    throw Error(
        fmt::format("{}: its weight is still quantized; float products need the pass "
                    "fold_dequantize",
                    node.describe()));
  const std::vector<Rung> ladder = float_ladder_of(b);
  const auto choice = choose(b, node, ladder);
  const Rung& rung = *choice.rung;
  if (!rung.program) return lower_clblast(b, node);
  const std::int64_t k = w->constant->shape()[0], n = w->constant->shape()[1];
  const std::int64_t panels = ceil_div(n, rung.panel);
  const bool bf16 = rung.k_group == 2;
  const int half = b.options().half_weights;

  opencl::Buffer raw = upload(b, *w->constant);
  opencl::Buffer packed = b.context().allocate(static_cast<std::size_t>(
      panels * rung.panel * ceil_div(k, rung.k_group) * rung.k_group * (half || bf16 ? 2 : 4)));
  opencl::Kernel pack = bf16 ? b.kernel("pack_bf16", "pack_bf16")
                             : b.kernel("pack_f32", "pack_f32", {{"B_HALF", half}});
  pack.args(raw, packed, static_cast<std::int32_t>(n), static_cast<std::int32_t>(k), 0, rung.panel);
  run_packing(b, pack, panels);

  opencl::Defines defines = rung.defines;
  const std::int32_t item_panels = bf16 ? bf16_item_panels(b) : 1;
  if (bf16)
    defines["ITEM_PANELS"] = item_panels;
  else
    defines["B_HALF"] = half;
  const ir::Dim rows = row_count(node.output()->type.shape);
  const ir::Value* bias = node.input(o::bias);
  Step& step = b.launch(
      node,
      bf16   ? "bf16"
      : half ? "fp16w"
             : "fp32",
      rung.name, b.kernel(rung.program, "gemm_f32", defines),
      {b.in(node.inputs[o::x]), b.constant(std::move(packed)), b.in(bias), b.out(node.output()),
       Size{rows}, static_cast<std::int32_t>(n), static_cast<std::int32_t>(k),
       static_cast<std::int32_t>(bias != nullptr), activation_code(activation_of(node))},
      {Size{rows, rung.tile_rows}, Size{panels, item_panels}, Size{}});
  step.why_not_faster = choice.why_not_faster;
  if (node.has("float_reason")) step.why_not_faster = node.string_attribute("float_reason");
  count_operations(step, rows, n, k);
}

void lower_integer(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = passes::linear_q;
  const auto choice = choose(b, node, integer_ladder);
  const Rung rung = tiles_of(*choice.rung, b);
  const ir::Tensor& w = *node.inputs[o::w]->constant;
  const std::int64_t k = w.shape()[0], n = w.shape()[1];
  if (const auto most = passes::max_exact_products(node.input(o::w_zero_point)); k > most)
    throw Error(fmt::format("{}: it sums {} products, an int32 holds the sum of up to {}",
                            node.describe(), k, most));
  const std::int64_t panels = ceil_div(n, rung.panel);

  opencl::Buffer raw = upload(b, w);
  opencl::Buffer packed = b.context().allocate(
      static_cast<std::size_t>(panels * rung.panel * ceil_div(k, rung.k_group) * rung.k_group));
  opencl::Buffer colsum = b.context().allocate(static_cast<std::size_t>(n) * sizeof(std::int32_t));
  opencl::Kernel pack = b.kernel("pack_s8", "pack_s8");
  pack.args(raw, packed, colsum, static_cast<std::int32_t>(n), static_cast<std::int32_t>(k), 0,
            rung.panel, rung.k_group);
  run_packing(b, pack, panels);

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
  if (rung.items > 1) {
    const Rung few = few_rows(rung, b);
    step.small_tiles = {b.kernel(few.program, "gemm_s8", few.defines), grid_of(few, rows, n)};
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
  add_names(float_ladder, names);
  add_names(integer_ladder, names);
}

}  // namespace bertcl::plan
