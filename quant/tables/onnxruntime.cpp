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

#include "bertcl/error.hpp"
#include "quant/tables/table.hpp"

namespace bertcl::quant {
namespace {

using Json = nlohmann::ordered_json;

/// A number in any of its spellings.
float number(const Json& json, const std::string& tensor, const char* end) {
  if (json.is_number()) return json.get<float>();
  if (json.is_object() && json.contains("data")) return number(json["data"], tensor, end);
  if (json.is_array() && json.size() == 1) return number(json[0], tensor, end);
  if (json.is_array())
    throw Error(
        fmt::format("tensor '{}': {} values as its {} end; ranges for each channel of an "
                    "activation are not supported, calibrate with per_channel=False",
                    tensor, json.size(), end));
  throw Error(
      fmt::format("tensor '{}': no number as its {} end: {:.60}", tensor, end, json.dump()));
}

Range range(const Json& json, const std::string& tensor) {
  if (json.is_array() && json.size() == 2)
    return {number(json[0], tensor, "lower"), number(json[1], tensor, "upper")};
  if (json.is_object() && json.contains("lowest") && json.contains("highest"))
    return {number(json["lowest"], tensor, "lower"), number(json["highest"], tensor, "upper")};
  throw Error(
      fmt::format("tensor '{}' has no 'lowest' and 'highest'; ranges are needed, which the "
                  "methods MinMax, Entropy and Percentile give",
                  tensor));
}

bool recognizes(std::string_view bytes) { return Json::parse(bytes, nullptr, false).is_object(); }

Table parse(std::string_view bytes) {
  try {
    const Json json = Json::parse(bytes);
    const bool whole = json.contains("CLS") && json["CLS"] == "TensorsData";
    Table table;
    if (whole && json.contains("calibration_method") && json["calibration_method"].is_object())
      table.method = json["calibration_method"].value("value", "");
    for (const auto& [tensor, entry] : (whole ? json.at("data") : json).items())
      add_range(table, tensor, range(entry, tensor));
    return table;
  } catch (const Json::exception& e) {
    throw Error(e.what());
  }
}

Json scalar(float value) { return {{"data", value}, {"dtype", "float32"}, {"CLS", "numpy.array"}}; }

/// onnxruntime's name of the method. It only knows its own; ranges of another one are most like
/// those of MinMax, which is used as it is.
const char* method_name(const std::string& method) {
  return method == "percentile" ? "CalibrationMethod.Percentile"
         : method == "entropy"  ? "CalibrationMethod.Entropy"
                                : "CalibrationMethod.MinMax";
}

std::string format(const Table& table) {
  Json data = Json::object();
  for (const auto& [tensor, range] : table.ranges)
    data[tensor] = {
        {"lowest", scalar(range.low)}, {"highest", scalar(range.high)}, {"CLS", "TensorData"}};
  const Json json = {
      {"CLS", "TensorsData"},
      {"data", std::move(data)},
      {"calibration_method", {{"CLS", "CalibrationMethod"}, {"value", method_name(table.method)}}},
      {"smooth_quant", false}};
  return json.dump() + '\n';
}

}  // namespace

const TableFormat onnxruntime_table{
    "onnxruntime", ".json",    "calibration.json of onnxruntime: both ends of each range",
    false,         recognizes, parse,
    format};

}  // namespace bertcl::quant
