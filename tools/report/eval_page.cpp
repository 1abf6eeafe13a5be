// SPDX-License-Identifier: Apache-2.0
// The page of `bertcl eval --html`: what tools/report/pages/eval.html shows, by its names.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/report/eval_details.hpp"
#include "tools/report/eval_report.hpp"
#include "tools/report/page.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxShown = 300;  // answers that differ: a page has to open on a phone

/// Of each model, by its path in the report.
using ShortNames = std::map<ordered_json, std::string>;

ShortNames names_of(const std::vector<EvaluatedModel>& models) {
  std::vector<std::filesystem::path> paths;
  for (const EvaluatedModel& model : models) paths.push_back(model.path);
  const std::vector<std::string> names = short_names(paths);
  ShortNames by_path;
  for (std::size_t i = 0; i < paths.size(); ++i) by_path[as_utf8(paths[i].string())] = names[i];
  return by_path;
}

/// A row for each score and cost, a cell for each model.
ordered_json table_view(const std::vector<EvaluatedModel>& models) {
  ordered_json rows = ordered_json::array();
  const auto add = [&](const std::string& title, auto&& cell) {
    ordered_json cells = ordered_json::array();
    for (const EvaluatedModel& model : models) cells.push_back(cell(model));
    rows.push_back({{"title", title}, {"cells", std::move(cells)}});
  };
  const auto count = [](std::size_t n) { return grouped(static_cast<std::int64_t>(n)); };
  for (std::size_t i = 0; i < models.front().scores.size(); ++i)
    add(models.front().scores[i].title, [&](const EvaluatedModel& model) {
      return score_text(model.scores[i].value, model.scores[i].digits);
    });
  add("precision", [](const EvaluatedModel& model) { return model.precision; });
  add("model size", [](const EvaluatedModel& model) { return bytes_text(model.bytes); });
  add("seconds", [](const EvaluatedModel& m) { return fmt::format("{:.2f}", m.total_seconds); });
  add("tokens/s", [&](const EvaluatedModel& model) {
    return count(static_cast<std::size_t>(model.tokens_per_second()));
  });
  add("sequences", [&](const EvaluatedModel& model) { return count(model.features); });
  add("tokens", [&](const EvaluatedModel& model) { return count(model.tokens); });
  return rows;
}

ordered_json comparison_view(const ordered_json& comparison, const ShortNames& names) {
  ordered_json shown = ordered_json::array();
  for (const ordered_json& item : comparison.at("differing")) {
    if (shown.size() == kMaxShown) break;
    ordered_json view = {
        {"question", item.value("question", "")},  {"id", item.at("id")},
        {"has_excerpt", item.contains("excerpt")}, {"excerpt", ordered_json::array()},
        {"references", ordered_json::array()},     {"has_references", item.contains("references")}};
    for (const ordered_json& part : item.value("excerpt", ordered_json::array()))
      view["excerpt"].push_back({{"piece", part.at("text")}, {"of", part.at("of")}});
    std::string right;
    for (const ordered_json& text : item.value("references", ordered_json::array())) {
      const auto quoted = text.get<std::string>();
      if (("; " + right + "; ").find("; " + quoted + "; ") != std::string::npos) continue;
      right += (right.empty() ? "" : "; ") + quoted;
    }
    view["right"] = right.empty() ? "no answer" : right;
    ordered_json answers = ordered_json::array();
    for (std::size_t i = 0; i < 2; ++i) {
      const auto answer = item.at("answers")[i].get<std::string>();
      answers.push_back(
          {{"file", names.at(comparison.at(i == 0 ? "path" : "with"))},
           {"of", i == 0 ? "one" : "other"},
           {"answer", answer.empty() ? "no answer" : answer},
           {"f1", item.contains("f1") ? fmt::format("F1 {:.0f}", item["f1"][i].get<double>())
                                      : std::string()}});
    }
    view["answers"] = std::move(answers);
    shown.push_back(std::move(view));
  }
  const std::size_t total = comparison.at("total"), equal = comparison.at("equal");
  const std::size_t differing = comparison.at("differing").size();
  return {{"one", names.at(comparison.at("path"))},
          {"other", names.at(comparison.at("with"))},
          {"equal", grouped(static_cast<std::int64_t>(equal))},
          {"total", grouped(static_cast<std::int64_t>(total))},
          {"percent", percent_text(static_cast<double>(equal), static_cast<double>(total))},
          {"none", differing == 0},
          {"more", differing > shown.size()
                       ? grouped(static_cast<std::int64_t>(differing - shown.size()))
                       : std::string()},
          {"items", std::move(shown)}};
}

