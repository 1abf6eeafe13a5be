// SPDX-License-Identifier: Apache-2.0
// TensorRT's calibration cache, as IInt8Calibrator writes and trtexec --calib reads it.
//
//   TRT-8601-EntropyCalibration2        version and calibrator
//   input_ids: 3c010a14                 the scale (magnitude / 127) as bits of a float, in hex
//
// (NVIDIA/TensorRT, README of sampleINT8, "Calibration file".)
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "quant/tables/table.hpp"
#include "support/fail.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::quant {
namespace {

constexpr std::string_view kStart = "TRT-";
// TensorRT takes a cache whose calibrator is the one that asks for it.
constexpr std::string_view kHeader = "TRT-8601-EntropyCalibration2";
constexpr float kSteps = 127.0f;

bool recognizes_tensorrt(std::string_view bytes) { return bytes.starts_with(kStart); }

float scale(std::string_view text, const std::string& tensor) {
  std::uint32_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (error != std::errc{} || end != text.data() + text.size())
    fail("tensor '{}': '{:.60}' is not a float's bits in hex", tensor, text);
  return std::bit_cast<float>(bits);
}

/// The magnitude whose 127th part is the scale. Where no float is, one that misses it by its last
/// bit: magnitudes lie a little wider apart than their 127th parts.
float magnitude_of(float scale) {
  const float product = scale * kSteps;
  for (const float m : {product, std::nextafter(product, INFINITY), std::nextafter(product, 0.0f)})
    if (m / kSteps == scale) return m;
  return product;
}

ScaleTable parse_tensorrt(std::string_view bytes) {
  ScaleTable table;
  text::each_line(bytes, [&](std::string_view line, std::size_t number) {
    if (line.empty()) return;
    if (number == 1) {
      if (!line.starts_with(kStart))
        fail("line 1: '{:.60}' does not begin with '{}'", line, kStart);
      table.method = line.substr(std::min(line.find('-', kStart.size()), line.size() - 1) + 1);
      return;
    }
    const auto gap = line.rfind(": ");  // names may hold colons and blanks
    if (gap == std::string_view::npos || gap == 0)
      fail("line {}: '{:.60}' is not 'NAME: HEX'", number, line);
    const std::string tensor(line.substr(0, gap));
    const float step = scale(line.substr(gap + 2), tensor);
    if (step < 0) fail("tensor '{}': negative scale {}", tensor, step);
    add_range(table, tensor, symmetric_range(magnitude_of(step)));
  });
  return table;
}

std::string format_tensorrt(const ScaleTable& table) {
  std::string text = fmt::format("{}\n", kHeader);
  for (const auto& [tensor, range] : table.ranges) {
    check_one_line(tensor);
    text += fmt::format("{}: {:08x}\n", tensor,
                        std::bit_cast<std::uint32_t>(magnitude(range) / kSteps));
  }
  return text;
}

}  // namespace

const ScaleTableFormat kTensorrtTable{"tensorrt",
                                      ".cache",
                                      "TensorRT's own calibration cache: scales in hex",
                                      true,
                                      recognizes_tensorrt,
                                      parse_tensorrt,
                                      format_tensorrt};

}  // namespace bertcl::quant
