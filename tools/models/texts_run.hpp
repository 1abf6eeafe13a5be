// SPDX-License-Identifier: Apache-2.0
// What the commands that run a task head on texts share: classify, tag, fill-mask.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "opencl/context_future.hpp"
#include "runtime/session.hpp"
#include "tasks/task.hpp"
#include "text/run_rows.hpp"
#include "text/tokenizer.hpp"
#include "tools/models/text_inputs.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/vocabulary_options.hpp"

namespace bertcl::tools {

/// MODEL, TEXTS, and how texts are tokenized.
struct TextsOptions : ModelOptions {
  std::string model, texts = "-";
  VocabularyOptions vocabulary;
  std::optional<int> max_length;
};

/// add_model_command() with MODEL, whose help is `model_help`, TEXTS, and how they are tokenized.
CLI::App* add_texts_command(CLI::App& program, const std::string& name,
                            const std::string& description, const std::string& example,
                            const std::string& model_help, TextsOptions& options);

/// The texts of the options, their tokenizer, and the model.
class TextsRun {
 public:
  /// The sequence of a text in at most `max_length` tokens.
  using EncodeFn = std::function<tasks::Sequence(const InputText& text, int max_length)>;

  /// Reads texts and tokenizer while the device is opened. Throws Error if standard input is a
  /// terminal. `options` must outlive the object.
  explicit TextsRun(const TextsOptions& options);

  runtime::Session& session() { return session_; }
  const runtime::Session& session() const { return session_; }
  const text::Tokenizer& tokenizer() const { return inputs_.first; }
  const std::vector<InputText>& texts() const { return inputs_.second; }

  /// Runs the model's output for `head` on all texts, in batches of similar length. Warns of texts
  /// that were truncated. Throws Error if the model has another head, or gives NaN or infinity.
  void run(const tasks::Head& head, const EncodeFn& encode, const text::OutputVisitor& visit);

  /// Prints what --json asks for: `results` [texts], and counts and times.
  void report(nlohmann::ordered_json more, nlohmann::ordered_json results) const;

 private:
  const TextsOptions& options_;
  opencl::ContextFuture device_;
  std::pair<text::Tokenizer, std::vector<InputText>> inputs_;
  runtime::Session session_;
  std::size_t tokens_ = 0, truncated_ = 0;
  double seconds_ = 0, model_seconds_ = 0;
};

/// Throws Error if `labels`, the value of --labels, and the texts are both standard input.
void check_one_reads_input(const TextsOptions& options, const std::string& labels);

/// {"id": .., "text": .., "text_pair": ..}, with the id and the second text where there are any.
nlohmann::ordered_json json_of(const InputText& text);

}  // namespace bertcl::tools
