// SPDX-License-Identifier: Apache-2.0
// bertcl fill-mask: the tokens that may stand where a text hides one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "tasks/scores/class_scores.hpp"
#include "text/base/data_file.hpp"
#include "text/decoder.hpp"
#include "text/pad_token_id.hpp"
#include "text/pipeline/decoders.hpp"
#include "tools/models/texts_run.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

struct FillMaskOptions : TextsOptions {
  std::size_t top_k = 5;
};

/// A token for one mask of a text, and the text with it; other masks stay.
struct Candidate {
  float score = 0;
  std::int32_t token = 0;
  std::string word, sequence;
};

tasks::Sequence encode(const InputText& text, const text::Tokenizer& tokenizer, int max_length) {
  check_single(text, "fill-mask");
  tasks::Sequence sequence = tasks::encode_text(text.text, tokenizer, max_length);
  const std::int32_t mask = tokenizer.mask_id();
  for (std::size_t i = 0; i < sequence.length(); ++i)
    if (sequence.ids[i] == mask) sequence.places.push_back(i);
  if (sequence.places.empty() && !text::is_blank(text.text))  // a blank line has no masks
    fail("{}: no {} in '{}'{}", text.place, tokenizer.token(mask), text::excerpt_of(text.text),
         sequence.cut > 0 ? fmt::format(" within its first {} tokens (raise --max-seq-length)",
                                        sequence.length())
                          : "; put it where a token is to be predicted");
  return sequence;
}

void check_mask(const text::Tokenizer& tokenizer, const std::string& model) {
  try {
    tokenizer.mask_id();
  } catch (const Error& error) {
    fail("{}: {}, or use the tokenizer of a masked language model (--vocab FILE)", model,
         error.what());
  }
}

std::string text_of(std::span<const std::int64_t> ids, bool skip_special,
                    const text::Tokenizer& tokenizer, const text::Decoder& decode) {
  std::string text = decode(ids, skip_special);
  return tokenizer.cleans_up() ? text::cleaned_up(std::move(text)) : text;
}

/// The best tokens for a mask, by their probabilities among all of the vocabulary. `pad`, where it
/// is one of them, is left out of its text.
std::vector<Candidate> candidates(const tasks::Sequence& sequence, std::size_t place,
                                  std::span<const float> logits, std::size_t count,
                                  const text::Tokenizer& tokenizer, const text::Decoder& decode,
                                  std::optional<std::int64_t> pad) {
  std::vector<std::int64_t> ids(sequence.ids.begin(), sequence.ids.end());
  std::vector<Candidate> all;
  auto scores = tasks::class_scores(logits, tasks::Activation::softmax);
  // Some models have more classes than the vocabulary has tokens, and some ids have no token.
  scores.resize(tokenizer.vocabulary_size());
  for (std::size_t id = 0; id < scores.size(); ++id)
    if (tokenizer.token(static_cast<std::int32_t>(id)).empty()) scores[id] = -1;
  for (const tasks::ClassScore& best : tasks::best_classes(scores, count)) {
    if (best.score < 0) break;
    const auto id = static_cast<std::int64_t>(best.label);
    ids[place] = id;
    std::vector<std::int64_t> filled = ids;
    if (pad) std::erase(filled, *pad);
    all.push_back({best.score, static_cast<std::int32_t>(id),
                   text_of(std::vector{id}, false, tokenizer, decode),
                   text_of(filled, sequence.places.size() == 1, tokenizer, decode)});
  }
  return all;
}

int run_fill_mask(const FillMaskOptions& options) {
  TextsRun run(options);
  if (!meets_requirement(run.session(), options)) return kCheckFailed;
  check_mask(run.tokenizer(), options.model);
  const std::size_t vocabulary = run.tokenizer().vocabulary_size();
  const text::Decoder decode(std::make_shared<const text::Tokenizer>(run.tokenizer()));
  const std::optional<std::int64_t> pad = text::pad_id_of(run.tokenizer(), options.model);
  std::vector<tasks::Sequence> sequences;
  std::vector<std::vector<std::vector<Candidate>>> found(run.texts().size());  // of each mask
  run.run(
      {true, vocabulary, true, fmt::format("one class per vocabulary token ({})", vocabulary)},
      [&](const InputText& text, int max_length) {
        return sequences.emplace_back(encode(text, run.tokenizer(), max_length));
      },
      [&](std::size_t index, std::span<const float> logits) {
        const tasks::Sequence& sequence = sequences[index];
        const std::size_t classes = logits.size() / sequence.length();
        for (const std::size_t place : sequence.places)
          found[index].push_back(candidates(sequence, place,
                                            logits.subspan(place * classes, classes), options.top_k,
                                            run.tokenizer(), decode, pad));
      });
  const bool several = found.size() > 1;
  std::vector<std::string> head = {">score", ">id", "token", "text"};
  if (several) head.insert(head.begin(), ">line");
  Table table(head);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < found.size(); ++i) {
    nlohmann::ordered_json masks = nlohmann::ordered_json::array();
    for (const std::vector<Candidate>& of_mask : found[i]) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const Candidate& each : of_mask) {
        std::vector<std::string> row = {fmt::format("{:.4f}", each.score),
                                        std::to_string(each.token), each.word, each.sequence};
        if (several) row.insert(row.begin(), std::to_string(run.texts()[i].line));
        table.add(std::move(row));
        list.push_back({{"score", each.score},
                        {"token", each.token},
                        {"token_str", each.word},
                        {"sequence", each.sequence}});
      }
      masks.push_back(std::move(list));
    }
    nlohmann::ordered_json of_text = json_of(run.texts()[i]);
    of_text["masks"] = std::move(masks);
    results.push_back(std::move(of_text));
  }
  if (options.prints_text()) print_text("{}", table.str());
  run.report(nlohmann::ordered_json::object(), std::move(results));
  return kOk;
}

}  // namespace

void add_fill_mask(CLI::App& program, Action& action) {
  const auto options = std::make_shared<FillMaskOptions>();
  CLI::App* command = add_texts_command(
      program, "fill-mask",
      "Predict the tokens that [MASK] hides in texts\n\n"
      "Texts are the lines of TEXTS or of standard input, or JSON lines {\"text\": \"..\"} with an "
      "id. Each holds the mask token of its tokenizer once or several times: mask_token in "
      "tokenizer_config.json, special_tokens_map.json or config.json, else [MASK] or <mask>.",
      "echo \"Paris is the [MASK] of France.\" | bertcl fill-mask model.onnx",
      "ONNX model with logits [batch, seq, vocabulary]", *options);
  positive(*command, "--top-k", options->top_k, "The best N tokens of each mask");
  command->callback([options, &action] { action = [options] { return run_fill_mask(*options); }; });
}

}  // namespace bertcl::tools
