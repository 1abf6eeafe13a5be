// SPDX-License-Identifier: Apache-2.0
// bertcl run on texts: tokenized, run in batches of similar length, written in their order.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "npz/npz.hpp"
#include "tasks/features.hpp"
#include "text/batch.hpp"
#include "tools/commands/run.hpp"
#include "tools/models/text_inputs.hpp"
#include "tools/models/text_model.hpp"
#include "tools/report/json_report.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

constexpr int kLongestText = 512;     // tokens, for a model that sets no limit
constexpr std::size_t kAtOnce = 256;  // texts whose outputs are held at a time

/// Numbers as short as tells floats apart.
using FloatJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool,
                                       std::int64_t, std::uint64_t, float>;

/// An output of one text: the values of its tokens, or of the text.
struct TextOutput {
  std::vector<float> values;
  ir::Sizes shape;
};
using TextOutputs = std::map<std::string, TextOutput>;

class TextRunner {
 public:
  TextRunner(runtime::Session& session, const text::Tokenizer& tokenizer,
             std::optional<int> max_length)
      : session_(session), model_(session), tokenizer_(tokenizer) {
    model_.check_vocabulary(tokenizer.vocabulary_size());
    const int longest = static_cast<int>(model_.longest());
    const int limit = std::min(longest > 0 ? longest : kLongestText,
                               tokenizer.longest().value_or(std::numeric_limits<int>::max()));
    max_length_ = max_length.value_or(limit);
    model_.check_length(max_length_);
    model_.bound(batches_);
  }

  int max_length() const { return max_length_; }

  std::vector<tasks::Sequence> encode(std::span<const InputText> texts) const {
    std::vector<tasks::Sequence> sequences;
    for (const InputText& text : texts)
      sequences.push_back(text.second
                              ? tasks::encode_pair(text.text, *text.second, tokenizer_, max_length_)
                              : tasks::encode_text(text.text, tokenizer_, max_length_));
    return sequences;
  }

  /// Outputs of each sequence, without padding.
  std::vector<TextOutputs> run(std::span<const tasks::Sequence> sequences) {
    std::vector<std::size_t> lengths;
    for (const tasks::Sequence& sequence : sequences) lengths.push_back(sequence.length());
    std::vector<TextOutputs> results(sequences.size());
    for (const std::vector<std::size_t>& group : text::group_by_length(lengths, batches_)) {
      std::vector<text::Row> rows;
      for (const std::size_t i : group) rows.push_back({sequences[i].ids, sequences[i].second});
      const text::Batch batch = text::make_batch(rows);
      const runtime::Tensors outputs = model_.run(batch);
      for (const plan::Port& port : session_.outputs())
        for (std::size_t row = 0; row < group.size(); ++row)
          results[group[row]][port.name] =
              take(outputs.find(port.name)->second, port, row, lengths[group[row]], batch);
    }
    return results;
  }

  bool by_token(const plan::Port& port) const {
    const ir::Shape& shape = port.type.shape;
    if (shape.size() < 2) return false;
    const std::int64_t fixed = fixed_extent(shape, 1);
    return fixed == 0 || fixed == model_.ports().seq;
  }

 private:
  TextOutput take(const ir::Tensor& tensor, const plan::Port& port, std::size_t row,
                  std::size_t length, const text::Batch& batch) const {
    const ir::Tensor values = tensor.converted(ir::DType::f32);
    ir::Sizes shape(values.shape().begin() + 1, values.shape().end());
    const auto all = static_cast<std::size_t>(ir::element_count(shape));
    if (by_token(port) && shape[0] == model_.columns(batch))
      shape[0] = static_cast<std::int64_t>(length);
    const auto own =
        values.as<float>().subspan(row * all, static_cast<std::size_t>(ir::element_count(shape)));
    return {{own.begin(), own.end()}, std::move(shape)};
  }

  runtime::Session& session_;
  TextModel model_;
  const text::Tokenizer& tokenizer_;
  text::BatchOptions batches_;
  int max_length_ = kLongestText;
};

FloatJson nested(std::span<const float> values, std::span<const std::int64_t> shape) {
  if (shape.empty()) return values[0];
  FloatJson list = FloatJson::array();
  const std::size_t step = values.size() / static_cast<std::size_t>(shape[0]);
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
  write_output(line.dump(-1, ' ', false, FloatJson::error_handler_t::replace) + '\n');
}

/// [texts, ...], the axis of tokens filled up with zeros to the longest.
ir::Tensor stacked(const std::vector<TextOutputs>& outputs, const std::string& name) {
  ir::Sizes shape = outputs.front().at(name).shape;
  std::size_t longest = 0;
  for (const TextOutputs& of_text : outputs) {
    const TextOutput& output = of_text.at(name);
    longest = std::max(longest, output.values.size());
    if (!shape.empty()) shape[0] = std::max(shape[0], output.shape[0]);
  }
  shape.insert(shape.begin(), static_cast<std::int64_t>(outputs.size()));
  std::vector<float> values(outputs.size() * longest, 0.0F);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<float>& own = outputs[i].at(name).values;
    std::copy(own.begin(), own.end(), values.begin() + static_cast<std::ptrdiff_t>(i * longest));
  }
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
  if (options.texts.empty() && isatty(STDIN_FILENO) == 1)
    throw Error(
        "nothing to run on: name a file of texts, or give them on standard input, or tensors with "
        "--inputs X.npz");
  if (options.texts.ends_with(".npz"))
    throw Error(options.texts + ": texts are expected; give arrays with --inputs");
  const auto device = opencl::ContextFuture::open(options.device);
  const auto [tokenizer, texts] = device.meanwhile([&] {
    return std::pair(load_tokenizer(options.vocabulary, {options.model}),
                     read_input_texts(options.texts.empty() ? "-" : options.texts));
  });
  runtime::Session session = load_model(options.model, options, device);
  if (!meets_requirement(session, options)) return kCheckFailed;
  TextRunner runner(session, tokenizer, options.max_length);
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
      if (lines) write_line(some[i], sequences[i], outputs[i], tokenizer);
    }
    if (!lines) std::move(outputs.begin(), outputs.end(), std::back_inserter(kept));
  }
  if (truncated > 0)
    warn("truncated {} of {} texts to {} tokens", truncated, texts.size(), runner.max_length());
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  npz::Arrays arrays;
  for (const plan::Port& port : session.outputs()) {
    nlohmann::ordered_json output = {{"name", port.name}, {"by_token", runner.by_token(port)}};
    if (!lines) {
      const ir::Tensor array = stacked(kept, port.name);
      output["shape"] = array.shape();
      arrays[port.name] = array;
    }
    outputs.push_back(std::move(output));
  }
  if (!lines) npz::save(options.outputs, arrays);
  if (!lines && options.prints_text())
    print_text("{}: outputs of {}, {}\n", options.outputs,
               counted(static_cast<std::int64_t>(texts.size()), "texts"),
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
