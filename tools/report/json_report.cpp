// SPDX-License-Identifier: Apache-2.0
// What --json writes: the result of a command, under a head that says what made it.
#include "tools/report/json_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/terminal/output.hpp"

namespace bertcl::tools {

namespace {
constexpr int kSchemaVersion = 1;
}

void write_report(const CommonOptions& options, const std::optional<opencl::DeviceInfo>& device,
                  const nlohmann::ordered_json& result) {
  if (options.json.empty()) return;
  nlohmann::ordered_json report = {
      {"schema", fmt::format("bertcl.{}/{}", options.command, kSchemaVersion)},
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
  write_json(options.json, report);
}

}  // namespace bertcl::tools
