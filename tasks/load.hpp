// SPDX-License-Identifier: Apache-2.0
// Tasks by their names, from data files.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "tasks/data/readers.hpp"
#include "tasks/task.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tasks {

// Names of tasks.
inline constexpr const char* kQuestionAnswering = "question-answering";
inline constexpr const char* kClassify = "classify";
inline constexpr const char* kTag = "tag";
inline constexpr const char* kFillMask = "fill-mask";
inline constexpr const char* kSimilarity = "similarity";
inline constexpr const char* kRetrieval = "retrieval";
inline constexpr const char* kReranking = "reranking";
inline constexpr const char* kText = "text";  // any texts, to calibrate on

inline const std::vector<std::string> kEvaluatedTasks = {
    kQuestionAnswering, kClassify, kTag, kFillMask, kSimilarity, kRetrieval, kReranking};
inline const std::vector<std::string> kCalibrationTasks = {kQuestionAnswering, kClassify,   kTag,
                                                           kFillMask,          kSimilarity, kText};

/// A task other than question answering.
struct TaskData {
  std::string name;
  std::filesystem::path path;
  std::vector<std::string> labels = {};  ///< of the model's classes; may be empty
  std::optional<bool> multi_label = {};  ///< as classify_task() has it
  bool embeds = false;                   ///< as similarity_task() has it
  RetrievalPrompts prompts = {};
};

/// Indices of the items to take, of `total`.
using ItemChoice = std::function<std::vector<std::size_t>(std::size_t total)>;

/// The task with all of its data, or those of the choice (retrieval and reranking: with all);
/// `vocabulary` is the number of tokens of the model's. Throws Error as the readers do, and on an
/// unknown name.
std::unique_ptr<Task> load_task(const TaskData& data, std::size_t vocabulary,
                                const ItemChoice& choice = {}, IdRule rule = IdRule::unique);

/// The questions of a data set that have an answer, each with its context.
QuestionParagraphs answered_questions(const squad::Dataset& dataset);

/// The first sequence of each item of data of any task, kText and kQuestionAnswering among them:
/// the first window of a question, as much of a text as fits. What the model's classes mean does
/// not matter, nor do ids.
struct FirstSequences {
  std::size_t items = 0;
  std::string unit;  ///< what an item is, in the plural: "questions"
  /// None if the item has no tokens.
  std::function<std::optional<Sequence>(std::size_t item)> sequence;
  std::shared_ptr<const squad::Dataset> dataset;  ///< of questions; else null
};

/// `features.max_seq_length` holds for all tasks. The tokenizer must live as long.
/// Throws Error as load_task().
FirstSequences read_first_sequences(const std::string& task, const std::filesystem::path& path,
                                    const text::Tokenizer& tokenizer,
                                    const squad::FeatureOptions& features);

}  // namespace bertcl::tasks
