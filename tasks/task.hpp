// SPDX-License-Identifier: Apache-2.0
// A task on texts, and how a model's outputs for them are scored.
#pragma once
#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "squad/predictions.hpp"
#include "tasks/data/readers.hpp"
#include "tasks/features.hpp"
#include "text/run_rows.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tasks {

using text::Head;

/// A score by its usual name. Accuracy, precision, recall and F1 are percentages, correlations are
/// between -1 and 1, and NaN where they are not defined.
struct Metric {
  std::string name;
  double value = 0.0;
  bool is_correlation = false;
  bool detail = false;  ///< of some of the items, or of thresholds: after the costs in JSON
};

struct EncodeOptions {
  int max_length = 512;     ///< tokens of a sequence with [CLS] and [SEP]
  bool windows = false;     ///< classify all of a long text, in windows, not its beginning
  bool lower_case = false;  ///< of texts that get a vector: lower-case them
};

/// Collects a model's outputs for the items of a task.
class Results {
 public:
  virtual ~Results() = default;
  /// The output for a sequence of an item: [classes], or [length, classes] by token.
  virtual void add(std::size_t item, const Sequence& sequence, std::span<const float> output) = 0;
  /// Called after all sequences of an item, in the order of the items, by another thread, which
  /// add() of later items does not wait for.
  virtual void finish(std::size_t /*item*/) {}
  virtual std::vector<Metric> metrics() const = 0;
  /// Id of each item, and its prediction: a label, a number, a list of labels.
  virtual nlohmann::ordered_json predictions() const = 0;
  /// The vectors of the texts where the model gives vectors, in an order that depends on the data
  /// alone; else none.
  virtual std::vector<std::vector<float>> vectors() const { return {}; }
  /// The answers to questions of SQuAD; else none.
  virtual std::span<const squad::QuestionPrediction> answers() const { return {}; }
};

/// Items with their references. Immutable.
class Task {
 public:
  virtual ~Task() = default;
  virtual std::size_t size() const = 0;  ///< items
  virtual std::string unit() const = 0;  ///< what an item is, in the plural: "pairs"
  virtual const Head& head() const = 0;
  virtual std::string main_metric() const = 0;  ///< name of the one that models are compared by
  /// Sequences that are sorted by length together. The next ones are tokenized while these run. 0:
  /// all.
  virtual std::size_t group_size() const { return 0; }
  /// None if the item holds no words to label.
  virtual std::vector<Sequence> encode(std::size_t item, const text::Tokenizer& tokenizer,
                                       const EncodeOptions& options) const = 0;
  /// Results for the first `count` items.
  virtual std::unique_ptr<Results> results(std::size_t count,
                                           const text::Tokenizer& tokenizer) const = 0;
};

struct QuestionOptions {
  squad::FeatureOptions features;        ///< max_seq_length is that of EncodeOptions
  squad::PredictionOptions predictions;  ///< but version_2 and allow_nonfinite
  std::size_t group_size = 2048;         ///< Task::group_size()
  bool keep_nbest = false;               ///< keep the n-best list of each answer
};

/// Answers to questions of SQuAD: exact match and F1, and as details the metrics of the official
/// script. Tokenizers must live as long as the task.
std::unique_ptr<Task> questions_task(std::shared_ptr<const squad::Dataset> dataset,
                                     const QuestionOptions& options);

/// Which class a text, or a pair, is of; accuracy and macro F1. `model_labels` are the names of the
/// model's classes, or empty. A label of the data is a class by its name, case aside; or, for two
/// classes that are negative and positive, by any of their names (0, neg, NEGATIVE); or else it is
/// a number that counts the classes from 0. Predictions are named as the data name them. Logits of
/// windows are averaged.
///
/// With `multi_label`, or where it is not set and the data have lists of labels, a text is of any
/// number of classes, each with a logit above 0, as its sigmoid is above 0.5 then: micro and macro
/// F1 over the classes, and the accuracy of whole sets. Labels are then those of
/// ClassifiedText::labels, else of the label between its commas.
///
/// Throws Error if a label of the data has no class, or if `multi_label` is false and the data have
/// lists.
std::unique_ptr<Task> classify_task(std::vector<ClassifiedText> texts, std::string unit,
                                    const std::vector<std::string>& model_labels,
                                    std::optional<bool> multi_label = {});

/// Semantic similarity of two texts; Pearson's and Spearman's correlation. `embeds`: of a model
/// that gives a vector for each text, by the cosine of both; else of one that scores a pair.
std::unique_ptr<Task> similarity_task(std::vector<ScoredPair> pairs, bool embeds = false);

/// Questions, each with the one paragraph that answers it.
struct QuestionParagraphs {
  struct Question {
    std::string id, text;
    std::size_t paragraph = 0;  ///< index
  };
  std::vector<std::string> paragraphs;
  std::vector<Question> questions;
};

/// Equal paragraphs are one, numbered in the order of their first questions; those of no question
/// are left out.
QuestionParagraphs distinct(QuestionParagraphs all);

/// Texts before questions and paragraphs, as some embedding models need them.
struct RetrievalPrompts {
  std::string question, paragraph;
  bool operator==(const RetrievalPrompts&) const = default;
};

/// Finds the paragraph of each question by the cosine of their vectors: NDCG, MRR and recall at 10
/// over all paragraphs of the questions that are evaluated. A model that gives a vector for each
/// text. Throws Error if there are no questions.
std::unique_ptr<Task> retrieval_task(QuestionParagraphs data, RetrievalPrompts prompts = {});

/// Paragraphs that BM25 proposes for a question.
inline constexpr std::size_t kCandidates = 20;

/// Orders the best kCandidates paragraphs by BM25 (scores/bm25.hpp) by the score of a
/// cross-encoder: MRR at 10, where a question whose paragraph is not among them counts 0; together
/// with the MRR at 10 of BM25's own order, and the recall of the candidates, which bounds it. Over
/// the paragraphs of all questions of the data. Throws Error if there are no questions.
std::unique_ptr<Task> reranking_task(QuestionParagraphs data);

/// Throws Error, which says how to give them, if there are no labels.
void check_tags_are_known(const std::vector<std::string>& labels);

/// A tag for each word; precision, recall and F1 of entities, accuracy of tags. `model_labels` are
/// the tags of the model's classes. A word that the model does not see gets "O".
/// Throws Error if there are no labels, or if a tag of the data is none of them.
std::unique_ptr<Task> tagging_task(std::vector<TaggedSentence> sentences,
                                   std::vector<std::string> model_labels);

/// Prediction of masked tokens; accuracy. The model's classes are the ids of the vocabulary, of
/// `vocabulary` tokens.
std::unique_ptr<Task> masked_task(std::vector<NamedText> texts, std::size_t vocabulary);

}  // namespace bertcl::tasks
