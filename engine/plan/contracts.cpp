// SPDX-License-Identifier: Apache-2.0
// Element types of the buffers that each kernel reads and writes, and their comparison with a step.
#include "plan/contracts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "bertcl/error.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

constexpr Contract rows[] = {
    {"add_norm",
     "f32|u8|i8@1 - f32 f32 f32|u8|i8@5 - f32 f32 f32 f32 f32 - f32 u8|i8|bf16@14 - f32 f32 "
     "u8|i8@18 - f32 f32 - - -"},
    {"argmax_f32", "f32 i64 - - - - -"},
    {"attention_bf16_x86/attention_f32", "bf16 - - bf16 - - bf16 - - bf16 i32 u8|bool - - - - -"},
    {"attention_f32", "f32 - - f32 - - f32 - - f32 i32 u8|bool - - - - -"},
    {"attention_s8",
     "u8|i8@3 - - - - u8|i8@8 - - - - u8|i8@13 - - - - f32|u8|i8@16 - - - i32 u8|bool - - - - - - "
     "- - - - - -"},
    {"binary_bool", "bool bool bool - i32 - - -"},
    {"binary_f32", "f32 f32 f32|bool - i32 - - -"},
    {"binary_i32", "i32 i32 i32|bool - i32 - - -"},
    {"binary_i64", "i64 i64 i64|bool - i32 - - -"},
    {"cast", "any@1 - any@3 - - -"},
    {"clblast_fp16", "f16 f16 f16"},
    {"clblast_fp32", "f32 f32 f32"},
    {"copy_strided_1", "size1 size1=0 - - i32 - - -"},
    {"copy_strided_2", "size2 size2=0 - - i32 - - -"},
    {"copy_strided_4", "size4 size4=0 - - i32 - - -"},
    {"copy_strided_8", "size8 size8=0 - - i32 - - -"},
    {"cumsum_f32", "f32 f32 - - - - - -"},
    {"cumsum_i32", "i32 i32 - - - - - -"},
    {"cumsum_i64", "i64 i64 - - - - - -"},
    {"dequantize", "u8|i8|i32@1 - f32 f32 u8|i8=0 - - - -"},
    {"dynamic_quantize", "f32 f32 u8 f32 u8 - -"},
    {"dynamic_range", "f32 f32 -"},
    {"embed_norm",
     "i32 i32 i32 f32|f16@9 - f32|f16@9 - f32|f16@9 - - f32 f32 - f32 u8|i8|bf16@15 - f32 f32 "
     "u8|i8@19 - f32 f32 i32 - - -"},
    {"fill_strided_1", "size1 size1=0 - i32 - - -"},
    {"fill_strided_2", "size2 size2=0 - i32 - - -"},
    {"fill_strided_4", "size4 size4=0 - i32 - - -"},
    {"fill_strided_8", "size8 size8=0 - i32 - - -"},
    {"gather_1", "size1 i32|i64@2 - size1=0 - - - - i32 -"},
    {"gather_2", "size2 i32|i64@2 - size2=0 - - - - i32 -"},
    {"gather_4", "size4 i32|i64@2 - size4=0 - - - - i32 -"},
    {"gather_8", "size8 i32|i64@2 - size8=0 - - - - i32 -"},
    {"gather_elements_1", "size1 i32|i64@2 - size1=0 i32 - - - i32 - -"},
    {"gather_elements_2", "size2 i32|i64@2 - size2=0 i32 - - - i32 - -"},
    {"gather_elements_4", "size4 i32|i64@2 - size4=0 i32 - - - i32 - -"},
    {"gather_elements_8", "size8 i32|i64@2 - size8=0 i32 - - - i32 - -"},
    {"gather_nd_1", "size1 i32|i64@2 - size1=0 - - - i32 - i32 -"},
    {"gather_nd_2", "size2 i32|i64@2 - size2=0 - - - i32 - i32 -"},
    {"gather_nd_4", "size4 i32|i64@2 - size4=0 - - - i32 - i32 -"},
    {"gather_nd_8", "size8 i32|i64@2 - size8=0 - - - i32 - i32 -"},
    {"gemm_bf16_x86/gemm_f32", "f32|bf16@9 raw f32 f32|bf16@10 - - - - - - -"},
    {"gemm_f32", "f32 raw f32 f32 - - - - -"},
    {"gemm_s8", "u8|i8 raw raw f32 f32 f32 f32 f32|u8|i8@15 - - - - - - - - f32 u8 i32 i32 f32"},
    {"matmul_f32_batched", "f32 - - f32 - - f32 - - - - i32 - -"},
    {"matmul_s32_batched", "u8|i8@3 - - - u8|i8=0 - u8|i8@9 - - - u8|i8=6 - i32 - - - i32 - -"},
    {"pack", "any any=0 i32 - - - -"},
    {"prepack_f32", "f32|f16"},
    {"prepack_pairs", "f32|f16"},
    {"prepack_s8", "u8|i8"},
    {"quantize", "f32 u8|i8@2 - f32 u8|i8=1 - - - -"},
    {"quantize_rows", "f32 u8|i8@2 - f32 - - - -"},
    {"range_i32", "i32 i32 i32 - -"},
    {"range_i64", "i64 i64 i64 - -"},
    {"reduce_f32", "f32 f32 - - - - -"},
    {"reduce_i32", "i32 i32 - - - - -"},
    {"reduce_i64", "i64 i64 - - - - -"},
    {"row_sums", "u8|i8@1 - - u8=0 i32 - - -"},
    {"softmax_f32", "f32 f32 - - - -"},
    {"unary_bool", "bool bool - - -"},
    {"unary_f32", "f32 f32|bool - - -"},
    {"unary_i32", "i32 i32 - - -"},
    {"unary_i64", "i64 i64 - - -"},
    {"unpack", "any any=0 i32 - - - -"},
    {"where_1", "bool size1 size1=1 size1=1 i32 - - -"},
    {"where_2", "bool size2 size2=1 size2=1 i32 - - -"},
    {"where_4", "bool size4 size4=1 size4=1 i32 - - -"},
    {"where_8", "bool size8 size8=1 size8=1 i32 - - -"},
};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(at);
    parts.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return parts;
}

