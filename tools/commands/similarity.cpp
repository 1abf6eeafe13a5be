// SPDX-License-Identifier: Apache-2.0
// bertcl similarity: texts ordered by the similarity of their vectors to that of a query, or the
// most similar pairs of them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "support/stopwatch.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "tasks/rank.hpp"
#include "tasks/scores/vector_similarity.hpp"
#include "text/base/data_file.hpp"
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

constexpr std::size_t kUsualPairs = 20;

struct SimilarityOptions : ModelOptions {
  std::string model, texts, output, function;
  std::optional<std::string> query, prompt, query_prompt;
  std::optional<std::size_t> top_k;
  EmbeddingOptions embedding;
  bool force = false;
};

/// The function that the options name, else that of the model's files.
std::string function_of(const SimilarityOptions& options, const tasks::EmbeddingFiles& files) {
  const std::string& told = files.similarity;
  if (!options.function.empty()) return options.function;
  if (told.empty()) return tasks::similarity_names().front();
  const auto& names = tasks::similarity_names();
  if (std::ranges::find(names, told) == names.end())
    fail(
        "{}: similarity_fn_name '{}' is not supported; name another with "
        "--similarity",
        (files.folder / "config_sentence_transformers.json").string(), told);
  return told;
}

/// With a query as encode_query() and encode_document() of sentence-transformers, without one as
/// encode().
tasks::RetrievalPrompts prompts_of(const SimilarityOptions& options,
                                   const tasks::EmbeddingFiles& files) {
  tasks::RetrievalPrompts prompts{"", files.default_prompt};
  if (options.query) prompts = files.prompts_by_role();
  if (options.query_prompt) prompts.question = *options.query_prompt;
  if (options.prompt) prompts.paragraph = *options.prompt;
  check_prompt(files, prompts.question, "--query-prompt");
  check_prompt(files, prompts.paragraph, "--prompt");
  return prompts;
}

bool have_ids(const std::vector<InputText>& texts) {
  return std::ranges::any_of(texts, [](const InputText& text) { return !text.id.empty(); });
}

void print_ranked(const std::vector<tasks::RankedPassage>& ranked,
                  const std::vector<InputText>& texts) {
  const bool ids = have_ids(texts);
  Table table({">score", ids ? "id" : ">index", "text"});
  for (const auto& [index, score] : ranked)
    table.add({fmt::format("{:.4f}", score), ids ? texts[index].id : std::to_string(index),
               texts[index].text});
  print_text("{}", table.str());
}

void print_pairs(const std::vector<tasks::SimilarPair>& pairs,
                 const std::vector<InputText>& texts) {
  const bool ids = have_ids(texts);
  const std::string head = ids ? "id" : ">index";
  Table table({">score", head, head, "text", "text"});
  const auto name = [&](std::size_t i) { return ids ? texts[i].id : std::to_string(i); };
  for (const auto& [first, second, score] : pairs)
    table.add({fmt::format("{:.4f}", score), name(first), name(second),
               text::excerpt_of(texts[first].text), text::excerpt_of(texts[second].text)});
  print_text("{}", table.str());
}

nlohmann::ordered_json text_json(const std::vector<InputText>& texts, std::size_t index) {
  nlohmann::ordered_json json = {{"index", index}};
  if (!texts[index].id.empty()) json["id"] = texts[index].id;
  json["text"] = texts[index].text;
  return json;
}

nlohmann::ordered_json ranked_json(const std::vector<tasks::RankedPassage>& ranked,
                                   const std::vector<InputText>& texts) {
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const auto& [index, score] : ranked) {
    nlohmann::ordered_json result = text_json(texts, index);
    result["score"] = score;
    results.push_back(std::move(result));
  }
  return results;
}

nlohmann::ordered_json pairs_json(const std::vector<tasks::SimilarPair>& pairs,
                                  const std::vector<InputText>& texts) {
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const auto& [first, second, score] : pairs)
    results.push_back(
        {{"score", score}, {"pair", {text_json(texts, first), text_json(texts, second)}}});
  return results;
}

