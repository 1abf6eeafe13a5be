// SPDX-License-Identifier: Apache-2.0
// The table of lowerings, to which each file of plan/ops adds its ops.
#pragma once
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {

using LoweringTable = std::map<std::string, Lowering, std::less<>>;

/// Throws bertcl::Error that names the node.
template <class... T>
[[noreturn]] void fail(const ir::Node& node, fmt::format_string<T...> what, T&&... values) {
  throw Error(node.describe() + ": " + fmt::format(what, std::forward<T>(values)...));
}

}  // namespace bertcl::plan
