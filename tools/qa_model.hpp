// SPDX-License-Identifier: Apache-2.0
// A session of a question-answering model as the function that squad/ calls.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/session.hpp"
#include "squad/batch.hpp"
#include "squad/features.hpp"

namespace bertcl::tools {

/// Which input and output of a model means what. A name is empty where the model has none of it.
struct QaPorts {
  std::string ids, mask, types, positions;
  std::vector<std::string> unused;  ///< inputs that do not change the logits ("unique_ids")
  std::string start, end;           ///< outputs [batch, seq]
  std::string both;                 ///< or one output [batch, seq, 2]
  std::int64_t batch = 0, seq = 0;  ///< extents that the file fixes; 0 where they are free
};

/// Reads the meaning from the names that exporters give: input_ids; attention_mask, input_mask;
/// token_type_ids, segment_ids; start_logits, output_start_logits, unstack:0, ...
/// Throws Error with the names that were found if there are no ids or no start and end logits.
QaPorts find_qa_ports(const std::vector<plan::Port>& inputs,
                      const std::vector<plan::Port>& outputs);

/// Runs batches and counts what was computed. Refers to the session, which must outlive it.
class QaModel {
 public:
  explicit QaModel(runtime::Session& session);

  /// Bounds that the file sets: a fixed sequence, a fixed batch, the end of the position table.
  void bound(squad::FeatureOptions& features, squad::BatchOptions& batches) const;

  squad::Logits operator()(const squad::Batch& batch);

  /// One small batch, so that what the driver compiles at first use is not measured.
  void warm_up();

 private:
  runtime::Session& session_;
  QaPorts ports_;
};

}  // namespace bertcl::tools
