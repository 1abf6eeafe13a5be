// SPDX-License-Identifier: Apache-2.0
// The arguments of a kernel, as one list: a struct with a field for each, and their order.
//
//   BERTCL_CONTRACT(RowSums, (a, "u8|i8@a_type"),  // [M, K]
//                   (a_type, "int"), (sums, "i32"),  // [M]
//                   (M, "int"), (K, "int"), (rows_per_item, "int", 1));
//
// is template <class A> struct RowSums, with the members A a{}, a_type{}, .., rows_per_item{1} and
// their `fields`. A comment is about the last argument of its line.
//
// An omitted field is a null buffer. The planner uses plan::Argument, immediate launches
// opencl::KernelArgument. The names are those of the .cl files; tests/kernels compares them.
#pragma once
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "support/for_each.hpp"

namespace bertcl::kernels {

/// An argument's name and what the kernel takes there:
///   int, float   a number
///   raw          bytes in a layout of the kernel's own, as prepacked weights
///   f32          a buffer of that type
///   u8|i8        of one of them
///   size4        of any type of that many bytes; any: of any type
///   T, U         of the types that the kernel's row names
///   f32|bf16@y   and the argument y is the code of its type (types.clh)
///   size4=x      and of the type of the argument x
///   f32?         or no buffer
struct Parameter {
  std::string_view name, accepts;
};

/// Says where a contract holds the argument of a name.
template <class Contract, class A>
struct Field {
  A Contract::*member;
  std::string_view name, accepts;
};

#define BERTCL_CONTRACT(contract, ...)                        \
  template <class A>                                          \
  struct contract {                                           \
    using Self = contract;                                    \
    BERTCL_FOR_EACH(BERTCL_CONTRACT_MEMBER, __VA_ARGS__)      \
    static constexpr Field<Self, A> fields[] = {              \
        BERTCL_FOR_EACH(BERTCL_CONTRACT_FIELD, __VA_ARGS__)}; \
  }
#define BERTCL_CONTRACT_MEMBER(argument) BERTCL_CONTRACT_MEMBER_OF argument
#define BERTCL_CONTRACT_MEMBER_OF(name, accepts, ...) A name{__VA_ARGS__};
#define BERTCL_CONTRACT_FIELD(argument) BERTCL_CONTRACT_FIELD_OF argument
#define BERTCL_CONTRACT_FIELD_OF(name, accepts, ...) {&Self::name, #name, accepts},

/// The fields of a contract without their offsets: one array per contract, which identifies it.
template <template <class> class Contract>
inline constexpr auto parameters_of = [] {
  std::array<Parameter, std::size(Contract<int>::fields)> list;
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i] = {Contract<int>::fields[i].name, Contract<int>::fields[i].accepts};
  return list;
}();

struct KernelContract {
  std::string_view kernel;
  std::span<const Parameter> parameters;
  std::string_view t = "", u = "";  // what T and U in Parameter::accepts stand for
};

template <template <class> class Contract>
constexpr KernelContract contract_for(std::string_view kernel, std::string_view t = "",
                                      std::string_view u = "") {
  return {kernel, parameters_of<Contract>, t, u};
}

/// The contracts of kernels for elements of each size, as "gather_1", "gather_2"..
#define BERTCL_CONTRACTS_BY_SIZE(contract, kernel)                                            \
  contract_for<contract>(kernel "_1", "size1"), contract_for<contract>(kernel "_2", "size2"), \
      contract_for<contract>(kernel "_4", "size4"), contract_for<contract>(kernel "_8", "size8")

/// The arguments in the kernel's order.
template <template <class> class Contract, class A>
std::vector<A> in_order(const Contract<A>& contract) {
  std::vector<A> list;
  for (const auto& field : Contract<A>::fields) list.push_back(contract.*field.member);
  return list;
}

}  // namespace bertcl::kernels
