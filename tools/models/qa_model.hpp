// SPDX-License-Identifier: Apache-2.0
// Wraps a session of a question-answering model as the function that squad/ calls.
#pragma once
#include <optional>

#include "runtime/session.hpp"
#include "squad/batch.hpp"
#include "squad/features.hpp"
#include "squad/logit_outputs.hpp"
#include "tools/models/text_model.hpp"

namespace bertcl::tools {

/// Runs batches and counts what was computed. Refers to the session, which must outlive it.
class QaModel {
 public:
  explicit QaModel(runtime::Session& session);

  /// TextModel::check_vocabulary()
  void check_vocabulary(const text::Tokenizer& tokenizer) { model_.check_vocabulary(tokenizer); }

  /// TextModel::max_length()
  int max_length() const { return model_.max_length(std::nullopt); }

  /// Bounds that the file sets: a fixed sequence, a fixed batch, the end of the position table.
  void bound(squad::FeatureOptions& features, squad::BatchOptions& batches) const;

  squad::Logits operator()(const squad::Batch& batch);

  /// One small batch, so that compilation at first use is not measured.
  void warm_up();

 private:
  TextModel model_;
  squad::LogitOutputs outputs_;
};

}  // namespace bertcl::tools
