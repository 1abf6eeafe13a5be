// SPDX-License-Identifier: Apache-2.0
// Prepacking and launches of GEMMs without a model.
#include "runtime/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "bertcl/error.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/move.hpp"
#include "kernels/shared_numbers.hpp"
#include "kernels/types.hpp"
#include "opencl/upload.hpp"
#include "ops/operands.hpp"
#include "runtime/gemm_trial.hpp"
#include "runtime/launch.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::runtime {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

/// Of one number or one for each of n columns; `default_value` where there is none.
template <class T, class Value>
std::vector<T> per_column(std::span<const Value> values, std::int64_t n, T default_value,
                          const char* name) {
  const auto columns = static_cast<std::size_t>(n);
  if (values.empty()) return std::vector<T>(columns, default_value);
  if (values.size() == 1) return std::vector<T>(columns, static_cast<T>(values[0]));
  if (values.size() != columns)
    throw Error(fmt::format("{} {} were given for {} columns; give one, or one for each column",
                            values.size(), name, n));
  return {values.begin(), values.end()};
}

void check_zero_point(std::int64_t value, ir::DType type, const char* name) {
  const std::int64_t lowest = type == ir::DType::u8 ? 0 : -128;
  if (value < lowest || value > lowest + 255)
    throw Error(fmt::format("a zero point of {} for {} is outside the range of {}, {} to {}", value,
                            name, ir::name_of(type), lowest, lowest + 255));
}

void check_desc(const GemmDesc& desc) {
  const ir::DType out = desc.out_type;
  if (!ir::is_int8(desc.a_type))
    throw Error(fmt::format("a is {}, expected u8 or i8", ir::name_of(desc.a_type)));
  if (!ir::is_int8(out) && out != ir::DType::f32 && out != ir::DType::i32)
    throw Error(fmt::format("out is {}, expected f32, u8, i8 or i32", ir::name_of(out)));
  check_zero_point(desc.a_zero_point, desc.a_type, "a");
  if (!std::isfinite(desc.a_scale)) throw Error("the scale of a is not finite");
  if (out == ir::DType::i32 && (!desc.bias.empty() || !desc.activation.empty()))
    throw Error("out is i32 (raw accumulators), so bias and activation must be unset");
  if (!ir::is_int8(out) && (!desc.out_scales.empty() || !desc.out_zero_points.empty()))
    throw Error(fmt::format("out is {}, which takes neither scales nor zero points; u8 and i8 do",
                            ir::name_of(out)));
  if (ir::is_int8(out) && desc.out_scales.empty())
    throw Error(fmt::format("out of {} needs a scale", ir::name_of(out)));
  for (const float scale : desc.out_scales)
    if (!(scale > 0) || !std::isfinite(scale) || !std::isfinite(1 / scale))
      throw Error(fmt::format(
          "a scale of out is {}; it has to be above 0, and it and its reciprocal finite", scale));
  if (out == ir::DType::i32 && desc.a_scale != 1)
    throw Error("out is i32 (raw accumulators), so the scale of a must be 1");
  for (const std::int32_t zero : desc.out_zero_points) check_zero_point(zero, out, "out");
}

std::string name_of_gemm(std::int64_t k, std::int64_t n) {
  return fmt::format("GEMM with weights [{}, {}]", k, n);
}

/// Weights [n, k] as [k, n].
opencl::Buffer transposed(const plan::Target& target, const opencl::Buffer& weights, std::int64_t k,
                          std::int64_t n) {
  if (n * k > kernels::kMaxElements)
    throw Error(fmt::format(
        "transposed weights of {} bytes exceed the kernels' limit of {}; give them as [K, N]",
        n * k, kernels::kMaxElements));
  const auto rows = static_cast<std::int32_t>(k), columns = static_cast<std::int32_t>(n);
  const opencl::Buffer shape = upload<std::int32_t>(
      target.context, {rows, columns, /* from */ 1, rows, /* to */ columns, 1});
  opencl::Buffer result = target.context.allocate(weights.size());
  opencl::Kernel kernel = target.context.kernel("copy_strided", "copy_strided_1");
  const std::int32_t count = rows * columns, chunk = target.chunk();
  kernels::set(kernel, kernels::CopyStrided<opencl::KernelArgument>{.source = weights,
                                                                    .target = result,
                                                                    .source_start = 0,
                                                                    .target_start = 0,
                                                                    .shape = shape,
                                                                    .rank = 2,
                                                                    .count = count,
                                                                    .chunk = chunk});
  const auto items = static_cast<std::size_t>(ceil_div(std::int64_t{count}, chunk));
  target.context.queue().launch_items(kernel, {items, 1, 1}, "transpose");
  target.context.queue().finish();  // its buffers go with the kernel
  return result;
}

