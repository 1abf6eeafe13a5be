// SPDX-License-Identifier: Apache-2.0
// The ranges that calibration gave the activations of a Q/DQ file.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace bertcl::tools {

/// An object for each QuantizeLinear of an activation whose scale is constant, in the order of the
/// file: "tensor"; "layer", the number that its name has, or null; "type"; "scale" and
/// "smallest_scale", which differ where there is one for each channel; "zero_point"; "channels";
/// "low" and "high", the least and the largest value that the integers hold.
nlohmann::ordered_json calibration_json(const std::filesystem::path& model);

}  // namespace bertcl::tools
