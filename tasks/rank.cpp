// SPDX-License-Identifier: Apache-2.0
// Passages are paired with their query, scored, and ordered.
#include "tasks/rank.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "tasks/features.hpp"
#include "tasks/scores/class_scores.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::tasks {
namespace {

constexpr const char* kPassageForm =
    R"(each line is an object {"text": ".."}, with "query" where -q gives none)";

bool is_better(const RankedPassage& a, const RankedPassage& b) {
  if (std::isnan(a.score) || std::isnan(b.score)) return !std::isnan(a.score);
  return a.score > b.score;
}

}  // namespace

std::vector<Passage> read_passages(const std::filesystem::path& path, const std::string& query) {
  const text::DataFile file = text::read_data(path);
  std::vector<Passage> passages;
  const auto add = [&](Passage passage, std::size_t line) {
    if (text::is_blank(passage.query))
      text::fail_at(file, line,
                    R"(the passage has no query; give one for all with -q, or )"
                    R"({"query": "..", "text": ".."} on each line)");
    passages.push_back(std::move(passage));
  };
  if (file.form == text::Form::json_lines) {
    text::each_object(file, kPassageForm, [&](const text::JsonNode& object, std::size_t line) {
      const auto id = object.find("id"), own = object.find("query");
      const auto passage = object.find("passage");
      add({own ? own->string() : query, passage ? passage->string() : object.at("text").string(),
           id ? text::name_of(*id) : ""},
          line);
    });
  } else {
    text::each_text(file, "passage", [&](std::string_view line, std::size_t number) {
      add({query, std::string(line), ""}, number);
    });
  }
  return passages;
}

const text::Head& rank_head() {
  static const text::Head head{false, 1, false, "1 score"};
  return head;
}

void keep_best(std::vector<RankedPassage>& passages, std::size_t top_k) {
  std::ranges::stable_sort(passages, is_better);
  if (top_k > 0 && passages.size() > top_k) passages.resize(top_k);
}

Rankings rank(const std::vector<Passage>& passages, const text::Tokenizer& tokenizer,
              const RankOptions& options, const text::RunBatchFn& model,
              const text::BatchDoneFn& progress) {
  Rankings rankings;
  std::vector<Sequence> sequences;
  for (const Passage& passage : passages) {
    sequences.push_back(
        encode_pair(options.prompt + passage.query, passage.text, tokenizer, options.max_length));
    rankings.tokens += sequences.back().length();
    rankings.truncated += sequences.back().cut > 0 ? 1 : 0;
  }
  std::vector<double> scores(passages.size());
  const auto take = [&](std::size_t index, std::span<const float> output) {
    if (!options.allow_nonfinite && !text::all_finite(output))
      fail(
          "the model returned NaN or infinity for passage {}, counted from 0; "
          "{} continues",
          index, option_name("allow-nonfinite"));
    scores[index] = options.sigmoid ? sigmoid(output[0]) : output[0];
  };
  rankings.model_seconds =
      text::run_rows(rows_of(sequences), rank_head(), options.batches, model, take, progress)
          .seconds;
  std::map<std::string_view, std::size_t> places;  // of queries
  for (std::size_t i = 0; i < passages.size(); ++i) {
    const auto [place, is_new] = places.emplace(passages[i].query, rankings.queries.size());
    if (is_new) rankings.queries.push_back({passages[i].query, {}});
    rankings.queries[place->second].passages.push_back({i, scores[i]});
  }
  for (Ranking& ranking : rankings.queries) keep_best(ranking.passages, options.top_k);
  return rankings;
}

}  // namespace bertcl::tasks
