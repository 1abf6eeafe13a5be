// SPDX-License-Identifier: Apache-2.0
// The page of `bertcl bench --html`: what tools/report/pages/bench.html shows, by its names.
#include "tools/report/bench_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/report/page.hpp"
#include "tools/report/roofline_figure.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

using nlohmann::ordered_json;

std::string figure(double value) {
  if (value <= 0) return "";
  return value < 100 ? fmt::format("{:.1f}", value)
                     : grouped(static_cast<std::int64_t>(std::llround(value)));
}

double intensity(const KernelTime& time) {
  return time.bytes > 0 ? time.operations / time.bytes : 0.0;
}

ordered_json row_view(std::size_t number, const RooflineRow& row, double all_ms, double max_ms) {
  const KernelTime& time = row.time;
  return {{"number", number},
          {"kernel", time.name},
          {"op", time.op},
          {"type", time.type.str()},
          {"kind", color_of(time.type.kind())},
          {"calls", fmt::format("{:g}", time.calls)},
          {"ms", fmt::format("{:.3f}", time.ms)},
          {"share", percent_text(time.ms, all_ms)},
          {"length", percent_text(time.ms, max_ms)},
          {"gops", figure(time.gops())},
          {"gbps", figure(time.gbps())},
          {"intensity", figure(intensity(time))},
          {"lost", fmt::format("{:.3f}", row.lost_ms())},
          {"roof", time.ms > 0 ? fmt::format("{:.0f} %", 100 * row.min_ms / time.ms) : ""}};
}

}  // namespace

ordered_json to_json(const std::vector<RooflineRow>& rows, const Peaks& peaks) {
  ordered_json list = ordered_json::array();
  for (const RooflineRow& row : rows)
    list.push_back({{"name", row.time.name},
                    {"op", row.time.op},
                    {"type", row.time.type.str()},
                    {"calls", row.time.calls},
                    {"ms", row.time.ms},
                    {"operations", row.time.operations},
                    {"bytes", row.time.bytes},
                    {"operations_per_byte", intensity(row.time)},
                    {"least_ms", row.min_ms}});
  return {{"peaks",
           {{"int8_kernel", peaks.int8_kernel},
            {"int8_gops", peaks.int8_gops},
            {"bf16_gops", peaks.bf16_gops},
            {"f32_gops", peaks.f32_gops},
            {"memory_gbps", peaks.memory_gbps},
            {"cache_gbps", peaks.cache_gbps}}},
          {"roofline", std::move(list)}};
}

std::string bench_page(const ordered_json& given, const std::vector<RooflineRow>& rows,
                       const Peaks& peaks) {
  const ordered_json report = as_utf8(given);
  const std::filesystem::path path = report.at("path").get<std::string>();
  const auto ms = [&](const char* key) {
    return fmt::format("{:.2f}", report.at("latency_ms").at(key).get<double>());
  };
  const RooflineRow all = sum_of(rows);
  double max_ms = 0;
  for (const RooflineRow& row : rows) max_ms = std::max(max_ms, row.time.ms);
  ordered_json kernels = ordered_json::array();
  for (std::size_t i = 0; i < rows.size(); ++i)
    kernels.push_back(row_view(i + 1, rows[i], all.time.ms, max_ms));
  const auto peak = [](const std::string& name, double value, const char* unit) {
    return ordered_json{{"name", name}, {"value", fmt::format("{} {}", figure(value), unit)}};
  };
  ordered_json peaks_view = {
      peak(fmt::format("int8 ({})", peaks.int8_kernel), peaks.int8_gops, "GOP/s"),
      peak("fp32", peaks.f32_gops, "GFLOP/s"), peak("loads from memory", peaks.memory_gbps, "GB/s"),
      peak("loads from cache", peaks.cache_gbps, "GB/s")};
  if (peaks.bf16_gops > 0) peaks_view.push_back(peak("bf16", peaks.bf16_gops, "GFLOP/s"));
  const double rate = report.at("tokens_per_second").get<double>();
  const int count = report.at("streams");
  const std::string streams =
      count == 1 ? "one run at a time" : fmt::format("{} runs at a time", count);
  const std::string svg = roofline_svg(rows, peaks);
  return render_page(
      Page::bench,
      {{"title", path.filename().string()},
       {"title_more",
        fmt::format(", {} x {}", report.at("batch").get<int>(), report.at("seq").get<int>())},
       {"path", path.string()},
       {"device", report.at("device")},
       {"precision", report.at("precision")},
       {"batch", report.at("batch")},
       {"seq", report.at("seq")},
       {"runs", report.at("runs")},
       {"tiles",
        {tile("latency", ms("p50") + " ms", "median"),
         tile("throughput", grouped(std::llround(rate)), "tokens/s, " + streams),
         tile("fastest run", ms("min") + " ms", "mean " + ms("mean") + " ms"),
         tile("tail latency", ms("p95") + " ms", "p95; p99 " + ms("p99") + " ms"),
         tile("of the roofline", percent_text(all.min_ms, all.time.ms) + " %", "of all kernels"),
         tile("to load", fmt::format("{:.0f} ms", report.at("load_ms").at("total").get<double>()),
              "with the current program cache")}},
       {"has_figure", !svg.empty()},
       {"figure", svg},
       {"peaks", std::move(peaks_view)},
       {"kernels", std::move(kernels)},
       {"all_ms", fmt::format("{:.3f}", all.time.ms)},
       {"merged", report.at("merged_steps").get<int>() > 0 ? report.at("merged_steps")
                                                           : ordered_json(false)}});
}

}  // namespace bertcl::tools
