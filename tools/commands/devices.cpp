// SPDX-License-Identifier: Apache-2.0
// bertcl devices: the OpenCL devices and their probed capabilities.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/device/device.hpp"
#include "tools/options/command.hpp"
#include "tools/options/json_report.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

struct Found {
  opencl::DeviceInfo info;
  opencl::Capabilities capabilities;
  std::string error;  // why the device could not be opened; then there are no capabilities
};

Found probe(const opencl::DeviceInfo& info) {
  Found found{info, {}, {}};
  try {
    found.capabilities = opencl::Context::create(std::to_string(info.index))->capabilities();
  } catch (const std::exception& error) {
    found.error = error.what();
  }
  return found;
}

void print_table(const std::vector<Found>& devices, int chosen) {
  Table table({"", ">index", "type", "device", "OpenCL", ">units", ">memory", "driver"});
  for (const Found& found : devices) {
    const opencl::DeviceInfo& info = found.info;
    table.add({info.index == chosen ? "*" : " ", std::to_string(info.index), info.type, info.name,
               info.version, std::to_string(info.compute_units), bytes_text(info.global_mem_bytes),
               info.platform + " " + info.driver});
  }
  print_text("{}", table.str());
  print_text("* is the default without --device\n");
}

void print_capabilities(const Found& found) {
  print_text("\n{}: {}\n", found.info.index, found.info.name);
  if (!found.error.empty()) {
    print_text("  cannot be used: {}\n", found.error);
    return;
  }
  Table table({"  capability", "", "why not"});
  for (const auto& [name, present] : found.capabilities.list()) {
    const auto note = found.capabilities.notes.find(name);
    table.add({"  " + name, present ? "yes" : "no",
               note == found.capabilities.notes.end() ? "" : note->second});
  }
  print_text("{}", table.str());
  if (!found.info.is_cpu())  // CPUs have kernels of their own
    print_text("  int8 dot products: {}\n", opencl::dot4_of(found.capabilities).name);
}

nlohmann::ordered_json to_json(const std::vector<Found>& devices, int chosen) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Found& found : devices) {
    const opencl::DeviceInfo& info = found.info;
    nlohmann::ordered_json entry = {{"index", info.index},
                                    {"name", info.name},
                                    {"type", info.type},
                                    {"vendor", info.vendor},
                                    {"platform", info.platform},
                                    {"platform_version", info.platform_version},
                                    {"version", info.version},
                                    {"driver", info.driver},
                                    {"compute_units", info.compute_units},
                                    {"global_mem_bytes", info.global_mem_bytes},
                                    {"max_alloc_bytes", info.max_alloc_bytes},
                                    {"local_mem_bytes", info.local_mem_bytes},
                                    {"max_work_group_size", info.max_work_group_size},
                                    {"unified_memory", info.unified_memory},
                                    {"extensions", info.extensions}};
    if (found.error.empty()) {
      auto& capabilities = entry["capabilities"] = nlohmann::ordered_json::object();
      for (const auto& [name, present] : found.capabilities.list()) capabilities[name] = present;
      entry["dot4"] = opencl::dot4_of(found.capabilities).name;
      entry["notes"] = found.capabilities.notes;
    } else {
      entry["error"] = found.error;
    }
    list.push_back(std::move(entry));
  }
  return {{"default", chosen}, {"devices", std::move(list)}};
}

int run_devices(const CommonOptions& options) {
  opencl::check_disabled_capabilities();
  const opencl::DeviceInfo chosen = opencl::select_device(options.device);
  std::vector<Found> devices;
  if (options.device.empty()) {
    for (const opencl::DeviceInfo& info : opencl::list_devices()) devices.push_back(probe(info));
  } else {
    devices.push_back(probe(chosen));
  }
  if (options.prints_text()) {
    print_table(devices, chosen.index);
    for (const Found& found : devices) print_capabilities(found);
  }
  write_report(options, chosen, to_json(devices, chosen.index));
  return kOk;
}

}  // namespace

void add_devices(CLI::App& program, Action& action) {
  const auto options = std::make_shared<CommonOptions>();
  CLI::App* command = add_command(
      program, "devices",
      "List the OpenCL devices and their capabilities\n\n"
      "Each capability was shown by a small kernel that was built, run and checked exactly; what a "
      "driver reports is only a hint. The environment variable BERTCL_DISABLE hides capabilities "
      "by name (avx512_vnni,avx2,...), to try the kernels for less capable devices.",
      "bertcl devices --device cpu", *options);
  command->callback([options, &action] { action = [options] { return run_devices(*options); }; });
}

}  // namespace bertcl::tools
