// SPDX-License-Identifier: Apache-2.0
// Wraps a session of a question-answering model as the function that squad/ calls.
#include "tools/models/qa_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bertcl/error.hpp"

namespace bertcl::tools {
QaPorts find_qa_ports(const std::vector<plan::Port>& inputs,
                      const std::vector<plan::Port>& outputs) {
  QaPorts ports{find_input_ports(inputs), {}, {}, {}};
  std::vector<std::string> rows;  // outputs [batch, seq]
  for (const plan::Port& port : outputs) {
    const std::size_t rank = port.type.shape.size();
    if (!ir::is_float(port.type.dtype)) continue;
    if (rank == 3 && fixed_extent(port.type.shape, 2) == 2) ports.both = port.name;
    if (rank != 2) continue;
    rows.push_back(port.name);
    if (port.name.find("start") != std::string::npos) ports.start = port.name;
    if (port.name.find("end") != std::string::npos) ports.end = port.name;
  }
  if (ports.start.empty() && ports.end.empty() && rows.size() == 2) {
    // "unstack:0" and "unstack:1" in any order; names that tell nothing in the order of the file.
    const auto stem = [](const std::string& name) { return name.substr(0, name.size() - 1); };
    if (stem(rows[0]) == stem(rows[1])) std::sort(rows.begin(), rows.end());
    ports.start = rows[0];
    ports.end = rows[1];
  }
  if (!ports.start.empty() && !ports.end.empty()) {
    ports.both.clear();
  } else if (ports.both.empty()) {
    throw Error(fmt::format(
        "no start and end logits among the outputs {}; expected a question-answering head",
        fmt::join(describe(outputs), ", ")));
  }
  return ports;
}

QaModel::QaModel(runtime::Session& session) : model_(session) {
  try {
    ports_ = find_qa_ports(session.inputs(), session.outputs());
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
        result.push_back(values.as<float>()[static_cast<std::size_t>(at)]);
      }
    }
    return result;
  };
  if (!ports_.both.empty()) return {take(ports_.both, 0, 2), take(ports_.both, 1, 2)};
  return {take(ports_.start, 0, 1), take(ports_.end, 0, 1)};
}

void QaModel::warm_up() { (*this)(model_.small_batch()); }

}  // namespace bertcl::tools
