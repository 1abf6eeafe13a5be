// SPDX-License-Identifier: Apache-2.0
// User overrides for individual tensors: onnxruntime's TensorQuantOverrides.
#include "quant/encoding/overrides.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "text/base/file.hpp"
#include "text/base/json_file.hpp"
#include "text/base/json_node.hpp"

namespace bertcl::quant {
namespace {

using text::JsonNode;

constexpr std::array kKeys{"quant_type",   "scale", "zero_point", "symmetric",
                           "reduce_range", "rmin",  "rmax",       "axis"};

/// The value of a key, also out of a list of one; none if there is none.
std::optional<JsonNode> find(const JsonNode& entry, const char* key) {
  auto node = entry.find(key);
  if (node && node->value().is_array() && node->value().size() == 1) return node->element(0);
  return node;
}

std::optional<float> finite(const JsonNode& entry, const char* key) {
  const auto node = find(entry, key);
  if (!node) return std::nullopt;
  const auto value = static_cast<float>(node->number());
  if (!std::isfinite(value)) node->fail("is {}, expected a finite number", node->value().dump());
  return value;
}

std::optional<int> integer(const JsonNode& entry, const char* key) {
  const auto node = find(entry, key);
  if (!node) return std::nullopt;
  if (std::abs(static_cast<double>(node->integer())) >= 1e6)
    node->fail("is {}, expected a small integer", node->integer());
  return static_cast<int>(node->integer());
}

std::optional<bool> boolean(const JsonNode& entry, const char* key) {
  const auto node = find(entry, key);
  return node ? std::optional(node->boolean()) : std::nullopt;
}

Override read_entry(const JsonNode& entry) {
  entry.each_member([](const std::string& key, const JsonNode& member) {
    if (std::ranges::find(kKeys, key) == kKeys.end())
      member.fail("is an unknown key (choose from {})", fmt::join(kKeys, ", "));
  });
  Override o;
  if (const auto name = find(entry, "quant_type")) {
    if (name->string() == "QInt8") o.type = ir::DType::i8;
    if (name->string() == "QUInt8") o.type = ir::DType::u8;
    if (!o.type) name->fail("is \"{}\" (choose from QInt8, QUInt8)", name->string());
  }
  o.symmetric = boolean(entry, "symmetric");
  o.reduced = boolean(entry, "reduce_range");
  o.low = finite(entry, "rmin");
  o.high = finite(entry, "rmax");
  const auto scale = finite(entry, "scale");
  const auto zero_point = integer(entry, "zero_point");
  if (scale.has_value() != zero_point.has_value())
    entry.at(scale ? "scale" : "zero_point").fail("needs both scale and zero_point");
  if (scale) {
    if (!std::isnormal(*scale) || *scale < 0)
      entry.at("scale").fail("is {}; a scale must be above 0", *scale);
    o.parameters = {*scale, *zero_point};
    for (const char* key : {"symmetric", "reduce_range", "rmin", "rmax"})
      if (const auto node = entry.find(key)) node->fail("has no effect with scale and zero_point");
  }
  if (o.low && o.high && *o.low > *o.high)
    entry.at("rmin").fail("is {}, above rmax, which is {}", *o.low, *o.high);
  return o;
}

TensorOverride read_tensor(const JsonNode& entries, const std::string& place) {
  TensorOverride tensor{{}, {}, place};
  entries.each([&](const JsonNode& entry) {
    Override o = read_entry(entry);
    const auto axis = integer(entry, "axis");
    if (tensor.channels.empty()) {
      tensor.axis = axis;
      if (entries.value().size() > 1 && !axis)
        entry.fail("needs an axis: there is one entry per channel");
      if (axis && o.low.has_value() != o.high.has_value())
        entry.at(o.low ? "rmin" : "rmax").fail("needs both rmin and rmax");
    } else {
      const Override& first = tensor.channels.front();
      const auto same = [&](const char* key, const auto& mine, const auto& of_first) {
        if (mine && mine != of_first) entry.at(key).fail("differs from entry 0");
      };
      same("axis", axis, tensor.axis);
      same("quant_type", o.type, first.type);
      same("symmetric", o.symmetric, first.symmetric);
      same("reduce_range", o.reduced, first.reduced);
      if (o.parameters.has_value() != first.parameters.has_value())
        entry.fail("and entry 0: only one of them has a scale");
      if (o.low.has_value() != first.low.has_value() ||
          o.high.has_value() != first.high.has_value())
        entry.fail("and entry 0: only one of them has rmin and rmax");
      o.type = first.type;
      o.symmetric = first.symmetric;
      o.reduced = first.reduced;
    }
    tensor.channels.push_back(o);
  });
  if (tensor.channels.empty()) entries.fail("is empty, expected a list of objects");
  return tensor;
}

}  // namespace

Overrides read_overrides(const std::filesystem::path& path) {
  const nlohmann::json json = text::parse_json(text::read_file(path), path.string());
  const std::string origin = path.string();
  Overrides overrides;
  JsonNode(json, origin).each_member([&](const std::string& tensor, const JsonNode& entries) {
    overrides.emplace(tensor, read_tensor(entries, fmt::format("{}: \"{}\"", origin, tensor)));
  });
  return overrides;
}

Scheme overridden(Scheme scheme, const Override& o) {
  if (o.type) scheme.type = *o.type;
  if (o.symmetric) scheme.symmetric = *o.symmetric;
  if (o.reduced) scheme.steps = *o.reduced ? Steps::reduced : Steps::standard;
  return scheme;
}

Range overridden(Range range, const Override& o) {
  return {o.low.value_or(range.low), o.high.value_or(range.high)};
}

}  // namespace bertcl::quant
