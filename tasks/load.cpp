// SPDX-License-Identifier: Apache-2.0
// Tasks by their names, from data files.
#include "tasks/load.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "bertcl/error.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::tasks {
namespace {

/// Of a SQuAD file.
QuestionParagraphs read_questions(const std::filesystem::path& path) {
  QuestionParagraphs data = answered_questions(squad::load_dataset(path));
  if (data.questions.empty()) throw Error(path.string() + ": contains no question with an answer");
  return data;
}

/// Adds the name of the file to what `work` says of its contents.
template <class Work>
auto naming_file(const std::filesystem::path& path, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", text::data_name(path), error.what()), error.code());
  }
}

const char* unit_of_texts(const std::filesystem::path& path) {
  return holds_movie_reviews(path) ? "reviews" : "texts";
}

template <class Item>
std::vector<Item> chosen(std::vector<Item> items, const ItemChoice& choice) {
  if (!choice) return items;
  std::vector<Item> some;
  for (const std::size_t i : choice(items.size())) some.push_back(std::move(items[i]));
  return some;
}

/// The items of a task; their labels count only among themselves.
std::unique_ptr<Task> load_items(const std::string& task, const std::filesystem::path& path,
                                 std::size_t vocabulary) {
  std::set<std::string> labels;
  const auto names = [&] { return std::vector<std::string>(labels.begin(), labels.end()); };
  if (task == kTag) {
    auto sentences = read_tagged(path, IdRule::any);
    for (const TaggedSentence& sentence : sentences)
      labels.insert(sentence.tags.begin(), sentence.tags.end());
    return tagging_task(std::move(sentences), names());
  }
  if (task == kClassify) {
    auto texts = read_classified(path, IdRule::any);
    for (const ClassifiedText& text : texts) {
      if (text.labels)
        labels.insert(text.labels->begin(), text.labels->end());
      else
        labels.insert(text.label);
    }
    return classify_task(std::move(texts), unit_of_texts(path), names());
  }
  if (task == kFillMask || task == kSimilarity)
    return load_task({task, path}, vocabulary, {}, IdRule::any);
  fail("unknown task '{}'{}", task, suggestion(task, kCalibrationTasks));
}

FirstSequences of_texts(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                        int length) {
  auto texts = std::make_shared<const std::vector<TextOrPair>>(read_texts_or_pairs(path));
  const auto sequence = [texts, &tokenizer, length](std::size_t item) {
    const TextOrPair& text = (*texts)[item];
    return std::optional(encode_text(text.text, text.second, tokenizer, length));
  };
  return {texts->size(), "texts", sequence, nullptr};
}

}  // namespace

std::unique_ptr<Task> load_task(const TaskData& data, std::size_t vocabulary,
                                const ItemChoice& choice, IdRule rule) {
  const std::string& name = data.name;
  const std::filesystem::path& path = data.path;
  if (name == kClassify) {
    auto texts = chosen(read_classified(path, rule), choice);
    return naming_file(path, [&] {
      return classify_task(std::move(texts), unit_of_texts(path), data.labels, data.multi_label);
    });
  }
  if (name == kTag) {
    check_tags_are_known(data.labels);
    auto sentences = chosen(read_tagged(path, rule), choice);
    return naming_file(path, [&] { return tagging_task(std::move(sentences), data.labels); });
  }
  if (name == kFillMask)
    return masked_task(chosen(read_named_texts(path, rule), choice), vocabulary);
  if (name == kSimilarity)
    return similarity_task(chosen(read_scored_pairs(path, rule), choice), data.embeds);
  if (name == kRetrieval) return retrieval_task(read_questions(path), data.prompts);
  if (name == kReranking) return reranking_task(read_questions(path));
  fail("unknown task '{}'{}", name, suggestion(name, kEvaluatedTasks));
}

QuestionParagraphs answered_questions(const squad::Dataset& dataset) {
  QuestionParagraphs data;
  data.paragraphs = dataset.contexts;
  for (const squad::Question& question : dataset.questions)
    if (!question.is_impossible && !question.answers.empty())
      data.questions.push_back({question.id, question.text, question.context});
  return data;
}

FirstSequences read_first_sequences(const std::string& task, const std::filesystem::path& path,
                                    const text::Tokenizer& tokenizer,
                                    const squad::FeatureOptions& features) {
  if (task == kText) return of_texts(path, tokenizer, features.max_seq_length);
  std::shared_ptr<const squad::Dataset> dataset;
  if (task == kQuestionAnswering)
    dataset = std::make_shared<squad::Dataset>(squad::load_dataset(path));
  const std::shared_ptr<const Task> items =
      dataset ? questions_task(dataset, {features, {}})
              : load_items(task, path, tokenizer.vocabulary_size());
  const EncodeOptions encode{features.max_seq_length, false};
  const auto sequence = [items, &tokenizer, encode, path, dataset](std::size_t item) {
    const auto encode_item = [&] { return items->encode(item, tokenizer, encode); };
    auto sequences = dataset ? naming_file(path, encode_item) : encode_item();
    return sequences.empty() ? std::nullopt : std::optional(std::move(sequences.front()));
  };
  return {items->size(), items->unit(), sequence, dataset};
}

}  // namespace bertcl::tasks
