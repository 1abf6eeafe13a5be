// SPDX-License-Identifier: Apache-2.0
// Calibration samples of the public interface, from the data of any task.
#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "api/boundary.hpp"
#include "api/tokenizer_impl.hpp"
#include "bertcl/quantize.hpp"
#include "quant/calibration/samples.hpp"
#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "support/did_you_mean.hpp"
#include "tasks/features.hpp"
#include "tasks/readers.hpp"
#include "tasks/task.hpp"

namespace bertcl {
namespace {

void append(Sequences& samples, std::span<const std::int32_t> ids, std::size_t second) {
  samples.ids.insert(samples.ids.end(), ids.begin(), ids.end());
  for (std::size_t i = 0; i < ids.size(); ++i) samples.types.push_back(i >= second ? 1 : 0);
  samples.offsets.push_back(static_cast<std::int64_t>(samples.ids.size()));
}

std::vector<std::size_t> chosen(std::size_t total, const SampleOptions& options) {
  const bool some = options.first && options.count > 0;
  return quant::spread(some ? std::min(options.count, total) : total, options.count);
}

Sequences question_samples(const std::filesystem::path& data, const text::Tokenizer& tokenizer,
                           const SampleOptions& options) {
  const squad::Dataset dataset = squad::load_dataset(data);
  squad::FeatureOptions features;
  features.max_seq_length = options.max_length;
  features.max_query_length = options.max_query_length;
  Sequences samples;
  for (const std::size_t index : chosen(dataset.questions.size(), options)) {
    const squad::Question& question = dataset.questions[index];
    const auto document = squad::make_document(dataset.context_of(question), tokenizer);
    const auto windows = squad::make_features(document, question.text, tokenizer, features);
    if (!windows.empty()) append(samples, windows.front().input_ids, windows.front().second);
  }
  return samples;
}

Sequences text_samples(const std::filesystem::path& data, const text::Tokenizer& tokenizer,
                       const SampleOptions& options) {
  std::vector<tasks::TextOrPair> texts;
  if (data.extension() == ".json")
    for (std::string& context : squad::load_dataset(data).contexts)
      texts.push_back({std::move(context), std::nullopt});
  else
    texts = tasks::read_texts_or_pairs(data);
  Sequences samples;
  for (const std::size_t index : chosen(texts.size(), options)) {
    const tasks::TextOrPair& text = texts[index];
    const tasks::Sequence sequence =
        text.second ? tasks::encode_pair(text.text, *text.second, tokenizer, options.max_length)
                    : tasks::encode_text(text.text, tokenizer, options.max_length);
    append(samples, sequence.ids, sequence.second);
  }
  return samples;
}

/// The items of a task; their labels count only among themselves.
std::unique_ptr<tasks::Task> load_items(const std::string& task, const std::filesystem::path& data,
                                        std::size_t vocabulary) {
  const auto rule = tasks::IdRule::any;
  std::set<std::string> labels;
  const auto names = [&] { return std::vector<std::string>(labels.begin(), labels.end()); };
  if (task == "classify") {
    auto texts = tasks::read_classified(data, rule);
    for (const tasks::ClassifiedText& text : texts) {
      if (text.labels)
        labels.insert(text.labels->begin(), text.labels->end());
      else
        labels.insert(text.label);
    }
    return tasks::classify_task(std::move(texts), "texts", names(), {});
  }
  if (task == "tag") {
    auto sentences = tasks::read_tagged(data, rule);
    for (const tasks::TaggedSentence& sentence : sentences)
      labels.insert(sentence.tags.begin(), sentence.tags.end());
    return tasks::tagging_task(std::move(sentences), names());
  }
  if (task == "fill-mask")
    return tasks::masked_task(data.extension() == ".json"
                                  ? tasks::without_ids(squad::load_dataset(data).contexts)
                                  : tasks::read_named_texts(data, rule),
                              vocabulary);
  if (task == "similarity")
    return tasks::similarity_task(tasks::read_scored_pairs(data, rule), false);
  throw Error("unknown task '" + task + "'" +
              suggestion(task, {"question-answering", "classify", "tag", "fill-mask", "similarity",
                                "text"}));
}

Sequences item_samples(const std::filesystem::path& data, const text::Tokenizer& tokenizer,
                       const SampleOptions& options) {
  const auto items = load_items(options.task, data, tokenizer.vocabulary_size());
  Sequences samples;
  for (const std::size_t index : chosen(items->size(), options)) {
    const auto sequences = items->encode(index, tokenizer, {options.max_length, false});
    if (!sequences.empty()) append(samples, sequences.front().ids, sequences.front().second);
  }
  return samples;
}

}  // namespace

Sequences read_samples(const std::filesystem::path& data, const Tokenizer& tokenizer,
                       const SampleOptions& options) {
  return at_boundary([&] {
    const text::Tokenizer& pieces = TokenizerAccess::of(tokenizer);
    if (options.task == "question-answering") return question_samples(data, pieces, options);
    if (options.task == "text") return text_samples(data, pieces, options);
    return item_samples(data, pieces, options);
  });
}

Sequences read_squad_samples(const std::filesystem::path& data, const Tokenizer& tokenizer,
                             std::size_t count, int max_length) {
  SampleOptions options;
  options.count = count;
  options.max_length = max_length;
  return read_samples(data, tokenizer, options);
}

}  // namespace bertcl
