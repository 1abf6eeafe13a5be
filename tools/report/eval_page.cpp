// SPDX-License-Identifier: Apache-2.0
// The page of `bertcl eval --html`: what tools/report/pages/eval.html shows, by its names.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string>
#include <vector>

#include "tools/report/eval_details.hpp"
#include "tools/report/eval_report.hpp"
#include "tools/report/page.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxShown = 300;  // answers that differ: a page has to open on a phone

std::string count(std::size_t n) { return grouped(static_cast<std::int64_t>(n)); }

ordered_json table_view(const std::vector<EvaluatedModel>& models) {
  ordered_json rows = ordered_json::array();
  for (const TableRow& row : table_rows(models))
    rows.push_back({{"title", row.title}, {"cells", row.cells}});
  return rows;
}

/// Each right answer once.
std::string right_answers(const std::vector<std::string>& references) {
  std::string right;
  for (const std::string& text : references)
    if (("; " + right + "; ").find("; " + text + "; ") == std::string::npos)
      right += (right.empty() ? "" : "; ") + text;
  return right.empty() ? "no answer" : right;
}

ordered_json item_view(const DifferingItem& item, const std::string& one,
                       const std::string& other) {
  ordered_json excerpt = ordered_json::array(), answers = ordered_json::array();
  for (const ExcerptPart& part : item.excerpt)
    excerpt.push_back({{"piece", part.text}, {"of", answer_of(part)}});
  for (std::size_t i = 0; i < 2; ++i)
    answers.push_back({{"file", i == 0 ? one : other},
                       {"of", i == 0 ? "one" : "other"},
                       {"answer", item.answers[i].empty() ? "no answer" : item.answers[i]},
                       {"f1", item.f1 ? fmt::format("F1 {:.0f}", (*item.f1)[i]) : ""}});
  return {{"question", item.text ? item.text->question : ""},
          {"id", item.id},
          {"has_text", item.text.has_value()},
          {"excerpt", std::move(excerpt)},
          {"right", item.text ? right_answers(item.text->references) : ""},
          {"answers", std::move(answers)}};
}

ordered_json comparison_view(const ModelComparison& comparison, const std::string& one,
                             const std::string& other) {
  ordered_json shown = ordered_json::array();
  for (const DifferingItem& item : comparison.differing | std::views::take(kMaxShown))
    shown.push_back(item_view(item, one, other));
  const std::size_t more = comparison.differing.size() - shown.size();
  return {{"one", one},
          {"other", other},
          {"equal", count(comparison.equal)},
          {"total", count(comparison.total)},
          {"percent", percent_text(static_cast<double>(comparison.equal),
                                   static_cast<double>(comparison.total))},
          {"none", comparison.differing.empty()},
          {"more", more > 0 ? count(more) : ""},
          {"items", std::move(shown)}};
}

ordered_json lengths_view(const std::vector<AnswerLength>& lengths,
                          const std::vector<EvaluatedModel>& models,
                          const std::vector<std::string>& names) {
  ordered_json rows = ordered_json::array();
  for (const AnswerLength& length : lengths) {
    ordered_json cells = ordered_json::array();
    for (std::size_t i = 0; i < models.size(); ++i)
      cells.push_back({{"file", names[i]},
                       {"precision", models[i].precision},
                       {"exact", fmt::format("{:.1f}", length.exact[i])},
                       {"f1", fmt::format("{:.1f}", length.f1[i])}});
    rows.push_back({{"answer", length.answer},
                    {"questions", count(length.questions)},
                    {"cells", std::move(cells)}});
  }
  return rows;
}

ordered_json kernels_view(const std::vector<EvaluatedModel>& models,
                          const std::vector<std::string>& names) {
  double max = 0;
  for (const EvaluatedModel& model : models)
    for (const KernelTime& kernel : model.kernels) max = std::max(max, kernel.ms);
  ordered_json tables = ordered_json::array();
  for (std::size_t i = 0; i < models.size(); ++i) {
    double all = 0;
    for (const KernelTime& kernel : models[i].kernels) all += kernel.ms;
    ordered_json rows = ordered_json::array();
    for (const KernelTime& kernel : models[i].kernels)
      rows.push_back({{"kernel", kernel.name},
                      {"type", kernel.type.str()},
                      {"kind", color_of(kernel.type.kind())},
                      {"calls", fmt::format("{:g}", kernel.calls)},
                      {"ms", fmt::format("{:.3f}", kernel.ms)},
                      {"share", percent_text(kernel.ms, all)},
                      {"length", percent_text(kernel.ms, max)}});
    tables.push_back({{"file", names[i]},
                      {"batch", models[i].profiled_batch},
                      {"seq", models[i].profiled_seq},
                      {"all", fmt::format("{:.2f}", all)},
                      {"rows", std::move(rows)}});
  }
  return tables;
}

