// SPDX-License-Identifier: Apache-2.0
// Scores of a data set: v1.1, v2.0, thresholds on the null odds.
#include "squad/metrics.hpp"

#include <algorithm>
#include <tuple>

namespace bertcl::squad {
namespace {

struct Judged {
  const Question* question;
  double exact;
  double f1;
  double null_odds;
  bool predicts_null;

  bool has_answer() const { return !question->answers.empty(); }
};

double percent(double sum, std::size_t total) {
  return total == 0 ? 0.0 : 100.0 * sum / static_cast<double>(total);
}

/// Scores against the references that are not empty once normalized, or against "".
Judged judge_v2(const Question& question, const std::string& prediction) {
  Judged judged{&question, 0.0, 0.0, 0.0, prediction.empty()};
  bool any = false;
  const auto take = [&](std::string_view reference) {
    any = true;
    judged.exact = std::max(judged.exact, exact_score(prediction, reference));
    judged.f1 = std::max(judged.f1, f1_score_v2(prediction, reference));
  };
  for (const std::string& answer : question.answers) {
    if (!normalize_answer(answer).empty()) take(answer);
  }
  if (!any) take("");
  return judged;
}

/// apply_no_ans_threshold
Judged with_threshold(Judged judged, double threshold) {
  if (judged.null_odds > threshold) {
    judged.exact = judged.f1 = judged.has_answer() ? 0.0 : 1.0;
  }
  return judged;
}

template <typename Keep>
SubsetScores sum(const std::vector<Judged>& all, const Keep& keep) {
  SubsetScores scores;
  double exact = 0.0;
  double f1 = 0.0;
  for (const Judged& judged : all) {
    if (!keep(judged)) continue;
    exact += judged.exact;
    f1 += judged.f1;
    ++scores.total;
  }
  scores.exact = percent(exact, scores.total);
  scores.f1 = percent(f1, scores.total);
  return scores;
}

/// find_best_thresh; `by_odds` is sorted by null odds.
std::pair<double, double> best_threshold(const std::vector<Judged>& by_odds,
                                         std::size_t questions_without_answer,
                                         double Judged::*score) {
  auto current = static_cast<double>(questions_without_answer);
  double best = current;
  double threshold = 0.0;
  for (const Judged& judged : by_odds) {
    if (judged.has_answer()) {
      current += judged.*score;
    } else if (!judged.predicts_null) {
      current -= 1.0;
    }
    if (current > best) {
      best = current;
      threshold = judged.null_odds;
    }
  }
  return {percent(best, by_odds.size()), threshold};
}

/// make_precision_recall_eval
template <typename Score>
double average_precision(const std::vector<Judged>& by_odds, std::size_t positives,
                         const Score& score) {
  double found = 0.0;
  double last_recall = 0.0;
  double area = 0.0;
  for (std::size_t i = 0; i < by_odds.size(); ++i) {
    if (by_odds[i].has_answer()) found += score(by_odds[i]);
    const bool can_cut =
        i + 1 == by_odds.size() || by_odds[i].null_odds != by_odds[i + 1].null_odds;
    if (!can_cut) continue;
    const double precision = found / static_cast<double>(i + 1);
    const double recall = found / static_cast<double>(positives);
    area += precision * (recall - last_recall);
    last_recall = recall;
  }
  return 100.0 * area;
}

ThresholdScores threshold_scores(std::span<const Question> questions, std::vector<Judged> judged) {
  std::ranges::stable_sort(
      judged, [](const Judged& a, const Judged& b) { return a.null_odds < b.null_odds; });
  const auto positives = static_cast<std::size_t>(std::ranges::count_if(
      questions, [](const Question& question) { return !question.answers.empty(); }));
  const std::size_t negatives = questions.size() - positives;
  ThresholdScores scores;
  std::tie(scores.best_exact, scores.best_exact_thresh) =
      best_threshold(judged, negatives, &Judged::exact);
  std::tie(scores.best_f1, scores.best_f1_thresh) = best_threshold(judged, negatives, &Judged::f1);
  if (positives > 0) {
    scores.pr_exact_ap =
        average_precision(judged, positives, [](const Judged& j) { return j.exact; });
    scores.pr_f1_ap = average_precision(judged, positives, [](const Judged& j) { return j.f1; });
    scores.pr_oracle_ap = average_precision(judged, positives, [](const Judged&) { return 1.0; });
  }
  return scores;
}

}  // namespace

Scores evaluate_v1(std::span<const Question> questions, const Predictions& predictions) {
  Scores scores;
  scores.total = questions.size();
  double exact = 0.0;
  double f1 = 0.0;
  for (const Question& question : questions) {
    const auto prediction = predictions.find(question.id);
    if (prediction == predictions.end()) {
      scores.missing.push_back(question.id);
      continue;
    }
    double best_exact = 0.0;
    double best_f1 = 0.0;
    for (const std::string& answer : question.answers) {
      best_exact = std::max(best_exact, exact_score(prediction->second, answer));
      best_f1 = std::max(best_f1, f1_score(prediction->second, answer));
    }
    exact += best_exact;
    f1 += best_f1;
  }
  scores.exact_match = percent(exact, scores.total);
  scores.f1 = percent(f1, scores.total);
  return scores;
}

Scores evaluate_v2(std::span<const Question> questions, const Predictions& predictions,
                   const NullOdds* null_odds, double threshold) {
  Scores scores;
  std::vector<Judged> raw;
  std::vector<Judged> judged;
  for (const Question& question : questions) {
    const auto prediction = predictions.find(question.id);
    if (prediction == predictions.end()) {
      scores.missing.push_back(question.id);
      continue;
    }
    raw.push_back(judge_v2(question, prediction->second));
    if (null_odds != nullptr) {
      const auto odds = null_odds->find(question.id);
      if (odds != null_odds->end()) raw.back().null_odds = odds->second;
    }
    judged.push_back(with_threshold(raw.back(), threshold));
  }
  const auto [exact, f1, total] = sum(judged, [](const Judged&) { return true; });
  scores.exact_match = exact;
  scores.f1 = f1;
  scores.total = total;
  const SubsetScores has = sum(judged, [](const Judged& j) { return j.has_answer(); });
  const SubsetScores has_not = sum(judged, [](const Judged& j) { return !j.has_answer(); });
  scores.has_answer = has;
  scores.no_answer = has_not;
  if (null_odds != nullptr) scores.thresholds = threshold_scores(questions, std::move(raw));
  return scores;
}

std::vector<std::pair<std::string, double>> Scores::official_metrics() const {
  if (!has_answer && !no_answer) return {{"exact_match", exact_match}, {"f1", f1}};
  std::vector<std::pair<std::string, double>> result = {
      {"exact", exact_match}, {"f1", f1}, {"total", static_cast<double>(total)}};
  const auto add_subset = [&](const std::string& name, const std::optional<SubsetScores>& subset) {
    if (!subset || subset->total == 0) return;
    result.emplace_back(name + "_exact", subset->exact);
    result.emplace_back(name + "_f1", subset->f1);
    result.emplace_back(name + "_total", static_cast<double>(subset->total));
  };
  add_subset("HasAns", has_answer);
  add_subset("NoAns", no_answer);
  if (thresholds) {
    result.emplace_back("best_exact", thresholds->best_exact);
    result.emplace_back("best_exact_thresh", thresholds->best_exact_thresh);
    result.emplace_back("best_f1", thresholds->best_f1);
    result.emplace_back("best_f1_thresh", thresholds->best_f1_thresh);
    if (thresholds->pr_exact_ap) result.emplace_back("pr_exact_ap", *thresholds->pr_exact_ap);
    if (thresholds->pr_f1_ap) result.emplace_back("pr_f1_ap", *thresholds->pr_f1_ap);
    if (thresholds->pr_oracle_ap) result.emplace_back("pr_oracle_ap", *thresholds->pr_oracle_ap);
  }
  return result;
}

}  // namespace bertcl::squad
