// SPDX-License-Identifier: Apache-2.0
// A session of a model that reads token sequences: its bounds, and runs of batches.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "text/batch.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tools {

/// Throws Error with all inputs if there are no token ids, or an input of another meaning than
/// those that text models have (ir::role_of_input()).
void check_reads_texts(const plan::Plan& plan);

/// Runs batches. Refers to the session, which must outlive it.
class TextModel {
 public:
  explicit TextModel(runtime::Session& session);

  /// Throws Error if the vocabulary of the tokenizer's model is larger than the word table, and
  /// warns where it is smaller by more than what tables are padded by. Tokens that were added
  /// beyond the table are errors of the texts that have them: run() names them.
  void check_vocabulary(const text::Tokenizer& tokenizer);
  /// Tokens of the longest sequence that the file allows; 0: no limit.
  std::int64_t longest_sequence() const;
  /// Throws Error if sequences of `max_length` tokens are too long for the model.
  void check_length(int max_length) const;
  /// Tokens of a sequence: as many as are `asked` for, which check_length() has to take; else as
  /// many as the model takes and the files beside it say (tasks::declared_length()), where these
  /// are silent `default_value`, or 512.
  int max_length(std::optional<int> asked, std::optional<int> default_value = std::nullopt) const;
  /// The same as sentence-transformers' files say.
  int max_length(std::optional<int> asked, const tasks::EmbeddingFiles& files) const;
  /// Applies the file's bounds to a batch; where the model cannot tell padding, there is none.
  void bound(text::BatchOptions& batches) const;

  /// Session::run(Sequences). Throws Error where a token has no row in the model's table.
  runtime::Tensors run(const text::Batch& batch);
  /// The same for runtime::row_values().
  std::vector<float> run(const text::Batch& batch, const runtime::OutputNames& outputs,
                         bool by_token);

  /// A small batch, so that compilation at first use is not measured.
  text::Batch small_batch() const;

  /// Sequences of a run that the file fixes; 0 where they are free.
  std::int64_t fixed_batch() const { return fixed_batch_; }
  const runtime::Session& session() const { return session_; }

 private:
  void check_ids(const text::Batch& batch) const;

  runtime::Session& session_;
  std::int64_t fixed_batch_ = 0, fixed_seq_ = 0;             // 0 where they are free
  std::map<std::int32_t, std::string> tokens_beyond_table_;  // by id
};

}  // namespace bertcl::tools
