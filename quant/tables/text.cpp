// SPDX-License-Identifier: Apache-2.0
// onnxruntime's calibration.cache: a line "NAME MAGNITUDE" for each tensor, sorted by name.
//
// onnxruntime writes the larger end with its sign, 1 for [-10, 1]; here it is the larger absolute
// value, 10.
#include "bertcl/error.hpp"
#include "quant/tables/table.hpp"
#include "support/fail.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::quant {
namespace {

ScaleTable parse_text(std::string_view bytes) {
  ScaleTable table;
  text::each_line(bytes, [&](std::string_view line, std::size_t number) {
    if (line.empty()) return;
    const auto gap = line.rfind(' ');  // names may hold blanks
    if (gap == std::string_view::npos || gap == 0)
      fail("line {}: '{:.60}' is not 'NAME NUMBER'", number, line);
    const std::string tensor(line.substr(0, gap));
    add_range(table, tensor, symmetric_range(parse_decimal(line.substr(gap + 1), tensor)));
  });
  return table;
}

bool recognizes_text(std::string_view bytes) {
  try {
    return !parse_text(bytes).ranges.empty();
  } catch (const Error&) {
    return false;
  }
}

std::string format_text(const ScaleTable& table) {
  std::string text;
  for (const auto& [tensor, range] : table.ranges) {
    check_one_line(tensor);
    text += tensor + ' ' + decimal(magnitude(range)) + '\n';
  }
  return text;
}

}  // namespace

const ScaleTableFormat kTextTable{
    "cache",    ".cache",        "onnxruntime's calibration.cache: lines NAME MAGNITUDE",
    true,       recognizes_text, parse_text,
    format_text};

}  // namespace bertcl::quant