std::vector<float> rounded(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

/// [texts, texts]
std::vector<float> matrix_of(const tasks::ComparedVectors& compared,
                             std::span<const float> vectors) {
  const std::size_t texts = compared.rows(), dimensions = vectors.size() / texts;
  std::vector<float> matrix;
  matrix.reserve(texts * texts);
  for (std::size_t i = 0; i < texts; ++i) {
    const std::vector<float> row =
        rounded(compared.similarities(vectors.subspan(i * dimensions, dimensions)));
    matrix.insert(matrix.end(), row.begin(), row.end());
  }
  return matrix;
}

/// What a query finds.
std::vector<tasks::RankedPassage> ranked_by(const std::vector<float>& similarities,
                                            std::size_t max) {
  std::vector<tasks::RankedPassage> ranked;
  for (std::size_t i = 0; i < similarities.size(); ++i) ranked.push_back({i, similarities[i]});
  tasks::keep_best(ranked, max);
  return ranked;
}

/// Of a query the texts, by rank; without one the most similar pairs.
struct Similarities {
  std::vector<float> matrix;  // of -o, and of a query
  std::vector<tasks::RankedPassage> ranked;
  std::vector<tasks::SimilarPair> pairs;
};

Similarities find_similar(const std::vector<float>& query, const std::vector<float>& vectors,
                          std::size_t dimensions, const std::string& function,
                          const SimilarityOptions& options) {
  const tasks::ComparedVectors compared(tasks::similarity_named(function), vectors, dimensions);
  Similarities found;
  if (options.query) {
    found.matrix = rounded(compared.similarities(query));
    found.ranked = ranked_by(found.matrix, options.top_k.value_or(0));
  } else {
    found.pairs = compared.most_similar_pairs(options.top_k.value_or(kUsualPairs));
    if (!options.output.empty()) found.matrix = matrix_of(compared, vectors);
  }
  return found;
}

/// Prints what was found and writes -o.
void write_similarities(Similarities& found, const std::vector<InputText>& texts,
                        const std::string& function, const SimilarityOptions& options) {
  if (options.prints_text())
    options.query ? print_ranked(found.ranked, texts) : print_pairs(found.pairs, texts);
  if (options.output.empty()) return;
  const auto columns = std::ssize(texts);
  const std::int64_t rows = options.query ? 1 : columns;
  write_array(options.output, "similarities",
              ir::Tensor::of({rows, columns}, std::move(found.matrix)));
  if (options.prints_text())
    print_text("{}: {} similarities [{}, {}]\n", options.output, function, rows, columns);
}

int run_similarity(const SimilarityOptions& options) {
  const auto device = opencl::ContextFuture::open(options.device);
  const auto [files, tokenizer, texts] = read_embedding_inputs(
      "similarity", options.model, options.texts, options.embedding.vocabulary, device);
  if (!options.query && texts.size() == 1)
    throw Error("one text has no pair; give two or more, or a query with --query");
  const std::string function = function_of(options, files);
  const auto [query_prompt, prompt] = prompts_of(options, files);
  const runtime::Pooling pooling = pooling_of(options.embedding.pooled, files);
  runtime::Session session = load_embedding_model(options.model, options, pooling, device);
  if (!meets_requirement(session, options)) return kCheckFailed;
  Embedder embedder(session, options.embedding, options.allow_nonfinite, files, tokenizer);

  const Stopwatch clock;
  std::vector<float> query, vectors;
  if (options.query) {
    const std::vector<InputText> one = {{"", *options.query, std::nullopt, "-q"}};
    query = naming_model(options.model,
                         [&, prompt = query_prompt] { return embedder.run(one, prompt); });
  }
  const bool truncated_query = embedder.truncated() > 0;
  embedder.run_in_parts(texts, prompt, [&](auto, const std::vector<float>& part) {
    vectors.insert(vectors.end(), part.begin(), part.end());
  });
  Similarities found = find_similar(query, vectors, embedder.dimensions(), function, options);
  const double seconds = clock.seconds();

  if (truncated_query) warn("truncated the query to {} tokens", embedder.max_length());
  warn_of_truncation(embedder.truncated() - (truncated_query ? 1 : 0), texts.size(), "texts",
                     embedder.max_length());
  write_similarities(found, texts, function, options);
  nlohmann::ordered_json report = {{"path", options.model}, {"similarity", function}};
  if (options.query) {
    report["query"] = *options.query;
    report["query_prompt"] = query_prompt;
  }
  report["prompt"] = prompt;
  if (options.query)
    report["results"] = ranked_json(found.ranked, texts);
  else
    report["pairs"] = pairs_json(found.pairs, texts);
  report.update(vectors_json(embedder, texts.size(), pooling));
  report.update({{"precision", plan::precision_of(session.plan()).str()},
                 {"seconds", seconds},
                 {"model_seconds", embedder.seconds()}});
  write_report(options, session.context().info(), report);
  return kOk;
}

}  // namespace

void add_similarity(CLI::App& program, Action& action) {
  const auto options = std::make_shared<SimilarityOptions>();
  CLI::App* command = add_model_command(
      program, "similarity",
      "Find the texts most similar to a query, or the most similar pairs\n\n"
      "Texts are the lines of TEXTS or of standard input, or JSON lines {\"text\": \"..\"} with "
      "id; each becomes a vector, as by embed. With --query the texts whose vectors are most "
      "similar to that of the query come first (semantic search); without it the most similar "
      "pairs of texts (paraphrase mining). -o writes all similarities as one array, [1, texts] or "
      "[texts, texts], as .npy, .npz or .safetensors (similarities).\n\n"
      "Function and prompts are those of config_sentence_transformers.json beside the model: "
      "\"query\" before a query, and then \"document\", \"passage\" or \"corpus\" before the "
      "texts; without a query, or without such prompts, the default one.",
      "bertcl similarity model.onnx texts.txt -q \"Who maintains OpenCL?\" --top-k 5", *options);
  add_model_and_texts(*command, options->model, options->texts);
  CLI::Option* query = text_option(
      command->add_option("-q,--query", options->query, "The text to find similar ones to"),
      "the query is empty");
  positive(*command, "--top-k", options->top_k,
           "Only the best N; by default all texts, or 20 pairs");
  one_of(command->add_option("--similarity", options->function,
                             "Cosine, dot product, or minus the Euclidean or Manhattan distance; "
                             "by default as in the model's files, else cosine"),
         tasks::similarity_names());
  output_file(command->add_option("-o,--output", options->output, "File of all similarities"))
      ->check(CLI::Validator(
          [](const std::string& path) -> std::string {
            return is_array_file(path)
                       ? ""
                       : path + ": expected a name that ends in .npy, .npz or .safetensors";
          },
          ""));
  add_pooling_options(*command, options->embedding.pooled);
  text_option(command->add_option("--prompt", options->prompt,
                                  "Text before each text (\"passage: \"); \"\" is none"));
  text_option(command->add_option("--query-prompt", options->query_prompt, "Text before the query"))
      ->needs(query);
  add_embedding_options(*command, options->embedding);
  add_force_flag(*command, options->force);
  command->callback(
      [options, &action] { action = [options] { return run_similarity(*options); }; });
}

}  // namespace bertcl::tools
