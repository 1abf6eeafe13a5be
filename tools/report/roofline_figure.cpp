// SPDX-License-Identifier: Apache-2.0
// The roofline of a model's kernels as SVG.
#include "tools/report/roofline_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "tools/report/page.hpp"

namespace bertcl::tools {
namespace {

// Pixels; narrow, so that letters stay readable where a phone shrinks the figure.
constexpr double kFigureWidth = 420, kFigureHeight = 330, kPlotLeft = 46, kPlotRight = 400,
                 kPlotTop = 14, kPlotBottom = 286;

struct Roof {
  plan::Arithmetic type;
  double gops;
};

bool is_drawn(const RooflineRow& row) {
  return row.time.operations > 0 && row.time.bytes > 0 && row.time.ms > 0;
}

std::string power_text(int exponent) {
  const double value = std::pow(10.0, exponent);
  return exponent < 0 ? fmt::format("{:.{}f}", value, -exponent) : fmt::format("{:.0f}", value);
}

class Drawing {
 public:
  Drawing(const LogAxis& x, const LogAxis& y) : x_(x), y_(y) {}

  void grid() {
    for (int e = x_.first_exponent(); e <= x_.last_exponent(); ++e) {
      const double at = x_.at(std::pow(10.0, e));
      line(at, kPlotTop, at, kPlotBottom);
      text(at, kPlotBottom + 15, "middle", power_text(e));
    }
    for (int e = y_.first_exponent(); e <= y_.last_exponent(); ++e) {
      const double at = y_.at(std::pow(10.0, e));
      line(kPlotLeft, at, kPlotRight, at);
      text(kPlotLeft - 5, at + 4, "end", power_text(e));
    }
    text((kPlotLeft + kPlotRight) / 2, kFigureHeight - 10, "middle", "operations per byte");
    svg_ += fmt::format(
        "<text class=\"middle\" transform=\"translate(11 {}) rotate(-90)\">GOP/s</text>\n",
        (kPlotTop + kPlotBottom) / 2);
  }

  /// The slope of `gbps`, up to the highest roof, with its name along it, above or below.
  void slope(const std::string& name, double gbps, double max, const char* dashes,
             bool name_below) {
    const double x0 =
        std::max(std::pow(10.0, x_.first_exponent()), std::pow(10.0, y_.first_exponent()) / gbps);
    const double x1 = max / gbps;
    const double left = x_.at(x0), right = x_.at(x1), low = y_.at(x0 * gbps), high = y_.at(max);
    svg_ += fmt::format(
        "<path class=\"roof moves\"{} d=\"M{:.1f} {:.1f} L{:.1f} {:.1f}\"/>\n"
        "<text transform=\"translate({:.1f} {:.1f}) rotate({:.1f})\">{} {:.0f} GB/s</text>\n",
        dashes, left, low, right, high, left + 16,
        low - 16 * (low - high) / std::max(1.0, right - left) + (name_below ? 15 : -5),
        -std::atan2(low - high, right - left) * 180 / std::numbers::pi, name, gbps);
  }

  /// From where memory reaches it to the right; its name above the end, since points are below.
  void plateau(const Roof& roof, double gbps) {
    const double left = x_.at(roof.gops / gbps), y = y_.at(roof.gops);
    svg_ += fmt::format("<path class=\"roof {}\" d=\"M{:.1f} {:.1f} H{}\"/>\n",
                        color_of(roof.type.kind()), left, y, kPlotRight);
    text(kPlotRight - 4, y - 5, "end", fmt::format("{} {:.0f} GOP/s", roof.type.str(), roof.gops));
    for (double x = kPlotRight - 96; x < kPlotRight; x += 12) taken_.emplace_back(x, y - 9);
  }

  /// Before any number(), so that none covers a point.
  void point(const KernelTime& time) {
    const double x = x_.at(time.operations / time.bytes), y = y_.at(time.gops());
    taken_.emplace_back(x, y);
    svg_ += fmt::format("<circle class=\"point {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n",
                        color_of(time.type.kind()), x, y);
  }

