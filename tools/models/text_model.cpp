// SPDX-License-Identifier: Apache-2.0
// A session of a model that reads token sequences: the roles of its inputs, and runs of batches.
#include "tools/models/text_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"
#include "runtime/sequences.hpp"
#include "support/fail.hpp"
#include "tasks/model_config.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

/// Rows of a word table without a token: padding to a multiple of 64 or 128, tokens that were never
/// used. Vocabularies of different models are further apart.
constexpr std::int64_t kMaxSpareRows = 1023;

constexpr int kUsualLongest = 512;  // tokens, for a model that sets no limit

/// [rows, columns] of `values`, filled up to [to_rows, to_columns]: rows by the last one, columns
/// by `padding`.
std::vector<std::int64_t> pad(const std::vector<std::int64_t>& values, std::int64_t rows,
                              std::int64_t columns, std::int64_t to_rows, std::int64_t to_columns,
                              std::int64_t padding) {
  std::vector<std::int64_t> result(to_rows * to_columns, padding);
  for (std::int64_t row = 0; row < to_rows; ++row) {
    std::copy_n(values.begin() + std::min(row, rows - 1) * columns, columns,
                result.begin() + row * to_columns);
  }
  return result;
}

/// 0 where it is free.
std::int64_t fixed_extent(const ir::Dim& dim) { return dim.is_constant() ? dim.constant() : 0; }

}  // namespace

InputPorts find_input_ports(const std::vector<plan::Port>& inputs) {
  InputPorts ports;
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
      ports.batch = fixed_extent(port.type.shape[0]);
      ports.seq = fixed_extent(port.type.shape[1]);
    } else {
      fail(
          "unknown input '{}'; text models take input_ids, attention_mask and "
          "token_type_ids, this one takes {}",
          name, fmt::join(plan::describe(inputs), ", "));
    }
  }
  if (ports.ids.empty()) {
    fail("no input for token ids [batch, seq] among {}", fmt::join(plan::describe(inputs), ", "));
  }
  return ports;
}

TextModel::TextModel(runtime::Session& session) : session_(session) {
  try {
    ports_ = find_input_ports(session.inputs());
  } catch (const Error& error) {
    throw Error(session.path().string() + ": " + error.what());
  }
}

void TextModel::check_vocabulary(const text::Tokenizer& tokenizer) {
  const std::int64_t rows = session_.plan().word_rows;
  const auto own = static_cast<std::int64_t>(tokenizer.model_vocabulary_size());
  const auto all = static_cast<std::int64_t>(tokenizer.vocabulary_size());
  if (rows > 0 && own <= rows) tokens_beyond_table_ = tokenizer.tokens_from(rows);
  const std::int64_t count = own <= rows ? std::min(all, rows) : own;
  if (rows == 0 || (count <= rows && rows - count <= kMaxSpareRows)) return;
  const std::string sizes =
      fmt::format("{}: the tokenizer has {} tokens, the model's embedding table {} rows",
                  session_.path().string(), count, rows);
  if (count > rows)
    throw Error(sizes + "; use the tokenizer that belongs to this model (--vocab FILE)");
  warn("{}; if the tokenizer is another model's, results are wrong (--vocab FILE)", sizes);
}

void TextModel::check_ids(const text::Batch& batch) const {
  if (tokens_beyond_table_.empty()) return;
  for (const std::int64_t id : batch.input_ids)
    if (const auto found = tokens_beyond_table_.find(static_cast<std::int32_t>(id));
        found != tokens_beyond_table_.end())
      fail(
          "a text holds '{}', which the tokenizer has as token {}, but the model's embedding table "
          "has {} rows; remove it from the text",
          found->second, id, session_.plan().word_rows);
}

std::int64_t TextModel::longest_sequence() const {
  const std::int64_t positions = session_.plan().max_positions;
  if (ports_.seq == 0 || positions == 0) return std::max(ports_.seq, positions);
  return std::min(ports_.seq, positions);
}

