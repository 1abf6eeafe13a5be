// SPDX-License-Identifier: Apache-2.0
// The variants of lowerings; each file of this folder adds its ops to the table.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {

using LoweringTable = std::map<std::string, Lowering, std::less<>>;

void add_attention(LoweringTable& table);
void add_cast(LoweringTable& table);
void add_cumsum(LoweringTable& table);
void add_dynamic_quantize(LoweringTable& table);
void add_elementwise(LoweringTable& table);
void add_gather(LoweringTable& table);
void add_gather_elements(LoweringTable& table);
void add_gather_nd(LoweringTable& table);
void add_linear(LoweringTable& table);
void add_linear_q(LoweringTable& table);
void add_matmul(LoweringTable& table);
void add_matmul_integer(LoweringTable& table);
void add_norm(LoweringTable& table);
void add_packing(LoweringTable& table);
void add_quantize(LoweringTable& table);
void add_reduce(LoweringTable& table);
void add_shape(LoweringTable& table);

}  // namespace bertcl::plan
