// SPDX-License-Identifier: Apache-2.0
// A session of a model that reads token sequences: its bounds, and runs of batches.
#include "tools/models/text_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"
#include "ir/port.hpp"
#include "runtime/row_values.hpp"
#include "runtime/sequences.hpp"
#include "support/fail.hpp"
#include "tasks/model_files/model_config.hpp"
#include "tools/options/model_options.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

/// Rows of a word table without a token: padding to a multiple of 64 or 128, tokens that were never
/// used. Vocabularies of different models are further apart.
constexpr std::int64_t kMaxSpareRows = 1023;

/// 0 where it is free.
std::int64_t fixed_extent(const ir::Dim& dim) { return dim.is_constant() ? dim.constant() : 0; }

}  // namespace

void check_reads_texts(const plan::Plan& plan) {
  const ir::Port* ids = runtime::find_ids(plan);
  for (const ir::Port& port : plan.model_inputs)
    if (ir::role_of_input(port.name) == ir::InputRole::ids && &port != ids)
      fail(
          "unknown input '{}'; text models take input_ids, attention_mask and "
          "token_type_ids, this one takes {}",
          port.name, fmt::join(ir::describe(plan.model_inputs), ", "));
  if (!ids)
    fail("no input for token ids [batch, seq] among {}",
         fmt::join(ir::describe(plan.model_inputs), ", "));
}

TextModel::TextModel(runtime::Session& session) : session_(session) {
  naming_model(session.path(), [&] { check_reads_texts(session.plan()); });
  const ir::Shape& shape = runtime::ids_of(session.plan()).type.shape;
  fixed_batch_ = fixed_extent(shape[0]);
  fixed_seq_ = fixed_extent(shape[1]);
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
  for (const std::int64_t id : batch.ids)
    if (const auto found = tokens_beyond_table_.find(static_cast<std::int32_t>(id));
        found != tokens_beyond_table_.end())
      fail(
          "a text holds '{}', which the tokenizer has as token {}, but the model's embedding table "
          "has {} rows; remove it from the text",
          found->second, id, session_.plan().word_rows);
}

std::int64_t TextModel::longest_sequence() const {
  return runtime::longest_sequence(session_.plan());
}

void TextModel::check_length(int max_length) const {
  naming_model(session_.path(), [&] { tasks::check_length(max_length, longest_sequence()); });
}

int TextModel::max_length(std::optional<int> asked, std::optional<int> default_value) const {
  if (asked) check_length(*asked);
  if (asked) return *asked;
  const auto declared = tasks::declared_length(session_.path());
  return tasks::longest_text(declared ? declared : default_value, longest_sequence());
}

int TextModel::max_length(std::optional<int> asked, const tasks::EmbeddingFiles& files) const {
  if (asked) check_length(*asked);
  return asked.value_or(tasks::longest_text(files.max_length, longest_sequence()));
}

void TextModel::bound(text::BatchOptions& batches) const {
  if (!runtime::ignores_padding(session_.plan())) batches.one_length = true;
  if (fixed_batch_ > 0)
    batches.max_batch = static_cast<int>(std::min<std::int64_t>(batches.max_batch, fixed_batch_));
}

runtime::Tensors TextModel::run(const text::Batch& batch) {
  check_ids(batch);
  return session_.run(runtime::Sequences{batch.ids, batch.token_type_ids, batch.offsets});
}

std::vector<float> TextModel::run(const text::Batch& batch, const runtime::OutputNames& outputs,
                                  bool by_token) {
  check_ids(batch);
  return runtime::row_values(session_, {batch.ids, batch.token_type_ids, batch.offsets}, outputs,
                             by_token);
}

text::Batch TextModel::small_batch() const {
  std::int64_t length = 64;
  if (longest_sequence() > 0) length = std::min(length, longest_sequence());
  if (fixed_seq_ > 0 && !runtime::ignores_padding(session_.plan())) length = fixed_seq_;
  const std::vector<std::int32_t> ids(static_cast<std::size_t>(length), 1);
  return text::make_batch(std::vector<text::Row>(fixed_batch_ == 1 ? 1 : 2, {ids, ids.size()}));
}

}  // namespace bertcl::tools
