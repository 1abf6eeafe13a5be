// SPDX-License-Identifier: Apache-2.0
// The variants of the GEMMs, how each wants its operands, and one way to run them.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "bertcl/error.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/prepack.hpp"
#include "kernels/tiles.hpp"
#include "tests/kernels_cl/device_test.hpp"
#include "tests/kernels_cl/products.hpp"

namespace bertcl::tests {

/// A program of the table of variants with options, and the tiles that follow.
struct GemmKernel {
  std::string program;
  opencl::Defines defines;
  bool opencl::Capabilities::*needs;  ///< null: runs everywhere
  int tile_rows, panel, group;
  int items, columns;   ///< of a work-group; 1 item: it makes a tile alone
  int order_block = 0;  ///< of the weights' rows

  std::string name() const {
    std::string text = program;
    for (const auto& [key, value] : defines) text += "_" + key + std::to_string(value);
    return text;
  }
  /// Why the device of the tests cannot run it; empty if it can.
  std::string cannot_run() const {
    const std::string reason = lacks(needs);
    return reason.empty() ? "" : name() + " " + reason;
  }
};

/// Tests of each variant that the device can run.
class GemmTest : public testing::TestWithParam<GemmKernel> {
 protected:
  void SetUp() override {
    if (const auto reason = GetParam().cannot_run(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

/// The variant in the tables with this program and, if they are given, LANES.
inline kernels::GemmVariant gemm_variant_of_program(const std::string& program,
                                                    const opencl::Defines& defines = {}) {
  std::vector<kernels::GemmVariant> all{kernels::gemm_f16_variant(), kernels::gemm_bf16_variant()};
  for (const auto& table : {kernels::gemm_s8_variants(), kernels::gemm_f32_variants()})
    all.insert(all.end(), table.begin(), table.end());
  const auto lanes = defines.find("LANES");
  for (const kernels::GemmVariant& variant : all) {
    if (lanes != defines.end() && variant.defines != opencl::Defines{*lanes}) continue;
    if (variant.program == program) return variant;
    if (variant.small_m_program == program) return variant.small_m();
  }
  throw Error("unknown GEMM program '" + program + "'");
}

inline GemmKernel gemm_kernel(const std::string& program, const opencl::Defines& defines,
                              bool opencl::Capabilities::*needs) {
  const kernels::GemmVariant v = gemm_variant_of_program(program, defines);
  const auto given = [&](const char* name, int default_value) {
    const auto it = defines.find(name);
    return it == defines.end() ? default_value : it->second;
  };
  return {program,      defines,   needs,   given("TILE_M", v.tile_rows),
          v.panel,      v.k_group, v.items, given("TILE_N", v.tile_columns),
          v.order_block};
}

/// The same where the program needs what its variant does. Programs of work-groups run everywhere:
/// their instructions are emulated unless an option asks for them.
inline GemmKernel gemm_kernel(const std::string& program, const opencl::Defines& defines = {}) {
  const kernels::GemmVariant v = gemm_variant_of_program(program, defines);
  return gemm_kernel(program, defines,
                     v.items > 1 || v.needs.one_of.empty() ? nullptr : v.needs.one_of.front());
}

/// A program of matrix units, for each unit: emulated in plain OpenCL C, and itself where `native`
/// gives the capability that this takes.
template <typename Native>
void add_matrix_kernels(std::vector<GemmKernel>& list, const char* program, const Native& native) {
  const bool halves = std::string_view(program) == "gemm_f16_matrix";
  for (const opencl::MatrixUnit& unit : opencl::matrix_units()) {
    if (!halves && unit.flag == &opencl::Capabilities::ptx_mma_s8) continue;  // gemm_s8_mma
    const bool is_dpas = unit.flag == &opencl::Capabilities::intel_dpas_8 ||
                         unit.flag == &opencl::Capabilities::intel_dpas_16;
    for (const auto& [rows, columns] : {std::array{128, 128}, {64, 128}, {64, 64}, {32, 64}}) {
      const int largest = unit.flag == &opencl::Capabilities::amd_wmma ? 64 : 128;
      const bool is_largest = rows == largest && columns == 128;
      if (rows > largest || (halves && !is_largest)) continue;
      opencl::Defines defines{{"MATRIX_UNIT", unit.code}, {"TILE_M", rows}, {"TILE_N", columns}};
      const auto add = [&](bool opencl::Capabilities::*flag) {
        GemmKernel kernel = gemm_kernel(program, defines, flag);
        if (is_dpas && rows < 128) kernel.items = rows * columns / 32;
        list.push_back(std::move(kernel));
      };
      add(nullptr);
      defines["MATRIX_EMULATED"] = 0;
      if (auto flag = native(unit)) add(flag);
    }
  }
  if (halves) list.push_back(gemm_kernel(program, {{"COPY_ASYNC", 1}}));
}

inline const std::vector<GemmKernel>& gemm_s8_variants() {
  using opencl::Capabilities;
  static const std::vector<GemmKernel> variants = [] {
    std::vector<GemmKernel> list = {
        gemm_kernel("gemm_s8_ref"),
        gemm_kernel("gemm_s8_portable"),
        gemm_kernel("gemm_s8_x86_avx2"),
        gemm_kernel("gemm_s8_x86_vnni"),
        gemm_kernel("gemm_s8_x86_vnni_small_m"),
        gemm_kernel("gemm_s8_x86_avx_vnni"),
        gemm_kernel("gemm_s8_x86_avx_vnni", {{"EVEX", 1}}, &Capabilities::avx512_vnni),
        gemm_kernel("gemm_s8_arm_sdot", {{"SDOT_EMULATED", 1}}, nullptr),
        gemm_kernel("gemm_s8_arm_sdot"),
        gemm_kernel("gemm_s8_dot4", {{"DOT4", 0}}),
        gemm_kernel("gemm_s8_dot4", {{"TILE_M", 32}, {"TILE_N", 64}}),
        gemm_kernel("gemm_s8_dot4", {{"DOT4", 1}}, &Capabilities::int_dot_product),
        gemm_kernel("gemm_s8_dot4", {{"DOT4", 2}}, &Capabilities::ptx_dp4a),
    };
    add_matrix_kernels(list, "gemm_s8_matrix", [](const auto& unit) { return unit.flag; });
    for (const auto& [rows, columns] : {std::array{128, 128}, {64, 128}, {64, 64}, {32, 64}}) {
      opencl::Defines defines{{"TILE_M", rows}, {"TILE_N", columns}};
      list.push_back(gemm_kernel("gemm_s8_mma", defines));
      defines["COPY_ASYNC"] = 2, defines["MATRIX_EMULATED"] = 0;
      list.push_back(gemm_kernel("gemm_s8_mma", defines, &Capabilities::ptx_cp_async));
    }
    const auto add_wgmma = [&](opencl::Defines defines) {
      list.push_back(gemm_kernel("gemm_s8_wgmma", defines));
      defines["COPY_ASYNC"] = 2, defines["MATRIX_EMULATED"] = 0;
      list.push_back(gemm_kernel("gemm_s8_wgmma", defines, &Capabilities::ptx_wgmma_s8));
    };
    for (const auto& [rows, columns] : {std::array{128, 256}, {128, 128}, {64, 128}, {64, 64}}) {
      opencl::Defines defines{{"TILE_M", rows}, {"TILE_N", columns}};
      add_wgmma(defines);
    }
    // What only tuning chooses.
    const kernels::GemmVariant& wgmma = gemm_variant_of_program("gemm_s8_wgmma");
    for (const kernels::TileOptions& options : wgmma.tuned_options)
      add_wgmma(kernels::with_options(wgmma, options).defines);
    return list;
  }();
  return variants;
}

inline const std::vector<GemmKernel>& gemm_f32_variants() {
  static const std::vector<GemmKernel> variants = [] {
    std::vector<GemmKernel> list;
    for (int half : {0, 1}) {
      list.push_back(gemm_kernel("gemm_f32_ref", {{"B_HALF", half}}));
      list.push_back(gemm_kernel("gemm_f32_portable", {{"B_HALF", half}}));
      for (const auto& [rows, columns] : {std::array{128, 128}, {64, 128}, {64, 64}, {32, 64}})
        list.push_back(gemm_kernel("gemm_f32_group",
                                   {{"B_HALF", half}, {"TILE_M", rows}, {"TILE_N", columns}}));
      for (int lanes : {8, 16})
        for (const char* program : {"gemm_f32_x86", "gemm_f32_x86_small_m"})
          list.push_back(gemm_kernel(program, {{"B_HALF", half}, {"LANES", lanes}}));
      list.push_back(
          gemm_kernel("gemm_f32_x86", {{"B_HALF", half}, {"LANES", 16}, {"PREFETCH", 0}}));
    }
    return list;
  }();
  return variants;
}

/// Operands rounded to f16, for the matrix units, emulated or not.
inline const std::vector<GemmKernel>& gemm_f16_variants() {
  static const std::vector<GemmKernel> variants = [] {
    std::vector<GemmKernel> list;
    const opencl::MatrixUnit* found = opencl::matrix_unit_of(device().capabilities());
    add_matrix_kernels(list, "gemm_f16_matrix", [&](const opencl::MatrixUnit& unit) {
      return found && found->code == unit.code ? &opencl::Capabilities::matrix_f16 : nullptr;
    });
    return list;
  }();
  return variants;
}

/// Operands rounded to bf16; a work-item makes ITEM_PANELS panels.
inline const GemmKernel& gemm_bf16_variant() {
  static const GemmKernel variant = gemm_kernel("gemm_bf16_x86");
  return variant;
}

// Codes of activation.clh.
constexpr int32_t kNone = 0, kGelu = 1, kGeluTanh = 2, kRelu = 3, kTanh = 4;

/// One int8 GEMM. `a` holds the bytes of u8 or s8; `w` is [K][N].
struct GemmS8Case {
  int M = 1, N = 1, K = 1;
  bool a_signed = false;
  int zero_point = 0;
  std::vector<uint8_t> a = {};
  std::vector<int8_t> w = {};
  std::vector<float> scale = {}, bias = {}, out_inv_scale = {}, out_zero_point = {};
  int32_t activation = kNone;
  std::vector<int32_t> w_zero_point = {};  // of each column; empty: 0
  std::vector<float> x_scale = {};         // one element: scale and zero point come from the device
  std::vector<float> row_scale = {};       // of each row; empty: 1

  std::string text() const {
    return "M " + std::to_string(M) + " N " + std::to_string(N) + " K " + std::to_string(K) +
           (a_signed ? " s8" : " u8") + " zero point " + std::to_string(zero_point) +
           " activation " + std::to_string(activation) +
           (w_zero_point.empty() ? "" : ", weights with zero points") +
           (x_scale.empty() ? "" : ", measured scale") +
           (row_scale.empty() ? "" : ", scales of rows");
  }
  int w_value(int k, int n) const {
    const int zero = w_zero_point.empty() ? 0 : w_zero_point[static_cast<size_t>(n)];
    return w[static_cast<size_t>(k) * N + n] - zero;
  }
  int a_value(int m, int k) const {
    const uint8_t byte = a[static_cast<size_t>(m) * K + k];
    return a_signed ? static_cast<int8_t>(byte) : byte;
  }
};

/// Sums of the rows of `a` minus the zero point, by row_sums.cl.
inline opencl::Buffer row_sums(const GemmS8Case& c, const opencl::Buffer& measured_zero_point) {
  opencl::Buffer sums = device().allocate(static_cast<size_t>(c.M) * sizeof(int32_t));
  run("row_sums", "row_sums", ceil_div(c.M, 4),
      kernels::RowSums<KernelArgument>{.a = upload(c.a),
                                       .a_type = c.a_signed ? kS8 : kU8,
                                       .zero_point = c.zero_point,
                                       .x_zero_point = measured_zero_point,
                                       .sums = sums,
                                       .M = c.M,
                                       .K = c.K,
                                       .rows_per_item = 4});
  return sums;
}

/// Weights on the device as `variant` wants them, made by prepack_s8.cl.
struct PackedS8 {
  opencl::Buffer panels, column_sums;
};

/// Calls pack(columns, n, first) for the parts into which `cuts` (ascending columns) divide w
/// [K][N].
template <typename T, typename Pack>
void for_each_part(const std::vector<T>& w, int N, int K, const std::vector<int>& cuts,
                   const Pack& pack) {
  int first = 0;
  for (size_t part = 0; part <= cuts.size(); ++part) {
    const int end = part < cuts.size() ? cuts[part] : N;
    std::vector<T> columns;
    for (int k = 0; k < K; ++k)
      columns.insert(columns.end(), w.begin() + static_cast<ptrdiff_t>(k) * N + first,
                     w.begin() + static_cast<ptrdiff_t>(k) * N + end);
    pack(columns, end - first, first);
    first = end;
  }
}

/// Work-items for columns first .. first + n - 1: one for each panel that holds one of them, or for
/// each `item_columns` columns of it.
inline size_t prepack_items(int n, int first, int panel, int item_columns = 0) {
  return static_cast<size_t>((first + n - 1) / panel - first / panel + 1) *
         static_cast<size_t>(item_columns ? panel / item_columns : 1);
}

inline PackedS8 prepack_s8(const std::vector<int8_t>& w, int N, int K, int panel, int group,
                           const std::vector<int>& cuts = {}, int item_columns = 0,
                           int order_block = 0) {
  const size_t panels = ceil_div(N, panel), groups = ceil_div(K, group);
  const size_t ordered = order_block ? groups + ceil_div(K, order_block) : 0;
  const size_t panel_bytes = panels * (panel * groups * group + ordered * sizeof(uint16_t));
  Output<int8_t> prepacked(panel_bytes);
  Output<int32_t> column_sums(N);
  auto kernel = device().kernel("prepack_s8", "prepack_s8",
                                {{"ITEM_COLUMNS", item_columns}, {"ORDER_BLOCK", order_block}});
  for_each_part(w, N, K, cuts, [&](const std::vector<int8_t>& part, int n, int first) {
    kernels::set(kernel, kernels::PrepackS8<KernelArgument>{.w = upload(part),
                                                            .panels = prepacked.buffer(),
                                                            .column_sums = column_sums.buffer(),
                                                            .n = n,
                                                            .K = K,
                                                            .panel = panel,
                                                            .group = group,
                                                            .first = first,
                                                            .N = N});
    run(kernel, prepack_items(n, first, panel, item_columns));
  });
  prepacked.values(), column_sums.values();  // check what lies past them
  const auto copy = [](const opencl::Buffer& from, size_t bytes) {
    opencl::Buffer to = device().allocate(bytes);
    to.copy_from(from, bytes);
    return to;
  };
  return {copy(prepacked.buffer(), panel_bytes), copy(column_sums.buffer(), N * sizeof(int32_t))};
}

/// Launches a work-item or a work-group for each tile of [M][N].
inline void run_tiles(const GemmKernel& variant, const opencl::Kernel& kernel, int M, int N) {
  const size_t rows = ceil_div(M, variant.tile_rows), columns = ceil_div(N, variant.columns);
  const auto items = static_cast<size_t>(variant.items);
  if (items == 1)
    run(kernel, rows, columns);
  else
    device().queue().launch(kernel, {items * rows, columns, 1}, {items, 1, 1});
}

template <typename T>
std::vector<T> run_gemm_s8(const GemmKernel& variant, const GemmS8Case& c, int32_t out_type) {
  const PackedS8 weights =
      prepack_s8(c.w, c.N, c.K, variant.panel, variant.group, {}, 0, variant.order_block);
  Output<T> out(static_cast<size_t>(c.M) * c.N);
  const auto vector = [](const std::vector<float>& values) {
    return values.empty() ? opencl::Buffer() : upload(values);
  };
  // A measured zero point stands in the buffer; the argument is wrong then.
  opencl::Buffer measured;
  if (!c.x_scale.empty()) measured = upload(std::vector{static_cast<uint8_t>(c.zero_point)});
  opencl::Buffer sums, w_zero;
  if (!c.w_zero_point.empty()) sums = row_sums(c, measured), w_zero = upload(c.w_zero_point);
  auto kernel = device().kernel(variant.program, "gemm_s8", variant.defines);
  kernels::set(kernel,
               kernels::GemmS8<KernelArgument>{.a = upload(c.a),
                                               .b = weights.panels,
                                               .column_sums = weights.column_sums,
                                               .scale = vector(c.scale),
                                               .bias = vector(c.bias),
                                               .out_inv_scale = vector(c.out_inv_scale),
                                               .out_zero_point = vector(c.out_zero_point),
                                               .out = out.buffer(),
                                               .M = c.M,
                                               .N = c.N,
                                               .K = c.K,
                                               .zero_point = c.x_scale.empty() ? c.zero_point : 77,
                                               .a_signed = c.a_signed ? 1 : 0,
                                               .has_bias = c.bias.empty() ? 0 : 1,
                                               .activation = c.activation,
                                               .out_type = out_type,
                                               .x_scale = vector(c.x_scale),
                                               .x_zero_point = measured,
                                               .row_sums = sums,
                                               .w_zero_point = w_zero,
                                               .row_scale = vector(c.row_scale)});
  run_tiles(variant, kernel, c.M, c.N);
  return out.values();
}

/// Sums of (a - zero_point) * (w - w_zero_point), in plain C++.
inline std::vector<int32_t> reference_sums(const GemmS8Case& c) {
  std::vector<int16_t> a, w;
  a.reserve(c.a.size()), w.reserve(c.w.size());
  for (int m = 0; m < c.M; ++m)
    for (int k = 0; k < c.K; ++k) a.push_back(static_cast<int16_t>(c.a_value(m, k) - c.zero_point));
  for (int k = 0; k < c.K; ++k)
    for (int n = 0; n < c.N; ++n) w.push_back(static_cast<int16_t>(c.w_value(k, n)));
  return products(a, w, c.M, c.N, c.K);
}

inline double activated(double x, int32_t activation) {
  switch (activation) {
    case kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case kRelu:
      return std::max(x, 0.0);
    case kTanh:
      return std::tanh(x);
    default:
      return x;
  }
}

}  // namespace bertcl::tests
