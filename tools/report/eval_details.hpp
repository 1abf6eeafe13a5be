// SPDX-License-Identifier: Apache-2.0
// What the page of `bertcl eval --html` shows next to scores and times.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/report/calibration.hpp"
#include "tools/report/eval_report.hpp"
#include "tools/report/excerpt.hpp"

namespace bertcl::tools {

/// A question of SQuAD. The texts live as long as the data set.
struct ItemText {
  std::string_view question, context;
  std::vector<std::string> references;  ///< right answers; none where there is no answer
};
using ItemTexts = std::function<ItemText(std::size_t item)>;

/// An item to which two models give different answers.
struct DifferingItem {
  std::string id;
  std::array<std::string, 2> answers;
  std::optional<std::array<double, 2>> f1 = {};
  std::optional<ItemText> text = {};      ///< none for tasks without questions
  std::vector<ExcerptPart> excerpt = {};  ///< of the context, around both answers
};

/// The first model and another. Predictions that are numbers differ by their distance, the largest
/// first; others stay in the order of the data.
struct ModelComparison {
  std::size_t total = 0, equal = 0;
  std::vector<DifferingItem> differing = {};
};

/// Questions by the words of the first right answer. The scores of all questions are the mean of
/// these, weighted by their number.
struct AnswerLength {
  const char* answer = "";
  std::size_t questions = 0;
  std::vector<double> exact, f1;  ///< of each model
};

struct EvalDetails {
  std::vector<ModelComparison> comparisons;               ///< of each model after the first
  std::vector<AnswerLength> answer_lengths;               ///< none for tasks without questions
  std::vector<std::vector<CalibratedRange>> calibration;  ///< of each model
};

/// `texts` is empty for tasks without questions.
EvalDetails eval_details(const std::vector<EvaluatedModel>& models, const ItemTexts& texts);

/// "comparisons", "answer_lengths", "kernels" and "calibration" of the report.
nlohmann::ordered_json to_json(const EvalDetails& details,
                               const std::vector<EvaluatedModel>& models);

/// "one", "other", "both" or "": whose answer a part belongs to.
const char* answer_of(const ExcerptPart& part);

std::string eval_page(const std::vector<EvaluatedModel>& models, const EvalDetails& details,
                      const std::string& head);

}  // namespace bertcl::tools
