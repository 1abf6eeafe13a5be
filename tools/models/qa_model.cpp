// SPDX-License-Identifier: Apache-2.0
// Wraps a session of a question-answering model as the function that squad/ calls.
#include "tools/models/qa_model.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "bertcl/error.hpp"

namespace bertcl::tools {

QaModel::QaModel(runtime::Session& session) : model_(session) {
  try {
    outputs_ = squad::find_logits(session.outputs());
  } catch (const Error& error) {
    throw Error(session.path().string() + ": " + error.what());
  }
}

void QaModel::bound(squad::FeatureOptions& features, squad::BatchOptions& batches) const {
  model_.check_length(features.max_seq_length);
  model_.bound(batches);
}

squad::Logits QaModel::operator()(const squad::Batch& batch) {
  const runtime::Tensors outputs = model_.run(batch);
  const std::int64_t all_columns = model_.columns(batch);

  // Takes [batch, seq] out of what was run, every `step`-th value from `first`.
  const auto take = [&](const std::string& name, std::int64_t first, std::int64_t step) {
    const ir::Tensor values = outputs.find(name)->second.converted(ir::DType::f32);
    std::vector<float> result;
    result.reserve(batch.input_ids.size());
    for (std::int64_t row = 0; row < batch.batch; ++row) {
      for (std::int64_t column = 0; column < batch.seq; ++column) {
        const std::int64_t at = (row * all_columns + column) * step + first;
        result.push_back(values.as<float>()[at]);
      }
    }
    return result;
  };
  if (!outputs_.both.empty()) return {take(outputs_.both, 0, 2), take(outputs_.both, 1, 2)};
  return {take(outputs_.start, 0, 1), take(outputs_.end, 0, 1)};
}

void QaModel::warm_up() { (*this)(model_.small_batch()); }

}  // namespace bertcl::tools
