// SPDX-License-Identifier: Apache-2.0
// Wraps a session of a question-answering model as the function that squad/ calls.
#pragma once
#include <string>
#include <vector>

#include "runtime/session.hpp"
#include "squad/batch.hpp"
#include "squad/features.hpp"
#include "tools/models/text_model.hpp"

namespace bertcl::tools {

/// The roles of a model's inputs and outputs.
struct QaPorts : InputPorts {
  std::string start, end;  ///< outputs [batch, seq]
  std::string both;        ///< or one output [batch, seq, 2]
};

/// find_input_ports(), and the outputs by their names: start_logits, output_start_logits,
/// unstack:0, ... Throws Error with the names that were found if there are no start and end logits.
QaPorts find_qa_ports(const std::vector<plan::Port>& inputs,
                      const std::vector<plan::Port>& outputs);

/// Runs batches and counts what was computed. Refers to the session, which must outlive it.
class QaModel {
 public:
  explicit QaModel(runtime::Session& session);

  /// TextModel::check_vocabulary()
  void check_vocabulary(std::size_t tokens) const { model_.check_vocabulary(tokens); }

  /// Bounds that the file sets: a fixed sequence, a fixed batch, the end of the position table.
  void bound(squad::FeatureOptions& features, squad::BatchOptions& batches) const;

  squad::Logits operator()(const squad::Batch& batch);

  /// One small batch, so that compilation at first use is not measured.
  void warm_up();

 private:
  TextModel model_;
  QaPorts ports_;
};

}  // namespace bertcl::tools
