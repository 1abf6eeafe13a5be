// SPDX-License-Identifier: Apache-2.0
// bertcl's own scale table: both ends of each range, and their origin.
//
//   {"format": "bertcl-ranges", "version": 1, "method": "minmax", "samples": 128, "tokens": 20973,
//    "data_sha256": "...", "ranges": {"x": {"low": -1.5, "high": 2.0}}}
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "quant/tables/table.hpp"
#include "text/base/json_file.hpp"
#include "text/base/json_node.hpp"

namespace bertcl::quant {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kFormat = "bertcl-ranges";
constexpr int kVersion = 1;

float to_float(const text::JsonNode& number) { return static_cast<float>(number.number()); }

bool recognizes_json(std::string_view bytes) {
  return text::begins_as_object(bytes) && bytes.find(fmt::format("\"{}\"", kFormat)) != bytes.npos;
}

ScaleTable parse_json(std::string_view bytes) {
  const nlohmann::json document = text::parse_json(bytes);
  const text::JsonNode root(document);
  const text::JsonNode name = root.at("format"), version = root.at("version");
  if (name.string() != kFormat)
    name.fail(fmt::format("is \"{}\", expected \"{}\"", name.string(), kFormat));
  if (version.integer() != kVersion)
    version.fail(fmt::format("is {}, expected {}", version.integer(), kVersion));
  ScaleTable table;
  if (const auto method = root.find("method")) table.method = method->string();
  if (const auto samples = root.find("samples")) table.samples = samples->integer();
  if (const auto tokens = root.find("tokens")) table.tokens = tokens->integer();
  if (const auto hash = root.find("data_sha256")) table.data_sha256 = hash->string();
  root.at("ranges").each_member([&](const std::string& tensor, const text::JsonNode& range) {
    add_range(table, tensor, {to_float(range.at("low")), to_float(range.at("high"))});
  });
  return table;
}

std::string format_json(const ScaleTable& table) {
  Json json = {{"format", kFormat},       {"version", kVersion},
               {"method", table.method},  {"samples", table.samples},
               {"tokens", table.tokens},  {"data_sha256", table.data_sha256},
               {"ranges", Json::object()}};
  for (const auto& [tensor, range] : table.ranges) {
    check_utf8(tensor);
    json["ranges"][tensor] = {{"low", range.low}, {"high", range.high}};
  }
  return json.dump(1) + '\n';
}

}  // namespace

const ScaleTableFormat kJsonTable{
    "json",     ".json",    "both ends of each range, and their origin", false, recognizes_json,
    parse_json, format_json};

}  // namespace bertcl::quant
