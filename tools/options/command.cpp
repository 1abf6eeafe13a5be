// SPDX-License-Identifier: Apache-2.0
// What every command has: its options, its action, its exit codes.
#include "tools/options/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

#include "tools/options/file_options.hpp"

namespace bertcl::tools {
namespace {

/// Puts a size such as 4G in bytes; false if it is none, or one of more than 64 bits.
bool put_in_bytes(std::string& text) {
  try {
    return CLI::AsSizeValue(false)(text).empty();
  } catch (const CLI::ValidationError&) {  // its message lists 30 units
    return false;
  }
}

/// What is wrong with a size of memory; else it is put in bytes.
std::string as_bytes(std::string& text) {
  const std::string given = text;
  std::string unit = "1" + text.substr(std::min(text.find_first_not_of("0123456789"), text.size()));
  if (text.empty() || unit.size() > text.size() || !put_in_bytes(unit))
    return fmt::format("'{}' is not a size such as 500M or 4G", given);
  const bool fits = put_in_bytes(text);
  std::int64_t bytes = 0;
  const char* end = text.data() + text.size();
  if (fits && std::from_chars(text.data(), end, bytes).ec == std::errc{} && bytes > 0) return "";
  return fmt::format("'{}' is out of range", given);
}

}  // namespace

CLI::App* add_command(CLI::App& program, const std::string& name, const std::string& description,
                      const std::string& example, CommonOptions& options) {
  CLI::App* command = program.add_subcommand(name, description);
  options.command = name;
  command->group("Commands");
  command->footer("Example:\n  " + example + "\n");
  command
      ->add_option("--device", options.device,
                   "OpenCL device: index, cpu, gpu, or part of its name; by default BERTCL_DEVICE, "
                   "else the first GPU, else the CPU")
      ->type_name("DEVICE");
  command
      ->add_option_function<std::uint64_t>(
          "--max-memory",
          [](const std::uint64_t& bytes) {
            // Also for sessions that a command makes for others, as the quantizer's.
            setenv("BERTCL_MAX_MEMORY", std::to_string(bytes).c_str(), 1);
          },
          "Memory limit, in bytes or as 500M or 4G, for weights and intermediate tensors on the "
          "device and for folded constants; by default BERTCL_MAX_MEMORY, else what the device has")
      ->transform(CLI::Validator(as_bytes, ""))
      ->type_name("SIZE");
  output_file(
      command->add_option(
          "--json", options.json,
          "Write the result as JSON to FILE (new, or an earlier report); - prints only the JSON"),
      OutputFileKind::report_or_terminal);
  return command;
}

}  // namespace bertcl::tools
