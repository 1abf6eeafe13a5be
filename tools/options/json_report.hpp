// SPDX-License-Identifier: Apache-2.0
// What --json writes: the result of a command, under a head that says what made it.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "opencl/device/device.hpp"
#include "tools/options/command.hpp"

namespace bertcl::tools {

/// Numbers as short as tells floats apart.
using FloatJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool,
                                       std::int64_t, std::uint64_t, float>;

/// Writes the result to --json, if it was given, as runtime::report_of().
void write_report(const CommonOptions& options, const std::optional<opencl::DeviceInfo>& device,
                  const nlohmann::ordered_json& result);

}  // namespace bertcl::tools
