// SPDX-License-Identifier: Apache-2.0
// Speed of every attention variant (GOP/s) and of the row kernels (GB/s) over the shapes of BERT.
//
//   build/bench/bench_attention --benchmark_filter=s8_x86_vnni/ --benchmark_out=attention.json
#include <fmt/format.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "bench/kernel_bench.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/attention.hpp"
#include "kernels/contracts/quantize.hpp"
#include "kernels/contracts/rows.hpp"
#include "kernels/variants.hpp"
#include "opencl/device/capabilities.hpp"

namespace {

using namespace bertcl::opencl;
using namespace bertcl::bench;

using bertcl::kernels::AttentionVariant;

struct Variant {
  std::string name;
  AttentionVariant kernel;
  bool integer;
  Defines defines = {};
  int unnormalized = 0;  // normalization after p v
  int window = 0;        // keys before and after a row that it attends to; 0: all
};

/// Those whose work-items take rows, in their modes.
std::vector<Variant> variants() {
  std::vector<Variant> list;
  for (const AttentionVariant& kernel : bertcl::kernels::attention_s8_variants()) {
    if (kernel.uses_work_groups) continue;
    const std::string name = "s8_" + kernel.name;
    list.push_back({name, kernel, true});
    if (kernel.takes_lanes) list.push_back({name + "_8", kernel, true, {{"LANES", 8}}});
    if (kernel.takes_blocks) list.push_back({name + "_unnormalized", kernel, true, {}, 1});
  }
  for (const AttentionVariant& kernel : bertcl::kernels::attention_f32_variants()) {
    if (kernel.uses_work_groups) continue;
    const std::string name = "f32_" + kernel.name;
    list.push_back({name, kernel, false});
    if (kernel.takes_lanes) list.push_back({name + "_8", kernel, false, {{"LANES", 8}}});
    if (kernel.takes_blocks) list.push_back({name + "_window64", kernel, false, {}, 0, 64});
  }
  return list;
}

// (batch, sequence, rows of a work-item): the last says how well small shapes fill many cores.
constexpr std::array<std::array<int, 3>, 10> kShapes = {{{1, 16, 32},
                                                         {1, 128, 32},
                                                         {1, 128, 128},
                                                         {1, 384, 32},
                                                         {1, 384, 128},
                                                         {8, 128, 128},
                                                         {8, 384, 64},
                                                         {8, 384, 384},
                                                         {32, 128, 128},
                                                         {32, 384, 384}}};
constexpr int kF32 = 0, kU8 = 1, kS8 = 2;

Buffer random_floats(size_t count) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return upload(values);
}

// `work` in units per launch.
void measure(benchmark::State& state, const Kernel& kernel, std::array<size_t, 3> grid, double work,
             const char* unit) {
  const int launches = enough_launches(kernel, grid);
  double seconds = 0;
  const std::clock_t start = std::clock();
  for (auto _ : state) {
    const double elapsed = seconds_of(kernel, grid, launches);
    seconds += elapsed;
    state.SetIterationTime(elapsed);
  }
  const double count = static_cast<double>(launches) * static_cast<double>(state.iterations());
  state.counters[unit] = work * count / seconds * 1e-9;
  // Of a driver in this process. Says more than the wall clock where others use the machine too.
  const double cpu_seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  state.counters[std::string(unit) + "_per_core"] = work * count / cpu_seconds * 1e-9;
  state.counters["us"] = seconds / count * 1e6;
}