struct RefusedVariant {
  std::string name, reason;
};

/// The first kernel of a GEMM that a GPU's driver refuses, with the epilogue that takes the
/// fewest registers.
std::optional<RefusedVariant> refused_of(const plan::Target& target, const plan::GemmS8& gemm,
                                         const plan::PrepackedS8& prepacked) {
  opencl::Context& device = target.context;
  if (device.info().is_cpu()) return std::nullopt;
  const std::int32_t activation = kernels::activation_code(""),
                     out_type = kernels::type_code(ir::DType::f32);
  plan::Step step;
  plan::set_variants(step, gemm, activation, out_type, ir::Dim::symbol(kRows), device);
  const auto n = static_cast<std::int32_t>(gemm.tunable.n),
             k = static_cast<std::int32_t>(gemm.tunable.k);
  const auto columns = static_cast<std::size_t>(n);
  const opencl::Buffer a = device.allocate(static_cast<std::size_t>(k)),
                       scale = device.allocate(columns * sizeof(float)),
                       out = device.allocate(columns * sizeof(float));
  const GemmArguments arguments{.a = a,
                                .b = prepacked.panels,
                                .column_sums = prepacked.column_sums,
                                .scale = scale,
                                .out = out,
                                .M = 1,
                                .N = n,
                                .K = k,
                                .zero_point = 0,
                                .a_signed = 0,
                                .has_bias = 0,
                                .activation = activation,
                                .out_type = out_type};
  std::optional<RefusedVariant> refused;
  plan::for_each_kernel(step, [&](const plan::StepKernel& launch) {
    if (refused) return;
    if (std::string reason = why_refused(target, launch, arguments); !reason.empty())
      refused = RefusedVariant{launch.variant, std::move(reason)};
  });
  return refused;
}

}  // namespace

GemmContext::GemmContext(_cl_command_queue* queue, const std::string& disabled)
    : queue_(opencl::share(queue)) {
  const opencl::QueueOwner owner = opencl::owner_of(queue);
  device_ = opencl::Context::wrap(owner.context, owner.device);
  options_.disabled = plan::variants_to_disable(disabled);
  std::string note;
  tuning_ = plan::stored_tuning(*device_, note);
}

void GemmContext::wait() const { opencl::finish(queue_.get()); }

GemmWeights::GemmWeights(std::shared_ptr<const GemmContext> context, const GemmWeightsDesc& desc)
    : context_(std::move(context)) {
  if (desc.k < 1 || desc.n < 1 || desc.k > kMaxInt || desc.n > kMaxInt)
    throw Error(
        fmt::format("weights [{}, {}]: both sizes must be from 1 to 2^31 - 1", desc.k, desc.n));
  if ((desc.data == nullptr) == (desc.buffer == nullptr))
    throw Error("give weights as data or as a buffer, not both");
  const std::string who = name_of_gemm(desc.k, desc.n);
  scales_ = per_column<float>(desc.scales, desc.n, 1.0f, "scales of weights");
  if (!std::ranges::all_of(scales_, [](float s) { return std::isfinite(s); }))
    throw Error(who + ": a scale is not finite");
  const auto zeros =
      per_column<std::int32_t>(desc.zero_points, desc.n, 0, "zero points of weights");
  for (const std::int32_t zero : zeros) check_zero_point(zero, ir::DType::i8, "weights");
  const bool has_zeros = std::ranges::any_of(zeros, [](std::int32_t z) { return z != 0; });
  plan::check_exact_sums(who, desc.k, has_zeros);
  choose_variants(who, desc.n, desc.k);
  if (has_zeros) zero_points_ = opencl::upload(*context_->device(), zeros);
  prepack(desc);
}

void GemmWeights::choose_variants(const std::string& who, std::int64_t n, std::int64_t k) {
  opencl::Context& device = *context_->device();
  plan::Options options = context_->target().options;
  const plan::Target target{device, options, context_->target().tuning};
  for (;;) {
    prepacked_ = {};  // of a refused variant
    gemm_ = plan::choose_gemm_s8(target, who, n, k);
    prepacked_ = plan::allocate_prepacked(device, gemm_);
    const auto refused = refused_of(target, gemm_, prepacked_);
    if (!refused) return;
    const std::pair variant{std::string(ops::operands::linear_q::op), refused->name};
    if (!options.refused.emplace(variant, refused->reason).second)
      throw Error(fmt::format("{}: {}: {}", who, refused->name, refused->reason),
                  ErrorCode::device);
  }
}

