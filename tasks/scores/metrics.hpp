// SPDX-License-Identifier: Apache-2.0
// Scores of tasks, as defined by their papers and the usual tools.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bertcl::tasks {

/// Percentage of predictions equal to the reference. (GLUE, SST-2; masked tokens.) Throws Error if
/// there are none, or not as many as references.
double accuracy(std::span<const std::int64_t> predicted, std::span<const std::int64_t> reference);

/// Mean of the F1 of the classes that occur on either side, in percent. (f1_score of scikit-learn
/// with average="macro".) Throws Error as accuracy().
double macro_f1(std::span<const std::int64_t> predicted, std::span<const std::int64_t> reference);

/// Classes of items that have any number of them, in ascending order.
using LabelSets = std::vector<std::vector<std::size_t>>;

struct LabelScores {
  double micro_f1 = 0.0;  ///< F1 of all labels of all items together, in percent
  double macro_f1 = 0.0;  ///< mean of the F1 of the classes that occur on either side
  double accuracy = 0.0;  ///< percent of the items all of whose labels are right
};

/// Scores as f1_score (average="micro", "macro") and accuracy_score of scikit-learn. 0 where
/// nothing is divided. Throws Error as accuracy().
LabelScores label_scores(const LabelSets& predicted, const LabelSets& reference);

/// Pearson's correlation, from -1 to 1; NaN if either side is constant. (GLUE, STS-B;
/// scipy.stats.pearsonr.) Throws Error on fewer than 2 pairs, or sides of different length.
double pearson(std::span<const double> x, std::span<const double> y);

/// Spearman's correlation: Pearson's of the ranks. (GLUE, STS-B; scipy.stats.spearmanr.)
double spearman(std::span<const double> x, std::span<const double> y);

/// Ranks from 1; equal values have the mean of their ranks. (scipy.stats.rankdata.)
std::vector<double> ranks(std::span<const double> values);

/// Results of a search that count.
inline constexpr std::size_t kSearchDepth = 10;

/// The rank of the right result by its score, from 1: equal ones come in their order; NaN, which is
/// neither less nor equal, before it.
template <class T>
std::size_t rank_of(const std::vector<T>& scores, std::size_t right) {
  std::size_t rank = 1;
  for (std::size_t i = 0; i < scores.size(); ++i)
    rank += i != right && !(scores[i] < scores[right] || (scores[i] == scores[right] && i > right));
  return rank;
}

/// Scores of searches, each for one right result, in percent.
struct SearchScores {
  double ndcg = 0.0;    ///< normalized discounted cumulative gain: mean of 1 / log2(1 + rank)
  double mrr = 0.0;     ///< mean reciprocal rank
  double recall = 0.0;  ///< part of the searches that found it
};

/// Scores from the ranks of the right results, from 1; a rank above `cutoff` counts 0, as not
/// found. (trec_eval; MTEB.) 0 without a search.
SearchScores search_scores(std::span<const std::size_t> ranks, std::size_t cutoff);

/// A run of words that tags name together: words [begin, end) of a sentence.
struct Entity {
  std::string type;
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const Entity&, const Entity&) = default;
};

/// Entities of a sentence, whose words have the tags "O", or "B-", "I-", "E-", "S-" and a type
/// (IOB1, IOB2, IOBES). As conlleval of CoNLL-2000 reads them, and seqeval without its strict mode:
/// an entity begins at B- and S-, and also at I- and E- where no entity of that type goes on.
std::vector<Entity> entities(std::span<const std::string> tags);

struct EntityScores {
  double precision = 0.0;  ///< percent of the predicted entities that are in the reference
  double recall = 0.0;     ///< percent of the entities of the reference that are predicted
  double f1 = 0.0;         ///< harmonic mean of both
  double accuracy = 0.0;   ///< percent of the words with the right tag
  std::size_t predicted = 0, reference = 0, correct = 0;  ///< entities
};

/// Tags of all words of all sentences.
using Tags = std::vector<std::vector<std::string>>;

/// Scores over all sentences and types (micro average); an entity is correct if its words and its
/// type are. 0 where nothing is divided. Throws Error if the sides have different lengths.
EntityScores entity_scores(const Tags& predicted, const Tags& reference);

}  // namespace bertcl::tasks
