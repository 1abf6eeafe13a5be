// SPDX-License-Identifier: Apache-2.0
// bertcl run on texts: tokenized, run in batches of similar length, written in their order.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/port.hpp"
#include "npz/npz.hpp"
#include "runtime/sequences.hpp"
#include "support/fail.hpp"
#include "support/json_text.hpp"
#include "tasks/features.hpp"
#include "text/batch.hpp"
#include "tools/commands/run.hpp"
#include "tools/models/text_inputs.hpp"
#include "tools/models/text_model.hpp"
#include "tools/options/json_report.hpp"
#include "tools/report/array_file.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

constexpr std::size_t kAtOnce = 256;  // texts whose outputs are held at a time

using Extents = std::span<const std::int64_t>;

std::size_t values_in(Extents shape) {
  return static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

/// Copies the part that two arrays of the same rank have in common: the beginning of each axis.
void copy_common(const float* from, Extents from_shape, float* to, Extents to_shape) {
  if (std::ranges::equal(from_shape, to_shape)) {
    std::copy_n(from, values_in(from_shape), to);
    return;
  }
  const Extents from_row = from_shape.subspan(1), to_row = to_shape.subspan(1);
  const std::size_t from_step = values_in(from_row), to_step = values_in(to_row);
  const auto rows = static_cast<std::size_t>(std::min(from_shape[0], to_shape[0]));
  for (std::size_t i = 0; i < rows; ++i)
    copy_common(from + i * from_step, from_row, to + i * to_step, to_row);
}

/// An output of one text.
struct TextOutput {
  explicit TextOutput(ir::Sizes sizes) : values(values_in(sizes)), shape(std::move(sizes)) {}
  std::vector<float> values;
  ir::Sizes shape;
};
using TextOutputs = std::map<std::string, TextOutput>;

class TextRunner {
 public:
  TextRunner(runtime::Session& session, const text::Tokenizer& tokenizer,
             std::optional<int> max_length)
      : session_(session), model_(session), tokenizer_(tokenizer) {
    model_.check_vocabulary(tokenizer);
    max_length_ = model_.max_length(max_length, tokenizer.longest());
    model_.bound(batches_);
    ids_ = runtime::ids_of(session_.plan()).type.shape;
    const auto padding_is_known = [&](const ir::Port& port) {
      const ir::Shape& shape = port.type.shape;
      for (std::size_t axis = 0; axis < shape.size(); ++axis)
        if (axis == 0 ? shape[0] != ids_[0] : !shape[axis].is_constant() && shape[axis] != ids_[1])
          return false;
      return true;
    };
    // Sizes such as 2*seq do not tell what is padding; a batch of one text has none.
    if (!std::ranges::all_of(session_.outputs(), padding_is_known)) batches_.max_batch = 1;
  }

  int max_length() const { return max_length_; }

  std::vector<tasks::Sequence> encode(std::span<const InputText> texts) const {
    std::vector<tasks::Sequence> sequences;
    for (const InputText& text : texts)
      sequences.push_back(naming_text(text, [&] {
        return tasks::encode_text(text.text, text.second, tokenizer_, max_length_);
      }));
    return sequences;
  }

  /// Outputs of each sequence, without padding.
  std::vector<TextOutputs> run(std::span<const tasks::Sequence> sequences) {
    std::vector<std::size_t> lengths;
    for (const tasks::Sequence& sequence : sequences) lengths.push_back(sequence.length());
    std::vector<TextOutputs> results(sequences.size());
    for (std::vector<std::size_t>& group : text::group_by_length(lengths, batches_)) {
      for (const std::size_t i : group)
        if (lengths[i] == 0) results[i] = outputs_of_nothing();
      std::erase_if(group, [&](std::size_t i) { return lengths[i] == 0; });
      if (group.empty()) continue;
      std::vector<text::Row> rows;
      for (const std::size_t i : group) rows.push_back({sequences[i].ids, sequences[i].second});
      const text::Batch batch = text::make_batch(rows);
      const runtime::Tensors outputs = model_.run(batch);
      for (std::size_t i = 0; i < session_.outputs().size(); ++i) {
        const ir::Port& port = session_.outputs()[i];
        const ir::Tensor output = outputs.find(port.name)->second.converted(ir::DType::f32);
        const std::size_t count = by_token(i) ? batch.tokens() : batch.rows();
        if (output.shape().empty() || output.shape()[0] != static_cast<std::int64_t>(count))
          fail(
              "output '{}' is [{}] for {} texts: its first axis is not that of the texts; run the "
              "model on tensors (--inputs X.npz)",
              port.name, fmt::join(output.shape(), ", "), batch.rows());
        for (std::size_t row = 0; row < group.size(); ++row) {
          const std::size_t first =
              by_token(i) ? static_cast<std::size_t>(batch.offsets[row]) : row;
          results[group[row]].emplace(port.name, take(output, i, first, lengths[group[row]]));
        }
      }
    }
    return results;
  }

  /// True for an output of a row for each token.
  bool by_token(std::size_t output) const { return runtime::has_padding(session_.plan(), output); }

 private:
  /// Of a text without tokens: 0 where the file fixes a size.
  TextOutputs outputs_of_nothing() const {
    TextOutputs outputs;
    for (std::size_t i = 0; i < session_.outputs().size(); ++i) {
      const ir::Port& port = session_.outputs()[i];
      ir::Sizes shape;
      for (std::size_t axis = 1; axis < port.type.shape.size(); ++axis)
        shape.push_back(port.type.shape[axis].is_constant() ? port.type.shape[axis].constant() : 0);
      if (by_token(i)) shape[0] = 0;
      outputs.emplace(port.name, TextOutput(std::move(shape)));
    }
    return outputs;
  }

  /// `first`: the row of the text, or that of its first token.
  TextOutput take(const ir::Tensor& output, std::size_t index, std::size_t first,
                  std::size_t length) const {
    ir::Sizes padded = output.shape();
    const std::size_t row = values_in(Extents(padded).subspan(1));
    if (by_token(index))
      padded[0] = static_cast<std::int64_t>(length);
    else
      padded.erase(padded.begin());
    ir::Sizes shape = padded;
    const ir::Shape& known = session_.outputs()[index].type.shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)  // a fixed size may mean anything
      if (known[axis + 1] == ids_[1] && !ids_[1].is_constant())
        shape[axis] = static_cast<std::int64_t>(length);
    TextOutput own(std::move(shape));
    copy_common(output.as<float>().data() + first * row, padded, own.values.data(), own.shape);
    return own;
  }

  runtime::Session& session_;
  TextModel model_;
  const text::Tokenizer& tokenizer_;
  ir::Shape ids_;
  text::BatchOptions batches_;
  int max_length_ = 0;  // tokens; set in the constructor
};

