// SPDX-License-Identifier: Apache-2.0
// The C interface of GEMMs.
#include "bertcl/gemm.h"

#include <memory>
#include <span>
#include <utility>

#include "api/c_boundary.hpp"
#include "bertcl/error.hpp"
#include "runtime/gemm.hpp"
#include "support/fail.hpp"

struct bertcl_gemm_context {
  std::shared_ptr<const bertcl::runtime::GemmContext> context;
};

struct bertcl_gemm_weights {
  std::shared_ptr<const bertcl::runtime::GemmWeights> weights;
};

struct bertcl_gemm {
  bertcl::runtime::Gemm gemm;
};

namespace {

namespace c = bertcl::c;
using bertcl::runtime::Gemm;
using bertcl::runtime::GemmContext;
using bertcl::runtime::GemmWeights;

static_assert(BERTCL_I8 == static_cast<int>(bertcl::ir::DType::i8) &&
              BERTCL_BOOL == static_cast<int>(bertcl::ir::DType::boolean));

/// False where pointer and count do not go together.
template <class T>
bool span_of(const T* values, std::int64_t count, std::span<const T>& span) {
  if (count < 0 || (values == nullptr) != (count == 0)) return false;
  span = {values, static_cast<std::size_t>(count)};
  return true;
}

/// Null where there is none of that number.
const char* name_of_activation(std::int32_t activation) {
  constexpr const char* names[] = {"", "gelu", "gelu_tanh", "relu", "tanh"};
  static_assert(BERTCL_ACTIVATION_GELU == 1 && BERTCL_ACTIVATION_TANH == 4);
  const bool is_known = activation >= 0 && activation <= BERTCL_ACTIVATION_TANH;
  return is_known ? names[activation] : nullptr;
}

bool is_type(std::int32_t type) { return type >= BERTCL_F32 && type <= BERTCL_BOOL; }

}  // namespace

bertcl_status bertcl_gemm_context_create(cl_command_queue queue, const bertcl_gemm_options* options,
                                         bertcl_gemm_context** context) {
  if (!queue || !context) return c::refuse("queue and context must not be NULL");
  *context = nullptr;
  return c::guarded([&] {
    const bertcl_gemm_options given = c::read_options(options);
    const char* disabled = given.disable_kernels ? given.disable_kernels : "";
    *context = new bertcl_gemm_context{std::make_shared<const GemmContext>(queue, disabled)};
  });
}

void bertcl_gemm_context_free(bertcl_gemm_context* context) { delete context; }

bertcl_status bertcl_gemm_weights_create(bertcl_gemm_context* context,
                                         const bertcl_gemm_weights_desc* desc,
                                         bertcl_gemm_weights** weights) {
  if (weights) *weights = nullptr;
  if (!context || !weights) return c::refuse("context and weights must not be NULL");
  return c::guarded([&] {
    const bertcl_gemm_weights_desc given = c::read(desc, "desc");
    bertcl::runtime::GemmWeightsDesc all{.k = given.k,
                                         .n = given.n,
                                         .data = given.data,
                                         .buffer = given.buffer,
                                         .offset = given.offset,
                                         .transposed = given.transposed != 0};
    if (!span_of(given.scales, given.scale_count, all.scales) ||
        !span_of(given.zero_points, given.zero_point_count, all.zero_points))
      throw bertcl::Error(
          "scales and scale_count, and zero_points and zero_point_count, must be set together");
    *weights = new bertcl_gemm_weights{std::make_shared<const GemmWeights>(context->context, all)};
  });
}

size_t bertcl_gemm_weights_bytes(const bertcl_gemm_weights* weights) {
  return weights ? weights->weights->bytes() : 0;
}

void bertcl_gemm_weights_free(bertcl_gemm_weights* weights) { delete weights; }

bertcl_status bertcl_gemm_create(bertcl_gemm_weights* weights, const bertcl_gemm_desc* desc,
                                 bertcl_gemm** gemm) {
  if (gemm) *gemm = nullptr;
  if (!weights || !gemm) return c::refuse("weights and gemm must not be NULL");
  return c::guarded([&] {
    const bertcl_gemm_desc given = c::read(desc, "desc");
    const char* activation = name_of_activation(given.activation);
    if (!activation)
      bertcl::fail("activation is {}, expected 0 to {}", static_cast<int>(given.activation),
                   static_cast<int>(BERTCL_ACTIVATION_TANH));
    for (const auto& [field, type] :
         {std::pair("a_type", given.a_type), std::pair("out_type", given.out_type)})
      if (!is_type(type))
        bertcl::fail("{} is {}, expected {} to {}", field, static_cast<int>(type),
                     static_cast<int>(BERTCL_F32), static_cast<int>(BERTCL_BOOL));
    bertcl::runtime::GemmDesc all{.a_type = static_cast<bertcl::ir::DType>(given.a_type),
                                  .out_type = static_cast<bertcl::ir::DType>(given.out_type),
                                  .a_zero_point = given.a_zero_point,
                                  .a_scale = given.a_scale == 0 ? 1 : given.a_scale};
    if (!span_of(given.out_scales, given.out_scale_count, all.out_scales) ||
        !span_of(given.out_zero_points, given.out_zero_point_count, all.out_zero_points))
      throw bertcl::Error(
          "out_scales and out_scale_count, and out_zero_points and out_zero_point_count, must be "
          "set together");
    if (given.bias) all.bias = {given.bias, static_cast<std::size_t>(weights->weights->n())};
    all.activation = activation;
    *gemm = new bertcl_gemm{Gemm(weights->weights, all)};
  });
}

void bertcl_gemm_free(bertcl_gemm* gemm) { delete gemm; }

bertcl_status bertcl_gemm_enqueue(bertcl_gemm* gemm, cl_command_queue queue,
                                  const bertcl_gemm_args* args, cl_uint wait_count,
                                  const cl_event* wait_list, cl_event* event) {
  if (!gemm || !queue) return c::refuse("gemm and queue must not be NULL");
  if ((wait_list == nullptr) != (wait_count == 0))
    return c::refuse("wait_list and wait_count must be set together");
  return c::guarded([&] {
    const bertcl_gemm_args given = c::read(args, "args");
    if (!given.a || !given.out) throw bertcl::Error("a and out must not be NULL");
    gemm->gemm.enqueue({.m = given.m,
                        .a = given.a,
                        .a_offset = given.a_offset,
                        .out = given.out,
                        .out_offset = given.out_offset,
                        .a_scale = given.a_scale,
                        .a_zero_point = given.a_zero_point,
                        .row_scales = given.row_scales},
                       {queue, {wait_list, wait_count}, event});
  });
}

bertcl_status bertcl_gemm_get_info(const bertcl_gemm* gemm, int64_t m, bertcl_gemm_info* info) {
  if (!gemm || !info) return c::refuse("gemm and info must not be NULL");
  if (m < 0) return c::refuse("m is negative");
  return c::guarded([&] {
    const bertcl_gemm_info all{sizeof(all), gemm->gemm.variant(m).c_str(),
                               gemm->gemm.why_not_faster().c_str()};
    c::write(all, info, "info");
  });
}
