// SPDX-License-Identifier: Apache-2.0
// The table of capability names, and the hiding of capabilities.
#include "opencl/capabilities.hpp"

#include <sstream>

#include "bertcl/error.hpp"
#include "opencl/capability_table.hpp"
#include "opencl/probe.hpp"

namespace bertcl::opencl {

std::vector<std::pair<std::string, bool>> Capabilities::list() const {
  std::vector<std::pair<std::string, bool>> flags;
  for (const CapabilityName& entry : kCapabilityNames)
    flags.emplace_back(entry.name, this->*entry.flag);
  return flags;
}

void hide(Capabilities& capabilities, const std::string& names) {
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    if (name.empty()) continue;
    const CapabilityName* found = nullptr;
    std::string known;
    for (const CapabilityName& entry : kCapabilityNames) {
      known += std::string(" ") + entry.name;
      if (name == entry.name) found = &entry;
    }
    if (!found)
      throw Error("BERTCL_DISABLE names '" + name +
                  "', which is no capability; known are:" + known);
    if (capabilities.*(found->flag)) capabilities.notes[name] = "hidden by BERTCL_DISABLE";
    capabilities.*(found->flag) = false;
  }
}

}  // namespace bertcl::opencl