FloatJson nested(std::span<const float> values, Extents shape) {
  if (shape.empty()) return values[0];
  FloatJson list = FloatJson::array();
  const std::size_t step = values_in(shape.subspan(1));
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape[0]); ++i)
    list.push_back(nested(values.subspan(i * step, step), shape.subspan(1)));
  return list;
}

void write_line(const InputText& text, const tasks::Sequence& sequence, const TextOutputs& outputs,
                const text::Tokenizer& tokenizer) {
  FloatJson line = FloatJson::object();
  if (!text.id.empty()) line["id"] = text.id;
  line["text"] = text.text;
  if (text.second) line["text_pair"] = *text.second;
  line["tokens"] = FloatJson::array();
  for (const std::int32_t id : sequence.ids) line["tokens"].push_back(tokenizer.token(id));
  line["outputs"] = FloatJson::object();
  for (const auto& [name, output] : outputs)
    line["outputs"][name] = nested(output.values, output.shape);
  write_output(json_text(line) + '\n');
}

/// [texts, ...], each axis filled up with zeros to the longest.
ir::Tensor stacked(const std::vector<TextOutputs>& outputs, const std::string& name) {
  ir::Sizes shape = outputs.front().at(name).shape;
  for (const TextOutputs& of_text : outputs)
    std::ranges::transform(shape, of_text.at(name).shape, shape.begin(), std::ranges::max);
  const std::size_t row = values_in(shape);
  std::vector<float> values(outputs.size() * row, 0.0F);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TextOutput& own = outputs[i].at(name);
    copy_common(own.values.data(), own.shape, values.data() + i * row, shape);
  }
  shape.insert(shape.begin(), std::ssize(outputs));
  return ir::Tensor::of(std::move(shape), std::move(values));
}

}  // namespace

int run_texts(const RunOptions& options) {
  const bool lines = options.outputs.empty();
  if (lines && !options.prints_text())
    throw Error(
        "--json - and the outputs would share standard output; write the outputs with --outputs "
        "Y.npz, or "
        "name a file for --json");
  if (options.texts == "-" && isatty(STDIN_FILENO) == 1)
    throw Error(
        "nothing to run on: name a file of texts, or give them on standard input, or tensors with "
        "--inputs X.npz");
  if (has_ending(options.texts, ".npz"))
    throw Error(options.texts + ": texts are expected; give arrays with --inputs");
  TextsRun run(options);
  runtime::Session& session = run.session();
  const std::vector<InputText>& texts = run.texts();
  if (!meets_requirement(session, options)) return kCheckFailed;
  TextRunner runner(session, run.tokenizer(), options.max_length);
  std::vector<TextOutputs> kept;  // for the .npz
  std::size_t tokens = 0, truncated = 0;
  for (std::size_t begin = 0; begin < texts.size(); begin += kAtOnce) {
    const auto some = std::span(texts).subspan(begin, std::min(kAtOnce, texts.size() - begin));
    const std::vector<tasks::Sequence> sequences = runner.encode(some);
    std::vector<TextOutputs> outputs =
        naming_model(options.model, [&] { return runner.run(sequences); });
    for (std::size_t i = 0; i < some.size(); ++i) {
      tokens += sequences[i].length();
      truncated += sequences[i].cut > 0 ? 1 : 0;
      if (lines) write_line(some[i], sequences[i], outputs[i], run.tokenizer());
    }
    if (!lines) std::move(outputs.begin(), outputs.end(), std::back_inserter(kept));
  }
  warn_of_truncation(truncated, texts.size(), "texts", runner.max_length());
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  npz::Arrays arrays;
  for (std::size_t i = 0; i < session.outputs().size(); ++i) {
    const std::string& name = session.outputs()[i].name;
    nlohmann::ordered_json output = {{"name", name}, {"by_token", runner.by_token(i)}};
    if (!lines) {
      const ir::Tensor array = stacked(kept, name);
      output["shape"] = array.shape();
      arrays[name] = array;
    }
    outputs.push_back(std::move(output));
  }
  if (!lines) npz::save(options.outputs, arrays);
  if (!lines && options.prints_text())
    print_text("{}: outputs of {}, {}\n", options.outputs, counted(std::ssize(texts), "texts"),
               counted(static_cast<std::int64_t>(tokens), "tokens"));
  write_report(options, session.context().info(),
               {{"path", options.model},
                {"texts", texts.size()},
                {"tokens", tokens},
                {"truncated", truncated},
                {"outputs", std::move(outputs)}});
  return kOk;
}

}  // namespace bertcl::tools
