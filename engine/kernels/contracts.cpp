// SPDX-License-Identifier: Apache-2.0
// The contracts of all kernels, and their comparison with the arguments of a launch.
#include "kernels/contracts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bertcl/error.hpp"
#include "kernels/contracts/attention.hpp"
#include "kernels/contracts/elementwise.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/move.hpp"
#include "kernels/contracts/observe.hpp"
#include "kernels/contracts/prepack.hpp"
#include "kernels/contracts/quantize.hpp"
#include "kernels/contracts/reduce.hpp"
#include "kernels/contracts/rows.hpp"
#include "kernels/types.hpp"

namespace bertcl::kernels {
namespace {

template <template <class> class Contract>
constexpr KernelContract row(std::string_view kernel, std::string_view t = "",
                             std::string_view u = "") {
  return {kernel, parameters_of<Contract>, t, u};
}

constexpr KernelContract contract_rows[] = {
    row<AddNorm>("add_norm"),
    row<ArgMax>("argmax_f32"),
    row<AttentionFloat>("attention_bf16", "bf16"),
    row<AttentionFloat>("attention_f32", "f32"),
    row<AttentionS8>("attention_s8"),
    row<Binary>("binary_bool", "bool"),
    row<Binary>("binary_f32", "f32"),
    row<Binary>("binary_i32", "i32"),
    row<Binary>("binary_i64", "i64"),
    row<Cast>("cast"),
    row<LibraryGemm>("clblast_fp16", "f16"),
    row<LibraryGemm>("clblast_fp32", "f32"),
    row<CopyStrided>("copy_strided_1", "size1"),
    row<CopyStrided>("copy_strided_2", "size2"),
    row<CopyStrided>("copy_strided_4", "size4"),
    row<CopyStrided>("copy_strided_8", "size8"),
    row<CumSum>("cumsum_f32", "f32"),
    row<CumSum>("cumsum_i32", "i32"),
    row<CumSum>("cumsum_i64", "i64"),
    row<Dequantize>("dequantize"),
    row<DynamicQuantize>("dynamic_quantize"),
    row<DynamicRange>("dynamic_range"),
    row<EmbedNorm>("embed_norm"),
    row<FillStrided>("fill_strided_1", "size1"),
    row<FillStrided>("fill_strided_2", "size2"),
    row<FillStrided>("fill_strided_4", "size4"),
    row<FillStrided>("fill_strided_8", "size8"),
    row<FindNonfinite>("find_nonfinite"),
    row<Gather>("gather_1", "size1"),
    row<Gather>("gather_2", "size2"),
    row<Gather>("gather_4", "size4"),
    row<Gather>("gather_8", "size8"),
    row<GatherElements>("gather_elements_1", "size1"),
    row<GatherElements>("gather_elements_2", "size2"),
    row<GatherElements>("gather_elements_4", "size4"),
    row<GatherElements>("gather_elements_8", "size8"),
    row<GatherND>("gather_nd_1", "size1"),
    row<GatherND>("gather_nd_2", "size2"),
    row<GatherND>("gather_nd_4", "size4"),
    row<GatherND>("gather_nd_8", "size8"),
    row<GemmBf16>("gemm_bf16"),
    row<GemmF32>("gemm_f32"),
    row<GemmS8>("gemm_s8"),
    row<MatMulF32>("matmul_f32_batched"),
    row<MatMulS32>("matmul_s32_batched"),
    row<ObserveChannels>("observe_channels"),
    row<ObserveGather>("observe_gather"),
    row<ObserveGram>("observe_gram"),
    row<ObserveHistogram>("observe_histogram"),
    row<ObserveMerge>("observe_merge"),
    row<ObserveRange>("observe_range"),
    row<ObserveShift>("observe_shift"),
    row<Pack>("pack"),
    row<PrepackFloat>("prepack_f32"),
    row<PrepackFloat>("prepack_pairs"),
    row<PrepackS8>("prepack_s8"),
    row<Quantize>("quantize"),
    row<QuantizeRows>("quantize_rows"),
    row<Range>("range_i32", "i32"),
    row<Range>("range_i64", "i64"),
    row<Reduce>("reduce_f32", "f32"),
    row<Reduce>("reduce_i32", "i32"),
    row<Reduce>("reduce_i64", "i64"),
    row<RowSums>("row_sums"),
    row<SoftmaxF32>("softmax_f32"),
    row<Unary>("unary_bool", "bool", "bool"),
    row<Unary>("unary_f32", "f32", "f32|bool"),
    row<Unary>("unary_i32", "i32", "i32"),
    row<Unary>("unary_i64", "i64", "i64"),
    row<Unpack>("unpack"),
    row<Where>("where_1", "size1"),
    row<Where>("where_2", "size2"),
    row<Where>("where_4", "size4"),
    row<Where>("where_8", "size8"),
};
static_assert(std::ranges::is_sorted(contract_rows, {}, &KernelContract::kernel));

/// Whether `types`, parted by '|', has `name`.
bool lists(std::string_view types, std::string_view name) {
  for (;;) {
    const auto end = types.find('|');
    if (types.substr(0, end) == name) return true;
    if (end == std::string_view::npos) return false;
    types.remove_prefix(end + 1);
  }
}

bool takes_type(std::string_view types, ir::DType type) {
  return types == "any" || types == fmt::format("size{}", ir::size_of(type)) ||
         lists(types, ir::name_of(type));
}

/// What is wrong with argument i; "" if nothing is.
std::string mismatch(const Takes& expected, const Parameter& other,
                     std::span<const TypedArgument> arguments, std::size_t i) {
  const TypedArgument& found = arguments[i];
  if (expected.is_number()) {
    if (found.is_buffer)
      return fmt::format("a buffer, the kernel takes a number ({})", expected.types);
    if (found.is_absent)
      return fmt::format("absent, the kernel takes a number ({})", expected.types);
    return found.is_float == (expected.types == "float")
               ? ""
               : fmt::format("a number of another type, the kernel takes {}", expected.types);
  }
  if (found.is_absent)
    return expected.may_be_absent
               ? ""
               : fmt::format("absent, the kernel takes a buffer of {}", expected.types);
  if (!found.is_buffer)
    return fmt::format("a number, the kernel takes a buffer of {}", expected.types);
  if (expected.types == "raw") return "";
  if (!found.type)
    return fmt::format("of no known element type, the kernel takes {}", expected.types);
  const std::string name{ir::name_of(*found.type)};
  if (!takes_type(expected.types, *found.type))
    return fmt::format("of element type {}, the kernel takes {}", name, expected.types);
  if (expected.relation == '=' && arguments[expected.other].type != found.type)
    return fmt::format("of element type {}, the kernel takes that of {}", name, other.name);
  if (expected.relation == '@' && arguments[expected.other].number != type_code(*found.type))
    return fmt::format("of element type {}, but {} says another", name, other.name);
  return "";
}

void check_argument(const std::string& who, const KernelContract& row,
                    std::span<const TypedArgument> arguments, std::size_t i) {
  const Takes expected = takes(row, i);
  const std::string what = mismatch(expected, row.parameters[expected.other], arguments, i);
  if (!what.empty())
    throw Error(fmt::format("{}: argument {} of kernel {} is {}", who, row.parameters[i].name,
                            row.kernel, what));
}

const KernelContract& contract_of(const std::string& who, std::string_view kernel) {
  if (const KernelContract* contract = find_contract(kernel)) return *contract;
  throw Error(fmt::format("{}: kernel {} has no row in kernels/contracts.cpp", who, kernel));
}

}  // namespace

std::span<const KernelContract> contracts() { return contract_rows; }

const KernelContract* find_contract(std::string_view kernel) {
  const auto it = std::ranges::lower_bound(contract_rows, kernel, {}, &KernelContract::kernel);
  return it != std::end(contract_rows) && it->kernel == kernel ? &*it : nullptr;
}

Takes takes(const KernelContract& row, std::size_t index) {
  std::string_view text = row.parameters[index].takes;
  const bool may_be_absent = text.ends_with('?');
  if (may_be_absent) text.remove_suffix(1);
  const auto at = text.find_first_of("@=");
  Takes result{.types = std::string(text.substr(0, at)), .may_be_absent = may_be_absent};
  for (const auto& [letter, types] : {std::pair{'T', row.t}, {'U', row.u}})
    if (result.types.starts_with(letter)) result.types.replace(0, 1, types);
  if (at == std::string_view::npos) return result;
  result.relation = text[at];
  const auto other = std::ranges::find(row.parameters, text.substr(at + 1), &Parameter::name);
  result.other = static_cast<std::size_t>(other - row.parameters.begin());
  return result;
}

void check_contract(const std::string& who, std::string_view kernel,
                    std::span<const TypedArgument> arguments) {
  const KernelContract& row = contract_of(who, kernel);
  if (row.parameters.size() != arguments.size())
    throw Error(fmt::format("{}: kernel {} takes {} arguments, {} were planned", who, kernel,
                            row.parameters.size(), arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) check_argument(who, row, arguments, i);
}

void check_first_argument(const std::string& who, std::string_view kernel,
                          const TypedArgument& argument) {
  check_argument(who, contract_of(who, kernel), std::span(&argument, 1), 0);
}

void check_kernel(std::string_view kernel, const Parameter* contract) {
  if (contract_of("launch", kernel).parameters.data() != contract)
    throw Error(
        fmt::format("kernel {} is launched with the arguments of another contract", kernel));
}

}  // namespace bertcl::kernels
