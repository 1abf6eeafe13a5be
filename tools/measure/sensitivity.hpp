// SPDX-License-Identifier: Apache-2.0
// The cost of quantized ops, as table, JSON and plot.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "quant/analysis/sensitivity.hpp"

namespace bertcl::tools {

/// Three tables: kinds, layers, ops.
std::string sensitivity_text(const quant::Sensitivity& sensitivity,
                             const std::vector<quant::QuantizedOp>& ops);

nlohmann::ordered_json sensitivity_json(const quant::Sensitivity& sensitivity,
                                        const std::vector<quant::QuantizedOp>& ops);

/// A self-contained SVG plot: bars of kinds, layers and ops. `title` names the model.
std::string sensitivity_svg(const quant::Sensitivity& sensitivity,
                            const std::vector<quant::QuantizedOp>& ops, const std::string& title);

}  // namespace bertcl::tools
