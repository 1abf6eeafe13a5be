// SPDX-License-Identifier: Apache-2.0
// The contracts of kernels: what the check refuses, and that they are those of the sources and of
// the built programs.
#include "kernels/contracts.hpp"

#include <cctype>
#include <map>
#include <set>

#include "kernels/bind.hpp"
#include "kernels/contracts/elementwise.hpp"
#include "kernels/contracts/reduce.hpp"
#include "opencl/context.hpp"
#include "opencl/program/sources.hpp"
#include "tests/kernels/kernel_arguments.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::kernels {
namespace {

TEST(Contracts, CodesOfTypesAreThoseOfTheirBuffers) {
  const auto check = [](std::int32_t code) {
    const TypedArgument x{.is_buffer = true, .type = ir::DType::u8};
    const TypedArgument number{.number = 0}, its_code{.number = code};
    const TypedArgument y{.is_buffer = true, .type = ir::DType::f32};
    const TypedArgument all[] = {x, its_code, y, number, number, number};
    return error_of([&] { check_contract("Cast 'y'", "cast", all); });
  };
  EXPECT_EQ(check(1), kNoError);
  EXPECT_EQ(check(2),
            "Cast 'y': argument x of kernel cast is of element type u8, which contradicts from");
}

TEST(Contracts, BuffersAndNumbersAreInTheirPlaces) {
  const TypedArgument buffer{.is_buffer = true, .type = ir::DType::f32}, number{.number = 1},
      real{.is_float = true}, absent{.is_absent = true};
  const auto check = [](std::vector<TypedArgument> arguments) {
    return error_of([&] { check_contract("Max 'y'", "dynamic_range", arguments); });
  };
  EXPECT_EQ(check({buffer, buffer, number}), kNoError);
  EXPECT_THAT(check({buffer, absent, number}), HasSubstr("absent; the kernel expects a buffer"));
  EXPECT_THAT(
      check({buffer, number, number}),
      HasSubstr(
          "argument ranges of kernel dynamic_range is a number; the kernel expects a buffer"));
  EXPECT_THAT(
      check({buffer, buffer, buffer}),
      HasSubstr("argument count of kernel dynamic_range is a buffer; the kernel expects a number"));
  EXPECT_THAT(check({buffer, buffer, absent}), HasSubstr("absent; the kernel expects a number"));
  EXPECT_THAT(check({buffer, buffer, real}), HasSubstr("the kernel expects int"));
  EXPECT_THAT(check({buffer, buffer}), HasSubstr("takes 3 arguments, got 2"));
}

TEST(Contracts, BuffersThatMayBeAbsent) {
  const TypedArgument x{.is_buffer = true, .type = ir::DType::f32},
      y{.is_buffer = true, .type = ir::DType::u8}, code{.number = 1}, number{.number = 4};
  const TypedArgument all[] = {x, y, code, x, {.is_absent = true}, number, number, number, number};
  EXPECT_EQ(error_of([&] { check_contract("Quantize 'y'", "quantize", all); }), kNoError);
}

TEST(Contracts, AKernelWithoutARowIsRefused) {
  const TypedArgument buffer{.is_buffer = true, .type = ir::DType::f32};
  EXPECT_EQ(error_of([&] { check_contract("New 'y'", "new_f32", std::span(&buffer, 1)); }),
            "New 'y': kernel new_f32 has no contract; add a row to a file of "
            "engine/kernels/contracts");
}

TEST(Contracts, AnotherContractsArgumentsAreRefused) {
  const auto context = opencl::Context::create("cpu");
  opencl::Kernel kernel = context->unbuilt_kernel("cast", "cast");
  EXPECT_ERROR(
      HasSubstr("kernel cast was launched with the arguments of another kernel's contract"),
      set(kernel, ArgMax<opencl::KernelArgument>{}));
}

/// All but the probes of devices and the persistent kernel.
bool has_contracts(std::string_view program) {
  return !program.starts_with("probe_") && program != "persistent" && program != "addresses";
}

/// Types of OpenCL C that a parameter may have in a program, as the driver names them; empty: any
/// pointer.
std::set<std::string> types_of(const Accepted& parameter) {
  if (parameter.is_number()) return {parameter.types};
  static const std::map<std::string, std::set<std::string>> pointers{
      {"f32", {"float*"}},
      {"i32", {"int*"}},
      {"i64", {"long*"}},
      {"u8", {"uchar*"}},
      {"bool", {"uchar*"}},
      {"bf16", {"ushort*"}},
      {"u8|i8", {"uchar*", "char*"}},
      {"size1", {"uchar*"}},
      {"size2", {"ushort*"}},
      {"size4", {"uint*"}},
      {"size8", {"ulong*"}},
  };
  const auto it = pointers.find(parameter.types);
  return it == pointers.end() ? std::set<std::string>{} : it->second;
}

/// What is wrong with a kernel as the driver built it; "" if nothing is.
std::string compare(const tests::KernelArguments& kernel) {
  const KernelContract* row = find_contract(kernel.name);
  if (!row) return "has no row";
  if (row->parameters.size() != kernel.arguments.size()) return "has another number of arguments";
  for (std::size_t i = 0; i < row->parameters.size(); ++i) {
    const auto& [name, type] = kernel.arguments[i];
    const Accepted expected = accepted(*row, i);
    if (name != row->parameters[i].name)
      return "argument " + std::to_string(i) + " is " + name + ", not " +
             std::string(row->parameters[i].name);
    const std::set<std::string> types = types_of(expected);
    // A name of the program's own, as Stored*, stands for what its options say.
    const bool is_any = types.empty() || std::isupper(static_cast<unsigned char>(type.front()));
    const bool is_right =
        is_any && !expected.is_number() ? type.ends_with('*') : types.contains(type);
    if (!is_right) return "argument " + name + " is " + type + ", not " + expected.types;
  }
  return "";
}

/// All programs, and each once more with what makes another declaration of it.
std::vector<std::pair<std::string, opencl::Defines>> programs() {
  std::vector<std::pair<std::string, opencl::Defines>> list;
  for (const std::string& name : opencl::program_names())
    if (has_contracts(name)) list.push_back({name, {}});
  for (const char* name : {"gemm_f32_ref", "gemm_f32_portable", "prepack_f32"})
    list.push_back({name, {{"B_HALF", 1}}});
  list.push_back({"gemm_s8_mma", {{"PARTIAL", 1}}});
  return list;
}

TEST(Contracts, AreThoseOfTheBuiltPrograms) {
  std::set<std::string> found{"clblast_fp16", "clblast_fp32"};
  std::set<std::string> skipped;
  for (const auto& [program, defines] : programs()) {
    const auto kernels = tests::kernel_arguments(program, defines);
    if (!kernels) {
      skipped.insert(program);  // of instructions that this CPU does not have
      continue;
    }
    EXPECT_FALSE(kernels->empty()) << program;
    for (const tests::KernelArguments& kernel : *kernels) {
      EXPECT_EQ(compare(kernel), "") << program << ", " << kernel.name;
      found.insert(kernel.name);
    }
  }
  for (const std::string& program : skipped)
    EXPECT_TRUE(program.find("_x86") != std::string::npos) << program << " was not built";
  for (const KernelContract& row : contracts())
    EXPECT_TRUE(found.contains(std::string(row.kernel)) || !skipped.empty())
        << row.kernel << " is in no program";
}

TEST(Contracts, SwappedArgumentsAreSeen) {
  tests::KernelArguments cast{"cast",
                              {{"x", "void*"},
                               {"from", "int"},
                               {"y", "void*"},
                               {"to", "int"},
                               {"count", "int"},
                               {"chunk", "int"}}};
  EXPECT_EQ(compare(cast), "");
  std::swap(cast.arguments[4], cast.arguments[5]);
  EXPECT_EQ(compare(cast), "argument 4 is chunk, not count");
  std::swap(cast.arguments[4], cast.arguments[5]);
  cast.arguments[1].type = "float";
  EXPECT_EQ(compare(cast), "argument from is float, not int");
}

TEST(Contracts, ANumberOfAnotherTypeIsNamed) {
  const TypedArgument x{.is_buffer = true, .type = ir::DType::u8}, number{.number = 1};
  const TypedArgument real{.is_float = true, .number = 1};
  const TypedArgument y{.is_buffer = true, .type = ir::DType::u8};
  const TypedArgument all[] = {x, number, y, number, number, real};
  EXPECT_ERROR(HasSubstr("argument chunk of kernel cast is a float; the kernel expects int"),
               check_contract("Cast 'y'", "cast", all));
}

TEST(Contracts, EveryParameterThatIsNamedExists) {
  for (const KernelContract& row : contracts())
    for (std::size_t i = 0; i < row.parameters.size(); ++i) {
      const Accepted parameter = accepted(row, i);
      if (parameter.relation) {
        EXPECT_LT(parameter.other, row.parameters.size())
            << row.kernel << ", " << row.parameters[i].name;
      }
      EXPECT_FALSE(parameter.types.empty() || parameter.types.find_first_of("TU") == 0)
          << row.kernel << ", " << row.parameters[i].name;
    }
}

}  // namespace
}  // namespace bertcl::kernels