/// One argument of a row: "u8|i8@3" as types, '@' and 3.
struct Expected {
  std::string_view types;
  char relation = '\0';
  std::size_t other = 0;
};

Expected parse(std::string_view text) {
  Expected e{text};
  const auto at = text.find_first_of("@=");
  if (at == std::string_view::npos) return e;
  e.types = text.substr(0, at);
  e.relation = text[at];
  std::from_chars(text.data() + at + 1, text.data() + text.size(), e.other);
  return e;
}

bool takes(std::string_view types, ir::DType type) {
  const auto list = split(types, '|');
  return types == "any" || types == fmt::format("size{}", ir::size_of(type)) ||
         std::find(list.begin(), list.end(), ir::name_of(type)) != list.end();
}

/// What is wrong with argument i; "" if nothing is.
std::string mismatch(const Expected& e, std::span<const TypedArgument> arguments, std::size_t i) {
  const TypedArgument& found = arguments[i];
  if (e.types == "-")
    return found.is_buffer   ? "a buffer, the kernel takes a number"
           : found.is_absent ? "absent, the kernel takes a number"
                             : "";
  if (found.is_absent) return "";
  if (!found.is_buffer) return fmt::format("a number, the kernel takes a buffer of {}", e.types);
  if (e.types == "raw") return "";
  if (!found.type) return fmt::format("of no known element type, the kernel takes {}", e.types);
  const std::string name{ir::name_of(*found.type)};
  if (!takes(e.types, *found.type))
    return fmt::format("of element type {}, the kernel takes {}", name, e.types);
  const TypedArgument* other = e.relation ? &arguments[e.other] : nullptr;
  if (e.relation == '=' && other->type != found.type)
    return fmt::format("of element type {}, the kernel takes that of argument {}", name, e.other);
  if (e.relation == '@' && other->number != type_code(*found.type))
    return fmt::format("of element type {}, but argument {} says another", name, e.other);
  return "";
}

}  // namespace

std::span<const Contract> contracts() { return rows; }

const Contract* find_contract(std::string_view program, std::string_view kernel) {
  const auto find = [](std::string_view name) {
    const auto it = std::find_if(std::begin(rows), std::end(rows),
                                 [&](const Contract& c) { return c.kernel == name; });
    return it == std::end(rows) ? nullptr : &*it;
  };
  const Contract* own = find(fmt::format("{}/{}", program, kernel));
  return own ? own : find(kernel);
}

void check_contract(const std::string& who, std::string_view program, std::string_view kernel,
                    std::span<const TypedArgument> arguments) {
  const Contract* contract = find_contract(program, kernel);
  if (!contract)
    throw Error(fmt::format("{}: kernel {} of program {} has no row in plan/contracts.cpp", who,
                            kernel, program));
  const auto expected = split(contract->arguments, ' ');
  if (expected.size() != arguments.size())
    throw Error(fmt::format("{}: kernel {} takes {} arguments, {} were planned", who, kernel,
                            expected.size(), arguments.size()));
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (const std::string what = mismatch(parse(expected[i]), arguments, i); !what.empty())
      throw Error(fmt::format("{}: argument {} of kernel {} is {}", who, i, kernel, what));
}

}  // namespace bertcl::plan
