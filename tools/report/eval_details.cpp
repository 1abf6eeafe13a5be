// SPDX-License-Identifier: Apache-2.0
// What the page of `bertcl eval --html` shows next to scores and times.
#include "tools/report/eval_details.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

namespace bertcl::tools {
namespace {

using nlohmann::ordered_json;

struct LengthGroup {
  std::size_t from, to;  // words of the first right answer
  const char* title;
};
constexpr LengthGroup kLengths[] = {{0, 0, "no answer"},
                                    {1, 1, "1 word"},
                                    {2, 2, "2 words"},
                                    {3, 3, "3 words"},
                                    {4, 5, "4 to 5 words"},
                                    {6, 10, "6 to 10 words"},
                                    {11, SIZE_MAX, "more than 10 words"}};

std::size_t words_of(std::string_view text) {
  std::size_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    words += !space && !inside;
    inside = !space;
  }
  return words;
}

/// A list is told by the places where both differ.
std::string shown(const ItemResult& result, const ItemResult& beside) {
  if (result.parts.empty() || result.parts.size() != beside.parts.size()) return result.prediction;
  std::string text;
  for (std::size_t i = 0; i < result.parts.size(); ++i)
    if (result.parts[i] != beside.parts[i])
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", i + 1, result.parts[i]);
  return text;
}

ModelComparison comparison(const EvaluatedModel& first, const EvaluatedModel& model,
                           const ItemTexts& texts) {
  const std::vector<ItemResult>&one = first.items, &other = model.items;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    if (one[i].prediction != other[i].prediction) places.push_back(i);
  if (!one.empty() && one.front().number)
    std::ranges::stable_sort(places, std::greater(), [&](std::size_t i) {
      return std::abs(*one[i].number - *other[i].number);
    });
  ModelComparison made{.total = one.size(), .equal = one.size() - places.size()};
  for (const std::size_t i : places) {
    DifferingItem item{.id = one[i].id,
                       .answers = {shown(one[i], other[i]), shown(other[i], one[i])}};
    if (one[i].f1 && other[i].f1) item.f1 = {*one[i].f1, *other[i].f1};
    if (texts) {
      item.text = texts(i);
      item.excerpt = excerpt_of_two(item.text->context, one[i].span, other[i].span);
      std::erase_if(item.excerpt, [](const ExcerptPart& part) { return part.text.empty(); });
    }
    made.differing.push_back(std::move(item));
  }
  return made;
}

std::vector<AnswerLength> answer_lengths(const std::vector<EvaluatedModel>& models,
                                         const ItemTexts& texts) {
  std::vector<AnswerLength> lengths;
  for (const LengthGroup& group : kLengths) {
    std::vector<std::size_t> items;
    for (std::size_t i = 0; i < models.front().items.size(); ++i) {
      const ItemText text = texts(i);
      const std::size_t words = text.references.empty() ? 0 : words_of(text.references.front());
      if (words >= group.from && words <= group.to) items.push_back(i);
    }
    if (items.empty()) continue;
    AnswerLength& length = lengths.emplace_back();
    length.answer = group.title;
    length.questions = items.size();
    for (const EvaluatedModel& model : models) {
      double exact = 0, f1 = 0;
      for (const std::size_t i : items) {
        exact += model.items[i].exact.value_or(0);
        f1 += model.items[i].f1.value_or(0);
      }
      length.exact.push_back(exact / static_cast<double>(items.size()));
      length.f1.push_back(f1 / static_cast<double>(items.size()));
    }
  }
  return lengths;
}

ordered_json to_json(const DifferingItem& item) {
  ordered_json json = {{"id", item.id}, {"answers", item.answers}};
  if (item.f1) json["f1"] = *item.f1;
  if (!item.text) return json;
  json["question"] = item.text->question;
  json["references"] = item.text->references;
  json["excerpt"] = ordered_json::array();
  for (const ExcerptPart& part : item.excerpt)
    json["excerpt"].push_back({{"text", part.text}, {"of", answer_of(part)}});
  return json;
}

ordered_json to_json(const CalibratedRange& range) {
  return {{"tensor", range.tensor},
          {"layer", range.layer ? ordered_json(*range.layer) : ordered_json()},
          {"type", ir::name_of(range.type)},
          {"scale", range.scale},
          {"smallest_scale", range.smallest_scale},
          {"zero_point", range.zero_point},
          {"channels", range.channels},
          {"low", range.low},
          {"high", range.high}};
}

ordered_json to_json(const KernelTime& time) {
  return {{"name", time.name},
          {"op", time.op},
          {"type", time.type.str()},
          {"calls", time.calls},
          {"ms", time.ms}};
}

ordered_json list_of(const auto& items) {
  ordered_json list = ordered_json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

}  // namespace

const char* answer_of(const ExcerptPart& part) {
  if (part.in_one) return part.in_other ? "both" : "one";
  return part.in_other ? "other" : "";
}

EvalDetails eval_details(const std::vector<EvaluatedModel>& models, const ItemTexts& texts) {
  EvalDetails details;
  for (std::size_t m = 1; m < models.size(); ++m)
    details.comparisons.push_back(comparison(models[0], models[m], texts));
  if (texts) details.answer_lengths = answer_lengths(models, texts);
  for (const EvaluatedModel& model : models)
    details.calibration.push_back(calibrated_ranges(model.path));
  return details;
}

ordered_json to_json(const EvalDetails& details, const std::vector<EvaluatedModel>& models) {
  ordered_json comparisons = ordered_json::array(), lengths = comparisons, kernels = comparisons,
               calibration = comparisons;
  for (std::size_t i = 0; i < details.comparisons.size(); ++i) {
    const ModelComparison& comparison = details.comparisons[i];
    comparisons.push_back({{"path", models[0].path.string()},
                           {"with", models[i + 1].path.string()},
                           {"total", comparison.total},
                           {"equal", comparison.equal},
                           {"differing", list_of(comparison.differing)}});
  }
  for (const AnswerLength& length : details.answer_lengths)
    lengths.push_back({{"answer", length.answer},
                       {"questions", length.questions},
                       {"exact_match", length.exact},
                       {"f1", length.f1}});
  for (std::size_t i = 0; i < models.size(); ++i) {
    kernels.push_back({{"path", models[i].path.string()},
                       {"batch", models[i].profiled_batch},
                       {"seq", models[i].profiled_seq},
                       {"kernels", list_of(models[i].kernels)}});
    if (!details.calibration[i].empty())
      calibration.push_back(
          {{"path", models[i].path.string()}, {"tensors", list_of(details.calibration[i])}});
  }
  return {{"comparisons", std::move(comparisons)},
          {"answer_lengths", std::move(lengths)},
          {"kernels", std::move(kernels)},
          {"calibration", std::move(calibration)}};
}

}  // namespace bertcl::tools