ordered_json lengths_view(const ordered_json& groups, const std::vector<EvaluatedModel>& models,
                          const ShortNames& names) {
  ordered_json rows = ordered_json::array();
  for (const ordered_json& group : groups) {
    ordered_json cells = ordered_json::array();
    for (std::size_t i = 0; i < models.size(); ++i)
      cells.push_back({{"file", names.at(as_utf8(models[i].path.string()))},
                       {"precision", models[i].precision},
                       {"exact", fmt::format("{:.1f}", group.at("exact_match")[i].get<double>())},
                       {"f1", fmt::format("{:.1f}", group.at("f1")[i].get<double>())}});
    rows.push_back({{"answer", group.at("answer")},
                    {"questions", grouped(group.at("questions").get<std::int64_t>())},
                    {"cells", std::move(cells)}});
  }
  return rows;
}

ordered_json kernels_view(const std::vector<EvaluatedModel>& models, const ShortNames& names) {
  double most = 0;
  for (const EvaluatedModel& model : models)
    for (const KernelTime& kernel : model.kernels) most = std::max(most, kernel.ms);
  ordered_json tables = ordered_json::array();
  for (const EvaluatedModel& model : models) {
    double all = 0;
    for (const KernelTime& kernel : model.kernels) all += kernel.ms;
    ordered_json rows = ordered_json::array();
    for (const KernelTime& kernel : model.kernels)
      rows.push_back({{"kernel", kernel.name},
                      {"op", kernel.op},
                      {"type", kernel.type.str()},
                      {"kind", color_of(kernel.type.kind())},
                      {"calls", fmt::format("{:g}", kernel.calls)},
                      {"ms", fmt::format("{:.3f}", kernel.ms)},
                      {"share", percent_text(kernel.ms, all)},
                      {"length", percent_text(kernel.ms, most)}});
    tables.push_back({{"file", names.at(as_utf8(model.path.string()))},
                      {"precision", model.precision},
                      {"batch", model.profiled_batch},
                      {"seq", model.profiled_seq},
                      {"all", fmt::format("{:.2f}", all)},
                      {"rows", std::move(rows)}});
  }
  return tables;
}

