// SPDX-License-Identifier: Apache-2.0
// One question about one text of any length.
#include "squad/answer.hpp"

#include <algorithm>

#include "bertcl/error.hpp"
#include "text/unicode.hpp"

namespace bertcl::squad {

FoundAnswer answer_question(std::string_view question, std::string_view context,
                            const text::Tokenizer& tokenizer, const AnswerOptions& options,
                            const LogitsFn& model) {
  if (tokenizer.encode(question).empty()) throw Error("the question has no words");
  const Document document = make_document(context, tokenizer);
  if (document.piece_ids.empty()) throw Error("the context has no words");
  const std::vector<Feature> features =
      make_features(document, question, tokenizer, options.features);
  const std::vector<Logits> logits = run_model(features, options.batches, model);
  std::vector<WindowLogits> windows;
  for (std::size_t i = 0; i < features.size(); ++i) {
    windows.push_back({&features[i], logits[i].start, logits[i].end});
  }
  Prediction prediction = predict(document, windows, tokenizer, options.predictions);

  FoundAnswer found;
  found.null_odds = prediction.null_odds;
  found.features = features.size();
  const auto entry =
      std::find_if(prediction.nbest.begin(), prediction.nbest.end(),
                   [&](const NBestEntry& other) { return other.text == prediction.text; });
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

}  // namespace bertcl::squad
