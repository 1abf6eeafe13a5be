// SPDX-License-Identifier: Apache-2.0
// onnxruntime's calibration JSON: `write_calibration_table` (calibration.json) and
// `save_tensors_data` of onnxruntime.quantization.
//
//   {"CLS": "TensorsData", "data": {"x": {"lowest": NUMBER, "highest": NUMBER,
//                                         "CLS": "TensorData"}},
//    "calibration_method": {"CLS": "CalibrationMethod", "value": "CalibrationMethod.MinMax"}}
//
// with NUMBER {"data": -1.5, "dtype": "float32", "CLS": "numpy.array"}, a plain number, or either
// of them in lists of one. Also read: the inner object alone, as of a plain dict of TensorData,
// and [lowest, highest] in place of the object, as older versions wrote it. Histograms beside the
// ranges are passed over.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "quant/tables/table.hpp"
#include "text/base/json_file.hpp"
#include "text/base/json_node.hpp"

namespace bertcl::quant {
namespace {

using Json = nlohmann::ordered_json;
using text::JsonNode;

/// onnxruntime's names of methods, and ours.
constexpr std::pair<std::string_view, std::string_view> kMethods[] = {
    {"CalibrationMethod.MinMax", "minmax"},
    {"CalibrationMethod.Percentile", "percentile"},
    {"CalibrationMethod.Entropy", "entropy"}};

std::string our_name(const std::string& method) {
  for (const auto& [theirs, ours] : kMethods)
    if (method == theirs) return std::string(ours);
  return method;
}

/// It only knows its own; ranges of another one are most like those of MinMax, which is used as it
/// is.
std::string_view their_name(const std::string& method) {
  for (const auto& [theirs, ours] : kMethods)
    if (method == ours) return theirs;
  return kMethods[0].first;
}

/// A number in any of its spellings: the `end` of a range.
float number(JsonNode node, const char* end) {
  while (!node.value().is_number()) {
    const nlohmann::json& value = node.value();
    if (value.is_object()) {
      node = node.at("data");
    } else if (value.is_array() && value.size() == 1) {
      node = node.element(0);
    } else if (value.is_array()) {
      node.fail(
          fmt::format("has {} values as its {} end; per-channel ranges of activations are not "
                      "supported, calibrate with per_channel=False",
                      value.size(), end));
    } else {
      node.fail(
          fmt::format("is of type {}, expected the number of the {} end", value.type_name(), end));
    }
  }
  return static_cast<float>(node.number());
}

Range range(const JsonNode& node) {
  const nlohmann::json& value = node.value();
  if (value.is_array() && value.size() == 2)
    return {number(node.element(0), "lower"), number(node.element(1), "upper")};
  if (value.is_object() && value.contains("lowest") && value.contains("highest"))
    return {number(node.at("lowest"), "lower"), number(node.at("highest"), "upper")};
  node.fail(
      "has no 'lowest' and 'highest'; calibrate with MinMax, Entropy or Percentile, which give "
      "ranges");
}

bool recognizes_onnxruntime(std::string_view bytes) { return text::begins_as_object(bytes); }

ScaleTable parse_onnxruntime(std::string_view bytes) {
  const nlohmann::json document = text::parse_json(bytes);
  const JsonNode root(document);
  const auto kind = root.find("CLS");
  const bool whole = kind && kind->value() == "TensorsData";
  ScaleTable table;
  // It is told to the user and no more: of another kind it is passed over.
  const auto method = whole ? root.find("calibration_method") : std::nullopt;
  if (method && method->value().is_object())
    if (const auto name = method->find("value")) table.method = our_name(name->string());
  const JsonNode data = whole ? root.at("data") : root;
  data.each_member([&](const std::string& tensor, const JsonNode& entry) {
    add_range(table, tensor, range(entry));
  });
  return table;
}

Json scalar(float value) { return {{"data", value}, {"dtype", "float32"}, {"CLS", "numpy.array"}}; }

std::string format_onnxruntime(const ScaleTable& table) {
  Json data = Json::object();
  for (const auto& [tensor, range] : table.ranges) {
    check_utf8(tensor);
    data[tensor] = {
        {"lowest", scalar(range.low)}, {"highest", scalar(range.high)}, {"CLS", "TensorData"}};
  }
  const Json json = {
      {"CLS", "TensorsData"},
      {"data", std::move(data)},
      {"calibration_method", {{"CLS", "CalibrationMethod"}, {"value", their_name(table.method)}}},
      {"smooth_quant", false}};
  return json.dump() + '\n';
}

}  // namespace

const ScaleTableFormat kOnnxruntimeTable{"onnxruntime",
                                         ".json",
                                         "onnxruntime's calibration.json: both ends of each range",
                                         false,
                                         recognizes_onnxruntime,
                                         parse_onnxruntime,
                                         format_onnxruntime};

}  // namespace bertcl::quant
