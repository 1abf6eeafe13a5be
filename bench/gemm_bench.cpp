// SPDX-License-Identifier: Apache-2.0
// Speed of every matrix multiplication variant over the shapes of BERT, in GOP/s and as a share of
// the peak of the instruction that the variant is made of, measured on the same threads in the same
// run.
//
//   build/bench/bench_gemm --benchmark_filter=x86_vnni/M1024 --benchmark_out=gemm.json
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/kernel_bench.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/variants.hpp"
#include "opencl/device/capabilities.hpp"
#include "plan/gemm_s8.hpp"
#include "tools/measure/peaks.hpp"

namespace {

using namespace bertcl::opencl;
using namespace bertcl::bench;

using bertcl::kernels::GemmVariant;

struct Variant {
  std::string name = {};
  GemmVariant tiles = {};
  const char* kernel = "";
  bool integer = false, half = false;  // weights

  /// The kernel of peak.cl with its instruction.
  const bertcl::tools::PeakKernel& peak() const {
    const auto needs = [&](auto... flag) {
      return (std::ranges::count(tiles.needs.one_of, flag) + ...) > 0;
    };
    if (integer && needs(&Capabilities::avx512_vnni)) return bertcl::tools::kPeakVnni;
    if (integer && needs(&Capabilities::avx_vnni, &Capabilities::avx2))
      return bertcl::tools::kPeakAvx2;
    return bertcl::tools::kPeakF32;
  }
};

/// Those whose work-items make tiles.
std::vector<Variant> variants() {
  std::vector<Variant> list;
  const auto add = [&](const std::string& type, std::span<const GemmVariant> table,
                       const Variant& of) {
    const auto add_one = [&](const std::string& name, GemmVariant tiles) {
      Variant variant = of;
      variant.name = type + "_" + name;
      variant.tiles = std::move(tiles);
      if (of.half) variant.tiles.defines["B_HALF"] = 1;
      list.push_back(std::move(variant));
    };
    for (const GemmVariant& variant : table) {
      if (variant.items > 1) continue;
      add_one(variant.name, variant);
      if (!variant.small_m_program.empty()) add_one(variant.small_m_name(), variant.small_m());
    }
  };
  add("s8", bertcl::kernels::gemm_s8_variants(), {.kernel = "gemm_s8", .integer = true});
  add("f32", bertcl::kernels::gemm_f32_variants(), {.kernel = "gemm_f32"});
  add("f16", bertcl::kernels::gemm_f32_variants(), {.kernel = "gemm_f32", .half = true});
  return list;
}

constexpr std::array kRows = {1, 16, 32, 128, 1024, 3072};
// (N, K) of the GEMMs of BERT-base and of a model with hidden size 384.
constexpr std::array<std::array<int, 2>, 10> kShapes = {{{768, 768},
                                                         {2304, 768},
                                                         {3072, 768},
                                                         {768, 3072},
                                                         {384, 384},
                                                         {1152, 384},
                                                         {1536, 384},
                                                         {384, 1536},
                                                         {2, 384},
                                                         {2, 768}}};
constexpr int kGelu = 1, kOutU8 = 1;

Buffer constant(size_t count, float value) { return upload(std::vector<float>(count, value)); }

/// Prepacked int8 weights, normally distributed as those of models are: four standard deviations
/// reach 127.
std::pair<Buffer, Buffer> prepacked_weights(const GemmVariant& variant, int N, int K) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, 127.0f / 4);
  std::vector<int8_t> weights(static_cast<size_t>(N) * K);
  for (int8_t& w : weights)
    w = static_cast<int8_t>(std::clamp(std::nearbyint(normal(random)), -127.0f, 127.0f));
  bertcl::plan::GemmS8 gemm;
  gemm.variant = variant;
  gemm.tunable.n = N, gemm.tunable.k = K;
  bertcl::plan::PrepackedS8 prepacked = bertcl::plan::allocate_prepacked(*context, gemm);
  Kernel kernel = context->kernel("prepack_s8", "prepack_s8",
                                  {{"ITEM_COLUMNS", 0}, {"ORDER_BLOCK", variant.order_block}});
  bertcl::plan::bind_prepack(kernel, prepacked, gemm, N, 0);
  const Buffer source = upload(weights);
  kernel.set(0, source);
  context->queue().launch_items(kernel, {bertcl::plan::prepack_items(0, variant.panel, N, 0), 1, 1},
                                "prepack");
  context->queue().finish();
  return {std::move(prepacked.panels), std::move(prepacked.column_sums)};
}