void TextModel::check_length(int max_length) const {
  if (longest_sequence() == 0 || max_length <= longest_sequence()) return;
  fail("{}: sequences of {} tokens exceed the model's maximum of {}; use --max-seq-length {}",
       session_.path().string(), max_length, longest_sequence(), longest_sequence());
}

int TextModel::max_length(std::optional<int> asked, std::optional<int> default_value) const {
  if (asked) check_length(*asked);
  if (asked) return *asked;
  const auto declared = tasks::declared_length(session_.path());
  const auto limit = declared ? declared : default_value;
  if (longest_sequence() == 0) return limit.value_or(kUsualLongest);
  const int most = static_cast<int>(longest_sequence());
  return std::min(most, limit.value_or(most));
}

int TextModel::max_length(std::optional<int> asked, const tasks::EmbeddingFiles& files) const {
  if (asked) check_length(*asked);
  return asked.value_or(files.longest_text(static_cast<int>(longest_sequence())));
}

void TextModel::bound(text::BatchOptions& batches) const {
  if (!runtime::ignores_padding(session_.plan())) batches.one_length = true;
  if (ports_.batch > 0) {
    batches.max_batch = static_cast<int>(std::min<std::int64_t>(batches.max_batch, ports_.batch));
  }
}

std::int64_t TextModel::rows(const text::Batch& batch) const {
  return std::max<std::int64_t>(batch.batch, ports_.batch);
}

std::int64_t TextModel::columns(const text::Batch& batch) const {
  return std::max<std::int64_t>(batch.seq, ports_.seq);
}

runtime::Tensors TextModel::run(const text::Batch& batch) {
  check_ids(batch);
  const std::int64_t all_rows = rows(batch), all_columns = columns(batch);
  if (all_columns > batch.seq || std::ranges::count(batch.attention_mask, 0) > 0)
    runtime::check_can_pad(session_.plan(), all_columns);
  runtime::Tensors inputs;
  const auto give = [&](const std::string& name, const std::vector<std::int64_t>& values,
                        std::int64_t padding = 0) {
    if (name.empty()) return;
    inputs[name] = ir::Tensor::of<std::int64_t>(
        {all_rows, all_columns},
        pad(values, batch.batch, batch.seq, all_rows, all_columns, padding));
  };
  std::vector<std::int64_t> ids = batch.input_ids;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (batch.attention_mask[i] == 0) ids[i] = session_.plan().pad_token_id.value_or(0);
  give(ports_.ids, ids, session_.plan().pad_token_id.value_or(0));
  give(ports_.mask, batch.attention_mask);
  give(ports_.types, batch.token_type_ids);
  if (!ports_.positions.empty()) {
    std::vector<std::int64_t> positions(batch.input_ids.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      positions[i] = static_cast<std::int64_t>(i) % batch.seq;
    }
    give(ports_.positions, positions);
  }
  for (const std::string& name : ports_.unused) {
    inputs[name] = ir::Tensor::zeros(ir::DType::i64, {all_rows});
  }
  return session_.run(inputs);
}

text::Batch TextModel::small_batch() const {
  text::Batch batch;
  batch.batch = 2;
  batch.seq = 64;
  if (ports_.batch > 0) batch.batch = static_cast<int>(std::min<std::int64_t>(2, ports_.batch));
  if (longest_sequence() > 0)
    batch.seq = static_cast<int>(std::min<std::int64_t>(64, longest_sequence()));
  if (ports_.seq > 0 && !runtime::ignores_padding(session_.plan()))
    batch.seq = static_cast<int>(ports_.seq);
  const auto count = static_cast<std::size_t>(batch.batch * batch.seq);
  batch.input_ids.assign(count, 1);
  batch.attention_mask.assign(count, 1);
  batch.token_type_ids.assign(count, 0);
  return batch;
}

}  // namespace bertcl::tools
