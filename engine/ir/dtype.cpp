// SPDX-License-Identifier: Apache-2.0
// Names and sizes of element types, one table for both directions.
#include "ir/dtype.hpp"

#include <array>

namespace bertcl::ir {
namespace {

struct Entry {
  std::string_view name;
  std::size_t size;
};
// In the order of the enumeration.
constexpr std::array<Entry, 13> kDTypes{{{"f32", 4},
                                         {"f16", 2},
                                         {"bf16", 2},
                                         {"f64", 8},
                                         {"i8", 1},
                                         {"u8", 1},
                                         {"i16", 2},
                                         {"u16", 2},
                                         {"i32", 4},
                                         {"u32", 4},
                                         {"i64", 8},
                                         {"u64", 8},
                                         {"bool", 1}}};

}  // namespace

std::size_t size_of(DType type) { return kDTypes[static_cast<std::size_t>(type)].size; }

std::string_view name_of(DType type) { return kDTypes[static_cast<std::size_t>(type)].name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace bertcl::ir
