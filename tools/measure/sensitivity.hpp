// SPDX-License-Identifier: Apache-2.0
// What quantized ops cost, as table, JSON and picture.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "quant/analysis/sensitivity.hpp"

namespace bertcl::tools {

/// Three tables: kinds, layers, ops.
std::string sensitivity_text(const quant::Sensitivity& sensitivity,
                             const std::vector<quant::QuantizedOp>& ops);

nlohmann::ordered_json sensitivity_json(const quant::Sensitivity& sensitivity,
                                        const std::vector<quant::QuantizedOp>& ops);

/// A picture in SVG that needs nothing beside it: bars of kinds, layers and ops. `title` names the
/// model.
std::string sensitivity_svg(const quant::Sensitivity& sensitivity,
                            const std::vector<quant::QuantizedOp>& ops, const std::string& title);

}  // namespace bertcl::tools
