// SPDX-License-Identifier: Apache-2.0
// bertcl embed: texts in, a vector for each out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "ir/tensor.hpp"
#include "opencl/context_future.hpp"
#include "plan/report.hpp"
#include "support/json_text.hpp"
#include "support/pending_file.hpp"
#include "support/stopwatch.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "tools/models/embedder.hpp"
#include "tools/options/embedding_options.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/text_option.hpp"
#include "tools/report/array_file.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

struct EmbedOptions : ModelOptions {
  std::string model, texts, output;
  EmbeddingOptions embedding;
  std::optional<std::string> prompt, prompt_name;
  bool force = false;
};

std::string json_line(const InputText& text, std::span<const float> vector) {
  FloatJson line = FloatJson::object();
  if (!text.id.empty()) line["id"] = text.id;
  line["text"] = text.text;
  line["embedding"] = std::vector<float>(vector.begin(), vector.end());
  return json_text(line) + '\n';
}

int run_embed(const EmbedOptions& options) {
  const bool lines = !is_array_file(options.output);  // of JSON
  if (options.output.empty() && !options.prints_text())
    throw Error(
        "--json - and the vectors would share standard output; write the vectors with -o FILE, or "
        "name a "
        "file for --json");
  const auto device = opencl::ContextFuture::open(options.device);
  const auto [files, tokenizer, texts] = read_embedding_inputs(
      "embed", options.model, options.texts, options.embedding.vocabulary, device);
  const std::string prompt = prompt_of(files, options.prompt, options.prompt_name);
  const runtime::Pooling pooling = pooling_of(options.embedding.pooled, files);
  runtime::Session session = load_embedding_model(options.model, options, pooling, device);
  if (!meets_requirement(session, options)) return kCheckFailed;
  Embedder embedder(session, options.embedding, options.allow_nonfinite, files, tokenizer);
  std::vector<float> all;  // of an array
  std::string content;     // of a file of lines
  const Stopwatch clock;
  embedder.run_in_parts(texts, prompt, [&](auto part, const std::vector<float>& vectors) {
    if (!lines) all.insert(all.end(), vectors.begin(), vectors.end());
    for (std::size_t i = 0; lines && i < part.size(); ++i) {
      const auto vector =
          std::span(vectors).subspan(i * embedder.dimensions(), embedder.dimensions());
      std::string line = json_line(part[i], vector);
      if (options.output.empty())
        write_output(line);
      else
        content += line;
    }
  });
  const double seconds = clock.seconds();
  warn_of_truncation(embedder.truncated(), texts.size(), "texts", embedder.max_length());
  if (!lines)
    write_array(
        options.output, "embeddings",
        ir::Tensor::of({std::ssize(texts), static_cast<std::int64_t>(embedder.dimensions())},
                       std::move(all)));
  else if (!options.output.empty())
    write_file(options.output, content);
  if (!options.output.empty() && options.prints_text()) {
    const std::string summary = fmt::format(
        "{}: {} of {} dimensions, {} in {}", options.output, counted(std::ssize(texts), "vectors"),
        embedder.dimensions(), counted(static_cast<std::int64_t>(embedder.tokens()), "tokens"),
        duration_text(embedder.seconds()));
    if (is_standard_output(options.output))
      write_error(summary);  // not among the vectors
    else
      print_text("{}\n", summary);
  }
  nlohmann::ordered_json report = {{"path", options.model}};
  report.update(vectors_json(embedder, texts.size(), pooling));
  report.update({{"prompt", prompt},
                 {"precision", plan::precision_of(session.plan()).str()},
                 {"seconds", seconds},
                 {"model_seconds", embedder.seconds()}});
  write_report(options, session.context().info(), report);
  return kOk;
}

}  // namespace

void add_embed(CLI::App& program, Action& action) {
  const auto options = std::make_shared<EmbedOptions>();
  CLI::App* command = add_model_command(
      program, "embed",
      "Turn texts into vectors, as sentence-transformers does\n\n"
      "Texts are the lines of TEXTS or of standard input, or JSON lines {\"text\": \"..\"} with an "
      "id. Without -o each gives a JSON line with its vector; -o writes one array [texts, "
      "dimensions] as .npy, .npz or .safetensors (embeddings), or those lines in any other file. "
      "Order is kept; the vector of a text does not depend on the texts beside it.\n\n"
      "Pooling, normalization, length and prompts are those of sentence-transformers' files beside "
      "the model, or in the folder above its folder onnx.",
      "bertcl embed model.onnx texts.txt -o vectors.npy", *options);
  add_model_and_texts(*command, options->model, options->texts);
  output_file(command->add_option("-o,--output", options->output, "File to write"));
  add_pooling_options(*command, options->embedding.pooled);
  CLI::Option* prompt = text_option(command->add_option(
      "--prompt", options->prompt,
      "Text before each text (\"query: \"); by default the model's default prompt"));
  command
      ->add_option("--prompt-name", options->prompt_name,
                   "Prompt by its name in config_sentence_transformers.json")
      ->type_name("NAME")
      ->excludes(prompt);
  add_embedding_options(*command, options->embedding);
  add_force_flag(*command, options->force);
  command->callback([options, &action] { action = [options] { return run_embed(*options); }; });
}

}  // namespace bertcl::tools
