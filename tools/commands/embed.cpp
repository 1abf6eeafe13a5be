// SPDX-License-Identifier: Apache-2.0
// bertcl embed: texts in, a vector for each out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "npz/npy.hpp"
#include "npz/npz.hpp"
#include "support/pending_file.hpp"
#include "support/stopwatch.hpp"
#include "tasks/embedding_files.hpp"
#include "tasks/features.hpp"
#include "text/batch.hpp"
#include "text/data_file.hpp"
#include "tools/models/text_model.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/option_checks.hpp"
#include "tools/options/pooling_options.hpp"
#include "tools/options/vocabulary_options.hpp"
#include "tools/report/json_report.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/progress.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

constexpr std::size_t kTextsAtOnce = 4096;  // texts sorted by length at a time

/// Numbers as short as tells floats apart.
using VectorJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool,
                                        std::int64_t, std::uint64_t, float>;

struct EmbedOptions : ModelOptions {
  std::string model, texts, output;
  PoolingOptions pooled;
  VocabularyOptions vocabulary;
  std::optional<std::string> prompt, prompt_name;
  std::optional<int> max_length;
  int batch_tokens = 4096;
  bool force = false;
};

struct EmbeddedText {
  std::string id, text;  ///< `id` may be empty
};

/// Lines of text, empty ones too, or of JSON.
std::vector<EmbeddedText> read_texts(const std::string& path) {
  const text::DataFile file = text::read_data(path);
  std::vector<EmbeddedText> texts;
  if (text::is_json_lines(file.content)) {
    text::each_object(file, R"(each line is an object {"text": ".."})",
                      [&](const text::JsonNode& object, std::size_t) {
                        const auto id = object.find("id");
                        texts.push_back({id ? text::name_of(*id) : "", object.at("text").string()});
                      });
  } else {
    text::each_line(file.content, [&](std::string_view line, std::size_t) {
      texts.push_back({"", std::string(line)});
    });
  }
  if (texts.empty()) throw Error(file.name + ": contains no text; each line is one");
  return texts;
}

/// The text before each text.
std::string prompt_of(const EmbedOptions& options, const tasks::EmbeddingFiles& files) {
  std::string prompt = options.prompt.value_or(files.default_prompt);
  if (options.prompt_name) {
    const auto found = files.prompts.find(*options.prompt_name);
    if (found == files.prompts.end()) {
      std::vector<std::string> names;
      for (const auto& [name, text] : files.prompts) names.push_back(name);
      throw Error(fmt::format("unknown prompt '{}'{}", *options.prompt_name,
                              suggestion(*options.prompt_name, names)));
    }
    prompt = found->second;
  }
  if (!prompt.empty() && !files.pools_prompt)
    throw Error(
        "the model's 1_Pooling/config.json excludes the tokens of a prompt from pooling "
        "(include_prompt), which is not supported; --prompt \"\" embeds without one");
  return prompt;
}

/// Vectors of texts, [texts, dimensions] in their order.
class Embedder {
 public:
  Embedder(runtime::Session& session, const EmbedOptions& options,
           const tasks::EmbeddingFiles& files, const text::Tokenizer& tokenizer)
      : model_(session),
        tokenizer_(tokenizer),
        options_(options),
        lower_case_(files.lower_case && !options.vocabulary.lower_case) {
    model_.check_vocabulary(tokenizer.vocabulary_size());
    max_length_ =
        options.max_length.value_or(files.longest_text(static_cast<int>(model_.longest())));
    model_.check_length(max_length_);
    batches_ = {options.batch_tokens, 256};
    model_.bound(batches_);
    dimensions_ = static_cast<std::size_t>(session.outputs().front().type.shape[1].constant());
  }

