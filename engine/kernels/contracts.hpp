// SPDX-License-Identifier: Apache-2.0
// The contract of each kernel that a plan launches, as one table, and the check of a launch.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/tensor.hpp"
#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// All rows, in alphabetical order.
std::span<const KernelContract> contracts();

/// The row of a kernel; null if there is none.
const KernelContract* find_contract(std::string_view kernel);

/// What a parameter of that row accepts: its types, with T and U resolved, and their relation to
/// another parameter.
struct Accepted {
  std::string types;     // "u8|i8"
  char relation = '\0';  // '@': `other` is the code of its type; '=': the type of `other`
  std::size_t other = 0;
  bool may_be_absent = false;

  bool is_number() const { return types == "int" || types == "float"; }
};
Accepted accepted(const KernelContract& contract, std::size_t parameter);

/// An argument of a launch as the check sees it.
struct TypedArgument {
  bool is_buffer = false;
  bool is_absent = false;
  bool is_float = false;               // a number; else an integer
  std::optional<ir::DType> type = {};  // of a buffer; none where its layout is the kernel's own
  std::optional<std::int32_t> number = {};  // where it is an integer that is known
};

/// Throws bertcl::Error that names `who`, the argument, its type and what the kernel takes; also if
/// the kernel has no row or another number of arguments.
void check_contract(const std::string& who, std::string_view kernel,
                    std::span<const TypedArgument> arguments);

/// The same of the first argument alone, whose type is that of no other argument.
void check_first_argument(const std::string& who, std::string_view kernel,
                          const TypedArgument& argument);

/// Throws bertcl::Error if the kernel's row is not that of `Contract`.
void check_kernel(std::string_view kernel, const Parameter* contract);

}  // namespace bertcl::kernels
