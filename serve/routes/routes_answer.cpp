// SPDX-License-Identifier: Apache-2.0
// POST /answer: a question about a text, with the result of Hugging Face's pipeline.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "serve/inputs.hpp"
#include "serve/json_text.hpp"
#include "serve/routes/routes.hpp"
#include "squad/best_answers.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::serve {
namespace {

using Json = nlohmann::ordered_json;

struct AskRequest {
  std::string question, context;
  squad::FeatureOptions features;
  std::optional<int> overlap;  // of windows
  squad::BestAnswerOptions best;
};

constexpr int kMaxAnswers = 100, kMaxTokens = 100'000;

template <class Number>
void read_number(const std::optional<text::JsonNode>& options, const char* name, Number& value,
                 int min = 1, int max = kMaxTokens) {
  const auto found = options ? options->find(name) : std::nullopt;
  if (!found) return;
  const std::int64_t given = found->integer();
  if (given < min || given > max)
    found->fail(fmt::format("is {}, expected {} to {}", given, min, max));
  value = Number(static_cast<int>(given));
}

/// {question, context} with options beside them, or {inputs: {..}, parameters: {..}}.
AskRequest read_ask_request(Model& model, const text::JsonNode& body) {
  const text::JsonNode asked = body.find("inputs").value_or(body);
  const std::optional<text::JsonNode> options =
      body.find("inputs") ? body.find("parameters") : std::optional(body);
  AskRequest request{asked.at("question").string(),
                     asked.at("context").string(),
                     model.setup().answer.features,
                     {},
                     {}};
  squad::FeatureOptions& features = request.features;
  read_number(options, "top_k", request.best.top_k, 1, kMaxAnswers);
  read_number(options, "max_answer_len", request.best.max_answer_length);
  read_number(options, "max_question_len", features.max_query_length);
  read_number(options, "doc_stride", request.overlap, 0);
  int length = features.max_seq_length;
  read_number(options, "max_seq_len", length);
  features.max_seq_length = std::min(length, static_cast<int>(model.setup().max_length));
  // More windows do not fit into the queue, and each takes memory before that is known.
  features.max_windows =
      std::max<std::size_t>(model.batcher().options().max_queue_tokens /
                                static_cast<std::size_t>(features.max_seq_length),
                            1);
  if (options) {
    request.best.may_be_absent =
        options->flag("handle_impossible_answer", request.best.may_be_absent);
    request.best.whole_words = options->flag("align_to_words", request.best.whole_words);
  }
  return request;
}

/// Windows overlap by `doc_stride` tokens; by default a quarter of each is new at least.
int step_of(const AskRequest& request, const text::Tokenizer& tokenizer) {
  const int question = std::min(static_cast<int>(tokenizer.encode(request.question).size()),
                                request.features.max_query_length);
  const int longest = request.features.max_seq_length;
  const int room = longest - question - static_cast<int>(tokenizer.special().pair_count());
  if (room < 1) return 1;  // prepare_question() refuses it
  const int overlap = request.overlap.value_or(std::min({longest / 2, 128, room * 3 / 4}));
  if (overlap >= room)
    throw HttpError(422, "Validation",
                    fmt::format("doc_stride is {}, expected less than the {} tokens that "
                                "max_seq_len {} leaves for the context",
                                overlap, room, longest));
  return room - overlap;
}

/// The windows of a context; 413 for one that is too large, as for other texts.
squad::PreparedQuestion ask(AskRequest& request, const text::Tokenizer& tokenizer) {
  request.features.doc_stride = step_of(request, tokenizer);
  try {
    return squad::prepare_question(request.question,
                                   squad::make_token_document(request.context, tokenizer),
                                   tokenizer, request.features);
  } catch (const squad::TooManyWindows& error) {
    throw HttpError(413, "Validation", error.what());
  } catch (const squad::NoRoomForContext&) {
    throw HttpError(422, "Validation",
                    fmt::format("max_seq_len {} leaves no room for the context beside the "
                                "question; raise it or lower max_question_len",
                                request.features.max_seq_length));
  }
}

Json answer_json(const squad::BestAnswer& answer, std::string_view context) {
  const std::size_t start = text::count_code_points(context.substr(0, answer.bytes.begin));
  return {{"score", answer.score},
          {"start", start},
          {"end", start + text::count_code_points(answer.text)},
          {"answer", answer.text}};
}

}  // namespace

HttpResponse answer_route(Context& context) {
  const text::JsonNode body = context.body();
  Model& model = context.service.model_for(context, {Kind::question_answering}, body);
  AskRequest request = read_ask_request(model, body);
  const squad::PreparedQuestion asked = ask(request, *model.setup().tokenizer);
  context.record.texts = asked.features.size();
  std::vector<Sequence> windows;
  for (const squad::Feature& feature : asked.features)
    windows.push_back({feature.input_ids, feature.second});
  const std::vector<Values> values = context.run(model, model.batcher(), std::move(windows));
  if (!model.setup().answer.predictions.allow_nonfinite) check_finite(values);
  std::vector<squad::Logits> logits;
  for (const Values& own : values) logits.push_back(squad::split_logits(own));
  std::vector<squad::WindowLogits> seen;
  for (std::size_t i = 0; i < logits.size(); ++i)
    seen.push_back({&asked.features[i], logits[i].start, logits[i].end});
  const auto answers = squad::best_answers(asked.document, seen, request.best);
  if (request.best.top_k == 1) return {200, dump(answer_json(answers.front(), request.context))};
  Json list = Json::array();
  for (const squad::BestAnswer& answer : answers)
    list.push_back(answer_json(answer, request.context));
  return {200, dump(list)};
}

std::vector<Route> answer_routes() { return {{"POST", "/answer", answer_route}}; }

}  // namespace bertcl::serve
