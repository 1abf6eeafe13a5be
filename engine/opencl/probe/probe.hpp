// SPDX-License-Identifier: Apache-2.0
// Runs the probe kernels of kernels_cl/probe/*.cl, in a separate process if possible.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "opencl/device/capabilities.hpp"

namespace bertcl::opencl {

class Context;
struct DeviceInfo;

struct ProbeOptions {
  std::map<std::string, std::string> skipped;          // probes by name, with the reason
  std::function<void(const std::string&)> on_begin{};  // called with the name of each probe
};

/// The programs that the probes build, sorted: all of kernels_cl/probe, and that of the persistent
/// kernel.
std::span<const std::string_view> probe_programs();

/// Every capability as shown by a probe kernel of this process; nothing is disabled yet. Never
/// throws for an absent capability: its note says why. A driver crash ends the process.
Capabilities run_probes(Context& context, const ProbeOptions& options = {});

/// The program `bertcl-probe`, which runs the probes for another process: the environment variable
/// BERTCL_PROBE, else beside the program or library that this code is part of, in its
/// ../libexec/bertcl, where it was installed, or where it was built. Empty: none, or "off".
std::filesystem::path find_probe_program();

struct ChildProbes {
  std::optional<Capabilities> found;  // none: the program could not do its work
  bool is_cacheable = true;  // the next process would find the same, so it is worth remembering
  std::string failure;       // why there is nothing in `found`
};

/// Runs all probes in `program`. A capability whose probe crashes or hangs it is absent, with that
/// as its note, and the others run again without it.
ChildProbes probe_in_child(const std::filesystem::path& program, const DeviceInfo& device);

}  // namespace bertcl::opencl