void GemmWeights::prepack(const GemmWeightsDesc& desc) {
  const std::shared_ptr<opencl::Context>& device = context_->device();
  const std::size_t size = static_cast<std::size_t>(desc.k) * static_cast<std::size_t>(desc.n);
  opencl::Buffer weights;
  if (desc.buffer) {
    context_->wait();
    weights = opencl::borrow(device, desc.buffer, desc.offset, size, "weights");
  } else {
    weights =
        device->wrap_host_memory({static_cast<const std::byte*>(desc.data), size}, 1, nullptr);
  }
  if (desc.transposed) weights = transposed(context_->target(), weights, desc.k, desc.n);
  opencl::Kernel kernel =
      device->kernel("prepack_s8", "prepack_s8", plan::prepack_options(context_->target(), gemm_));
  plan::bind_prepack(kernel, prepacked_, gemm_, desc.n, 0);
  kernel.set(0, weights);
  const std::size_t items =
      plan::prepack_items(context_->target().prepack_columns(), gemm_.variant.panel, desc.n, 0);
  device->queue().launch_items(kernel, {items, 1, 1}, "prepack");
  device->queue().finish();
}

std::size_t GemmWeights::bytes() const {
  return prepacked_.panels.size() + prepacked_.column_sums.size() + zero_points_.size();
}

Gemm::Gemm(std::shared_ptr<const GemmWeights> weights, const GemmDesc& desc)
    : weights_(std::move(weights)), desc_(desc) {
  check_desc(desc);
  opencl::Context& device = *weights_->context_->device();
  const std::int64_t n = weights_->n();
  if (!desc.bias.empty()) {
    if (std::ssize(desc.bias) != n)
      throw Error(fmt::format("a bias of {} values for {} columns", desc.bias.size(), n));
    bias_ = opencl::upload(device, std::vector<float>(desc.bias.begin(), desc.bias.end()));
  }
  std::vector<float> scale = weights_->scales_;
  for (float& s : scale) {
    s *= desc.a_scale;
    if (!std::isfinite(s)) throw Error("the scale of a times that of the weights is not finite");
  }
  scale_ = opencl::upload(device, scale);
  if (ir::is_int8(desc.out_type)) {
    std::vector<float> inverse = per_column<float>(desc.out_scales, n, 1.0f, "scales of out");
    for (float& s : inverse) s = 1.0f / s;
    out_inv_scale_ = opencl::upload(device, inverse);
    out_zero_point_ = opencl::upload(
        device, per_column<float>(desc.out_zero_points, n, 0.0f, "zero points of out"));
  }
  // A blocking write returns once its source may change; launches on other queues need all of it.
  device.queue().finish();
  desc_.bias = {}, desc_.out_scales = {}, desc_.out_zero_points = {};
  plan::set_variants(step_, weights_->gemm_, kernels::activation_code(desc.activation),
                     kernels::type_code(desc.out_type), ir::Dim::symbol(kRows), device);
  if (weights_->zero_points_) row_sums_ = device.kernel("row_sums", "row_sums");
  try_kernels();
}

void Gemm::try_kernels() {
  const plan::Target target = weights_->context_->target();
  const bool is_cpu = target.context.info().is_cpu();  // which launches nothing
  const auto scratch = [&](std::int64_t count, std::size_t size) {
    return is_cpu ? opencl::Buffer()
                  : target.context.allocate(static_cast<std::size_t>(count) * size);
  };
  GemmArguments arguments = base_arguments();
  arguments.M = 1;
  arguments.a = scratch(weights_->k(), 1);
  arguments.out = scratch(weights_->n(), ir::size_of(desc_.out_type));
  if (row_sums_) arguments.row_sums = scratch(1, sizeof(std::int32_t));
  const auto refusal_of = [&](const plan::StepKernel& launch) {
    return why_refused(target, launch, arguments);
  };
  std::erase_if(step_.alternatives,
                [&](const plan::Alternative& other) { return !refusal_of(other).empty(); });
  if (const std::string reason = refusal_of(step_); !reason.empty())
    throw Error(fmt::format("{}: {} with this epilogue: {}",
                            name_of_gemm(weights_->k(), weights_->n()), step_.variant, reason),
                ErrorCode::device);
}

GemmArguments Gemm::base_arguments() const {
  return {.b = weights_->prepacked_.panels,
          .column_sums = weights_->prepacked_.column_sums,
          .scale = scale_,
          .bias = bias_,
          .out_inv_scale = out_inv_scale_,
          .out_zero_point = out_zero_point_,
          .N = static_cast<std::int32_t>(weights_->n()),
          .K = static_cast<std::int32_t>(weights_->k()),
          .zero_point = desc_.a_zero_point,
          .a_signed = static_cast<std::int32_t>(desc_.a_type == ir::DType::i8),
          .has_bias = static_cast<std::int32_t>(static_cast<bool>(bias_)),
          .activation = kernels::activation_code(desc_.activation),
          .out_type = kernels::type_code(desc_.out_type),
          .w_zero_point = weights_->zero_points_};
}

