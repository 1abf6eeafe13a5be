// SPDX-License-Identifier: Apache-2.0
// What all reports as JSON begin with.
#include "runtime/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace bertcl::runtime {
namespace {

constexpr int kSchemaVersion = 1;

}  // namespace

nlohmann::ordered_json report_of(std::string_view command,
                                 const std::optional<opencl::DeviceInfo>& device,
                                 const nlohmann::ordered_json& result) {
  nlohmann::ordered_json report = {{"schema", fmt::format("bertcl.{}/{}", command, kSchemaVersion)},
                                   {"bertcl", BERTCL_VERSION}};
  const auto add = [&](const char* key, std::string opencl::DeviceInfo::*value) {
    report[key] = device ? nlohmann::ordered_json((*device).*value) : nlohmann::ordered_json();
  };
  add("device", &opencl::DeviceInfo::name);
  add("driver", &opencl::DeviceInfo::driver);
  add("platform", &opencl::DeviceInfo::platform);
  add("platform_version", &opencl::DeviceInfo::platform_version);
  for (const auto& [key, value] : result.items())
    if (!report.contains(key)) report[key] = value;
  return report;
}

}  // namespace bertcl::runtime