// Packed QKV in, one sequence length; operations are those of the two MatMuls without a window.
void attention(benchmark::State& state, const Variant& variant, int batch, int seq, int heads,
               int head_size, int block_rows) {
  if (!bertcl::kernels::why_not(variant.kernel.needs, context->info(), context->capabilities())
           .reason.empty()) {
    state.SkipWithError("the device lacks the instructions");
    return;
  }
  const int hidden = heads * head_size, stride = 3 * hidden;
  const size_t count =
      static_cast<size_t>(batch) * static_cast<size_t>(seq) * static_cast<size_t>(stride);
  std::vector<int32_t> offsets;
  for (int i = 0; i <= batch; ++i) offsets.push_back(i * seq);
  const Buffer qkv = variant.integer ? random_bytes(count) : random_floats(count);
  const Buffer seq_offsets = upload(offsets), out = context->allocate(count / 3 * 4);
  Kernel kernel = context->kernel(
      variant.kernel.program, variant.integer ? "attention_s8" : "attention_f32", variant.defines);
  const auto set = [&](auto a) {  // with what the two contracts share
    a.q = a.k = a.v = qkv;
    a.q_stride = a.k_stride = a.v_stride = stride;
    a.q_offset = 0;
    a.k_offset = hidden;
    a.v_offset = 2 * hidden;
    a.out = out;
    a.seq_offsets = seq_offsets;
    a.use_mask = 0;
    a.heads = heads;
    a.head_size = head_size;
    a.block_rows = block_rows;
    a.window = variant.window;
    bertcl::kernels::set(kernel, a);
  };
  if (variant.integer)
    set(bertcl::kernels::AttentionS8<KernelArgument>{.q_type = kU8,
                                                     .q_zero_point = 119,
                                                     .k_type = kU8,
                                                     .k_zero_point = 121,
                                                     .v_type = kU8,
                                                     .v_zero_point = 128,
                                                     .out_type = kU8,
                                                     .out_inv_scale = 40.0f,
                                                     .out_zero_point = 128,
                                                     .qk_scale = 2e-5f,
                                                     .p_inv_scale = 255.0f,
                                                     .p_max = 255,
                                                     .unnormalized = variant.unnormalized,
                                                     .pv_scale = 1e-4f,
                                                     .score_inv_scale = 0.0f,
                                                     .score_low = 0,
                                                     .score_high = 0});
  else
    set(bertcl::kernels::AttentionFloat<KernelArgument>{.scale = 0.125f});
  measure(
      state, kernel,
      {ceil_div<size_t>(seq, block_rows), static_cast<size_t>(heads), static_cast<size_t>(batch)},
      4.0 * batch * seq * seq * hidden, "gops");
}

constexpr int kRows = 3072, kHidden = 768, kCount = kRows * kHidden, kRowsPerItem = 8,
              kChunk = 16384;

void add_norm(benchmark::State& state, int type, bool quantized) {
  const size_t bytes = type == kF32 ? 4 : 1;
  const Buffer x = type == kF32 ? random_floats(kCount) : random_bytes(kCount);
  const Buffer weights = random_floats(kHidden), out = context->allocate(4 * kCount);
  const Buffer none;
  Kernel kernel = context->kernel("add_norm", "add_norm");
  bertcl::kernels::set(kernel,
                       bertcl::kernels::AddNorm<KernelArgument>{.x = x,
                                                                .x_type = type,
                                                                .x_scale = weights,
                                                                .x_zero_point = weights,
                                                                .residual = x,
                                                                .residual_type = type,
                                                                .residual_scale = weights,
                                                                .residual_zero_point = weights,
                                                                .gamma = weights,
                                                                .beta = weights,
                                                                .eps = 1e-12f,
                                                                .rms = 0,
                                                                .out = quantized ? none : out,
                                                                .q = quantized ? out : none,
                                                                .q_type = kS8,
                                                                .q_inv_scale = weights,
                                                                .q_zero_point = weights,
                                                                .r_type = 0,
                                                                .rows = kRows,
                                                                .hidden = kHidden,
                                                                .rows_per_item = kRowsPerItem});
  measure(state, kernel, {ceil_div(kRows, kRowsPerItem), 1, 1},
          static_cast<double>(kCount) * static_cast<double>(2 * bytes + (quantized ? 1 : 4)),
          "gbps");
}

