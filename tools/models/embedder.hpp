// SPDX-License-Identifier: Apache-2.0
// Texts to vectors, for the commands that embed.
#pragma once
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "opencl/context_future.hpp"
#include "runtime/session.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "text/batch.hpp"
#include "text/tokenizer.hpp"
#include "tools/models/text_inputs.hpp"
#include "tools/models/text_model.hpp"
#include "tools/options/embedding_options.hpp"
#include "tools/options/model_options.hpp"

namespace bertcl::tools {

/// What a command that embeds reads.
struct EmbeddingInputs {
  tasks::EmbeddingFiles files;
  text::Tokenizer tokenizer;
  std::vector<InputText> texts;
};

/// Files and tokenizer of `model`, and the texts, while the device is opened.
/// Throws Error as read_input_texts(), and naming the command where a text is a pair.
EmbeddingInputs read_embedding_inputs(const std::string& command, const std::string& model,
                                      const std::string& texts, const VocabularyOptions& vocabulary,
                                      const opencl::ContextFuture& device);

/// The text before each text: `prompt`, else that of the model's files by `name`, else their
/// default. Throws Error on an unknown name, and as check_prompt().
std::string prompt_of(const tasks::EmbeddingFiles& files, const std::optional<std::string>& prompt,
                      const std::optional<std::string>& name);

/// Throws Error if the tokens of a prompt would have to be left out of the pooling; `option` is the
/// one that sets another.
void check_prompt(const tasks::EmbeddingFiles& files, const std::string& prompt,
                  const std::string& option = "--prompt");

/// load_model() with a pooled output. Throws Error also where nothing tells how to pool.
runtime::Session load_embedding_model(const std::string& path, ModelOptions options,
                                      const runtime::Pooling& pooling,
                                      const opencl::ContextFuture& context);

/// Vectors of texts, [texts, dimensions] in their order, and counts of all texts so far. Refers to
/// session and tokenizer, which must outlive it.
class Embedder {
 public:
  /// `allow_nonfinite`: vectors may hold NaN and infinity. Throws Error if tokenizer or length do
  /// not fit the model.
  Embedder(runtime::Session& session, const EmbeddingOptions& options, bool allow_nonfinite,
           const tasks::EmbeddingFiles& files, const text::Tokenizer& tokenizer);

  /// Throws Error that names the text whose vector is not finite.
  std::vector<float> run(std::span<const InputText> texts, const std::string& prompt);

  /// The same in parts, with progress on a terminal; a part's texts are sorted by length.
  void run_in_parts(std::span<const InputText> texts, const std::string& prompt,
                    const std::function<void(std::span<const InputText> part,
                                             std::vector<float> vectors)>& visit);

  std::size_t dimensions() const { return dimensions_; }
  std::size_t tokens() const { return tokens_; }
  std::size_t truncated() const { return truncated_; }  ///< texts that lost tokens
  int max_length() const { return max_length_; }        ///< tokens
  double seconds() const { return seconds_; }           ///< inside the model

 private:
  void check_finite(std::span<const float> vector, const InputText& text) const;

  TextModel model_;
  const text::Tokenizer& tokenizer_;
  bool allow_nonfinite_, lower_case_;
  std::string output_;
  text::BatchOptions batches_;
  int max_length_ = 0;  // tokens; set in the constructor
  std::size_t dimensions_ = 0, tokens_ = 0, truncated_ = 0;
  double seconds_ = 0.0;
};

/// What reports show: the counts of `embedder` after `texts` texts, and the pooling.
nlohmann::ordered_json vectors_json(const Embedder& embedder, std::size_t texts,
                                    const runtime::Pooling& pooling);

}  // namespace bertcl::tools
