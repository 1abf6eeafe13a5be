// SPDX-License-Identifier: Apache-2.0
// Made-up sequences through two sessions.
#include "tools/verify/reference_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>

#include "kernels/variants.hpp"
#include "plan/options.hpp"
#include "runtime/sequences.hpp"
#include "tools/models/text_model.hpp"

namespace bertcl::tools {
namespace {

/// Around the tiles of the kernels: rows by the work-item, the group and the block of keys.
constexpr int kLengths[] = {1, 7, 16, 33, 64, 129};
constexpr std::int64_t kFewestIds = 2;  // where the size of the word table is not known

std::vector<std::vector<std::int32_t>> made_up_sequences(const TextModel& model) {
  std::mt19937 random(1);
  const std::int64_t words = std::max(kFewestIds, model.session().plan().word_rows);
  std::uniform_int_distribution<std::int32_t> id(0, static_cast<std::int32_t>(words - 1));
  const auto longest = static_cast<int>(model.longest_sequence());
  std::vector<std::vector<std::int32_t>> sequences;
  for (const int length : kLengths) {
    if (longest > 0 && length > longest) break;
    std::vector<std::int32_t>& ids = sequences.emplace_back(static_cast<std::size_t>(length));
    std::ranges::generate(ids, [&] { return id(random); });
  }
  return sequences;
}

text::Row row_of(const std::vector<std::int32_t>& ids) { return {ids, (ids.size() + 1) / 2}; }

/// What an output holds for one row of a batch, without its padding.
ir::Tensor real_part(const ir::Tensor& tensor, std::int64_t rows, std::int64_t row,
                     std::int64_t columns, std::int64_t length) {
  ir::Sizes shape = tensor.shape();
  if (shape.empty() || shape[0] != rows) return tensor;
  shape.erase(shape.begin());
  const auto all = static_cast<std::size_t>(ir::element_count(shape)) * ir::size_of(tensor.dtype());
  std::size_t bytes = all;
  if (!shape.empty() && shape[0] == columns && columns > 0) {
    bytes = all / static_cast<std::size_t>(columns) * static_cast<std::size_t>(length);
    shape[0] = length;
  }
  ir::Tensor part = ir::Tensor::zeros(tensor.dtype(), shape);
  std::memcpy(part.mutable_bytes().data(),
              tensor.bytes().data() + static_cast<std::size_t>(row) * all, bytes);
  return part;
}

/// Runs the rows with padding; the outputs of each without it.
std::vector<runtime::Tensors> run_padded(runtime::Session& session,
                                         std::span<const text::Row> rows) {
  const text::Batch batch = text::make_batch(rows);
  const runtime::Tensors inputs =
      runtime::padded(session.plan(), {batch.ids, batch.token_type_ids, batch.offsets});
  const ir::Sizes& shape = inputs.at(runtime::ids_of(session.plan()).name).shape();
  const runtime::Tensors outputs = session.run(inputs);
  std::vector<runtime::Tensors> parts(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (const auto& [name, tensor] : outputs)
      parts[i][name] = real_part(tensor, shape[0], static_cast<std::int64_t>(i), shape[1],
                                 std::ssize(rows[i].ids));
  return parts;
}

}  // namespace

runtime::SessionOptions reference_options(runtime::SessionOptions options) {
  const std::vector<std::string> references = kernels::reference_names();
  std::vector<std::string> others = plan::disableable_variants();
  std::erase_if(others, [&](const std::string& name) {
    return std::ranges::binary_search(references, name);
  });
  options.disabled_kernels = fmt::format("{}", fmt::join(others, ","));
  options.drop_padding = false;
  options.command_buffer = false;
  options.gemm = "own";
  return options;
}

std::vector<ReferenceCheck> compare_with_reference(runtime::Session& session,
                                                   runtime::Session& reference,
                                                   const Tolerance& tolerance) {
  const TextModel model(session);
  const auto sequences = made_up_sequences(model);
  // One sequence at a time where the file fixes the number of rows, or where scales depend on all
  // rows of a batch, or padding would: the reference runs each alone.
  const bool alone_only = model.fixed_batch() > 0 || !runtime::ignores_padding(session.plan()) ||
                          std::ranges::any_of(session.plan().steps, [](const plan::Step& step) {
                            return step.op == "DynamicQuantizeLinear";
                          });
  const auto alone = [&](runtime::Session& of, const text::Row& row) {
    const auto copies = static_cast<std::size_t>(std::max<std::int64_t>(1, model.fixed_batch()));
    return run_padded(of, std::vector(copies, row)).front();
  };
  std::vector<text::Row> rows;
  for (const auto& ids : sequences) rows.push_back(row_of(ids));
  std::vector<runtime::Tensors> found;
  if (!alone_only) found = run_padded(session, rows);
  std::vector<ReferenceCheck> checks;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Golden golden;
    golden.outputs = alone(reference, rows[i]);
    const runtime::Tensors part = alone_only ? alone(session, rows[i]) : std::move(found[i]);
    checks.push_back(
        {static_cast<int>(rows[i].ids.size()), compare_outputs(part, golden, tolerance)});
  }
  return checks;
}

}  // namespace bertcl::tools
