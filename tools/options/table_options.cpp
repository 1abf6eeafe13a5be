// SPDX-License-Identifier: Apache-2.0
// The options of `bertcl quantize` for scale tables.
#include "tools/options/table_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "quant/tables/table.hpp"
#include "support/option_checks.hpp"
#include "tools/options/file_options.hpp"

namespace bertcl::tools {

void add_table_options(CLI::App& command, quant::JobOptions& options) {
  const OptionGroup group(command, "Scale tables");
  input_file(command.add_option(
      "--read-table", options.read_table,
      "Take the ranges from this table instead of calibrating. Its format is detected from its "
      "content; see --table-format. Without samples there is neither smoothing nor GPTQ"));
  output_file(command.add_option("--write-table", options.write_table,
                                 "Also write the ranges of the original model; disables smoothing. "
                                 "The format follows the extension"));
  std::vector<std::string> names;
  std::string summaries = "Format to write:";
  for (const quant::ScaleTableFormat& format : quant::table_formats()) {
    names.emplace_back(format.name);
    const bool by_extension =
        &format == &quant::table_format("", "table" + std::string(format.extension));
    summaries +=
        fmt::format("\n{}{}: {}", format.name,
                    by_extension ? fmt::format(" ({})", format.extension) : "", format.summary);
  }
  one_of(command.add_option("--table-format", options.table_format, summaries), names)
      ->needs("--write-table")
      ->type_name("FORMAT")
      ->default_str("");
}

}  // namespace bertcl::tools
