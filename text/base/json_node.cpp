// SPDX-License-Identifier: Apache-2.0
// A position in a JSON document that knows its path.
#include "text/base/json_node.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"

namespace bertcl::text {

JsonNode::JsonNode(const nlohmann::json& document, std::string_view origin, std::string_view hint)
    : value_(&document), origin_(origin), hint_(hint) {}

JsonNode::JsonNode(const nlohmann::json& value, const JsonNode& parent, std::string path)
    : value_(&value), origin_(parent.origin_), hint_(parent.hint_), path_(std::move(path)) {}

void JsonNode::fail(const std::string& what) const {
  fail_naming(fmt::format("{} {}", path_.empty() ? "the file" : path_, what));
}

void JsonNode::fail_naming(const std::string& what) const {
  throw Error(fmt::format("{}{}{}{}{}", origin_, origin_.empty() ? "" : ": ", what,
                          hint_.empty() ? "" : "; ", hint_),
              ErrorCode::invalid_file);
}

void JsonNode::expect(bool right, std::string_view type) const {
  if (!right) fail(fmt::format("is of type {}, expected {}", value_->type_name(), type));
}

std::string JsonNode::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

JsonNode JsonNode::at(std::string_view key) const {
  expect(value_->is_object(), "object");
  const auto found = value_->find(key);
  if (found == value_->end()) JsonNode(*value_, *this, path_of(key)).fail("is missing");
  return {*found, *this, path_of(key)};
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  expect(value_->is_object(), "object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonNode(*found, *this, path_of(key));
}

bool JsonNode::flag(std::string_view key, bool default_value) const {
  const auto member = find(key);
  return member ? member->boolean() : default_value;
}

JsonNode JsonNode::element(std::size_t index) const {
  expect(value_->is_array(), "array");
  if (index >= value_->size())
    fail(fmt::format("has {} elements, expected more than {}", value_->size(), index));
  return {(*value_)[index], *this, fmt::format("{}[{}]", path_, index)};
}

void JsonNode::each(const std::function<void(const JsonNode&)>& visit) const {
  expect(value_->is_array(), "array");
  for (std::size_t i = 0; i < value_->size(); ++i) visit(element(i));
}

void JsonNode::each_member(
    const std::function<void(const std::string&, const JsonNode&)>& visit) const {
  expect(value_->is_object(), "object");
  for (const auto& [key, member] : value_->items())
    visit(key, JsonNode(member, *this, path_of(key)));
}

const std::string& JsonNode::string() const {
  expect(value_->is_string(), "string");
  return value_->get_ref<const std::string&>();
}

bool JsonNode::boolean() const {
  expect(value_->is_boolean(), "boolean");
  return value_->get<bool>();
}

std::int64_t JsonNode::integer() const {
  expect(value_->is_number_integer(), "integer");
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    fail(fmt::format("is {}, which overflows 64 bits", value_->dump()));
  return value_->get<std::int64_t>();
}

double JsonNode::number() const {
  expect(value_->is_number(), "number");
  return value_->get<double>();
}

}  // namespace bertcl::text
