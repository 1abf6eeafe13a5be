// SPDX-License-Identifier: Apache-2.0
// Scores and times of models side by side, as table and JSON.
#include "tools/report/eval_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tasks/scores/vector_similarity.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {

std::string score_text(double value, int digits) {
  return std::isnan(value) ? "undefined" : fmt::format("{:.{}f}", value, digits);
}

std::string difference_text(double value, int digits) {
  return std::isnan(value) ? "undefined" : fmt::format("{:+.{}f}", value, digits);
}

std::vector<std::string> short_names(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::string> names(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::filesystem::path name = paths[i].filename(), folders = paths[i].parent_path();
    const auto fits_another = [&] {
      return std::ranges::any_of(paths, [&](const std::filesystem::path& other) {
        return other != paths[i] && ('/' + other.string()).ends_with('/' + name.string());
      });
    };
    for (; !folders.filename().empty() && fits_another(); folders = folders.parent_path())
      name = folders.filename() / name;
    names[i] = name.string();
  }
  return names;
}

namespace {

void compare_answers(const EvaluatedModel& first, EvaluatedModel& model) {
  if (model.items.empty() || model.items.size() != first.items.size()) return;
  if (model.items.front().number) return;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < model.items.size(); ++i)
    equal += model.items[i].prediction == first.items[i].prediction;
  model.equal_answers = equal;
}

void compare_vectors(const EvaluatedModel& first, EvaluatedModel& model) {
  const std::vector<std::vector<float>>&one = first.vectors, &own = model.vectors;
  // Models of other dimensions are not comparable.
  if (own.empty() || own.size() != one.size() || own[0].size() != one[0].size()) return;
  double sum = 0.0, min = 1.0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double cosine = tasks::cosine(own[i], one[i]);
    sum += cosine;
    min = std::min(min, cosine);
  }
  model.mean_cosine = sum / static_cast<double>(own.size());
  model.min_cosine = min;
}

}  // namespace

void compare_with_first(std::vector<EvaluatedModel>& models) {
  for (std::size_t m = 1; m < models.size(); ++m) {
    compare_answers(models.front(), models[m]);
    compare_vectors(models.front(), models[m]);
  }
}

std::vector<TableRow> table_rows(const std::vector<EvaluatedModel>& models) {
  std::vector<TableRow> rows;
  const auto add = [&](const std::string& title, auto&& cell) {
    TableRow& row = rows.emplace_back(TableRow{title, {}});
    for (const EvaluatedModel& model : models) row.cells.push_back(cell(model));
  };
  const auto count = [](auto n) { return grouped(static_cast<std::int64_t>(n)); };
  for (std::size_t i = 0; i < models.front().scores.size(); ++i)
    add(models.front().scores[i].title, [i](const EvaluatedModel& model) {
      return score_text(model.scores[i].value, model.scores[i].digits);
    });
  add("precision", [](const EvaluatedModel& model) { return model.precision; });
  add("model size", [](const EvaluatedModel& model) { return bytes_text(model.bytes); });
  add("seconds", [](const EvaluatedModel& m) { return fmt::format("{:.2f}", m.total_seconds); });
  add("tokens/s", [&](const EvaluatedModel& model) { return count(model.tokens_per_second()); });
  add("sequences", [&](const EvaluatedModel& model) { return count(model.features); });
  add("tokens", [&](const EvaluatedModel& model) { return count(model.tokens); });
  return rows;
}

void print_evaluation(const std::vector<EvaluatedModel>& models, const std::string& head) {
  std::vector<std::filesystem::path> paths;
  for (const EvaluatedModel& model : models) paths.push_back(model.path);
  const std::vector<std::string> names = short_names(paths);
  std::vector<std::string> titles = {""};
  for (const std::string& name : names) titles.push_back('>' + name);
  Table table(titles);
  for (auto& [title, cells] : table_rows(models)) {
    cells.insert(cells.begin(), title);
    table.add(std::move(cells));
  }
  print_text("{}\n\n{}", head, table.str());
  for (std::size_t i = 1; i < models.size(); ++i) {
    const EvaluatedModel &one = models[0], &other = models[i];
    std::string differences;
    for (std::size_t k = 0; k < one.scores.size(); ++k) {
      const Score& score = one.scores[k];
      if (!score.compared) continue;
      differences +=
          fmt::format("{} {}, ", score.title,
                      difference_text(score.value - other.scores[k].value, score.digits));
    }
    print_text("\n{} against {}: {}{:.2f} times the tokens/s, {:.0f} % of the size\n", names[0],
               names[i], differences, one.tokens_per_second() / other.tokens_per_second(),
               100.0 * static_cast<double>(one.bytes) /
                   static_cast<double>(std::max<std::uintmax_t>(1, other.bytes)));
    if (other.equal_answers)
      print_text("the same answer to {} of {} ({:.1f} %)\n",
                 grouped(static_cast<std::int64_t>(*other.equal_answers)),
                 grouped(std::ssize(other.items)),
                 100.0 * static_cast<double>(*other.equal_answers) /
                     static_cast<double>(other.items.size()));
    if (other.mean_cosine)
      print_text("cosine of their vectors of {}: {:.5f} on average, {:.5f} at least\n",
                 counted(std::ssize(other.vectors), "texts"), *other.mean_cosine,
                 *other.min_cosine);
  }
}

nlohmann::ordered_json to_json(const std::vector<EvaluatedModel>& models) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const EvaluatedModel& model : models) {
    nlohmann::ordered_json json = tasks::to_json(model);
    if (model.mean_cosine) {
      json["mean_cosine"] = *model.mean_cosine;
      json["least_cosine"] = *model.min_cosine;
    }
    if (model.equal_answers) json["equal_answers"] = *model.equal_answers;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace bertcl::tools
