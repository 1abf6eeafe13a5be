// SPDX-License-Identifier: Apache-2.0
// Kernels get buffers of the element types that they read: the table, and its comparison with plans
// and with the sources of the kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "ir/text.hpp"
#include "opencl/sources.hpp"
#include "plan/builder.hpp"
#include "plan/contracts.hpp"
#include "tests/support/error_of.hpp"

namespace bertcl::plan {
namespace {

using testing::HasSubstr;
using tests::error_of;

std::string plan_error(const std::string& graph) {
  static const auto context = opencl::Context::create("cpu");
  return error_of([&] { make_plan(ir::parse(graph), context, {}); });
}

// Graphs as no inference would let them pass.
TEST(Contracts, AKernelOfAnotherElementTypeIsRefused) {
  EXPECT_EQ(
      plan_error("graph g(%x: f64[2, 4]) { %y: f64[2, 4] = Softmax(%x) return %y }"),
      "Softmax 'y': argument 0 of kernel softmax_f32 is of element type f64, the kernel takes "
      "f32");
  EXPECT_THAT(plan_error("graph g(%x: i32[4]) { %y: bool[4] = Not(%x) return %y }"),
              HasSubstr("Not 'y': argument 1 of kernel unary_i32 is of element type bool"));
  EXPECT_THAT(plan_error("graph g(%x: i8[4]) { const %s: f32[] = 1 const %z: u8[] = 0"
                         " %y: u8[4] = QuantizeLinear(%x, %s, %z) return %y }"),
              HasSubstr("argument 0 of kernel quantize is of element type i8"));
  EXPECT_THAT(plan_error("graph g(%x: f32[4], %e: i64[4]) { %y: f32[4] = Pow(%x, %e) return %y }"),
              HasSubstr("argument 1 of kernel binary_f32 is of element type i64"));
  EXPECT_THAT(plan_error("graph g(%x: f32[2, 4]) { const %g: f64[4] = [1, 2, 3, 4] %y: f32[2, 4] ="
                         " add_norm(%x, _, %g) {epsilon = 0.1} return %y }"),
              HasSubstr("of kernel add_norm is of element type f64"));
  EXPECT_THAT(plan_error("graph g(%c: bool[4], %a: f32[4], %b: i32[4]) {"
                         " %y: f32[4] = Where(%c, %a, %b) return %y }"),
              HasSubstr("argument 2 of kernel where_4 is of element type i32, the kernel takes "
                        "that of argument 1"));
  EXPECT_THAT(plan_error("graph g(%x: f32[4]) { %r: f32[4] = Relu(%x) %v: i32[2, 2] = Reshape(%r)"
                         " %y: i32[2, 2] = Relu(%v) return %y }"),
              HasSubstr("'v' i32[2, 2] is a view of 'r' f32[4]"));
}

TEST(Contracts, CodesOfTypesAreThoseOfTheirBuffers) {
  const auto check = [](std::int32_t code) {
    const TypedArgument x{.is_buffer = true, .type = ir::DType::u8};
    const TypedArgument number{.number = 0}, its_code{.number = code};
    const TypedArgument out{.is_buffer = true, .type = ir::DType::f32};
    const TypedArgument f32_code{.number = 0};
    const TypedArgument all[] = {x, its_code, out, f32_code, number, number};
    return error_of([&] { check_contract("Cast 'y'", "cast", "cast", all); });
  };
  EXPECT_EQ(check(1), error_of([] {}));
  EXPECT_EQ(check(2),
            "Cast 'y': argument 0 of kernel cast is of element type u8, but argument 1 "
            "says another");
}

TEST(Contracts, BuffersAndNumbersAreInTheirPlaces) {
  const TypedArgument buffer{.is_buffer = true, .type = ir::DType::f32}, number{.number = 1},
      absent{.is_absent = true};
  const auto check = [](std::vector<TypedArgument> arguments) {
    return error_of([&] { check_contract("Max 'y'", "dynamic", "dynamic_range", arguments); });
  };
  EXPECT_EQ(check({buffer, buffer, number}), error_of([] {}));
  EXPECT_EQ(check({buffer, absent, number}), error_of([] {}));
  EXPECT_THAT(check({buffer, number, number}), HasSubstr("argument 1 of kernel dynamic_range is a "
                                                         "number, the kernel takes a buffer"));
  EXPECT_THAT(check({buffer, buffer, buffer}), HasSubstr("a buffer, the kernel takes a number"));
  EXPECT_THAT(check({buffer, buffer, absent}), HasSubstr("absent, the kernel takes a number"));
  EXPECT_THAT(check({buffer, buffer}), HasSubstr("takes 3 arguments, 2 were planned"));
}

TEST(Contracts, AKernelWithoutARowIsRefused) {
  const TypedArgument buffer{.is_buffer = true, .type = ir::DType::f32};
  EXPECT_EQ(error_of([&] { check_contract("New 'y'", "new", "new_f32", std::span(&buffer, 1)); }),
            "New 'y': kernel new_f32 of program new has no row in plan/contracts.cpp");
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

/// A kernel as its source declares it; in a macro that makes several, NAME ends in "##...".
struct Declared {
  std::string program, name;
  std::vector<std::string> arguments;
};

std::vector<Declared> declared_kernels() {
  static const std::regex comment("//[^\n]*"),
      kernel(R"(KERNEL\s+(?:void\s+)?([\w#]+)\s*\(([^)]*)\)\s*\{)");
  std::vector<Declared> found;
  for (const opencl::SourceFile& file : opencl::embedded_sources()) {
    std::string text = std::regex_replace(std::string(file.text), comment, "");
    text = std::regex_replace(text, std::regex(R"(\\\n|PLACE_PARAMETER)"), " ");
    text = std::regex_replace(text, std::regex("__kernel"), "KERNEL");
    for (std::sregex_iterator it(text.begin(), text.end(), kernel), end; it != end; ++it)
      found.push_back(
          {std::string(file.name.substr(0, file.name.find('.'))), (*it)[1], split((*it)[2], ',')});
  }
  return found;
}

/// Those that no step of a plan launches: probes of devices, observers of calibration, the check of
/// weights, the persistent kernel.
bool is_launched_by_plans(const Declared& kernel) {
  static const std::regex others("probe_.*|observe.*|find_nonfinite|persistent|addresses");
  return !std::regex_match(kernel.program, others);
}

/// The rows of a declared kernel: one, or those of all kernels that its macro makes.
std::vector<const Contract*> rows_of(const Declared& kernel) {
  const auto macro = kernel.name.find("##");
  if (macro == std::string::npos) {
    const Contract* row = find_contract(kernel.program, kernel.name);
    return row ? std::vector{row} : std::vector<const Contract*>{};
  }
  const std::regex names(kernel.name.substr(0, macro) + "[a-z0-9]+");
  std::vector<const Contract*> found;
  for (const Contract& row : contracts())
    if (std::regex_match(std::string(row.kernel), names)) found.push_back(&row);
  return found;
}

/// Names of element types that a pointer of OpenCL C may stand for; none for void and those of
/// macros, where the other arguments say it.
std::set<std::string> types_of(const std::string& argument) {
  if (argument.find("float") != std::string::npos) return {"f32"};
  if (argument.find("ushort") != std::string::npos) return {"bf16"};
  if (argument.find("uchar") != std::string::npos)
    return {"u8", "i8", "bool", "i32", "bf16", "f32", "any"};
  if (argument.find("int") != std::string::npos) return {"i32"};
  if (argument.find("long") != std::string::npos) return {"i64"};
  return {};
}

void compare(const Declared& kernel, const Contract& row) {
  std::vector<std::string> expected = split(std::string(row.arguments), ' ');
  // What prepacks weights has the one that the plan gives; the others are set where it is made.
  if (kernel.program.starts_with("prepack_")) expected.resize(kernel.arguments.size(), "");
  ASSERT_EQ(kernel.arguments.size(), expected.size()) << kernel.program << " " << row.kernel;
  for (std::size_t i = 0; i < expected.size() && !expected[i].empty(); ++i) {
    const bool is_buffer = kernel.arguments[i].find('*') != std::string::npos;
    EXPECT_EQ(is_buffer, expected[i] != "-") << kernel.program << " " << row.kernel << " " << i;
    const std::set<std::string> allowed = types_of(kernel.arguments[i]);
    if (!is_buffer || expected[i] == "raw" || allowed.empty()) continue;
    for (const std::string& type :
         split(expected[i].substr(0, expected[i].find_first_of("@=")), '|'))
      EXPECT_TRUE(allowed.contains(type))
          << kernel.program << " " << row.kernel << " " << i << ": " << type;
  }
}

TEST(Contracts, EveryKernelOfPlansHasARowAsItsSourceDeclaresIt) {
  std::set<std::string_view> declared{"clblast_fp16", "clblast_fp32"};
  std::set<std::string> programs;
  for (const Declared& kernel : declared_kernels()) {
    programs.insert(kernel.program);
    if (!is_launched_by_plans(kernel)) continue;
    const auto rows = rows_of(kernel);
    EXPECT_FALSE(rows.empty()) << kernel.program << " " << kernel.name << " has no row";
    for (const Contract* row : rows) {
      declared.insert(row->kernel);
      compare(kernel, *row);
    }
  }
  for (const Contract& row : contracts())
    EXPECT_TRUE(declared.contains(row.kernel)) << row.kernel << " is in no source";
  // A declaration that the pattern above does not see would be a hole.
  const auto all = opencl::program_names();
  EXPECT_EQ(programs, std::set<std::string>(all.begin(), all.end()));
}

}  // namespace
}  // namespace bertcl::plan
