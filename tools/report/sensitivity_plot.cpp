// SPDX-License-Identifier: Apache-2.0
// The cost of quantized ops, as a plot.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "tools/measure/sensitivity.hpp"
#include "tools/report/page.hpp"

namespace bertcl::tools {
namespace {

std::string percent(double error) {
  return std::isinf(error) ? "infinite" : fmt::format("{:.3f} %", 100.0 * error);
}

// Places in pixels.
constexpr int kWidth = 980, kMargin = 24, kBarLeft = 400, kBarRight = 780, kRow = 18;
constexpr std::size_t kLongestName = 56;
constexpr std::array<std::string_view, 8> kColors = {"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                                     "#66ccee", "#aa3377", "#ee8866", "#999933"};
constexpr std::string_view kLayerColor = "#777777";

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : plain_text(text)) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

/// The end of a name tells more than its beginning.
std::string shortened(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  std::size_t from = name.size() - kLongestName + 3;
  while (from < name.size() && (name[from] & 0xC0) == 0x80) ++from;  // whole characters of UTF-8
  return "..." + name.substr(from);
}

/// Draws from top to bottom.
class Picture {
 public:
  Picture(double all, double largest) : all_(all), largest_(std::max(largest, 1e-12)) {}

  void title(const std::string& text, const std::string& line) {
    add(kMargin, 18, "title", text);
    add(kMargin, 18, "note", line);
  }

  void head(const std::string& text) {
    y_ += 14;
    add(kMargin, 20, "head", text);
    body_ += fmt::format(
        "<text x='{}' y='{}' class='note'>alone</text>"
        "<text x='{}' y='{}' class='note end'>without</text>\n",
        kBarLeft, y_, kWidth - kMargin, y_);
  }

  void bar(const std::string& name, const quant::SensitivityErrors& errors,
           std::string_view color) {
    y_ += kRow;
    const double part = std::min(1.0, errors.alone / largest_);  // 1 of an infinite error
    const double length = (kBarRight - kBarLeft) * part;
    body_ += fmt::format(
        "<g><title>{}</title><text x='{}' y='{}' class='end'>{}</text>"
        "<rect x='{}' y='{}' width='{:.1f}' height='{}' fill='{}'/>"
        "<text x='{:.1f}' y='{}'>{}</text>"
        "<text x='{}' y='{}' class='end{}'>{}</text></g>\n",
        escaped(name), kBarLeft - 8, y_, escaped(shortened(name)), kBarLeft, y_ - kRow + 7, length,
        kRow - 5, color, kBarLeft + length + 6, y_, percent(errors.alone), kWidth - kMargin, y_,
        errors.without < all_ ? " less" : "", percent(errors.without));
  }

  std::string str() const {
    return fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}'>\n"
        "<style>text{{font:11px sans-serif;fill:#222}}.end{{text-anchor:end}}"
        ".title{{font-size:15px;font-weight:bold}}.head{{font-size:13px;font-weight:bold}}"
        ".note{{fill:#666}}.less{{font-weight:bold}}</style>\n"
        "<rect width='{0}' height='{1}' fill='#fff'/>\n{2}</svg>\n",
        kWidth, y_ + kMargin, body_);
  }

 private:
  void add(int x, int height, const char* style, const std::string& text) {
    y_ += height;
    body_ += fmt::format("<text x='{}' y='{}' class='{}'>{}</text>\n", x, y_, style, escaped(text));
  }

  double all_, largest_;
  int y_ = 10;
  std::string body_;
};

}  // namespace

std::string sensitivity_svg(const quant::Sensitivity& sensitivity,
                            const std::vector<quant::QuantizedOp>& ops, const std::string& title) {
  double largest = 0.0;
  for (const auto* groups : {&sensitivity.kinds, &sensitivity.layers, &sensitivity.ops})
    for (const quant::OpGroup& group : *groups)
      if (std::isfinite(group.errors.alone)) largest = std::max(largest, group.errors.alone);
  // A kind has one color, among the ops too.
  const auto color = [&](const std::string& kind) {
    const auto it = std::ranges::find_if(
        sensitivity.kinds, [&](const quant::OpGroup& group) { return group.name == kind; });
    return kColors[static_cast<std::size_t>(it - sensitivity.kinds.begin()) % kColors.size()];
  };
  Picture picture(sensitivity.all, largest);
  picture.title(
      title,
      fmt::format("Relative error of the outputs over {} samples: {:.3f} % with all ops quantized; "
                  "alone: only these quantized; without: all but these (bold: less than all)",
                  sensitivity.samples, 100.0 * sensitivity.all));
  picture.head("Kinds");
  for (const quant::OpGroup& group : sensitivity.kinds)
    picture.bar(group.name, group.errors, color(group.name));
  if (!sensitivity.layers.empty()) picture.head("Layers");
  for (const quant::OpGroup& group : sensitivity.layers)
    picture.bar(group.name, group.errors, kLayerColor);
  picture.head("Ops");
  for (const quant::OpGroup& group : sensitivity.ops)
    picture.bar(group.name, group.errors, color(ops[group.ops.front()].kind_name()));
  return picture.str();
}

}  // namespace bertcl::tools
