// SPDX-License-Identifier: Apache-2.0
// Why a test is skipped on a device.
#pragma once
#include <string>

#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"

namespace bertcl::tests {

/// Why the device of `context` cannot run what needs a capability: the names of both, and what the
/// probe found. Empty if it can, or nothing is needed.
inline std::string lacks(opencl::Context& context, bool opencl::Capabilities::*needed) {
  const opencl::Capabilities& found = context.capabilities();
  if (!needed || found.*needed) return "";
  opencl::Capabilities only;
  only.*needed = true;
  std::string name;
  for (const auto& [each, present] : only.list())
    if (present) name = each;
  const auto note = found.notes.find(name);
  return "needs " + name + ", which " + context.info().name + " (" + context.info().platform +
         ") does not support" + (note == found.notes.end() ? "" : ": " + note->second);
}

}  // namespace bertcl::tests