const std::string& Gemm::variant(std::int64_t m) const {
  return plan::chosen_kernel(step_, {{kRows, m}}, weights_->context_->device()->info()).variant;
}

opencl::Buffer Gemm::queue_row_sums(const opencl::Buffer& a, const opencl::Buffer& a_zero_point,
                                    std::int32_t m, const opencl::Command& command) {
  const plan::Target target = weights_->context_->target();
  opencl::Buffer sums = target.context.allocate(static_cast<std::size_t>(m) * sizeof(std::int32_t));
  kernels::RowSums<opencl::KernelArgument> arguments{.a = a,
                                                     .a_type = kernels::type_code(desc_.a_type),
                                                     .zero_point = desc_.a_zero_point,
                                                     .x_zero_point = a_zero_point,
                                                     .sums = sums,
                                                     .M = m,
                                                     .K = static_cast<std::int32_t>(weights_->k()),
                                                     .rows_per_item = target.rows_per_item()};
  kernels::set(row_sums_, arguments);
  const auto items = static_cast<std::size_t>(ceil_div(std::int64_t{m}, target.rows_per_item()));
  const opencl::Grid grid = target.context.queue().grid_of(row_sums_, {items, 1, 1});
  opencl::launch(row_sums_, grid.global, grid.local, command);
  arguments.a = arguments.x_zero_point = arguments.sums = nullptr;
  kernels::set(row_sums_, arguments);
  return sums;
}

void Gemm::enqueue(const GemmCall& call, const opencl::Command& command) {
  const std::shared_ptr<opencl::Context>& device = weights_->context_->device();
  opencl::check_queue(*device, command.queue);
  if (call.m < 0 || call.m > kMaxInt)
    throw Error(fmt::format("{} rows: a GEMM takes 0 to 2^31 - 1", call.m));
  const auto rows = static_cast<std::size_t>(call.m);
  const std::size_t a_bytes = rows * static_cast<std::size_t>(weights_->k());
  const std::size_t out_bytes =
      rows * static_cast<std::size_t>(weights_->n()) * ir::size_of(desc_.out_type);
  const auto optional = [&](_cl_mem* memory, std::size_t bytes, const char* name) {
    return memory ? opencl::borrow(device, memory, 0, bytes, name) : opencl::Buffer();
  };
  const opencl::Buffer a = opencl::borrow(device, call.a, call.a_offset, a_bytes, "a");
  const opencl::Buffer out = opencl::borrow(device, call.out, call.out_offset, out_bytes, "out");
  const opencl::Buffer a_scale = optional(call.a_scale, sizeof(float), "a_scale");
  const opencl::Buffer a_zero_point = optional(call.a_zero_point, 1, "a_zero_point");
  const opencl::Buffer row_scales = optional(call.row_scales, rows * sizeof(float), "row_scales");
  if (opencl::overlap(call.a, call.a_offset, a_bytes, call.out, call.out_offset, out_bytes))
    throw Error("a and out overlap; a GEMM cannot run in place");
  if (rows == 0) return opencl::mark(command);

  const std::lock_guard lock(mutex_);
  const auto m = static_cast<std::int32_t>(call.m);
  const ir::Bindings sizes{{kRows, call.m}};
  const plan::StepKernel& launch = plan::chosen_kernel(step_, sizes, device->info());
  opencl::Kernel kernel = launch.kernel;  // a handle
  const opencl::Grid grid = launch_grid(device->queue(), launch, sizes);

  opencl::Command last = command;
  opencl::EventHandle summed;
  _cl_event* event = nullptr;
  opencl::Buffer sums;
  if (row_sums_) {
    sums = queue_row_sums(a, a_zero_point, m, {command.queue, command.after, &event});
    summed = opencl::adopt(event);
    last.after = {&event, 1};
  }
  GemmArguments arguments = base_arguments();
  arguments.M = m;
  arguments.a = a;
  arguments.out = out;
  arguments.x_scale = a_scale;
  arguments.x_zero_point = a_zero_point;
  arguments.row_sums = sums;
  arguments.row_scale = row_scales;
  kernels::set(kernel, arguments);
  opencl::launch(kernel, grid.global, grid.local, last);
  // The kernel keeps nothing of the caller's memory: views would hold buffers that were released.
  arguments.a = arguments.out = arguments.x_scale = arguments.x_zero_point = arguments.row_sums =
      arguments.row_scale = nullptr;
  kernels::set(kernel, arguments);
}

}  // namespace bertcl::runtime