  /// Beside its point where there is room.
  void number(std::size_t number, const KernelTime& time) {
    const double x = x_.at(time.operations / time.bytes), y = y_.at(time.gops());
    constexpr std::pair<double, double> places[] = {{12, 0},  {-12, 0},  {0, -13},  {0, 13},
                                                    {12, 12}, {-12, 12}, {12, -12}, {-12, -12}};
    const auto is_free = [&](const std::pair<double, double>& place) {
      return std::ranges::none_of(taken_, [&](const auto& other) {
        return std::abs(other.first - x - place.first) < 11 &&
               std::abs(other.second - y - place.second) < 10;
      });
    };
    const auto found = std::find_if(std::begin(places), std::end(places), is_free);
    const auto [dx, dy] = found == std::end(places) ? places[0] : *found;
    taken_.emplace_back(x + dx, y + dy);
    text(x + dx, y + dy + 4, "middle", std::to_string(number));
  }

  std::string str() const {
    return fmt::format(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Throughput of each kernel over its "
        "arithmetic intensity; the table below has the figures\">\n{}</svg>",
        kFigureWidth, kFigureHeight, svg_);
  }

 private:
  void line(double x0, double y0, double x1, double y1) {
    svg_ += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x0, y0,
        x1, y1);
  }
  void text(double x, double y, const char* anchor, const std::string& words) {
    svg_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", anchor, x, y,
                        words);
  }

  LogAxis x_, y_;
  std::vector<std::pair<double, double>> taken_;  // middles of what is drawn
  std::string svg_;
};

}  // namespace

LogAxis::LogAxis(double min, double max, double from, double to)
    : first_(static_cast<int>(std::floor(std::log10(min)))),
      last_(std::max(first_ + 1, static_cast<int>(std::ceil(std::log10(max))))),
      from_(from),
      to_(to) {}

double LogAxis::at(double value) const {
  return from_ + (to_ - from_) * (std::log10(value) - first_) / (last_ - first_);
}

std::string roofline_svg(const std::vector<RooflineRow>& rows, const Peaks& peaks) {
  using plan::Arithmetic;
  std::vector<Roof> roofs = {{Arithmetic::fp32, peaks.f32_gops}};
  double x0 = 1e30, x1 = 0, y0 = 1e30;
  std::vector<Arithmetic> types;
  for (const RooflineRow& row : rows) {
    if (!is_drawn(row)) continue;
    const double intensity = row.time.operations / row.time.bytes;
    x0 = std::min(x0, intensity);
    x1 = std::max(x1, intensity);
    y0 = std::min(y0, row.time.gops());
    types.push_back(row.time.type);
  }
  if (types.empty()) return "";
  for (const Roof& roof :
       {Roof{Arithmetic::int8, peaks.int8_gops}, Roof{Arithmetic::bf16, peaks.bf16_gops}})
    if (std::ranges::count(types, roof.type) > 0 && roof.gops > 0) roofs.push_back(roof);
  double max = 0;
  for (const Roof& roof : roofs) max = std::max(max, roof.gops);
  x0 = std::min(x0, max / peaks.cache_gbps / 2);  // so that a part of each slope is in the figure
  Drawing drawing(LogAxis(x0, std::max(x1, max / peaks.memory_gbps), kPlotLeft, kPlotRight),
                  LogAxis(y0, max, kPlotBottom, kPlotTop));
  drawing.grid();
  drawing.slope("memory", peaks.memory_gbps, max, "", true);
  drawing.slope("cache", peaks.cache_gbps, max, " stroke-dasharray=\"5 4\"", false);
  for (const Roof& roof : roofs) drawing.plateau(roof, peaks.memory_gbps);
  for (const RooflineRow& row : rows)
    if (is_drawn(row)) drawing.point(row.time);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (is_drawn(rows[i])) drawing.number(i + 1, rows[i].time);
  return drawing.str();
}

}  // namespace bertcl::tools
