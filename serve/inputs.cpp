// SPDX-License-Identifier: Apache-2.0
// From the JSON of texts and tokens to sequences, and to vectors.
#include "serve/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "ir/port.hpp"
#include "tasks/features.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "text/run_rows.hpp"

namespace bertcl::serve {
namespace {

Input read_input(const text::JsonNode& node) {
  if (node.value().is_string()) return {node.string(), {}};
  if (!node.value().is_array()) node.fail("is neither a text nor a list of token ids");
  Input input;
  node.each([&](const text::JsonNode& id) { input.ids.push_back(id.integer()); });
  return input;
}

void normalize(std::span<float> vector) {
  double sum = 0;
  for (const float x : vector) sum += static_cast<double>(x) * x;
  const double norm = std::max(std::sqrt(sum), 1e-12);
  for (float& x : vector) x = static_cast<float>(x / norm);
}

Sequence sequence_of(const Context& context, const Model& model, const Input& input,
                     const std::string& prompt, const Truncation& truncation) {
  if (input.text) {
    check_not_empty(*input.text);  // without its prompt
    const std::string text = tasks::embedded_text(prompt + *input.text, model.setup().lower_case,
                                                  *model.setup().tokenizer);
    return context.encode(model, text, truncation);
  }
  if (input.ids.empty()) throw HttpError(400, "Empty", "a text has no tokens");
  for (const std::int64_t id : input.ids)
    if (!std::in_range<std::int32_t>(id))
      throw HttpError(422, "Validation",
                      fmt::format("token id {} is outside the vocabulary of {} tokens", id,
                                  model.setup().vocabulary));
  Sequence sequence{{input.ids.begin(), input.ids.end()}};
  const std::size_t limit = model.setup().max_length;
  if (sequence.ids.size() <= limit) return sequence;
  if (!truncation.truncate)
    throw HttpError(
        413, "Validation",
        fmt::format("an input has {} token ids, the model takes {}", sequence.ids.size(), limit));
  const auto surplus = static_cast<std::ptrdiff_t>(sequence.ids.size() - limit);
  if (truncation.cuts_left.value_or(model.setup().tokenizer->truncates_left()))
    sequence.ids.erase(sequence.ids.begin(), sequence.ids.begin() + surplus);
  else
    sequence.ids.resize(limit);
  return sequence;
}

void check_dimensions(const EmbedRequest& request, std::optional<std::int64_t> known) {
  if (request.dimensions && known && *request.dimensions > *known)
    throw HttpError(
        422, "Validation",
        fmt::format("{} dimensions requested, but the model has {}", *request.dimensions, *known));
}

}  // namespace

std::vector<Input> read_inputs(const Context& context, const text::JsonNode& node) {
  if (!node.value().is_array()) return {read_input(node)};
  const auto is_number = [](const nlohmann::json& value) { return value.is_number(); };
  if (!node.value().empty() && std::ranges::all_of(node.value(), is_number))
    return {read_input(node)};
  context.check_text_count(node.value().size());
  std::vector<Input> inputs;
  node.each([&](const text::JsonNode& input) { inputs.push_back(read_input(input)); });
  return inputs;
}

std::vector<std::string> read_texts(const Context& context, const text::JsonNode& node,
                                    bool may_be_objects) {
  if (node.value().is_array()) context.check_text_count(node.value().size());
  std::vector<std::string> texts;
  node.each([&](const text::JsonNode& text) {
    const bool is_object = may_be_objects && text.value().is_object();
    texts.push_back((is_object ? text.at("text") : text).string());
  });
  return texts;
}

std::optional<std::int64_t> read_count(const text::JsonNode& body, const char* name,
                                       std::int64_t min) {
  const auto count = body.find(name);
  if (!count) return std::nullopt;
  if (count->integer() < min)
    count->fail(fmt::format("is {}, expected {} or more", count->integer(), min));
  return count->integer();
}

std::optional<std::int64_t> columns_of(const ModelSetup& setup) {
  for (const ir::Port& port : setup.session->outputs())
    if (port.name == setup.head.outputs.at(0) && !port.type.shape.empty() &&
        port.type.shape.back().is_constant())
      return port.type.shape.back().constant();
  return std::nullopt;
}

std::string prompt_of(const Model& model, const text::JsonNode& body) {
  const ModelSetup& setup = model.setup();
  const auto name = body.find("prompt_name");
  if (!name) return setup.default_prompt;
  if (setup.prompts.empty()) throw HttpError(422, "Validation", "the model has no prompts");
  const std::string& prompt = tasks::prompt_named(setup.prompts, name->string());
  if (!prompt.empty() && !setup.pools_prompt)
    throw HttpError(422, "Validation", std::string("this model ") + tasks::kExcludesPrompt);
  return prompt;
}

void check_not_empty(std::string_view text, std::string_view second) {
  if (text.empty() && second.empty()) throw HttpError(400, "Empty", "a text is empty");
}

EmbedRequest read_embed_request(const Context& context, const Model& model,
                                const text::JsonNode& body, const char* inputs) {
  return {read_inputs(context, body.at(inputs)),
          prompt_of(model, body),
          context.truncation(body),
          {},
          read_count(body, "dimensions")};
}

std::vector<Sequence> sequences_of(Context& context, const Model& model,
                                   const EmbedRequest& request) {
  context.record.texts = request.inputs.size();
  std::vector<Sequence> sequences;
  for (const Input& input : request.inputs)
    sequences.push_back(sequence_of(context, model, input, request.prompt, request.truncation));
  return sequences;
}

void check_finite(const std::vector<Values>& values) {
  for (const Values& some : values)
    if (!text::all_finite(some))
      throw HttpError(424, "Backend", "the model returned NaN or infinity");
}

std::vector<Values> embed(Context& context, Model& model, const EmbedRequest& request) {
  const bool was_normalized = model.setup().normalized;
  const bool wanted = request.normalize.value_or(was_normalized);
  if (was_normalized && !wanted)
    throw HttpError(422, "Validation",
                    "\"normalize\": false: the model's vectors are normalized on the device; start "
                    "the server with --no-normalize");
  check_dimensions(request, columns_of(model.setup()));
  std::vector<Values> vectors =
      context.run(model, model.batcher(), sequences_of(context, model, request));
  check_finite(vectors);
  for (Values& vector : vectors) {
    check_dimensions(request, static_cast<std::int64_t>(vector.size()));
    const bool cut =
        request.dimensions && static_cast<std::size_t>(*request.dimensions) < vector.size();
    if (cut) vector.resize(*request.dimensions);
    if (wanted && (cut || !was_normalized)) normalize(vector);
  }
  return vectors;
}

std::vector<Values> embed_tokens(Context& context, Model& model, std::vector<Sequence> sequences) {
  context.release_body();  // the first call loads the model once more
  const auto before = std::chrono::steady_clock::now();
  Batcher& batcher = model.hidden_states();
  context.begin += std::chrono::steady_clock::now() - before;  // it may take longer than a request
  std::vector<Values> values = context.run(model, batcher, std::move(sequences));
  check_finite(values);
  return values;
}

}  // namespace bertcl::serve
