// SPDX-License-Identifier: Apache-2.0
// The contracts of all kernels, and their comparison with the arguments of a launch.
#include "kernels/contracts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "bertcl/error.hpp"
#include "kernels/contracts/all.hpp"
#include "kernels/types.hpp"
#include "support/for_each.hpp"

namespace bertcl::kernels {
namespace {

/// All of them, by name. Each file NAME.hpp of contracts/ has the function NAME_contracts().
constexpr auto kContractRows = [] {
#define BERTCL_LIST_CONTRACTS(name) name##_contracts(),
  constexpr std::tuple files{BERTCL_FOR_EACH(BERTCL_LIST_CONTRACTS, BERTCL_CONTRACT_FILES)};
  return std::apply(
      []<std::size_t... sizes>(const std::array<KernelContract, sizes>&... contracts) {
        std::array<KernelContract, (sizes + ...)> all;
        auto to = all.begin();
        ((to = std::ranges::copy(contracts, to).out), ...);
        std::ranges::sort(all, {}, &KernelContract::kernel);
        return all;
      },
      files);
}();

/// Whether the '|'-separated list `types` contains `name`.
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
std::string mismatch(const Accepted& expected, const Parameter& other,
                     std::span<const TypedArgument> arguments, std::size_t i) {
  const TypedArgument& found = arguments[i];
  if (expected.is_number()) {
    if (found.is_buffer)
      return fmt::format("a buffer; the kernel expects a number ({})", expected.types);
    if (found.is_absent)
      return fmt::format("absent; the kernel expects a number ({})", expected.types);
    return found.is_float == (expected.types == "float")
               ? ""
               : fmt::format("{}; the kernel expects {}", found.is_float ? "a float" : "an int",
                             expected.types);
  }
  if (found.is_absent)
    return expected.may_be_absent
               ? ""
               : fmt::format("absent; the kernel expects a buffer of {} elements", expected.types);
  if (!found.is_buffer)
    return fmt::format("a number; the kernel expects a buffer of {} elements", expected.types);
  if (expected.types == "raw") return "";
  if (!found.type)
    return fmt::format("of unknown element type; the kernel expects {}", expected.types);
  const std::string name{ir::name_of(*found.type)};
  if (!takes_type(expected.types, *found.type))
    return fmt::format("of element type {}; the kernel expects {}", name, expected.types);
  if (expected.relation == '=' && arguments[expected.other].type != found.type)
    return fmt::format("of element type {}; the kernel expects that of {}", name, other.name);
  if (expected.relation == '@' && arguments[expected.other].number != type_code(*found.type))
    return fmt::format("of element type {}, which contradicts {}", name, other.name);
  return "";
}

void check_argument(const std::string& who, const KernelContract& row,
                    std::span<const TypedArgument> arguments, std::size_t i) {
  const Accepted expected = accepted(row, i);
  const std::string what = mismatch(expected, row.parameters[expected.other], arguments, i);
  if (!what.empty())
    throw Error(fmt::format("{}: argument {} of kernel {} is {}", who, row.parameters[i].name,
                            row.kernel, what));
}

const KernelContract& contract_of(const std::string& who, std::string_view kernel) {
  if (const KernelContract* contract = find_contract(kernel)) return *contract;
  throw Error(
      fmt::format("{}: kernel {} has no contract; add a row to a file of engine/kernels/contracts",
                  who, kernel));
}

}  // namespace

std::span<const KernelContract> contracts() { return kContractRows; }

const KernelContract* find_contract(std::string_view kernel) {
  const auto it = std::ranges::lower_bound(kContractRows, kernel, {}, &KernelContract::kernel);
  return it != std::end(kContractRows) && it->kernel == kernel ? &*it : nullptr;
}

Accepted accepted(const KernelContract& contract, std::size_t parameter) {
  std::string_view text = contract.parameters[parameter].accepts;
  const bool may_be_absent = text.ends_with('?');
  if (may_be_absent) text.remove_suffix(1);
  const auto at = text.find_first_of("@=");
  Accepted result{.types = std::string(text.substr(0, at)), .may_be_absent = may_be_absent};
  for (const auto& [letter, types] : {std::pair{'T', contract.t}, {'U', contract.u}})
    if (result.types.starts_with(letter)) result.types.replace(0, 1, types);
  if (at == std::string_view::npos) return result;
  result.relation = text[at];
  const auto other = std::ranges::find(contract.parameters, text.substr(at + 1), &Parameter::name);
  result.other = static_cast<std::size_t>(other - contract.parameters.begin());
  return result;
}

void check_contract(const std::string& who, std::string_view kernel,
                    std::span<const TypedArgument> arguments) {
  const KernelContract& row = contract_of(who, kernel);
  if (row.parameters.size() != arguments.size())
    throw Error(fmt::format("{}: kernel {} takes {} arguments, got {}", who, kernel,
                            row.parameters.size(), arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) check_argument(who, row, arguments, i);
}

void check_first_argument(const std::string& who, std::string_view kernel,
                          const TypedArgument& argument) {
  check_argument(who, contract_of(who, kernel), std::span(&argument, 1), 0);
}

void check_kernel(std::string_view kernel, const Parameter* contract) {
  if (contract_of("launch", kernel).parameters.data() != contract)
    throw Error(fmt::format(
        "kernel {} was launched with the arguments of another kernel's contract", kernel));
}

}  // namespace bertcl::kernels
