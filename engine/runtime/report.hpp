// SPDX-License-Identifier: Apache-2.0
// What all reports as JSON begin with.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "opencl/device/device.hpp"

namespace bertcl::runtime {

/// The result of a command after the keys
///   schema            "bertcl.COMMAND/1"; the number rises when a key goes or changes its meaning
///   bertcl            version of the program
///   device, driver, platform, platform_version
///                     what ran it; null without `device`
/// Keys of the result with these names are ignored. docs/json.md documents all keys.
nlohmann::ordered_json report_of(std::string_view command,
                                 const std::optional<opencl::DeviceInfo>& device,
                                 const nlohmann::ordered_json& result);

}  // namespace bertcl::runtime