/// By layer; what has none comes last.
ordered_json calibration_view(const ordered_json& models, const ShortNames& names) {
  ordered_json views = ordered_json::array();
  for (const ordered_json& model : models) {
    const auto magnitude = [](const ordered_json& t) {
      return std::max(std::abs(t.at("low").get<double>()), std::abs(t.at("high").get<double>()));
    };
    double least = INFINITY, most = 0;
    std::map<int, ordered_json> layers;
    for (const ordered_json& t : model.at("tensors")) {
      least = std::min(least, magnitude(t));
      most = std::max(most, magnitude(t));
    }
    for (const ordered_json& t : model.at("tensors")) {
      const std::size_t channels = t.at("channels");
      const double length =
          most > least ? std::log(magnitude(t) / least) / std::log(most / least) : 1;
      layers[t.at("layer").is_null() ? INT_MAX : t.at("layer").get<int>()].push_back(
          {{"tensor", t.at("tensor")},
           {"type", t.at("type")},
           {"scale", channels > 1
                         ? fmt::format("{:.4g} to {:.4g}", t.at("smallest_scale").get<double>(),
                                       t.at("scale").get<double>())
                         : fmt::format("{:.4g}", t.at("scale").get<double>())},
           {"channels", channels > 1 ? std::to_string(channels) : "1"},
           {"zero", t.at("zero_point")},
           {"low", fmt::format("{:.4g}", t.at("low").get<double>())},
           {"high", fmt::format("{:.4g}", t.at("high").get<double>())},
           {"length", fmt::format("{:.1f}", 2 + 98 * std::clamp(length, 0.0, 1.0))}});
    }
    ordered_json sections = ordered_json::array();
    for (auto& [layer, rows] : layers) {
      const std::size_t count = rows.size();
      sections.push_back(
          {{"title", layer == INT_MAX ? "outside of layers" : fmt::format("layer {}", layer)},
           {"count", counted(static_cast<std::int64_t>(count), "ranges")},
           {"open", sections.empty()},
           {"rows", std::move(rows)}});
    }
    views.push_back({{"file", names.at(model.at("path"))},
                     {"count", model.at("tensors").size()},
                     {"sections", std::move(sections)}});
  }
  return views;
}

ordered_json eval_tiles(const std::vector<EvaluatedModel>& models,
                        const ordered_json& comparisons) {
  ordered_json tiles = ordered_json::array();
  const EvaluatedModel& one = models.front();
  for (std::size_t k = 0; k < one.scores.size(); ++k) {
    const Score& score = one.scores[k];
    if (!score.compared) continue;
    tiles.push_back(tile(
        score.title, score_text(score.value, score.digits == 3 ? 2 : 4),
        models.size() < 2
            ? one.precision
            : fmt::format("{} against {}",
                          difference_text(score.value - models[1].scores[k].value, score.digits),
                          models[1].precision)));
  }
  if (models.size() > 1) {
    const double total = comparisons[0].at("total"), equal = comparisons[0].at("equal");
    tiles.push_back(tile("equal answers", percent_text(equal, total) + " %",
                         fmt::format("{:.0f} of {:.0f}", equal, total)));
    tiles.push_back(tile(
        "speed", fmt::format("{:.2f} x", one.tokens_per_second() / models[1].tokens_per_second()),
        fmt::format("tokens/s, relative to {}", models[1].precision)));
  }
  tiles.push_back(tile("size", bytes_text(one.bytes), one.precision));
  return tiles;
}

}  // namespace

std::string eval_page(const std::vector<EvaluatedModel>& models, const std::string& head,
                      const ordered_json& given) {
  const ordered_json report = as_utf8(given);
  const ShortNames names = names_of(models);
  ordered_json heads = ordered_json::array();
  for (const EvaluatedModel& model : models)
    heads.push_back({{"file", names.at(as_utf8(model.path.string()))},
                     {"path", model.path.string()},
                     {"precision", model.precision}});
  ordered_json comparisons = ordered_json::array();
  for (const ordered_json& comparison : report.at("comparisons"))
    comparisons.push_back(comparison_view(comparison, names));
  const ordered_json view = {{"title", heads[0].at("file")},
                             {"title_more", ", evaluation"},
                             {"head", head},
                             {"tiles", eval_tiles(models, report.at("comparisons"))},
                             {"names", std::move(heads)},
                             {"table", table_view(models)},
                             {"has_comparisons", !comparisons.empty()},
                             {"comparisons", std::move(comparisons)},
                             {"has_lengths", !report.at("answer_lengths").empty()},
                             {"lengths", lengths_view(report.at("answer_lengths"), models, names)},
                             {"kernels", kernels_view(models, names)},
                             {"has_calibration", !report.at("calibration").empty()},
                             {"calibration", calibration_view(report.at("calibration"), names)}};
  return render_page(Page::eval, as_utf8(view));
}

}  // namespace bertcl::tools
