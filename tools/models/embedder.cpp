// SPDX-License-Identifier: Apache-2.0
// Texts to vectors: read, tokenized, run in batches of similar length.
#include "tools/models/embedder.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/port.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "tasks/features.hpp"
#include "text/base/data_file.hpp"
#include "text/run_rows.hpp"
#include "tools/terminal/progress.hpp"

namespace bertcl::tools {
namespace {

constexpr std::size_t kTextsAtOnce = 4096;  // texts sorted by length at a time

}  // namespace

EmbeddingInputs read_embedding_inputs(const std::string& command, const std::string& model,
                                      const std::string& texts, const VocabularyOptions& vocabulary,
                                      const opencl::ContextFuture& device) {
  return device.meanwhile([&] {
    EmbeddingInputs inputs{tasks::read_embedding_files(model), load_tokenizer(vocabulary, {model}),
                           read_input_texts(texts)};
    for (const InputText& text : inputs.texts) check_single(text, command);
    return inputs;
  });
}

std::string prompt_of(const tasks::EmbeddingFiles& files, const std::optional<std::string>& prompt,
                      const std::optional<std::string>& name) {
  const std::string chosen =
      name ? tasks::prompt_named(files.prompts, *name) : prompt.value_or(files.default_prompt);
  check_prompt(files, chosen);
  return chosen;
}

void check_prompt(const tasks::EmbeddingFiles& files, const std::string& prompt,
                  const std::string& option) {
  if (!prompt.empty() && !files.pools_prompt)
    fail("the model's 1_Pooling/config.json {}; {} \"\" embeds without one", tasks::kExcludesPrompt,
         option);
}

runtime::Session load_embedding_model(const std::string& path, ModelOptions options,
                                      const runtime::Pooling& pooling,
                                      const opencl::ContextFuture& context) {
  options.pooling = pooling;
  return load_model(path, options, context);
}

Embedder::Embedder(runtime::Session& session, const EmbeddingOptions& options, bool allow_nonfinite,
                   const tasks::EmbeddingFiles& files, const text::Tokenizer& tokenizer)
    : model_(session),
      tokenizer_(tokenizer),
      allow_nonfinite_(allow_nonfinite),
      lower_case_(files.lower_case && !options.vocabulary.lower_case) {
  model_.check_vocabulary(tokenizer);
  max_length_ = model_.max_length(options.max_length, files);
  batches_ = {options.batch_tokens, 256};
  model_.bound(batches_);
  const ir::Port& output = session.outputs().front();
  output_ = output.name;
  dimensions_ = static_cast<std::size_t>(output.type.shape[1].constant());
}

std::vector<float> Embedder::run(std::span<const InputText> texts, const std::string& prompt) {
  std::vector<tasks::Sequence> sequences;
  for (const InputText& text : texts) {
    const std::string prepared = tasks::embedded_text(prompt + text.text, lower_case_, tokenizer_);
    sequences.push_back(
        naming_text(text, [&] { return tasks::encode_text(prepared, tokenizer_, max_length_); }));
    truncated_ += sequences.back().cut > 0 ? 1 : 0;
  }
  std::vector<float> vectors(texts.size() * dimensions_);
  const text::Done done = text::run_rows(
      tasks::rows_of(sequences), {false, dimensions_, false, "a vector"}, batches_,
      [&](const text::Batch& batch) { return model_.run(batch, {output_}, false); },
      [&](std::size_t index, std::span<const float> vector) {
        check_finite(vector, texts[index]);
        std::ranges::copy(vector,
                          vectors.begin() + static_cast<std::ptrdiff_t>(index * dimensions_));
      });
  tokens_ += done.tokens;
  seconds_ += done.seconds;
  return vectors;
}

void Embedder::run_in_parts(
    std::span<const InputText> texts, const std::string& prompt,
    const std::function<void(std::span<const InputText> part, std::vector<float> vectors)>& visit) {
  Progress progress("embedding", "texts");
  for (std::size_t begin = 0; begin < texts.size(); begin += kTextsAtOnce) {
    const auto part = texts.subspan(begin, std::min(kTextsAtOnce, texts.size() - begin));
    visit(part, naming_model(model_.session().path(), [&] { return run(part, prompt); }));
    progress.update(begin + part.size(), texts.size());
  }
}

void Embedder::check_finite(std::span<const float> vector, const InputText& text) const {
  if (allow_nonfinite_ || text::all_finite(vector)) return;
  fail("the model returned NaN or infinity for '{}'; --allow-nonfinite continues",
       text::excerpt_of(text.text));
}

nlohmann::ordered_json vectors_json(const Embedder& embedder, std::size_t texts,
                                    const runtime::Pooling& pooling) {
  return {{"texts", texts},
          {"tokens", embedder.tokens()},
          {"truncated", embedder.truncated()},
          {"max_length", embedder.max_length()},
          {"dimensions", embedder.dimensions()},
          {"pooling", pooling.kind.empty() ? "model" : pooling.kind},
          {"normalized", pooling.normalize}};
}

}  // namespace bertcl::tools
