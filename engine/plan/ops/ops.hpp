// SPDX-License-Identifier: Apache-2.0
// The table of lowerings, to which each file of this folder adds its ops.
#pragma once
#include <map>
#include <string>

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {

using LoweringTable = std::map<std::string, Lowering, std::less<>>;

}  // namespace bertcl::plan
