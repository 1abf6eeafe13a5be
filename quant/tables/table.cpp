// SPDX-License-Identifier: Apache-2.0
// Scale tables: the list of formats, and what they share.
#include "quant/tables/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/parse_number.hpp"
#include "text/base/file.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::quant {
namespace {

void check(const ScaleTable& table) {
  if (table.ranges.empty()) throw Error("the table lists no tensor");
  for (const auto& [tensor, range] : table.ranges)
    if (!std::isfinite(range.low) || !std::isfinite(range.high) || range.low > range.high)
      fail("tensor '{}': [{}, {}] is not a range", tensor, range.low, range.high);
}

std::string list_of_formats() {
  std::string list;
  for (const ScaleTableFormat& f : table_formats())
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", f.name, f.extension);
  return list;
}

}  // namespace

std::span<const ScaleTableFormat> table_formats() {
  // The first format of an extension is written for it. Text may stand before TensorRT's cache,
  // whose first line is not a name and a number.
  static const std::array all{kJsonTable, kOnnxruntimeTable, kFlatbuffersTable, kTextTable,
                              kTensorrtTable};
  return all;
}

const ScaleTableFormat& table_format(std::string_view name, const std::filesystem::path& path) {
  for (const ScaleTableFormat& f : table_formats())
    if (name.empty() ? f.extension == path.extension().string() : f.name == name) return f;
  throw Error(
      name.empty()
          ? fmt::format("{}: unknown scale table extension; name the format (choose from {})",
                        path.string(), list_of_formats())
          : fmt::format("unknown scale table format '{}' (choose from {})", name,
                        list_of_formats()));
}

ReadTable read_table(const std::filesystem::path& path) {
  const std::string bytes = text::read_file(path);
  const auto formats = table_formats();
  const auto found =
      std::ranges::find_if(formats, [&](const ScaleTableFormat& f) { return f.recognizes(bytes); });
  if (found == formats.end())
    fail("{}: not a scale table (known formats: {})", path.string(), list_of_formats());
  try {
    ReadTable read{found->parse(bytes), &*found};
    check(read.table);
    return read;
  } catch (const Error& e) {
    fail("{}: read as {}: {}", path.string(), found->name, e.what());
  }
}

std::string table_text(const ScaleTable& table, const ScaleTableFormat& format) {
  check(table);
  return format.format(table);
}

std::string decimal(float value) {
  std::string text = fmt::format("{}", static_cast<double>(value));
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

float parse_decimal(std::string_view text, const std::string& tensor) {
  // Widened floats are written: their shortest text is one of doubles.
  if (const auto value = parse_number<double>(text)) return static_cast<float>(*value);
  fail("tensor '{}': '{:.60}' is not a number", tensor, text);
}

void check_one_line(const std::string& tensor) {
  if (tensor.find('\n') != std::string::npos)
    fail(
        "tensor '{}': its name has a line break, and this format has a line for each tensor; use "
        "json",
        tensor);
}

void check_utf8(const std::string& tensor) {
  if (text::first_ill_formed(tensor))
    fail("tensor '{}': its name is invalid UTF-8, which JSON cannot hold; use flatbuffers", tensor);
}

void add_range(ScaleTable& table, const std::string& tensor, Range range) {
  if (!table.ranges.emplace(tensor, range).second) fail("tensor '{}' is listed twice", tensor);
}

}  // namespace bertcl::quant