void embed_norm(benchmark::State& state) {
  const int words = 30522;
  std::vector<int32_t> ids(kRows), positions(kRows);
  for (size_t i = 0; i < kRows; ++i) {
    ids[i] = static_cast<int32_t>(i * 7919 % words);
    positions[i] = static_cast<int32_t>(i % 384);
  }
  const Buffer table = random_floats(static_cast<size_t>(words) * kHidden),
               weights = random_floats(kHidden);
  const Buffer out = context->allocate(4 * kCount), bytes = context->allocate(kCount);
  const Buffer error = upload(std::vector<int32_t>{0});
  Kernel kernel = context->kernel("embed_norm", "embed_norm");
  bertcl::kernels::set(kernel,
                       bertcl::kernels::EmbedNorm<KernelArgument>{.input_ids = upload(ids),
                                                                  .position_ids = upload(positions),
                                                                  .word_table = table,
                                                                  .word_rows = words,
                                                                  .position_table = table,
                                                                  .position_rows = 512,
                                                                  .type_table = table,
                                                                  .type_rows = 2,
                                                                  .table_type = kF32,
                                                                  .gamma = weights,
                                                                  .beta = weights,
                                                                  .eps = 1e-12f,
                                                                  .out = out,
                                                                  .q = bytes,
                                                                  .q_type = kS8,
                                                                  .q_inv_scale = weights,
                                                                  .q_zero_point = weights,
                                                                  .r_type = 0,
                                                                  .error = error,
                                                                  .tokens = kRows,
                                                                  .hidden = kHidden,
                                                                  .rows_per_item = kRowsPerItem});
  measure(state, kernel, {ceil_div(kRows, kRowsPerItem), 1, 1}, 13.0 * kCount, "gbps");
}

void quantize(benchmark::State& state) {
  const Buffer x = random_floats(kCount), y = context->allocate(kCount);
  const Buffer scale = upload(std::vector<float>{0.03f});
  Kernel kernel = context->kernel("quantize", "quantize");
  bertcl::kernels::set(kernel, bertcl::kernels::Quantize<KernelArgument>{.x = x,
                                                                         .y = y,
                                                                         .y_type = kS8,
                                                                         .scales = scale,
                                                                         .count = kCount,
                                                                         .axis = 1,
                                                                         .inner = kCount,
                                                                         .chunk = kChunk});
  measure(state, kernel, {ceil_div(kCount, kChunk), 1, 1}, 5.0 * kCount, "gbps");
}

void softmax(benchmark::State& state) {
  const int rows = kCount / 384;
  const Buffer x = random_floats(kCount), y = context->allocate(4 * kCount);
  Kernel kernel = context->kernel("softmax", "softmax_f32");
  bertcl::kernels::set(
      kernel,
      bertcl::kernels::SoftmaxF32<KernelArgument>{
          .x = x, .out = y, .rows = rows, .size = 384, .logarithm = 0, .rows_per_item = 32});
  measure(state, kernel, {ceil_div(rows, 32), 1, 1}, 8.0 * kCount, "gbps");
}

void register_all() {
  for (const Variant& variant : variants())
    for (const auto& [batch, seq, block_rows] : kShapes) {
      if (!variant.kernel.takes_blocks && batch > 1) continue;  // the reference takes seconds
      for (const auto& [heads, head_size] : {std::array{12, 64}, std::array{12, 32}}) {
        const std::array shape = {batch, seq, heads, head_size, block_rows};
        add(fmt::format("{}/B{}/S{}/D{}/rows{}", variant.name, batch, seq, head_size, block_rows),
            [variant, shape](benchmark::State& state) {
              attention(state, variant, shape[0], shape[1], shape[2], shape[3], shape[4]);
            });
      }
    }
  const std::string size = fmt::format("/{}x{}", kRows, kHidden);
  add("add_norm_f32" + size, [](benchmark::State& state) { add_norm(state, kF32, false); });
  add("add_norm_s8_quantized" + size, [](benchmark::State& state) { add_norm(state, kS8, true); });
  add("embed_norm" + size, embed_norm);
  add("quantize" + size, quantize);
  add("softmax" + size, softmax);
}

}  // namespace

int main(int argc, char** argv) { return main_of(argc, argv, register_all); }
