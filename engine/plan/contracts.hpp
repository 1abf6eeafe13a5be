// SPDX-License-Identifier: Apache-2.0
// Element types of the buffers that each kernel reads and writes: one row a kernel.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plan/plan.hpp"

namespace bertcl::plan {

/// What a kernel's arguments are, in their order, parted by spaces:
///   -            a number
///   raw          bytes in a layout of the kernel's own, as prepacked weights
///   f32          a buffer of that type, or no buffer
///   u8|i8        of one of them
///   size4        of any type of so many bytes; any: of any type
///   f32|bf16@9   and argument 9 is the code of its type (types.clh)
///   size4=0      and of the type of argument 0
struct Contract {
  std::string_view kernel;  // its name, or PROGRAM/NAME where programs differ
  std::string_view arguments;
};

/// All rows, in alphabetical order.
std::span<const Contract> contracts();

/// The row of a kernel of a program; null if there is none.
const Contract* find_contract(std::string_view program, std::string_view kernel);

/// An argument of a launch as the check sees it.
struct TypedArgument {
  bool is_buffer = false;
  bool is_absent = false;
  std::optional<ir::DType> type = {};  // of a buffer; none where its layout is the kernel's own
  std::optional<std::int32_t> number = {};  // where it is an integer
};

/// Throws bertcl::Error that tells `who`, the argument, its type and what the kernel takes; also
/// where the kernel has no row or another number of arguments.
void check_contract(const std::string& who, std::string_view program, std::string_view kernel,
                    std::span<const TypedArgument> arguments);

}  // namespace bertcl::plan
