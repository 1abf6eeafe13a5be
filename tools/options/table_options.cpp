// SPDX-License-Identifier: Apache-2.0
// The options of `bertcl quantize` for scale tables.
#include "tools/options/table_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "tools/options/file_options.hpp"
#include "tools/options/option_checks.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {

void add_table_options(CLI::App& command, TableOptions& options) {
  const OptionGroup group(command, "Scale tables");
  input_file(command.add_option("--read-table", options.read,
                                "Take the ranges from this table instead of calibrating. Its "
                                "format is detected from\nits content; see --table-format. Without "
                                "samples there is neither smoothing nor GPTQ"));
  output_file(command.add_option("--write-table", options.write,
                                 "Also write the ranges of the original model: nothing is "
                                 "smoothed. The format\nfollows the extension"));
  std::vector<std::string> names;
  std::string summaries = "Format to write:";
  for (const quant::TableFormat& format : quant::table_formats()) {
    names.emplace_back(format.name);
    const bool by_extension =
        &format == &quant::table_format("", "table" + std::string(format.extension));
    summaries +=
        fmt::format("\n{}{}: {}", format.name,
                    by_extension ? fmt::format(" ({})", format.extension) : "", format.summary);
  }
  one_of(command.add_option("--table-format", options.format, summaries), names)
      ->needs("--write-table")
      ->type_name("FORMAT")
      ->default_str("");
}

void check_table_options(const TableOptions& options) {
  if (options.write.empty()) return;
  quant::table_format(options.format, options.write);
}

void write_table(const TableOptions& options, const quant::Report& report, bool prints_text) {
  if (options.write.empty()) return;
  // By a pointer: GCC 14 takes a reference for one to the arguments.
  const quant::TableFormat* format = &quant::table_format(options.format, options.write);
  const quant::Table table = quant::table_of(report);
  quant::write_table(options.write, table, *format);
  if (prints_text)
    print_text("{}: {} of {} activations, format {}\n", options.write,
               format->magnitudes ? "magnitudes" : "ranges", table.ranges.size(), format->name);
}

}  // namespace bertcl::tools
