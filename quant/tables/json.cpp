// SPDX-License-Identifier: Apache-2.0
// The program's own scale table: both ends of each range, and where they come from.
//
//   {"format": "bertcl-ranges", "version": 1, "method": "minmax", "samples": 128, "tokens": 20973,
//    "data_sha256": "...", "ranges": {"x": {"low": -1.5, "high": 2.0}}}
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bertcl/error.hpp"
#include "quant/tables/table.hpp"

namespace bertcl::quant {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFormat = "bertcl-ranges";
constexpr int kVersion = 1;

bool recognizes(std::string_view bytes) {
  const Json json = Json::parse(bytes, nullptr, false);
  return json.is_object() && json.contains("format") && json["format"] == kFormat;
}

Table parse(std::string_view bytes) {
  try {
    const Json json = Json::parse(bytes);
    if (json.at("format") != kFormat)
      throw Error(fmt::format("its format is {}, not \"{}\"", json.at("format").dump(), kFormat));
    if (json.at("version") != kVersion)
      throw Error(
          fmt::format("version {} is not known, {} is", json.at("version").dump(), kVersion));
    Table table;
    table.method = json.value("method", "");
    table.samples = json.value("samples", std::int64_t{0});
    table.tokens = json.value("tokens", std::int64_t{0});
    table.data_sha256 = json.value("data_sha256", "");
    for (const auto& [tensor, range] : json.at("ranges").items())
      add_range(table, tensor, {range.at("low").get<float>(), range.at("high").get<float>()});
    return table;
  } catch (const Json::exception& e) {
    throw Error(e.what());
  }
}

std::string format(const Table& table) {
  Json json = {{"format", kFormat},       {"version", kVersion},
               {"method", table.method},  {"samples", table.samples},
               {"tokens", table.tokens},  {"data_sha256", table.data_sha256},
               {"ranges", Json::object()}};
  for (const auto& [tensor, range] : table.ranges)
    json["ranges"][tensor] = {{"low", range.low}, {"high", range.high}};
  return json.dump(1) + '\n';
}

}  // namespace

const TableFormat json_table{
    "json", ".json", "both ends of each range, and where they come from", false, recognizes,
    parse,  format};

}  // namespace bertcl::quant