  std::vector<float> run(std::span<const EmbeddedText> texts, const std::string& prompt) {
    std::vector<tasks::Sequence> sequences;
    std::vector<std::size_t> lengths;
    for (const EmbeddedText& text : texts) {
      const std::string prepared = tasks::embedded_text(prompt + text.text, lower_case_);
      sequences.push_back(tasks::encode_text(prepared, tokenizer_, max_length_));
      lengths.push_back(sequences.back().length());
      tokens_ += lengths.back();
      truncated_ += sequences.back().cut > 0 ? 1 : 0;
    }
    std::vector<float> vectors(texts.size() * dimensions_);
    for (const std::vector<std::size_t>& group : text::group_by_length(lengths, batches_)) {
      std::vector<text::Row> rows;
      for (const std::size_t i : group) rows.push_back({sequences[i].ids, sequences[i].second});
      const Stopwatch clock;
      const runtime::Tensors outputs = model_.run(text::make_batch(rows));
      seconds_ += clock.seconds();
      const ir::Tensor made = outputs.begin()->second.converted(ir::DType::f32);
      for (std::size_t row = 0; row < group.size(); ++row) {
        const auto vector = made.as<float>().subspan(row * dimensions_, dimensions_);
        check_finite(vector, texts[group[row]]);
        std::ranges::copy(vector,
                          vectors.begin() + static_cast<std::ptrdiff_t>(group[row] * dimensions_));
      }
    }
    return vectors;
  }

  std::size_t dimensions() const { return dimensions_; }
  std::size_t tokens() const { return tokens_; }
  std::size_t truncated() const { return truncated_; }
  int max_length() const { return max_length_; }
  double seconds() const { return seconds_; }

 private:
  void check_finite(std::span<const float> vector, const EmbeddedText& text) const {
    if (options_.allow_nonfinite ||
        std::ranges::all_of(vector, [](float x) { return std::isfinite(x); }))
      return;
    throw Error(
        fmt::format("the vector of '{}' holds NaN or infinity (--allow-nonfinite accepts it)",
                    text::excerpt_of(text.text)));
  }

  TextModel model_;
  const text::Tokenizer& tokenizer_;
  const EmbedOptions& options_;
  bool lower_case_;
  text::BatchOptions batches_;
  int max_length_ = 0;
  std::size_t dimensions_ = 0, tokens_ = 0, truncated_ = 0;
  double seconds_ = 0.0;  // inside the model
};

