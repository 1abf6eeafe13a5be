// SPDX-License-Identifier: Apache-2.0
// Numbers that kernels define and the host repeats are the same.
#include "kernels/shared_numbers.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "kernels/variants.hpp"
#include "opencl/launch/persistent_kernel.hpp"
#include "opencl/program/sources.hpp"
#include "ops/op.hpp"
#include "plans.hpp"
#include "tests/support/files.hpp"

namespace bertcl::plan {
namespace {

/// That a kernel source defines under this name, once.
std::int64_t number_in(const std::string& source, const std::string& name) {
  std::ifstream file(tests::source_file("kernels_cl/" + source));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::regex definition("#[ ]*define " + name + " ([0-9]+)\\b");
  const auto first = std::sregex_iterator(text.begin(), text.end(), definition);
  const auto count = std::distance(first, std::sregex_iterator());
  EXPECT_EQ(count, 1) << source << " " << name;
  return count == 0 ? -1 : std::stoll((*first)[1]);
}

TEST(SharedNumbers, OfTheHostAndOfKernelsAreTheSame) {
  using namespace kernels;
  EXPECT_EQ(number_in("elements/dynamic_quantize.cl", "PARTS"), kRangeParts);
  EXPECT_EQ(number_in("elements/dynamic_quantize_group.cl", "PARTS"), kRangeParts);
  EXPECT_EQ(number_in("elements/dynamic_quantize_group.cl", "ITEMS"), kRangeItems);
  EXPECT_EQ(number_in("gemm/matmul_batched.clh", "PANEL"), kMatMulPanel);
  EXPECT_EQ(number_in("gemm/matmul_group.clh", "SIDE"), kMatMulSide);
  EXPECT_EQ(number_in("gemm/matmul_group.clh", "ITEMS"), kMatMulItems);
  EXPECT_EQ(number_in("attention/position_scores.clh", "PANEL"), kPositionsPanel);
  for (const auto& variant : position_scores_variants()) {
    const std::string file = "attention/" + variant.program + ".cl";
    if (variant.takes_blocks) {
      EXPECT_EQ(number_in(file, "HEAD_MAX"), kPositionsColumns);
    }
    if (variant.tile != 0) {
      EXPECT_EQ(number_in(file, "TILE"), variant.tile);
      EXPECT_EQ(number_in(file, "ITEMS"), kPositionsItems);
    }
  }
  EXPECT_EQ(number_in("elements/elementwise_binary.cl", "OP_FMOD"), kFmod);
}

/// The first number defined as `name` after `start`; none if there is none.
std::optional<std::int64_t> number_after(const std::string& text, std::size_t start,
                                         const std::string& name) {
  std::smatch found;
  const std::regex definition("#define " + name + " ([0-9]+)\\b");
  if (!std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(start), text.end(), found,
                         definition))
    return std::nullopt;
  return std::stoll(found[1]);
}

// On a CPU a tile has the columns of a panel, unless there is a PANEL; the kernels with AVX-512
// make them of vectors.
TEST(SharedNumbers, TilesAndPanelsOfGemms) {
  std::vector<kernels::GemmVariant> gemms{kernels::gemm_f16_variant(),
                                          kernels::gemm_bf16_variant()};
  for (const auto& table : {kernels::gemm_s8_variants(), kernels::gemm_f32_variants()})
    gemms.insert(gemms.end(), table.begin(), table.end());
  for (const kernels::GemmVariant& gemm : gemms) {
    if (gemm.is_reference) continue;
    for (const std::string& program : {gemm.program, gemm.small_m_program}) {
      if (program.empty()) continue;
      const std::string text = opencl::final_source(program).text;
      std::size_t start = 0;
      if (const auto lanes = gemm.defines.find("LANES"); lanes != gemm.defines.end())
        start = text.find("if LANES == " + std::to_string(lanes->second));
      ASSERT_NE(start, std::string::npos) << program;
      const auto number = [&](const char* name) { return number_after(text, start, name); };
      const bool by_group = gemm.items > 1;
      EXPECT_EQ(number(by_group ? "TILE_M" : "TILE_ROWS"), gemm.tile_rows) << program;
      if (by_group) {
        EXPECT_EQ(number("TILE_N"), gemm.tile_columns) << program;
      }
      std::optional<std::int64_t> panel = number("PANEL");
      if (!panel) panel = number("TILE_COLUMNS");
      if (const auto vectors = number("TILE_VECTORS")) panel = 16 * *vectors;
      EXPECT_EQ(panel, gemm.panel) << program;
    }
  }
}

// The prepacking kernel is given it, the GEMM is not.
TEST(SharedNumbers, BlocksOfQuadsInOrder) {
  int ordered = 0;
  for (const kernels::GemmVariant& variant : kernels::gemm_s8_variants()) {
    if (variant.order_block == 0) continue;
    ++ordered;
    EXPECT_EQ(number_in("gemm/" + variant.program + ".cl", "ORDER_BLOCK"), variant.order_block);
  }
  EXPECT_GT(ordered, 0);
}

TEST(SharedNumbers, StepsOfThePersistentKernel) {
  const std::string source = "persistent/persistent.cl";
  EXPECT_EQ(number_in(source, "STEP_WORDS"), opencl::kStepWords);
  EXPECT_EQ(number_in(source, "HEADER_WORDS"), opencl::kStepHeader);
  EXPECT_EQ(3 * 4 * number_in(source, "LINE_INTS"), opencl::kPersistentStateBytes);
}

TEST(SharedNumbers, CodesOfReductions) {
  for (const auto& [op, name] : std::map<std::string, std::string>{{"ReduceSum", "OP_SUM"},
                                                                   {"ReduceMean", "OP_MEAN"},
                                                                   {"ReduceMax", "OP_MAX"},
                                                                   {"ReduceMin", "OP_MIN"},
                                                                   {"ReduceProd", "OP_PROD"},
                                                                   {"ReduceL2", "OP_L2"}}) {
    const Plan plan = plan_of("graph g(%x: f32[rows, 4]) {\n  %y: f32[rows, 1] = " + op +
                              "(%x) {axes = [-1]}\n  return %y as y\n}");
    ASSERT_EQ(plan.steps.size(), 1u) << op;
    EXPECT_EQ(std::get<std::int32_t>(plan.steps[0].arguments.at(2)),
              number_in("elements/reduce.cl", name))
        << op;
  }
}

TEST(SharedNumbers, CodesOfBinaryOperators) {
  for (const auto& [op, name] :
       std::map<std::string, std::string>{{"Add", "OP_ADD"},
                                          {"Sub", "OP_SUB"},
                                          {"Mul", "OP_MUL"},
                                          {"Div", "OP_DIV"},
                                          {"Pow", "OP_POW"},
                                          {"Min", "OP_MIN"},
                                          {"Max", "OP_MAX"},
                                          {"Mod", "OP_MOD"},
                                          {"Equal", "OP_EQUAL"},
                                          {"Less", "OP_LESS"},
                                          {"Greater", "OP_GREATER"},
                                          {"LessOrEqual", "OP_LESS_EQUAL"},
                                          {"GreaterOrEqual", "OP_GREATER_EQUAL"},
                                          {"And", "OP_AND"},
                                          {"Or", "OP_OR"},
                                          {"Xor", "OP_XOR"}})
    EXPECT_EQ(ops::find(op)->traits.binary_code.value(),
              number_in("elements/elementwise_binary.cl", name))
        << op;
}

}  // namespace
}  // namespace bertcl::plan
