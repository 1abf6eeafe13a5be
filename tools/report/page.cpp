// SPDX-License-Identifier: Apache-2.0
// Reports as HTML pages of one style that need nothing from elsewhere.
#include "tools/report/page.hpp"

#include <fmt/format.h>

#include <kainjow/mustache.hpp>
#include <nlohmann/json.hpp>

#include "bertcl/error.hpp"
#include "support/json_text.hpp"
#include "tools/report/embedded_files.hpp"

namespace bertcl::tools {
namespace {

using nlohmann::ordered_json;
namespace mustache = kainjow::mustache;

/// Control characters have no place in a page; a name may hold them.
std::string without_controls(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') c = ' ';
  return text;
}

}  // namespace

std::string plain_text(const std::string& text) {
  return without_controls(as_utf8(text).get<std::string>());
}

namespace {

mustache::data to_data(const ordered_json& json) {
  if (json.is_object()) {
    mustache::data object(mustache::data::type::object);
    for (const auto& [key, value] : json.items()) object.set(key, to_data(value));
    return object;
  }
  if (json.is_array()) {
    mustache::data list(mustache::data::type::list);
    for (const auto& item : json) list << to_data(item);
    return list;
  }
  if (json.is_null()) return mustache::data(false);
  if (json.is_boolean()) return mustache::data(json.get<bool>());
  const std::string text =
      without_controls(json.is_string() ? json.get<std::string>() : json.dump());
  // A section {{#name}} shows where there is something to show.
  return text.empty() ? mustache::data(false) : mustache::data(text);
}

std::string_view template_of(Page page) {
  switch (page) {
    case Page::inspect:
      return inspect_html;
    case Page::eval:
      return eval_html;
    case Page::bench:
      return bench_html;
  }
  return {};
}

}  // namespace

std::string render_page(Page page, const ordered_json& view) {
  mustache::mustache made{std::string(template_of(page))};
  if (!made.is_valid()) throw Error("the template of the report: " + made.error_message());
  mustache::data data = to_data(view);
  for (const auto& [name, text] :
       {std::pair("style", style_css), {"head_html", head_html}, {"tiles_html", tiles_html}})
    data.set(name, mustache::data(mustache::partial([text = std::string(text)] { return text; })));
  return made.render(data);
}

ordered_json tile(const std::string& label, const std::string& value, const std::string& note) {
  return {{"label", label}, {"value", value}, {"note", note}};
}

ordered_json as_utf8(const ordered_json& report) { return ordered_json::parse(json_text(report)); }

const char* color_of(plan::Arithmetic::Kind kind) {
  using enum plan::Arithmetic::Kind;
  switch (kind) {
    case moves:
      return "moves";
    case int8:
      return "int8";
    case fp16:
    case bf16:
      return "fp16";
    case fp32:
      return "fp32";
    case mixed:
      return "mixed";
  }
  return "";
}

std::string percent_text(double part, double whole) {
  return fmt::format("{:.1f}", whole > 0 ? 100 * part / whole : 0.0);
}

}  // namespace bertcl::tools