std::string json_line(const EmbeddedText& text, std::span<const float> vector) {
  VectorJson line = VectorJson::object();
  if (!text.id.empty()) line["id"] = text.id;
  line["text"] = text.text;
  line["embedding"] = std::vector<float>(vector.begin(), vector.end());
  return line.dump(-1, ' ', false, VectorJson::error_handler_t::replace) + '\n';
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The format of safetensors: the length of the header, the header in JSON, the elements.
std::string safetensors(const ir::Tensor& tensor) {
  const nlohmann::ordered_json tensors = {{"embeddings",
                                           {{"dtype", "F32"},
                                            {"shape", tensor.shape()},
                                            {"data_offsets", {0, tensor.bytes().size()}}}}};
  std::string header = tensors.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string content(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    content[i] = static_cast<char>(header.size() >> (8 * i) & 255);
  return content + header + as_text(tensor.bytes());
}

/// By the ending of its name; others than these are lines of JSON, which were made on the way.
bool is_array(const std::string& path) {
  return path.ends_with(".npy") || path.ends_with(".npz") || path.ends_with(".safetensors");
}

void write_array(const std::string& path, const ir::Tensor& vectors) {
  if (path.ends_with(".npz")) return npz::save(path, {{"embeddings", vectors}});
  write_file(path,
             path.ends_with(".npy") ? as_text(npz::format_npy(vectors)) : safetensors(vectors));
}

int run_embed(const EmbedOptions& options) {
  const bool lines = !is_array(options.output);
  if (options.output.empty() && !options.prints_text())
    throw Error(
        "--json - and the vectors would share standard output; write the vectors with -o FILE, or "
        "name a "
        "file for --json");
  if (options.texts == "-" && isatty(STDIN_FILENO) == 1)
    throw Error("nothing to embed: name a file of texts, or give them on standard input");
  const auto device = opencl::ContextFuture::open(options.device);
  const tasks::EmbeddingFiles files =
      device.meanwhile([&] { return tasks::read_embedding_files(options.model); });
  const auto [tokenizer, texts] = device.meanwhile([&] {
    return std::pair(load_tokenizer(options.vocabulary, {options.model}),
                     read_texts(options.texts));
  });
  const std::string prompt = prompt_of(options, files);
  EmbedOptions pooled = options;
  pooled.pooling = pooling_of(options.pooled, files);
  const runtime::Pooling& pooling = *pooled.pooling;
  runtime::Session session =
      naming_pooling(pooling, [&] { return load_model(options.model, pooled, device); });
  if (!meets_requirement(session, options)) return kCheckFailed;
  Embedder embedder(session, options, files, tokenizer);
  std::vector<float> all;  // of an array
  std::string content;     // of a file of lines
  Progress progress("embedding", "texts");
  const Stopwatch clock;
  for (std::size_t begin = 0; begin < texts.size(); begin += kTextsAtOnce) {
    const auto some = std::span(texts).subspan(begin, std::min(kTextsAtOnce, texts.size() - begin));
    const std::vector<float> vectors =
        naming_model(options.model, [&] { return embedder.run(some, prompt); });
    if (!lines) all.insert(all.end(), vectors.begin(), vectors.end());
    for (std::size_t i = 0; lines && i < some.size(); ++i) {
      const auto vector =
          std::span(vectors).subspan(i * embedder.dimensions(), embedder.dimensions());
      std::string line = json_line(some[i], vector);
      if (options.output.empty())
        write_output(line);
      else
        content += line;
    }
    progress.update(begin + some.size(), texts.size());
  }
  const double seconds = clock.seconds();
  if (embedder.truncated() > 0)
    warn("truncated {} of {} texts to {} tokens", embedder.truncated(), texts.size(),
         embedder.max_length());
  if (!lines)
    write_array(options.output, ir::Tensor::of({static_cast<std::int64_t>(texts.size()),
                                                static_cast<std::int64_t>(embedder.dimensions())},
                                               std::move(all)));
  else if (!options.output.empty())
    write_file(options.output, content);
  if (!options.output.empty() && options.prints_text())
    print_text("{}: {} of {} dimensions, {} in {}\n", options.output,
               counted(static_cast<std::int64_t>(texts.size()), "vectors"), embedder.dimensions(),
               counted(static_cast<std::int64_t>(embedder.tokens()), "tokens"),
               duration_text(embedder.seconds()));
  write_report(options, session.context().info(),
               {{"path", options.model},
                {"texts", texts.size()},
                {"tokens", embedder.tokens()},
                {"truncated", embedder.truncated()},
                {"max_length", embedder.max_length()},
                {"dimensions", embedder.dimensions()},
                {"pooling", pooling.kind.empty() ? "model" : pooling.kind},
                {"normalized", pooling.normalize},
                {"prompt", prompt},
                {"precision", precision_of(session.plan(), options)},
                {"seconds", seconds},
                {"model_seconds", embedder.seconds()}});
  return kOk;
}

}  // namespace

void add_embed(CLI::App& program, Action& action) {
  const auto options = std::make_shared<EmbedOptions>();
  CLI::App* command = add_model_command(
      program, "embed",
      "Turn texts into vectors, as sentence-transformers does\n\n"
      "Texts are the lines of TEXTS or of standard input, or JSON lines {\"text\": \"..\"} with "
      "an\n"
      "id. Without -o each gives a line of JSON with its vector; -o writes one array [texts,\n"
      "dimensions] as .npy, .npz or .safetensors (embeddings), or those lines in any other file.\n"
      "Order is kept; the vector of a text does not depend on the texts beside it.\n\n"
      "Pooling, normalization, length and prompts are those of sentence-transformers' files "
      "beside\n"
      "the model, or in the folder above its folder onnx.",
      "bertcl embed model.onnx texts.txt -o vectors.npy", *options);
  options->texts = "-";
  model_file(command->add_option("MODEL", options->model,
                                 "ONNX model whose output is hidden states or text vectors"))
      ->required()
      ->type_name("");
  input_file(
      command->add_option("TEXTS", options->texts, "Texts; - is standard input, the default"))
      ->type_name("");
  output_file(command->add_option("-o,--output", options->output, "File to write"))
      ->type_name("FILE");
  add_pooling_options(*command, options->pooled);
  CLI::Option* prompt =
      command
          ->add_option("--prompt", options->prompt,
                       "Text before each text (\"query: \"); by default the model's default prompt")
          ->type_name("TEXT");
  command
      ->add_option("--prompt-name", options->prompt_name,
                   "The same by its name in config_sentence_transformers.json")
      ->type_name("NAME")
      ->excludes(prompt);
  positive(*command, "--batch-tokens", options->batch_tokens, "Maximum tokens per batch");
  positive(*command, "--max-seq-length", options->max_length,
           "Tokens of a text, separators included; by default as the files say, or the\nmodel's "
           "maximum, or 512");
  add_vocabulary_options(*command, options->vocabulary);
  add_force_flag(*command, options->force);
  command->callback([options, &action] { action = [options] { return run_embed(*options); }; });
}

}  // namespace bertcl::tools
