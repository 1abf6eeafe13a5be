// SPDX-License-Identifier: Apache-2.0
// The page of `bertcl bench --html`: latency, kernels and the roofline.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/measure/roofline.hpp"

namespace bertcl::tools {

/// The keys "peaks" and "roofline" of the JSON, as an object.
nlohmann::ordered_json to_json(const std::vector<RooflineRow>& rows, const Peaks& peaks);

/// `report` as the command writes it as JSON.
std::string bench_page(const nlohmann::ordered_json& report, const std::vector<RooflineRow>& rows,
                       const Peaks& peaks);

}  // namespace bertcl::tools
