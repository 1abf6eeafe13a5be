// SPDX-License-Identifier: Apache-2.0
// A session of a question-answering model as the function that squad/ calls.
#include "tools/qa_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"

namespace bertcl::tools {
namespace {

std::vector<std::string> describe(const std::vector<plan::Port>& ports) {
  std::vector<std::string> texts;
  for (const plan::Port& port : ports) texts.push_back(port.name + " " + ir::str(port.type));
  return texts;
}

std::int64_t fixed(const ir::Shape& shape, std::size_t axis) {
  return axis < shape.size() && shape[axis].is_constant() ? shape[axis].constant() : 0;
}

/// [rows, columns] of `values`, filled up to [to_rows, to_columns]: rows by the last one, columns
/// by zeros.
std::vector<std::int64_t> pad(const std::vector<std::int64_t>& values, std::int64_t rows,
                              std::int64_t columns, std::int64_t to_rows, std::int64_t to_columns) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(to_rows * to_columns), 0);
  for (std::int64_t row = 0; row < to_rows; ++row) {
    std::copy_n(values.begin() + std::min(row, rows - 1) * columns, columns,
                result.begin() + row * to_columns);
  }
  return result;
}

}  // namespace

QaPorts find_qa_ports(const std::vector<plan::Port>& inputs,
                      const std::vector<plan::Port>& outputs) {
  QaPorts ports;
  for (const plan::Port& port : inputs) {
    const std::string& name = port.name;
    const ir::InputRole role = ir::role_of_input(name);
    if (role == ir::InputRole::example_ids) {
      ports.unused.push_back(name);
    } else if (role == ir::InputRole::mask) {
      ports.mask = name;
    } else if (role == ir::InputRole::token_types) {
      ports.types = name;
    } else if (role == ir::InputRole::positions) {
      ports.positions = name;
    } else if (ports.ids.empty() && port.type.shape.size() == 2 && !ir::is_float(port.type.dtype)) {
      ports.ids = name;
      ports.batch = fixed(port.type.shape, 0);
      ports.seq = fixed(port.type.shape, 1);
    } else {
      throw Error(fmt::format(
          "the input '{}' is unknown; a question-answering model takes input_ids, attention_mask "
          "and token_type_ids, this one takes {}",
          name, fmt::join(describe(inputs), ", ")));
    }
  }
  if (ports.ids.empty()) {
    throw Error(fmt::format("no input for token ids [batch, seq] among {}",
                            fmt::join(describe(inputs), ", ")));
  }
  std::vector<std::string> rows;  // outputs [batch, seq]
  for (const plan::Port& port : outputs) {
    const std::size_t rank = port.type.shape.size();
    if (!ir::is_float(port.type.dtype)) continue;
    if (rank == 3 && fixed(port.type.shape, 2) == 2) ports.both = port.name;
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
        "no start and end logits among the outputs {}; the model needs a question-answering head",
        fmt::join(describe(outputs), ", ")));
  }
  return ports;
}

QaModel::QaModel(runtime::Session& session) : session_(session) {
  try {
    ports_ = find_qa_ports(session.inputs(), session.outputs());
  } catch (const Error& error) {
    throw Error(session.path().string() + ": " + error.what());
  }
}

void QaModel::bound(squad::FeatureOptions& features, squad::BatchOptions& batches) const {
  const std::int64_t longest = session_.plan().max_positions;
  for (const std::int64_t limit : {ports_.seq, longest}) {
    if (limit > 0 && features.max_seq_length > limit) {
      throw Error(
          fmt::format("{}: sequences of {} tokens were asked for, the model takes at most {}; "
                      "give --max-seq-length {}",
                      session_.path().string(), features.max_seq_length, limit, limit));
    }
  }
  if (ports_.batch > 0) {
    batches.max_batch = static_cast<int>(std::min<std::int64_t>(batches.max_batch, ports_.batch));
  }
}

squad::Logits QaModel::operator()(const squad::Batch& batch) {
  const std::int64_t rows = batch.batch, columns = batch.seq;
  const std::int64_t all_rows = std::max(rows, ports_.batch);
  const std::int64_t all_columns = std::max(columns, ports_.seq);
  runtime::Tensors inputs;
  const auto give = [&](const std::string& name, const std::vector<std::int64_t>& values) {
    if (name.empty()) return;
    inputs[name] = ir::Tensor::of<std::int64_t>({all_rows, all_columns},
                                                pad(values, rows, columns, all_rows, all_columns));
  };
  give(ports_.ids, batch.input_ids);
  give(ports_.mask, batch.attention_mask);
  give(ports_.types, batch.token_type_ids);
  if (!ports_.positions.empty()) {
    std::vector<std::int64_t> positions(batch.input_ids.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      positions[i] = static_cast<std::int64_t>(i) % columns;
    }
    give(ports_.positions, positions);
  }
  for (const std::string& name : ports_.unused) {
    inputs[name] = ir::Tensor::zeros(ir::DType::i64, {all_rows});
  }
  const runtime::Tensors outputs = session_.run(inputs);

  // Takes [rows, columns] out of [all_rows, all_columns], every `step`-th value from `first`.
  const auto take = [&](const std::string& name, std::int64_t first, std::int64_t step) {
    const ir::Tensor values = outputs.find(name)->second.converted(ir::DType::f32);
    std::vector<float> result;
    result.reserve(batch.input_ids.size());
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::int64_t at = (row * all_columns + column) * step + first;
        result.push_back(values.as<float>()[static_cast<std::size_t>(at)]);
      }
    }
    return result;
  };
  if (!ports_.both.empty()) return {take(ports_.both, 0, 2), take(ports_.both, 1, 2)};
  return {take(ports_.start, 0, 1), take(ports_.end, 0, 1)};
}

void QaModel::warm_up() {
  squad::Batch batch;
  batch.batch = 2;
  batch.seq = 64;
  if (ports_.batch > 0) batch.batch = static_cast<int>(std::min<std::int64_t>(2, ports_.batch));
  if (ports_.seq > 0) batch.seq = static_cast<int>(std::min<std::int64_t>(64, ports_.seq));
  const auto count = static_cast<std::size_t>(batch.batch * batch.seq);
  batch.input_ids.assign(count, 1);
  batch.attention_mask.assign(count, 1);
  batch.token_type_ids.assign(count, 0);
  (*this)(batch);
}

}  // namespace bertcl::tools
