// SPDX-License-Identifier: Apache-2.0
// Wraps a session of a model with a task head as the function that tasks/ calls.
#include "tools/models/task_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"

namespace bertcl::tools {
namespace {

bool fits(const ir::Shape& shape, const tasks::Head& head) {
  const std::size_t rank = head.by_token ? 3 : 2;
  if (!head.by_token && head.classes == 1 && shape.size() == 1) return true;  // [batch]
  if (shape.size() != rank) return false;
  const auto classes = static_cast<std::size_t>(fixed_extent(shape, rank - 1));
  return head.or_more ? classes >= head.classes : classes == head.classes;
}

}  // namespace

std::string find_task_output(const std::vector<plan::Port>& outputs, const tasks::Head& head) {
  // Of several the logits, else that with the fewest classes: hidden states have many.
  const auto rank = [](const plan::Port& port) {
    return std::pair(port.name.find("logits") == std::string::npos,
                     fixed_extent(port.type.shape, port.type.shape.size() - 1));
  };
  const plan::Port* found = nullptr;
  for (const plan::Port& port : outputs)
    if (ir::is_float(port.type.dtype) && fits(port.type.shape, head) &&
        (!found || rank(port) < rank(*found)))
      found = &port;
  if (found) return found->name;
  throw Error(fmt::format("the outputs are {}; the task needs [batch, {}{}{}], with {}",
                          fmt::join(describe(outputs), ", "), head.by_token ? "seq, " : "",
                          head.classes, head.or_more ? " or more" : "", head.meaning));
}

text::BatchOptions usual_batches(const tasks::Head& head) {
  text::BatchOptions batches;
  // A masked language model gives a number for each token and each entry of the vocabulary.
  if (head.by_token && head.or_more) batches.max_tokens = 1024;
  return batches;
}

TaskModel::TaskModel(runtime::Session& session, const tasks::Head& head)
    : model_(session), by_token_(head.by_token) {
  try {
    output_ = find_task_output(session.outputs(), head);
  } catch (const Error& error) {
    throw Error(session.path().string() + ": " + error.what());
  }
}

std::vector<float> TaskModel::operator()(const text::Batch& batch) {
  const runtime::Tensors outputs = model_.run(batch);
  const ir::Tensor tensor = outputs.find(output_)->second.converted(ir::DType::f32);
  const auto values = tensor.as<float>();
  const std::int64_t all_rows = model_.rows(batch), all_columns = model_.columns(batch);
  const std::int64_t positions = by_token_ ? all_columns : 1, used = by_token_ ? batch.seq : 1;
  const auto classes = static_cast<std::int64_t>(values.size()) / (all_rows * positions);
  std::vector<float> result;
  result.reserve(static_cast<std::size_t>(batch.batch * used * classes));
  for (std::int64_t row = 0; row < batch.batch; ++row) {
    const auto own = values.subspan(static_cast<std::size_t>(row * positions * classes),
                                    static_cast<std::size_t>(used * classes));
    result.insert(result.end(), own.begin(), own.end());
  }
  return result;
}

}  // namespace bertcl::tools
