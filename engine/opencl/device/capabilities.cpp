// SPDX-License-Identifier: Apache-2.0
// The table of capability names, and the hiding of capabilities.
#include "opencl/device/capabilities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "bertcl/error.hpp"
#include "opencl/device/capability_table.hpp"
#include "support/comma_list.hpp"
#include "support/did_you_mean.hpp"

namespace bertcl::opencl {

std::vector<std::pair<std::string, bool>> Capabilities::list() const {
  std::vector<std::pair<std::string, bool>> flags;
  for (const CapabilityName& entry : kCapabilityNames)
    flags.emplace_back(entry.name, this->*entry.flag);
  return flags;
}

const char* capability_name(bool Capabilities::*flag) {
  const auto found = std::ranges::find_if(
      kCapabilityNames, [&](const CapabilityName& entry) { return entry.flag == flag; });
  return found->name;
}

Dot4 dot4_of(const Capabilities& capabilities) {
  for (const Dot4Backend& backend : kDot4Backends)
    if (capabilities.*backend.flag) return {backend.code, capability_name(backend.flag)};
  return {0, "emulated"};
}

std::span<const MatrixUnit> matrix_units() {
  static constexpr std::array<MatrixUnit, 7> units = {{
      {1, 32, 16, 8, &Capabilities::ptx_mma_s8},
      {3, 16, 8, 16, &Capabilities::intel_dpas_16},
      {2, 8, 8, 8, &Capabilities::intel_dpas_8},
      {5, 64, 16, 16, &Capabilities::amd_mfma_k32},
      {4, 64, 16, 16, &Capabilities::amd_mfma_k16},
      {6, 32, 16, 16, &Capabilities::amd_wmma},
      {7, 32, 16, 16, &Capabilities::amd_wmma_gfx12},
  }};
  return units;
}

const MatrixUnit* matrix_unit_of(const Capabilities& capabilities) {
  for (const MatrixUnit& unit : matrix_units())
    if (capabilities.*unit.flag) return &unit;
  return nullptr;
}

void disable(Capabilities& capabilities, const std::string& names) {
  for (const std::string& name : comma_list(names)) {
    if (name.empty()) continue;
    const CapabilityName* found = nullptr;
    std::vector<std::string> known;
    for (const CapabilityName& entry : kCapabilityNames) {
      known.emplace_back(entry.name);
      if (name == entry.name) found = &entry;
    }
    if (!found)
      throw Error("BERTCL_DISABLE names '" + name + "', an unknown capability" +
                  suggestion(name, known));
    if (capabilities.*(found->flag)) capabilities.notes[name] = "disabled by BERTCL_DISABLE";
    capabilities.*(found->flag) = false;
  }
}

void check_disabled_capabilities() {
  Capabilities unused;
  if (const char* hidden = std::getenv("BERTCL_DISABLE")) disable(unused, hidden);
}

std::string to_text(const Capabilities& capabilities) {
  std::string text;
  for (const auto& [name, present] : capabilities.list()) {
    const auto note = capabilities.notes.find(name);
    text += fmt::format("{}\t{}\t{}\n", name, present ? 1 : 0,
                        note == capabilities.notes.end() ? "" : note->second);
  }
  return text + fmt::format("lasting\t{}\n", capabilities.is_cacheable ? 1 : 0);
}

std::optional<Capabilities> from_text(const std::string& text) {
  Capabilities capabilities;
  std::istringstream lines(text);
  for (const CapabilityName& entry : kCapabilityNames) {
    std::string name, flag, note;
    if (!std::getline(lines, name, '\t') || !std::getline(lines, flag, '\t') ||
        !std::getline(lines, note) || name != entry.name)
      return std::nullopt;
    capabilities.*entry.flag = flag == "1";
    if (!note.empty()) capabilities.notes[name] = note;
  }
  std::string last;
  if (!std::getline(lines, last) || !last.starts_with("lasting\t")) return std::nullopt;
  capabilities.is_cacheable = last.ends_with("1");
  return capabilities;
}

}  // namespace bertcl::opencl
