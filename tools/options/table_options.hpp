// SPDX-License-Identifier: Apache-2.0
// The options of `bertcl quantize` for scale tables.
#pragma once
#include <string>

#include "quant/quantizer.hpp"
#include "quant/tables/table.hpp"

namespace CLI {
class App;
}

namespace bertcl::tools {

struct TableOptions {
  std::string read, write;  ///< files; empty: none
  std::string format;       ///< of the file that is written; empty: by its extension
};

void add_table_options(CLI::App& command, TableOptions& options);

/// Throws Error, before any work, if the file to write has no known format.
void check_table_options(const TableOptions& options);

/// Writes the ranges that the quantizer used, if requested, and says so if `prints_text`.
void write_table(const TableOptions& options, const quant::Report& report, bool prints_text);

}  // namespace bertcl::tools
