// SPDX-License-Identifier: Apache-2.0
// bertcl rerank: passages ordered by how well they answer a query, as a cross-encoder scores them.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/context_future.hpp"
#include "support/option_checks.hpp"
#include "support/stopwatch.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "tasks/rank.hpp"
#include "tools/models/activation.hpp"
#include "tools/models/task_model.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/text_option.hpp"
#include "tools/options/vocabulary_options.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/progress.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

struct RerankOptions : ModelOptions {
  std::string model, query, passages;
  std::optional<bool> logits;
  std::optional<std::size_t> top_k;
  std::optional<int> max_length;
  VocabularyOptions vocabulary;
};

/// Scores need as many digits as tell them apart: sigmoids of good passages are all near 1.
std::string score_text(double score, bool sigmoid) {
  return sigmoid ? fmt::format("{:.6f}", score) : fmt::format("{:.4f}", score);
}

void print_rankings(const tasks::Rankings& rankings, const std::vector<tasks::Passage>& passages,
                    bool sigmoid) {
  const bool ids = std::ranges::any_of(
      passages, [](const tasks::Passage& passage) { return !passage.id.empty(); });
  for (const tasks::Ranking& ranking : rankings.queries) {
    if (rankings.queries.size() > 1)
      print_text("{}? {}\n", &ranking == &rankings.queries.front() ? "" : "\n", ranking.query);
    Table table({">score", ids ? "id" : ">index", "passage"});
    for (const tasks::RankedPassage& ranked : ranking.passages) {
      const tasks::Passage& passage = passages[ranked.index];
      table.add({score_text(ranked.score, sigmoid), ids ? passage.id : std::to_string(ranked.index),
                 passage.text});
    }
    print_text("{}", table.str());
  }
}

nlohmann::ordered_json to_json(const tasks::Rankings& rankings,
                               const std::vector<tasks::Passage>& passages) {
  nlohmann::ordered_json queries = nlohmann::ordered_json::array();
  for (const tasks::Ranking& ranking : rankings.queries) {
    nlohmann::ordered_json results = nlohmann::ordered_json::array();
    for (const tasks::RankedPassage& ranked : ranking.passages) {
      const tasks::Passage& passage = passages[ranked.index];
      nlohmann::ordered_json result = {{"index", ranked.index}};
      if (!passage.id.empty()) result["id"] = passage.id;
      result["score"] = ranked.score;
      result["text"] = passage.text;
      results.push_back(std::move(result));
    }
    queries.push_back({{"query", ranking.query}, {"results", std::move(results)}});
  }
  return queries;
}

int run_rerank(const RerankOptions& options) {
  if (options.passages.empty() && isatty(STDIN_FILENO) == 1)
    throw Error("no passages: name a file of passages, or give them on standard input");
  const auto device = opencl::ContextFuture::open(options.device);
  const auto [tokenizer, files, passages] = device.meanwhile([&] {
    return std::tuple(
        load_tokenizer(options.vocabulary, {options.model}),
        tasks::read_embedding_files(options.model),
        tasks::read_passages(options.passages.empty() ? "-" : options.passages, options.query));
  });
  tasks::RankOptions rank;
  rank.sigmoid = options.logits ? !*options.logits : applies_sigmoid(options.model);
  if (files.scores_pairs) rank.prompt = files.default_prompt;
  rank.top_k = options.top_k.value_or(0);
  rank.allow_nonfinite = options.allow_nonfinite;
  runtime::Session session = load_model(options.model, options, device);
  if (!meets_requirement(session, options)) return kCheckFailed;
  TaskModel model(session, tasks::rank_head());
  model.check_vocabulary(tokenizer);
  rank.max_length = model.max_length(options.max_length, files);
  model.bound(rank.batches);
  model.warm_up();

  const Stopwatch clock;
  Progress progress("rerank", "passages");
  const tasks::Rankings rankings = naming_model(options.model, [&] {
    return tasks::rank(passages, tokenizer, rank, std::ref(model), [&](const text::Done& done) {
      progress.update(done.rows, passages.size());
    });
  });
  const double seconds = clock.seconds();
  warn_of_truncation(rankings.truncated, passages.size(), "pairs", rank.max_length);
  if (options.prints_text()) print_rankings(rankings, passages, rank.sigmoid);
  write_report(options, session.context().info(),
               {{"path", options.model},
                {"activation", rank.sigmoid ? "sigmoid" : "none"},
                {"queries", to_json(rankings, passages)},
                {"passages", passages.size()},
                {"tokens", rankings.tokens},
                {"truncated", rankings.truncated},
                {"seconds", seconds},
                {"model_seconds", rankings.model_seconds}});
  return kOk;
}

}  // namespace

void add_rerank(CLI::App& program, Action& action) {
  const auto options = std::make_shared<RerankOptions>();
  CLI::App* command = add_model_command(
      program, "rerank",
      "Order passages by how well they answer a query\n\n"
      "The model is a cross-encoder: it reads query and passage together and gives one score, as "
      "those of sentence-transformers do. Passages are the lines of PASSAGES or of standard input, "
      "or JSON lines {\"text\": \"..\"} with id. A line may also be a pair, {\"query\": \"..\", "
      "\"passage\": \"..\"}; the passages of each query are ranked separately.",
      "bertcl rerank model.onnx passages.txt -q \"Who maintains OpenCL?\" --top-k 5", *options);
  model_file(command->add_option("MODEL", options->model, "ONNX model with one logit per pair"))
      ->required();
  text_option(
      command->add_option("-q,--query", options->query, "The query for all lines without one"),
      "the query is empty");
  input_file(command->add_option("PASSAGES,--passages", options->passages,
                                 "Passages, one per line; - is standard input, the default"));
  positive(*command, "--top-k", options->top_k, "Only the best N of each query");
  add_switch(
      *command, "--logits,--sigmoid{false}", [options](bool yes) { options->logits = yes; },
      "Scores are the model's logits, or their sigmoids from 0 to 1 (--sigmoid); by default the "
      "activation in sentence-transformers' files beside the model, else sigmoids");
  add_max_length_option(*command, options->max_length, "query and passage");
  add_vocabulary_options(*command, options->vocabulary);
  command->callback([options, &action] { action = [options] { return run_rerank(*options); }; });
}

}  // namespace bertcl::tools
