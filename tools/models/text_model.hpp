// SPDX-License-Identifier: Apache-2.0
// A session of a model that reads token sequences: the roles of its inputs, and runs of batches.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session.hpp"
#include "tasks/embedding_files.hpp"
#include "text/batch.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tools {

/// The roles of a model's inputs. A name is empty if the model has none.
struct InputPorts {
  std::string ids, mask, types, positions;
  std::vector<std::string> unused;  ///< inputs that do not change the logits ("unique_ids")
  std::int64_t batch = 0, seq = 0;  ///< extents that the file fixes; 0 where they are free
};

/// Reads the meaning from the names that exporters give: input_ids; attention_mask, input_mask;
/// token_type_ids, segment_ids; ... Throws Error with the names that were found if there are no
/// ids, or an input of another meaning.
InputPorts find_input_ports(const std::vector<plan::Port>& inputs);

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

  /// Outputs for the batch, [rows, columns, ..] as the model takes it: fixed extents of the file
  /// are filled up, rows() and columns() say to what. Throws Error where that, or a shorter row,
  /// would be padding that the model cannot tell.
  runtime::Tensors run(const text::Batch& batch);
  std::int64_t rows(const text::Batch& batch) const;
  std::int64_t columns(const text::Batch& batch) const;

  /// A small batch, so that compilation at first use is not measured.
  text::Batch small_batch() const;

  const InputPorts& ports() const { return ports_; }
  const runtime::Session& session() const { return session_; }

 private:
  void check_ids(const text::Batch& batch) const;

  runtime::Session& session_;
  InputPorts ports_;
  std::map<std::int32_t, std::string> tokens_beyond_table_;  // by id
};

}  // namespace bertcl::tools
