// SPDX-License-Identifier: Apache-2.0
// Accuracy, correlations, entity F1.
#include "tasks/scores/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>

#include "support/fail.hpp"

namespace bertcl::tasks {
namespace {

void check_sizes(std::size_t predicted, std::size_t reference, std::size_t min_size) {
  if (predicted != reference) {
    fail("{} predictions for {} references", predicted, reference);
  }
  if (predicted < min_size) {
    fail("{} predictions; the metric needs at least {}", predicted, min_size);
  }
}

double percent(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Times a power of two, which rounds nothing, so that no square overflows or underflows.
std::vector<double> near_one(std::span<const double> values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  const int exponent = std::isfinite(largest) && largest > 0.0 ? std::ilogb(largest) : 0;
  std::vector<double> scaled;
  for (const double value : values) scaled.push_back(std::scalbn(value, -exponent));
  return scaled;
}

struct Tag {
  char place = 'O';  // B, I, E, S
  std::string_view type;
};

/// "B-person" -> B, person; "B" -> B and seqeval's name of no type, "_". Any other tag is a type of
/// its own, inside: "person".
Tag parse_tag(std::string_view text) {
  if (text == "O") return {};
  if (!text.empty() && std::string_view("BIES").find(text[0]) != std::string_view::npos &&
      (text.size() == 1 || text[1] == '-'))
    return {text[0], text.size() > 2 ? text.substr(2) : "_"};
  return {'I', text};
}

struct Counts {
  std::size_t right = 0, all = 0;  // all: as often as predicted, and as in the reference
};

}  // namespace

double accuracy(std::span<const std::int64_t> predicted, std::span<const std::int64_t> reference) {
  check_sizes(predicted.size(), reference.size(), 1);
  std::size_t right = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) right += predicted[i] == reference[i] ? 1 : 0;
  return percent(right, predicted.size());
}

double macro_f1(std::span<const std::int64_t> predicted, std::span<const std::int64_t> reference) {
  check_sizes(predicted.size(), reference.size(), 1);
  std::map<std::int64_t, Counts> classes;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    ++classes[predicted[i]].all;
    ++classes[reference[i]].all;
    if (predicted[i] == reference[i]) ++classes[predicted[i]].right;
  }
  double sum = 0.0;
  for (const auto& [label, counts] : classes) sum += percent(2 * counts.right, counts.all);
  return sum / static_cast<double>(classes.size());
}

LabelScores label_scores(const LabelSets& predicted, const LabelSets& reference) {
  check_sizes(predicted.size(), reference.size(), 1);
  std::map<std::size_t, Counts> classes;
  Counts total;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    for (const std::size_t label : reference[i]) {
      const bool right = std::ranges::binary_search(predicted[i], label);
      classes[label].right += right ? 1 : 0;
      total.right += right ? 1 : 0;
    }
    for (const auto* labels : {&predicted[i], &reference[i]}) {
      total.all += labels->size();
      for (const std::size_t label : *labels) ++classes[label].all;
    }
    equal += predicted[i] == reference[i] ? 1 : 0;
  }
  const auto f1 = [](const Counts& counts) { return percent(2 * counts.right, counts.all); };
  LabelScores scores{f1(total), 0.0, percent(equal, predicted.size())};
  for (const auto& [label, counts] : classes)
    scores.macro_f1 += f1(counts) / static_cast<double>(classes.size());
  return scores;
}

double pearson(std::span<const double> x, std::span<const double> y) {
  check_sizes(x.size(), y.size(), 2);
  // A mean is rounded: without this a constant side could have a tiny variance.
  for (const auto side : {x, y}) {
    if (std::ranges::all_of(side, [&](double value) { return value == side[0]; }))
      return std::numeric_limits<double>::quiet_NaN();
  }
  const std::vector<double> near_x = near_one(x), near_y = near_one(y);
  const double mean_x = mean(near_x), mean_y = mean(near_y);
  double xx = 0.0, yy = 0.0, xy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = near_x[i] - mean_x, dy = near_y[i] - mean_y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  return std::clamp(xy / (std::sqrt(xx) * std::sqrt(yy)), -1.0, 1.0);
}

std::vector<double> ranks(std::span<const double> values) {
  if (std::ranges::any_of(values, [](double value) { return std::isnan(value); }))
    return std::vector<double>(values.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2.0;
    for (std::size_t i = begin; i < end; ++i) result[order[i]] = rank;
    begin = end;
  }
  return result;
}

double spearman(std::span<const double> x, std::span<const double> y) {
  return pearson(ranks(x), ranks(y));
}

SearchScores search_scores(std::span<const std::size_t> ranks, std::size_t cutoff) {
  SearchScores scores;
  for (const std::size_t rank : ranks) {
    if (rank > cutoff) continue;
    const auto place = static_cast<double>(rank);
    scores.ndcg += 1.0 / std::log2(1.0 + place);
    scores.mrr += 1.0 / place;
    scores.recall += 1.0;
  }
  const double part = ranks.empty() ? 0.0 : 100.0 / static_cast<double>(ranks.size());
  return {scores.ndcg * part, scores.mrr * part, scores.recall * part};
}

std::vector<Entity> entities(std::span<const std::string> tags) {
  std::vector<Entity> found;
  Tag before;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const Tag tag = parse_tag(tags[i]);
    const bool goes_on = before.place != 'O' && before.place != 'E' && before.place != 'S' &&
                         tag.place != 'B' && tag.place != 'S' && tag.type == before.type;
    if (tag.place != 'O') {
      if (!goes_on) found.push_back({std::string(tag.type), i, i});
      found.back().end = i + 1;
    }
    before = tag;
  }
  return found;
}

EntityScores entity_scores(const Tags& predicted, const Tags& reference) {
  check_sizes(predicted.size(), reference.size(), 0);
  EntityScores scores;
  std::size_t words = 0, right = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    if (predicted[i].size() != reference[i].size()) {
      fail("sentence {} has {} predicted tags and {} in the reference", i, predicted[i].size(),
           reference[i].size());
    }
    words += reference[i].size();
    for (std::size_t k = 0; k < reference[i].size(); ++k)
      right += predicted[i][k] == reference[i][k] ? 1 : 0;
    const auto guesses = entities(predicted[i]), truths = entities(reference[i]);
    scores.predicted += guesses.size();
    scores.reference += truths.size();
    for (const Entity& guess : guesses)
      scores.correct += static_cast<std::size_t>(std::ranges::count(truths, guess));
  }
  scores.precision = percent(scores.correct, scores.predicted);
  scores.recall = percent(scores.correct, scores.reference);
  const double sum = scores.precision + scores.recall;
  scores.f1 = sum == 0.0 ? 0.0 : 2.0 * scores.precision * scores.recall / sum;
  scores.accuracy = percent(right, words);
  return scores;
}

}  // namespace bertcl::tasks
