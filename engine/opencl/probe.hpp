// SPDX-License-Identifier: Apache-2.0
// Runs the probe kernels of kernels_cl/probe_*.cl.
#pragma once
#include "opencl/capabilities.hpp"

namespace bertcl::opencl {

class Context;
class ProgramCache;

/// Every capability as shown by a probe kernel; nothing is hidden yet. Never throws for a
/// capability that is absent: its note says why.
Capabilities run_probes(Context& context);

/// run_probes(), or what it found before on the same device, driver and CPU, from the cache.
Capabilities stored_or_probed(Context& context, const ProgramCache& cache);

/// Clears the flags named in the comma-separated list (BERTCL_DISABLE), with a note.
/// Throws Error with the known names for one that is not a capability.
void hide(Capabilities& capabilities, const std::string& names);

}  // namespace bertcl::opencl
