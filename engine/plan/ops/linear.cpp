// SPDX-License-Identifier: Apache-2.0
// Launch steps of linear and linear_q: products with weights that are packed once, while planning.
#include "opencl/blas.hpp"
#include "opencl/capabilities.hpp"
#include "opencl/queue.hpp"
#include "passes/operands.hpp"
#include "plan/ladder.hpp"
#include "plan/ops/ops.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

/// A kernel family: the head of its .cl file says the same numbers.
struct Rung {
  std::string name;
  const char* program;
  opencl::Defines defines;
  std::int32_t tile_rows, panel, k_group;
  std::string (*why_not)(opencl::Context&);
};

std::string always(opencl::Context&) { return ""; }
std::string needs_vnni(opencl::Context& c) {
  return c.capabilities().avx512_vnni ? "" : "the device has no avx512_vnni";
}
std::string needs_avx512(opencl::Context& c) {
  return c.capabilities().avx512 ? "" : "the device has no avx512";
}
std::string needs_avx2(opencl::Context& c) {
  return c.capabilities().avx2 ? "" : "the device has no avx2";
}

const std::vector<Rung> integer_ladder{{"x86_vnni", "gemm_s8_x86_vnni", {}, 8, 48, 4, needs_vnni},
                                       {"x86_avx2", "gemm_s8_x86_avx2", {}, 6, 64, 2, needs_avx2},
                                       {"portable", "gemm_s8_portable", {}, 6, 64, 1, always},
                                       {"ref", "gemm_s8_ref", {}, 1, 1, 1, always}};
const std::vector<Rung> float_ladder{
    {"x86_avx512", "gemm_f32_x86", {{"LANES", 16}}, 8, 48, 1, needs_avx512},
    {"x86_avx2", "gemm_f32_x86", {{"LANES", 8}}, 6, 16, 1, needs_avx2},
    {"portable", "gemm_f32_portable", {}, 6, 16, 1, always},
    {"ref", "gemm_f32_ref", {}, 1, 1, 1, always}};

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

