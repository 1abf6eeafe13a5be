// SPDX-License-Identifier: Apache-2.0
// The ranges that calibration gave the activations of a Q/DQ file.
#include "tools/report/calibration.hpp"

#include <algorithm>
#include <limits>
#include <regex>
#include <utility>

#include "onnx/tensors.hpp"
#include "quant/graph/constants.hpp"
#include "quant/graph/graph_index.hpp"
#include "quant/graph/model.hpp"

namespace bertcl::tools {
namespace {

/// Exporters name the parts of layer 3 "layer.3", "layers.3" or "layer_3".
std::optional<int> layer_of(const std::string& tensor) {
  static const std::regex number("layers?[._/]([0-9]{1,6})");
  std::smatch match;
  if (!std::regex_search(tensor, match, number)) return std::nullopt;
  return std::stoi(match[1]);
}

std::pair<double, double> integers_of(ir::DType type) {
  switch (type) {
    case ir::DType::i8:
      return {-128, 127};
    case ir::DType::i16:
      return {-32768, 32767};
    case ir::DType::u16:
      return {0, 65535};
    default:
      return {0, 255};
  }
}

CalibratedRange range_of(const onnx::NodeProto& node, quant::Constants& constants) {
  const std::vector<double> scales = constants.value(node.input(1)).to_doubles();
  std::vector<std::int64_t> zero_points;
  const auto stated = static_cast<std::int32_t>(quant::int_attribute(node, "output_dtype", 0));
  ir::DType type = onnx_io::known_element_type(stated).value_or(ir::DType::u8);
  if (node.input_size() > 2 && !node.input(2).empty()) {
    const ir::Tensor values = constants.value(node.input(2));
    type = values.dtype();
    zero_points = values.to_ints();
  }
  zero_points.resize(scales.size(), 0);
  const auto [min, max] = integers_of(type);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    low = std::min(low, scales[i] * (min - static_cast<double>(zero_points[i])));
    high = std::max(high, scales[i] * (max - static_cast<double>(zero_points[i])));
  }
  const auto [smallest, largest] = std::minmax_element(scales.begin(), scales.end());
  return {node.input(0),       layer_of(node.input(0)), type, *largest, *smallest,
          zero_points.front(), scales.size(),           low,  high};
}

}  // namespace

std::vector<CalibratedRange> calibrated_ranges(const std::filesystem::path& path) {
  quant::Model model = quant::Model::load(path);
  const quant::GraphIndex index(model.graph());
  quant::Constants constants(model, index);
  std::vector<CalibratedRange> ranges;
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (node.op_type() != "QuantizeLinear" || node.input_size() < 2) continue;
    if (constants.contains(node.input(0)) || !constants.contains(node.input(1))) continue;
    if (node.input_size() > 2 && !node.input(2).empty() && !constants.contains(node.input(2)))
      continue;
    CalibratedRange range = range_of(node, constants);
    if (std::ranges::find(ranges, range) == ranges.end()) ranges.push_back(std::move(range));
  }
  return ranges;
}

}  // namespace bertcl::tools
