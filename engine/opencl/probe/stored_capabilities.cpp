// SPDX-License-Identifier: Apache-2.0
// The capabilities of a context: as stored, or found by the probes and then stored.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/probe/probe.hpp"
#include "opencl/program/program_cache.hpp"
#include "opencl/program/sources.hpp"

namespace bertcl::opencl {

Capabilities Context::find_capabilities(const ProgramCache& cache) {
  std::string sources;
  for (const std::string_view program : probe_programs()) sources += final_source(program).text;
  const std::filesystem::path program = find_probe_program();
  const char* wanted = std::getenv("BERTCL_PROBE");
  const std::string missing =
      !program.empty()    ? ""
      : wanted && *wanted ? fmt::format("BERTCL_PROBE is '{}', which is not a program", wanted)
                          : "bertcl-probe was not found (set BERTCL_PROBE to its path)";
  const std::string key = cache.key(sources, "capabilities" + missing);
  if (const auto stored = cache.load(key, "capabilities")) {
    const std::string text(reinterpret_cast<const char*>(stored->data()), stored->size());
    if (auto capabilities = from_text(text)) return *capabilities;
  }
  ChildProbes probes;
  if (program.empty())
    probes.failure = missing;
  else
    probes = probe_in_child(program, info());
  if (!probes.found) {
    cache.report("capabilities", "probed in this process, " + probes.failure);
    const std::string reason = "not probed in this process: " + probes.failure;
    ProbeOptions options;
    for (const char* name : {"persistent_kernel", "assembly_binaries", "command_buffer"})
      options.skipped[name] = reason;
    // Not in the caller's context, which a bad access would leave unusable.
    probes.found = run_probes(*create_sibling(), options);
  }
  if (!probes.is_cacheable || !probes.found->is_cacheable) return *probes.found;
  const std::string text = to_text(*probes.found);
  cache.store(key, "capabilities", std::as_bytes(std::span(text)));
  return *probes.found;
}

}  // namespace bertcl::opencl
