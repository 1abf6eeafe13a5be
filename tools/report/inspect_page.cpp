// SPDX-License-Identifier: Apache-2.0
// The report of `bertcl inspect` as one HTML page: what tools/report/pages/inspect.html shows, by
// its names.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/report/model_report.hpp"
#include "tools/report/page.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

using nlohmann::ordered_json;
using Steps = std::span<const plan::Step>;

/// Sums over launches.
struct Sum {
  double operations = 0, weights = 0, activations = 0;
  void add(const ordered_json& op) {
    operations += op.at("operations").get<double>();
    weights += op.at("weight_bytes").get<double>();
    activations += op.at("activation_bytes").get<double>();
  }
  void put_into(ordered_json& view) const {
    view["operations"] = operations_text(operations);
    view["weights"] = bytes_cell(weights);
    view["activations"] = bytes_cell(activations);
  }
};

/// False for what another launch does at this size.
bool runs(const ordered_json& op) { return op.value("runs", true); }

ordered_json lines_of(const std::string& text) {
  ordered_json lines = ordered_json::array();
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find("; ", from), text.size());
    lines.push_back(text.substr(from, to - from));
    from = to + 2;
  }
  return lines;
}

ordered_json launch_view(const ordered_json& op, plan::Arithmetic type, std::size_t index,
                         double max) {
  Sum sum;
  sum.add(op);
  ordered_json view = {{"index", index},
                       {"op", op.at("op")},
                       {"type", op.at("type")},
                       {"kind", color_of(type.kind())},
                       {"variant", op.at("variant")},
                       {"kernel", op.at("kernel")},
                       {"name", op.at("name")},
                       {"sources", op.at("source_nodes")},
                       {"source_count", op.at("source_nodes").size()},
                       {"has_sources", !op.at("source_nodes").empty()},
                       {"reasons", lines_of(op.at("why_not_faster").get<std::string>())}};
  sum.put_into(view);
  view["share"] = fmt::format("{:.1f}", max > 0 ? 100 * sum.operations / max : 0.0);
  return view;
}

/// Layers in a row whose launches look alike, first of them in full.
ordered_json sections_view(const ordered_json& report, Steps steps) {
  const ordered_json& ops = report.at("ops");
  double max = 0;
  for (const auto& op : ops)
    if (runs(op)) max = std::max(max, op.at("operations").get<double>());
  ordered_json sections = ordered_json::array();
  std::string last;
  for (const auto& layer : report.at("layers")) {
    ordered_json view = {{"title", layer.at("name")}, {"launches", ordered_json::array()}};
    std::string looks;
    Sum sum;
    for (const auto& index : layer.at("launches")) {
      const auto i = index.get<std::size_t>();
      const ordered_json& op = ops.at(i);
      if (!runs(op)) continue;
      view["launches"].push_back(launch_view(op, steps[i].type, i, max));
      for (const char* key : {"op", "type", "variant", "why_not_faster"})
        looks += op.at(key).get<std::string>() + '\n';
      sum.add(op);
    }
    view["count"] = counted(static_cast<std::int64_t>(view["launches"].size()), "launches");
    sum.put_into(view);
    view["open"] = looks != last;
    last = looks;
    sections.push_back(std::move(view));
  }
  return sections;
}

/// The share of each kind in the arithmetic.
ordered_json mix_view(const ordered_json& ops, Steps steps) {
  std::map<std::string, double> sums;
  double all = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!runs(ops[i])) continue;
    const double operations = ops[i].at("operations").get<double>();
    sums[color_of(steps[i].type.kind())] += operations;
    all += operations;
  }
  ordered_json mix = ordered_json::array();
  for (const char* kind : {"int8", "fp16", "fp32"})
    if (sums[kind] > 0)
      mix.push_back({{"kind", kind}, {"percent", fmt::format("{:.1f}", 100 * sums[kind] / all)}});
  return mix;
}

ordered_json tiles_view(const ordered_json& report, Steps steps) {
  int matmuls = 0, integer = 0;
  Sum sum;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const ordered_json& op = report.at("ops")[i];
    if (!runs(op)) continue;
    sum.add(op);
    if (op.at("operations").get<double>() == 0) continue;
    ++matmuls;
    integer += steps[i].type.kind() == plan::Arithmetic::Kind::int8;
  }
  const ordered_json& times = report.at("load_ms");
  const auto or_none = [](std::string text) { return text.empty() ? "none" : text; };
  return {
      tile("launches", fmt::format("{}", report.at("launches").get<int>()), "kernels of one run"),
      tile("MatMuls in int8", fmt::format("{} of {}", integer, matmuls), "GEMMs and attention"),
      tile("arithmetic", or_none(operations_text(sum.operations)),
           fmt::format("batch {}, sequence {}", report.at("batch").get<int>(),
                       report.at("seq").get<int>())),
      tile("weights read", or_none(bytes_cell(sum.weights)), "in one run"),
      tile("activations", bytes_text(report.at("arena_bytes").get<std::uint64_t>()),
           "device memory"),
      tile("to load", fmt::format("{:.0f} ms", times.at("total").get<double>()),
           "with the current program cache")};
}

ordered_json account_view(const ordered_json& report) {
  const ordered_json& nodes = report.at("source_nodes");
  ordered_json rows = ordered_json::array();
  for (const auto& [key, status, text] : kNodeStatuses) {
    ordered_json names = ordered_json::array();
    for (const auto& node : report.at("nodes"))
      if (node.at("status") == status)
        names.push_back({{"name", node.at("name")},
                         {"op", node.at("op")},
                         {"pass", node.at("pass")},
                         {"gone", !node.at("pass").get<std::string>().empty()}});
    rows.push_back({{"count", nodes.at(key).get<int>()},
                    {"text", text},
                    {"any", !names.empty()},
                    {"names", std::move(names)}});
  }
  return rows;
}

}  // namespace

std::string inspect_page(const ordered_json& given, Steps steps) {
  const ordered_json report = as_utf8(given);
  const std::filesystem::path path = report.at("path").get<std::string>();
  ordered_json view = {{"title", path.filename().string()},
                       {"title_more", ""},
                       {"path", path.string()},
                       {"device", report.at("device")},
                       {"precision", report.at("precision")},
                       {"batch", report.at("batch")},
                       {"seq", report.at("seq")},
                       {"tiles", tiles_view(report, steps)},
                       {"mix", mix_view(report.at("ops"), steps)},
                       {"all_int8", report.at("why_not_int8").empty()},
                       {"why_not_int8", report.at("why_not_int8")},
                       {"sections", sections_view(report, steps)},
                       {"nodes", report.at("source_nodes").at("total")},
                       {"account", account_view(report)},
                       {"host_work", report.at("host_work")}};
  ordered_json times = ordered_json::array();
  for (const char* part : {"parse", "passes", "device", "programs", "plan"})
    times.push_back({{"part", part},
                     {"ms", fmt::format("{:.1f}", report.at("load_ms").at(part).get<double>())}});
  view["times"] = std::move(times);
  return render_page(Page::inspect, view);
}

}  // namespace bertcl::tools
