// SPDX-License-Identifier: Apache-2.0
// What the page of `bertcl eval --html` shows beside scores and times, as JSON.
#include "tools/report/eval_details.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/report/excerpt.hpp"

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

ordered_json parts_json(const ItemText& text, const ItemResult& one, const ItemResult& other) {
  ordered_json parts = ordered_json::array();
  for (const ExcerptPart& part : excerpt_of_two(text.context, one.span, other.span)) {
    if (part.text.empty()) continue;
    const char* of = part.in_one && part.in_other ? "both"
                     : part.in_one                ? "one"
                     : part.in_other              ? "other"
                                                  : "";
    parts.push_back({{"text", part.text}, {"of", of}});
  }
  return parts;
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

ordered_json difference_json(const ItemResult& one, const ItemResult& other, std::size_t item,
                             const ItemTexts& texts) {
  ordered_json json = {{"id", one.id}, {"answers", {shown(one, other), shown(other, one)}}};
  if (one.f1 && other.f1) json["f1"] = {*one.f1, *other.f1};
  if (!texts) return json;
  const ItemText text = texts(item);
  json["question"] = text.question;
  json["references"] = text.references;
  json["excerpt"] = parts_json(text, one, other);
  return json;
}

double distance(const std::pair<const ItemResult*, const ItemResult*>& pair) {
  return std::abs(*pair.first->number - *pair.second->number);
}

}  // namespace

ordered_json comparisons_json(const std::vector<EvaluatedModel>& models, const ItemTexts& texts) {
  ordered_json list = ordered_json::array();
  for (std::size_t m = 1; m < models.size(); ++m) {
    const auto &one = models[0].items, &other = models[m].items;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
      if (one[i].prediction != other[i].prediction) places.push_back(i);
    if (!one.empty() && one.front().number)
      std::ranges::stable_sort(places, [&](std::size_t a, std::size_t b) {
        return distance({&one[a], &other[a]}) > distance({&one[b], &other[b]});
      });
    ordered_json differing = ordered_json::array();
    for (const std::size_t i : places)
      differing.push_back(difference_json(one[i], other[i], i, texts));
    list.push_back({{"path", models[0].path.string()},
                    {"with", models[m].path.string()},
                    {"total", one.size()},
                    {"equal", one.size() - places.size()},
                    {"differing", std::move(differing)}});
  }
  return list;
}

ordered_json answer_lengths_json(const std::vector<EvaluatedModel>& models,
                                 const ItemTexts& texts) {
  ordered_json list = ordered_json::array();
  if (!texts) return list;
  for (const LengthGroup& group : kLengths) {
    std::vector<std::size_t> items;
    for (std::size_t i = 0; i < models.front().items.size(); ++i) {
      const ItemText text = texts(i);
      const std::size_t words = text.references.empty() ? 0 : words_of(text.references.front());
      if (words >= group.from && words <= group.to) items.push_back(i);
    }
    if (items.empty()) continue;
    ordered_json exact = ordered_json::array(), f1 = ordered_json::array();
    for (const EvaluatedModel& model : models) {
      double exact_sum = 0, f1_sum = 0;
      for (const std::size_t i : items) {
        exact_sum += model.items[i].exact.value_or(0);
        f1_sum += model.items[i].f1.value_or(0);
      }
      exact.push_back(exact_sum / static_cast<double>(items.size()));
      f1.push_back(f1_sum / static_cast<double>(items.size()));
    }
    list.push_back({{"answer", group.title},
                    {"questions", items.size()},
                    {"exact_match", std::move(exact)},
                    {"f1", std::move(f1)}});
  }
  return list;
}

ordered_json kernels_json(const std::vector<EvaluatedModel>& models) {
  ordered_json list = ordered_json::array();
  for (const EvaluatedModel& model : models) {
    ordered_json kernels = ordered_json::array();
    for (const KernelTime& time : model.kernels)
      kernels.push_back({{"name", time.name},
                         {"op", time.op},
                         {"type", time.type.str()},
                         {"calls", time.calls},
                         {"ms", time.ms}});
    list.push_back({{"path", model.path.string()},
                    {"batch", model.profiled_batch},
                    {"seq", model.profiled_seq},
                    {"kernels", std::move(kernels)}});
  }
  return list;
}

}  // namespace bertcl::tools
