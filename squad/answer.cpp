// SPDX-License-Identifier: Apache-2.0
// One question about one text of any length.
#include "squad/answer.hpp"

#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::squad {
namespace {

FoundAnswer find_answer(const PreparedQuestion& asked, std::span<const WindowLogits> windows,
                        const text::Tokenizer& tokenizer, const AnswerOptions& options) {
  const std::string_view context = asked.document.context;
  Prediction prediction = predict(asked.document, windows, tokenizer, options.predictions);

  FoundAnswer found;
  found.null_odds = prediction.null_odds;
  found.features = asked.features.size();
  found.question_truncated = asked.question_truncated;
  const auto entry = std::ranges::find_if(
      prediction.nbest, [&](const NBestEntry& other) { return other.text == prediction.text; });
  if (entry != prediction.nbest.end()) {
    found.score = entry->start_logit + entry->end_logit;
    found.probability = entry->probability;
  }
  if (prediction.span) {
    const auto [begin, end] = *prediction.span;
    found.text = context.substr(begin, end - begin);
    found.bytes = prediction.span;
    const std::size_t first = text::count_code_points(context.substr(0, begin));
    found.characters = Span{first, first + text::count_code_points(found.text)};
  }
  found.nbest = std::move(prediction.nbest);
  return found;
}

}  // namespace

PreparedQuestion prepare_question(std::string_view question, Document document,
                                  const text::Tokenizer& tokenizer, const FeatureOptions& options) {
  const std::size_t query = tokenizer.encode(question).size();
  if (query == 0) throw Error("the question has no tokens");
  PreparedQuestion asked{std::move(document), {}};
  if (asked.document.piece_ids.empty()) throw Error("the context has no tokens");
  asked.features = make_features(asked.document, question, tokenizer, options);
  const auto kept = static_cast<std::size_t>(options.max_query_length);
  asked.question_truncated = query - std::min(query, kept);
  return asked;
}

FoundAnswer answer_question(std::string_view question, std::string_view context,
                            const text::Tokenizer& tokenizer, const AnswerOptions& options,
                            const LogitsFn& model) {
  const PreparedQuestion asked =
      prepare_question(question, make_document(context, tokenizer), tokenizer, options.features);
  const std::vector<Logits> logits = run_model(asked.features, options.batches, model);
  std::vector<WindowLogits> windows;
  for (std::size_t i = 0; i < logits.size(); ++i)
    windows.push_back({&asked.features[i], logits[i].start, logits[i].end});
  return find_answer(asked, windows, tokenizer, options);
}

}  // namespace bertcl::squad
