// SPDX-License-Identifier: Apache-2.0
// Texts to vectors: read, tokenized, run in batches of similar length.
#include "tools/models/embedder.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "support/stopwatch.hpp"
#include "tasks/features.hpp"
#include "text/data_file.hpp"
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
  std::string chosen = prompt.value_or(files.default_prompt);
  if (name) {
    const auto found = files.prompts.find(*name);
    if (found == files.prompts.end()) {
      std::vector<std::string> names;
      for (const auto& [known, text] : files.prompts) names.push_back(known);
      fail("unknown prompt '{}'{}", *name, suggestion(*name, names));
    }
    chosen = found->second;
  }
  check_prompt(files, chosen);
  return chosen;
}

void check_prompt(const tasks::EmbeddingFiles& files, const std::string& prompt,
                  const std::string& option) {
  if (!prompt.empty() && !files.pools_prompt)
    fail(
        "the model's 1_Pooling/config.json excludes prompt tokens from pooling (include_prompt), "
        "which is not supported; {} \"\" embeds without one",
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
  dimensions_ = static_cast<std::size_t>(session.outputs().front().type.shape[1].constant());
}

std::vector<float> Embedder::run(std::span<const InputText> texts, const std::string& prompt) {
  std::vector<tasks::Sequence> sequences;
  std::vector<std::size_t> lengths;
  for (const InputText& text : texts) {
    const std::string prepared = tasks::embedded_text(prompt + text.text, lower_case_);
    sequences.push_back(
        naming_text(text, [&] { return tasks::encode_text(prepared, tokenizer_, max_length_); }));
    lengths.push_back(sequences.back().length());
    tokens_ += lengths.back();
    truncated_ += sequences.back().cut > 0 ? 1 : 0;
  }
  std::vector<float> vectors(texts.size() * dimensions_);
  for (const std::vector<std::size_t>& group : text::group_by_length(lengths, batches_)) {
    std::vector<text::Row> rows;
    for (const std::size_t i : group) rows.push_back({sequences[i].ids, sequences[i].second});
    const Stopwatch clock;
    const runtime::Tensors outputs = model_.run(text::make_batch(rows));
    seconds_ += clock.seconds();
    const ir::Tensor made = outputs.begin()->second.converted(ir::DType::f32);
    for (std::size_t row = 0; row < group.size(); ++row) {
      const auto vector = made.as<float>().subspan(row * dimensions_, dimensions_);
      check_finite(vector, texts[group[row]]);
      std::ranges::copy(vector,
                        vectors.begin() + static_cast<std::ptrdiff_t>(group[row] * dimensions_));
    }
  }
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
  if (allow_nonfinite_ || std::ranges::all_of(vector, [](float x) { return std::isfinite(x); }))
    return;
  fail("the vector of '{}' holds NaN or infinity (--allow-nonfinite accepts it)",
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