// One GEMM with its epilogue: int8 to u8, fp32 to fp32, both with bias, the one whose N is larger
// than K (the first of the feed-forward block) with GELU.
void run(benchmark::State& state, const Variant& variant, int M, int N, int K) {
  if (!bertcl::kernels::why_not(variant.tiles.needs, context->info(), context->capabilities())
           .reason.empty()) {
    state.SkipWithError("the device lacks the instructions");
    return;
  }
  const GemmVariant& tiles = variant.tiles;
  const int activation = N == 4 * K ? kGelu : 0;
  const size_t weights =
      ceil_div(N, tiles.panel) * tiles.panel * ceil_div(K, tiles.k_group) * tiles.k_group;
  const Buffer bias = constant(N, 0.5f), out = context->allocate(4ul * M * N);
  Kernel kernel = context->kernel(tiles.program, variant.kernel, tiles.defines);
  Buffer a, b, column_sums, scale, inv_scale, zero_point;
  if (variant.integer) {
    a = random_bytes(static_cast<size_t>(M) * K);
    std::tie(b, column_sums) = prepacked_weights(tiles, N, K);
    scale = constant(N, 1e-5f), inv_scale = constant(N, 30.0f), zero_point = constant(N, 128.0f);
    bertcl::kernels::set(kernel,
                         bertcl::kernels::GemmS8<KernelArgument>{.a = a,
                                                                 .b = b,
                                                                 .column_sums = column_sums,
                                                                 .scale = scale,
                                                                 .bias = bias,
                                                                 .out_inv_scale = inv_scale,
                                                                 .out_zero_point = zero_point,
                                                                 .out = out,
                                                                 .M = M,
                                                                 .N = N,
                                                                 .K = K,
                                                                 .zero_point = 128,
                                                                 .a_signed = 0,
                                                                 .has_bias = 1,
                                                                 .activation = activation,
                                                                 .out_type = kOutU8});
  } else {
    a = constant(static_cast<size_t>(M) * K, 0.25f);
    b = variant.half ? random_bytes(2 * weights) : constant(weights, 0.125f);
    if (variant.half) b.fill(0x30);  // 0.13: finite
    bertcl::kernels::set(kernel,
                         bertcl::kernels::GemmF32<KernelArgument>{.a = a,
                                                                  .b = b,
                                                                  .bias = bias,
                                                                  .out = out,
                                                                  .M = M,
                                                                  .N = N,
                                                                  .K = K,
                                                                  .has_bias = 1,
                                                                  .activation = activation});
  }
  const std::array<size_t, 3> grid = {ceil_div<size_t>(M, tiles.tile_rows),
                                      ceil_div<size_t>(N, tiles.tile_columns), 1};
  const int launches = enough_launches(kernel, grid);
  // The counters tell of the fastest repetition: other load on the machine only ever adds time.
  double best = 1e9;
  for (auto _ : state) {
    const double elapsed = seconds_of(kernel, grid, launches);
    best = std::min(best, elapsed / launches);
    state.SetIterationTime(elapsed);
  }
  const double gops = 2e-9 * M * N * K / best;
  state.counters["gops"] = gops;
  state.counters["share_of_peak"] = gops / bertcl::tools::peak_gops(*context, variant.peak());
  state.counters["us"] = best * 1e6;
}

void register_all() {
  namespace tools = bertcl::tools;
  for (const auto& peak : {tools::kPeakF32, tools::kPeakBf16, tools::kPeakAvx2, tools::kPeakVnni})
    if (peak.runs_with(context->capabilities()))
      benchmark::AddCustomContext(std::string(peak.name) + "_gops",
                                  fmt::format("{:.0f}", tools::peak_gops(*context, peak)));
  for (const Variant& variant : variants())
    for (int M : kRows) {
      if (M > 128 && variant.tiles.is_reference) continue;  // seconds per GEMM
      for (const auto& [N, K] : kShapes) {
        const int n = N, k = K;
        add(fmt::format("{}/M{}/N{}/K{}", variant.name, M, N, K),
            [variant, M, n, k](benchmark::State& state) { run(state, variant, M, n, k); });
      }
    }
}

}  // namespace

int main(int argc, char** argv) { return main_of(argc, argv, register_all); }
