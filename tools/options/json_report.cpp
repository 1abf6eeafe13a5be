// SPDX-License-Identifier: Apache-2.0
// What --json writes: the result of a command, under a head that says what made it.
#include "tools/options/json_report.hpp"

#include <nlohmann/json.hpp>

#include "runtime/report.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {

void write_report(const CommonOptions& options, const std::optional<opencl::DeviceInfo>& device,
                  const nlohmann::ordered_json& result) {
  if (options.json.empty()) return;
  write_json(options.json, runtime::report_of(options.command, device, result));
}

}  // namespace bertcl::tools