/// y = activation(x w + bias) by CLBlast: the bias goes into y first, the product adds to it.
void lower_clblast(Builder& b, const ir::Node& node) {
  namespace o = passes::linear;
  const ir::Tensor& w = *node.inputs[o::w]->constant;
  const std::int64_t k = w.shape()[0], n = w.shape()[1];
  const ir::Shape& shape = node.output()->type.shape;
  const ir::Dim rows = row_count(shape), count = element_count(shape);
  const Argument out = b.out(node.output());
  const ir::Value* bias = node.input(o::bias);
  if (bias) {
    const View view{{rows, shape.back()}, {{ir::Dim(0), ir::Dim(1)}, {shape.back(), ir::Dim(1)}}};
    b.launch(node, "copy", "strided", b.kernel("copy_strided", "copy_strided_4"),
             {b.in(bias), out, 0, 0, table_of(view), 2, Size{count}, b.chunk()},
             {Size{count, b.chunk()}, Size{}, Size{}});
  }
  opencl::Buffer weight = upload(b, w);
  const std::string label = node.output()->name;
  opencl::Context* context = &b.context();
  const auto call = [=](std::span<opencl::Buffer* const> buffers, const ir::Bindings& sizes) {
    opencl::Gemm gemm;
    gemm.m = static_cast<std::size_t>(rows.evaluate(sizes));
    gemm.n = static_cast<std::size_t>(n);
    gemm.k = static_cast<std::size_t>(k);
    gemm.beta = bias ? 1.0f : 0.0f;
    opencl::gemm_f32(*context, gemm, *buffers[0], *buffers[1], *buffers[2], label);
  };
  Step& step = b.call(node, "fp32", "clblast", call,
                      {b.in(node.inputs[o::x]), b.constant(std::move(weight)), out});
  count_operations(step, rows, n, k);
  const std::string activation = activation_of(node);
  if (activation.empty()) return;
  const std::map<std::string, std::int32_t> codes{// elementwise_unary.cl
                                                  {"gelu", 9},
                                                  {"gelu_tanh", 10},
                                                  {"relu", 8},
                                                  {"tanh", 6}};
  b.launch(node, "fp32", "elements", b.kernel("elementwise_unary", "unary_f32"),
           {Builder::read(out), out, codes.at(activation), Size{count}, b.chunk()},
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
  if (b.options().gemm == "clblast") return lower_clblast(b, node);
  const auto choice = choose(b, float_ladder);
  const Rung& rung = *choice.rung;
  const std::int64_t k = w->constant->shape()[0], n = w->constant->shape()[1];
  const std::int64_t panels = ceil_div(n, rung.panel);
  const int half = b.options().half_weights;

  opencl::Buffer raw = upload(b, *w->constant);
  opencl::Buffer packed =
      b.context().allocate(static_cast<std::size_t>(panels * rung.panel * k * (half ? 2 : 4)));
  opencl::Kernel pack = b.kernel("pack_f32", "pack_f32", {{"B_HALF", half}});
  pack.args(raw, packed, static_cast<std::int32_t>(n), static_cast<std::int32_t>(k), 0, rung.panel);
  run_packing(b, pack, panels);

  opencl::Defines defines = rung.defines;
  defines["B_HALF"] = half;
  const ir::Dim rows = row_count(node.output()->type.shape);
  const ir::Value* bias = node.input(o::bias);
  Step& step = b.launch(
      node, half ? "fp16w" : "fp32", rung.name, b.kernel(rung.program, "gemm_f32", defines),
      {b.in(node.inputs[o::x]), b.constant(std::move(packed)), b.in(bias), b.out(node.output()),
       Size{rows}, static_cast<std::int32_t>(n), static_cast<std::int32_t>(k),
       static_cast<std::int32_t>(bias != nullptr), activation_code(activation_of(node))},
      {Size{rows, rung.tile_rows}, Size{panels}, Size{}});
  step.why_not_faster = choice.why_not_faster;
  if (node.has("float_reason")) step.why_not_faster = node.string_attribute("float_reason");
  count_operations(step, rows, n, k);
}

/// One value per column of a scale that has one element or N.
std::vector<float> per_column(const ir::Value* v, std::int64_t n, float factor) {
  const auto values = v->constant->to_doubles();
  std::vector<float> columns(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < columns.size(); ++i)
    columns[i] = static_cast<float>(values[values.size() == 1 ? 0 : i]) * factor;
  return columns;
}

void lower_integer(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = passes::linear_q;
  const auto choice = choose(b, integer_ladder);
  const Rung& rung = *choice.rung;
  const ir::Tensor& w = *node.inputs[o::w]->constant;
  const std::int64_t k = w.shape()[0], n = w.shape()[1];
  const std::int64_t panels = ceil_div(n, rung.panel);

  opencl::Buffer raw = upload(b, w);
  opencl::Buffer packed = b.context().allocate(
      static_cast<std::size_t>(panels * rung.panel * ceil_div(k, rung.k_group) * rung.k_group));
  opencl::Buffer colsum = b.context().allocate(static_cast<std::size_t>(n) * sizeof(std::int32_t));
  opencl::Kernel pack = b.kernel("pack_s8", "pack_s8");
  pack.args(raw, packed, colsum, static_cast<std::int32_t>(n), static_cast<std::int32_t>(k), 0,
            rung.panel, rung.k_group);
  run_packing(b, pack, panels);

  const float x_scale = scalar_or(node.inputs[o::x_scale], 1);
  Argument inv_scale = nullptr, zero_point = nullptr;
  if (const ir::Value* out_scale = node.input(o::out_scale)) {
    std::vector<float> inverse = per_column(out_scale, n, 1);
    for (float& s : inverse) s = 1.0f / s;
    std::vector<float> zeros(inverse.size(), 0.0f);
    if (const ir::Value* z = node.input(o::out_zero_point)) zeros = per_column(z, n, 1);
    inv_scale = b.constant(ir::Tensor::of({n}, std::move(inverse)));
    zero_point = b.constant(ir::Tensor::of({n}, std::move(zeros)));
  }
  const ir::Value* x = node.inputs[o::x];
  const ir::Value* bias = node.input(o::bias);
  const ir::Dim rows = row_count(node.output()->type.shape);
  Step& step = b.launch(
      node, "int8", rung.name, b.kernel(rung.program, "gemm_s8", rung.defines),
      {b.in(x), b.constant(std::move(packed)), b.constant(std::move(colsum)),
       b.constant(ir::Tensor::of({n}, per_column(node.inputs[o::w_scale], n, x_scale))), b.in(bias),
       inv_scale, zero_point, b.out(node.output()), Size{rows}, static_cast<std::int32_t>(n),
       static_cast<std::int32_t>(k), zero_point_or_0(node.input(o::x_zero_point)),
       static_cast<std::int32_t>(x->type.dtype == ir::DType::i8),
       static_cast<std::int32_t>(bias != nullptr), activation_code(activation_of(node)),
       type_code(node.output()->type.dtype)},
      {Size{rows, rung.tile_rows}, Size{panels}, Size{}});
  step.why_not_faster = choice.why_not_faster;
  count_operations(step, rows, n, k);
}

}  // namespace

void add_linear(LoweringTable& table) {
  table["linear"] = lower_float;
  table["linear_q"] = lower_integer;
}

}  // namespace bertcl::plan
