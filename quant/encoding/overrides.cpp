// SPDX-License-Identifier: Apache-2.0
// User overrides for individual tensors: onnxruntime's TensorQuantOverrides.
#include "quant/encoding/overrides.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/fail.hpp"
#include "text/base/file.hpp"
#include "text/base/json_file.hpp"

namespace bertcl::quant {
namespace {

using Json = nlohmann::json;

constexpr std::array kKeys{"quant_type",   "scale", "zero_point", "symmetric",
                           "reduce_range", "rmin",  "rmax",       "axis"};

/// Reads one entry; messages begin with its place in the file.
class Entry {
 public:
  Entry(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) fail("", fmt::format("must be an object, it is {}", json.dump()));
    for (const auto& [key, value] : json.items())
      if (std::ranges::find(kKeys, key) == kKeys.end())
        fail("." + key, fmt::format("is an unknown key (choose from {})", fmt::join(kKeys, ", ")));
  }

  [[noreturn]] void fail(const std::string& key, const std::string& message) const {
    bertcl::fail("{}{} {}", place_, key, message);
  }

  std::optional<int> axis() const { return integer("axis"); }

  Override read() const {
    Override o;
    if (const auto name = text("quant_type")) {
      if (*name == "QInt8") o.type = ir::DType::i8;
      if (*name == "QUInt8") o.type = ir::DType::u8;
      if (!o.type)
        fail(".quant_type", fmt::format("is \"{}\"; QInt8 and QUInt8 are supported", *name));
    }
    o.symmetric = truth("symmetric");
    o.reduced = truth("reduce_range");
    o.low = number("rmin");
    o.high = number("rmax");
    const auto scale = number("scale");
    const auto zero_point = integer("zero_point");
    if (scale.has_value() != zero_point.has_value())
      fail(scale ? ".scale" : ".zero_point", "needs both scale and zero_point");
    if (scale) {
      if (!std::isnormal(*scale) || *scale < 0)
        fail(".scale", fmt::format("is {}; a scale must be above 0", *scale));
      o.parameters = {*scale, *zero_point};
      for (const char* key : {"symmetric", "reduce_range", "rmin", "rmax"})
        if (json_.contains(key))
          fail(std::string(".") + key, "has no effect with scale and zero_point");
    }
    if (o.low && o.high && *o.low > *o.high)
      fail(".rmin", fmt::format("is {}, above rmax, which is {}", *o.low, *o.high));
    return o;
  }

 private:
  /// The value of a key, also out of a list of one; null if there is none.
  const Json* find(const char* key) const {
    const auto it = json_.find(key);
    if (it == json_.end()) return nullptr;
    return it->is_array() && it->size() == 1 ? &it->front() : &*it;
  }
  template <class Check>
  const Json* find(const char* key, const char* kind, Check check) const {
    const Json* value = find(key);
    if (value && !check(*value))
      fail(std::string(".") + key, fmt::format("must be {}, it is {}", kind, value->dump()));
    return value;
  }
  std::optional<float> number(const char* key) const {
    const Json* value = find(key, "a finite number", [](const Json& v) {
      return v.is_number() && std::isfinite(v.get<float>());
    });
    return value ? std::optional(value->get<float>()) : std::nullopt;
  }
  std::optional<int> integer(const char* key) const {
    const Json* value = find(key, "an integer", [](const Json& v) {
      return v.is_number_integer() && std::abs(v.get<double>()) < 1e6;
    });
    return value ? std::optional(value->get<int>()) : std::nullopt;
  }
  std::optional<bool> truth(const char* key) const {
    const Json* value = find(key, "true or false", [](const Json& v) { return v.is_boolean(); });
    return value ? std::optional(value->get<bool>()) : std::nullopt;
  }
  std::optional<std::string> text(const char* key) const {
    const Json* value = find(key, "a string", [](const Json& v) { return v.is_string(); });
    return value ? std::optional(value->get<std::string>()) : std::nullopt;
  }

  const Json& json_;
  std::string place_;
};

TensorOverride read_tensor(const Json& json, const std::string& place) {
  if (!json.is_array() || json.empty())
    fail("{} must be a list of objects, it is {}", place, json.dump());
  TensorOverride tensor{{}, {}, place};
  for (std::size_t i = 0; i < json.size(); ++i) {
    const Entry entry(json[i], fmt::format("{}[{}]", place, i));
    Override o = entry.read();
    const auto axis = entry.axis();
    if (i == 0) {
      tensor.axis = axis;
      if (json.size() > 1 && !axis) entry.fail("", "needs an axis: there is one entry per channel");
      if (axis && o.low.has_value() != o.high.has_value())
        entry.fail(o.low ? ".rmin" : ".rmax", "needs both rmin and rmax");
    } else {
      const Override& first = tensor.channels.front();
      const auto same = [&](const char* key, const auto& mine, const auto& of_first) {
        if (mine && mine != of_first) entry.fail(std::string(".") + key, "differs from entry 0");
      };
      same("axis", axis, tensor.axis);
      same("quant_type", o.type, first.type);
      same("symmetric", o.symmetric, first.symmetric);
      same("reduce_range", o.reduced, first.reduced);
      if (o.parameters.has_value() != first.parameters.has_value())
        entry.fail("", "and entry 0: only one of them has a scale");
      if (o.low.has_value() != first.low.has_value() ||
          o.high.has_value() != first.high.has_value())
        entry.fail("", "and entry 0: only one of them has rmin and rmax");
      o.type = first.type;
      o.symmetric = first.symmetric;
      o.reduced = first.reduced;
    }
    tensor.channels.push_back(o);
  }
  return tensor;
}

}  // namespace

Overrides read_overrides(const std::filesystem::path& path) {
  const Json json = text::parse_json(text::read_file(path), path.string());
  if (!json.is_object()) fail("{}: must be an object of lists by tensor", path.string());
  Overrides overrides;
  for (const auto& [tensor, entries] : json.items())
    overrides.emplace(tensor,
                      read_tensor(entries, fmt::format("{}: \"{}\"", path.string(), tensor)));
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
