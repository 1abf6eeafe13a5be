// SPDX-License-Identifier: Apache-2.0
// Launch steps of a linear whose GEMM runs in CLBlast.
#include "plan/linear_clblast.hpp"

#include <fmt/format.h>

#include <utility>

#include "kernels/contracts/elementwise.hpp"
#include "kernels/contracts/move.hpp"
#include "opencl/launch/blas.hpp"
#include "ops/operands.hpp"
#include "ops/precision.hpp"
#include "plan/elements.hpp"
#include "plan/gemm_variants.hpp"
#include "plan/precision.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {

namespace {

/// One launch of cast.cl between float types.
void cast(Builder& b, const ir::Node& node, Argument from, ir::DType from_type, Argument to,
          ir::DType to_type, const ir::Dim& count) {
  launch_elements(b, node, Arithmetic::elements(to_type), "elements", b.kernel("cast", "cast"),
                  kernels::Cast<Argument>{.x = std::move(from),
                                          .from = type_code(from_type),
                                          .y = std::move(to),
                                          .to = type_code(to_type)},
                  count, b.chunk());
}

}  // namespace

void lower_clblast(Builder& b, const ir::Node& node, TunableGemm tunable) {
  namespace o = ops::operands::linear;
  const bool half = ops::precision_of(node) == ir::DType::f16;
  const ir::DType type = half ? ir::DType::f16 : ir::DType::f32;
  const ir::Tensor w = node.inputs[o::w]->constant->converted(type);
  const std::int64_t k = w.shape()[0], n = w.shape()[1];
  const ir::Value& input = *node.inputs[o::x];
  const ir::Shape& shape = node.output()->type.shape;
  const ir::Dim rows = row_count(shape), count = element_count(shape);
  const std::string label = node.output()->name;

  Argument x = b.in(&input);
  const Argument y = b.out(node.output());
  Argument gemm_out = y;
  if (half) {
    const Argument cast_x = b.scratch_out(label + ".x", {type, input.type.shape});
    cast(b, node, x, ir::DType::f32, cast_x, type, element_count(input.type.shape));
    x = Builder::read(cast_x);
    gemm_out = b.scratch_out(label + ".half", {type, shape});
  }
  const ir::Value* bias = node.input(o::bias);
  if (bias) {
    const View view{{rows, shape.back()}, {{ir::Dim(0), ir::Dim(1)}, {shape.back(), ir::Dim(1)}}};
    launch_strided(
        b, node, Arithmetic::copy, "strided",
        b.kernel("copy_strided", fmt::format("copy_strided_{}", ir::size_of(type))),
        kernels::CopyStrided<Argument>{.source = b.constant(bias->constant->converted(type)),
                                       .target = gemm_out,
                                       .source_start = 0,
                                       .target_start = 0},
        view);
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
  Step& step = b.call(node, half ? Arithmetic::fp16 : Arithmetic::fp32, "clblast", call,
                      {.a = x, .b = b.constant(w), .c = gemm_out});
  step.why_not_faster = why_not_faster(node, "");
  step.tunable = std::move(tunable);
  count_operations(step, rows, n, k);
  if (half) cast(b, node, Builder::read(gemm_out), type, y, ir::DType::f32, count);
  const std::string activation = activation_of(node);
  if (activation.empty()) return;
  launch_elements(
      b, node, Arithmetic::fp32, "elements", b.kernel("elementwise_unary", "unary_f32"),
      kernels::Unary<Argument>{.x = Builder::read(y), .out = y, .op = unary_code(activation)},
      count, b.chunk());
}

}  // namespace bertcl::plan
