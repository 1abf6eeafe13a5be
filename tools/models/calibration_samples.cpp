// SPDX-License-Identifier: Apache-2.0
// Calibration samples from the data of any task.
#include "tools/models/calibration_samples.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

#include "tasks/features.hpp"
#include "tasks/readers.hpp"
#include "tasks/task.hpp"

namespace bertcl::tools {
namespace {

quant::Sample to_sample(std::span<const std::int32_t> ids, std::size_t second) {
  quant::Sample sample;
  sample.ids.assign(ids.begin(), ids.end());
  sample.types.assign(ids.size(), 1);
  std::fill_n(sample.types.begin(), second, 0);
  return sample;
}

/// Texts of a file, or the contexts of a SQuAD file.
std::vector<tasks::TextOrPair> read_plain(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".json") return tasks::read_texts_or_pairs(path);
  std::vector<tasks::TextOrPair> texts;
  for (std::string& context : squad::load_dataset(path).contexts)
    texts.push_back({std::move(context), std::nullopt});
  return texts;
}

}  // namespace

CalibrationSamples::CalibrationSamples(const TaskOptions& task, const text::Tokenizer& tokenizer,
                                       const SampleOptions& options) {
  std::size_t total = 0;
  if (task.is_squad()) {
    dataset_ = std::make_shared<const squad::Dataset>(squad::load_dataset(task.data));
    total = dataset_->questions.size();
    unit_ = "questions";
    sample_of_ = [dataset = dataset_, &tokenizer,
                  features = options.features](std::size_t index) -> std::optional<quant::Sample> {
      const squad::Question& question = dataset->questions[index];
      const auto document = squad::make_document(dataset->context_of(question), tokenizer);
      const auto windows = squad::make_features(document, question.text, tokenizer, features);
      if (windows.empty()) return std::nullopt;
      return to_sample(windows.front().input_ids, windows.front().second);
    };
  } else if (task.name == kText) {
    const auto texts =
        std::make_shared<const std::vector<tasks::TextOrPair>>(read_plain(task.data));
    total = texts->size();
    unit_ = "texts";
    sample_of_ = [texts, &tokenizer, length = options.features.max_seq_length](std::size_t index) {
      const tasks::TextOrPair& text = (*texts)[index];
      const tasks::Sequence sequence =
          text.second ? tasks::encode_pair(text.text, *text.second, tokenizer, length)
                      : tasks::encode_text(text.text, tokenizer, length);
      return std::optional(to_sample(sequence.ids, sequence.second));
    };
  } else {
    const std::shared_ptr<const tasks::Task> texts = load_texts(task, tokenizer);
    total = texts->size();
    unit_ = texts->unit();
    const tasks::EncodeOptions encode{options.features.max_seq_length, false};
    sample_of_ = [texts, &tokenizer, encode](std::size_t index) -> std::optional<quant::Sample> {
      const auto sequences = texts->encode(index, tokenizer, encode);
      if (sequences.empty()) return std::nullopt;
      return to_sample(sequences.front().ids, sequences.front().second);
    };
  }
  const bool some = options.first && options.wanted > 0;
  chosen_ = quant::spread(some ? std::min(options.wanted, total) : total, options.wanted);
}

std::optional<quant::Sample> CalibrationSamples::next() {
  while (next_ < chosen_.size())
    if (auto sample = sample_of_(chosen_[next_++])) return sample;
  return std::nullopt;
}

}  // namespace bertcl::tools