/// By layer; what has none comes last.
ordered_json ranges_view(const std::vector<CalibratedRange>& ranges, const std::string& name) {
  const auto magnitude = [](const CalibratedRange& range) {
    return std::max(std::abs(range.low), std::abs(range.high));
  };
  double min = INFINITY, max = 0;
  for (const CalibratedRange& range : ranges) {
    min = std::min(min, magnitude(range));
    max = std::max(max, magnitude(range));
  }
  std::map<int, ordered_json> layers;
  for (const CalibratedRange& range : ranges) {
    const double length = max > min ? std::log(magnitude(range) / min) / std::log(max / min) : 1;
    layers[range.layer.value_or(INT_MAX)].push_back(
        {{"tensor", range.tensor},
         {"type", ir::name_of(range.type)},
         {"scale", range.channels > 1
                       ? fmt::format("{:.4g} to {:.4g}", range.smallest_scale, range.scale)
                       : fmt::format("{:.4g}", range.scale)},
         {"channels", range.channels},
         {"zero", range.zero_point},
         {"low", fmt::format("{:.4g}", range.low)},
         {"high", fmt::format("{:.4g}", range.high)},
         {"length", fmt::format("{:.1f}", 2 + 98 * std::clamp(length, 0.0, 1.0))}});
  }
  ordered_json sections = ordered_json::array();
  for (auto& [layer, rows] : layers)
    sections.push_back(
        {{"title", layer == INT_MAX ? "outside of layers" : fmt::format("layer {}", layer)},
         {"count", counted(std::ssize(rows), "ranges")},
         {"open", sections.empty()},
         {"rows", std::move(rows)}});
  return {{"file", name}, {"count", ranges.size()}, {"sections", std::move(sections)}};
}

ordered_json eval_tiles(const std::vector<EvaluatedModel>& models, const EvalDetails& details) {
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
    const ModelComparison& comparison = details.comparisons.front();
    tiles.push_back(tile(
        "equal answers",
        percent_text(static_cast<double>(comparison.equal), static_cast<double>(comparison.total)) +
            " %",
        fmt::format("{} of {}", comparison.equal, comparison.total)));
    tiles.push_back(tile(
        "speed", fmt::format("{:.2f} x", one.tokens_per_second() / models[1].tokens_per_second()),
        fmt::format("tokens/s, relative to {}", models[1].precision)));
  }
  tiles.push_back(tile("size", bytes_text(one.bytes), one.precision));
  return tiles;
}

}  // namespace

std::string eval_page(const std::vector<EvaluatedModel>& models, const EvalDetails& details,
                      const std::string& head) {
  std::vector<std::filesystem::path> paths;
  for (const EvaluatedModel& model : models) paths.push_back(model.path);
  const std::vector<std::string> names = short_names(paths);
  ordered_json heads = ordered_json::array(), comparisons = heads, calibration = heads;
  for (std::size_t i = 0; i < models.size(); ++i) {
    heads.push_back({{"file", names[i]},
                     {"path", models[i].path.string()},
                     {"precision", models[i].precision}});
    if (i > 0)
      comparisons.push_back(comparison_view(details.comparisons[i - 1], names[0], names[i]));
    if (!details.calibration[i].empty())
      calibration.push_back(ranges_view(details.calibration[i], names[i]));
  }
  const ordered_json view = {{"title", names[0]},
                             {"title_more", ", evaluation"},
                             {"head", head},
                             {"tiles", eval_tiles(models, details)},
                             {"names", std::move(heads)},
                             {"table", table_view(models)},
                             {"comparisons", std::move(comparisons)},
                             {"has_lengths", !details.answer_lengths.empty()},
                             {"lengths", lengths_view(details.answer_lengths, models, names)},
                             {"kernels", kernels_view(models, names)},
                             {"has_calibration", !calibration.empty()},
                             {"calibration", std::move(calibration)}};
  return render_page(Page::eval, as_utf8(view));
}

}  // namespace bertcl::tools
