// SPDX-License-Identifier: Apache-2.0
// bertcl tag: names and other entities in texts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/option_checks.hpp"
#include "tasks/entities.hpp"
#include "tasks/head_output.hpp"
#include "tasks/scores/class_scores.hpp"
#include "text/base/data_file.hpp"
#include "text/base/unicode.hpp"
#include "tools/models/texts_run.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/task_options.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

const Choices<tasks::Aggregation> kAggregations = {{"none", tasks::Aggregation::none},
                                                   {"simple", tasks::Aggregation::simple},
                                                   {"first", tasks::Aggregation::first},
                                                   {"average", tasks::Aggregation::average},
                                                   {"max", tasks::Aggregation::max}};

struct TagOptions : TextsOptions {
  TaskOptions task;  // its labels
  std::string aggregation = "simple";
};

/// As much of a text as fits, with where its tokens are.
std::pair<tasks::Sequence, text::Encoding> encode(const std::string& text,
                                                  const text::Tokenizer& tokenizer,
                                                  int max_length) {
  text::Encoding encoding = tokenizer.encode_with_spans(text);
  tasks::Sequence sequence = tasks::encode_pieces(encoding.ids, tokenizer, max_length);
  const auto cut = static_cast<std::ptrdiff_t>(sequence.cut);
  const auto drop = [&](auto& values) {
    const auto first = tokenizer.truncates_left() ? values.begin() : values.end() - cut;
    values.erase(first, first + cut);
  };
  drop(encoding.ids);
  drop(encoding.spans);
  drop(encoding.words);
  return {std::move(sequence), std::move(encoding)};
}

/// Probabilities [tokens, labels] of the tokens that stand for text.
std::vector<float> probabilities(std::span<const float> logits, std::size_t before,
                                 std::size_t tokens, std::size_t labels) {
  std::vector<float> all;
  for (std::size_t i = 0; i < tokens; ++i) {
    const auto scores = tasks::class_scores(logits.subspan((before + i) * labels, labels),
                                            tasks::Activation::softmax);
    all.insert(all.end(), scores.begin(), scores.end());
  }
  return all;
}

struct FoundEntity {
  std::string label, word;
  float score = 0;
  std::size_t start = 0, end = 0;  // code points
  std::size_t index = 0;           // of its first token, special ones counted
};

std::vector<FoundEntity> found_in(const std::string& text,
                                  const std::vector<tasks::TextEntity>& entities,
                                  std::size_t specials_before) {
  std::vector<FoundEntity> found;
  for (const tasks::TextEntity& entity : entities) {
    const std::size_t start = text::count_code_points(text.substr(0, entity.span.begin));
    std::string word = text.substr(entity.span.begin, entity.span.end - entity.span.begin);
    const std::size_t end = start + text::count_code_points(word);
    found.push_back(
        {entity.label, std::move(word), entity.score, start, end, specials_before + entity.token});
  }
  return found;
}

void print_entities(const std::string& text, const std::vector<FoundEntity>& entities, bool first,
                    bool several) {
  if (several) print_text("{}{}\n", first ? "" : "\n", text::excerpt_of(text));
  if (entities.empty()) return print_text("no entities\n");
  Table table({">score", "label", ">start", ">end", "word"});
  for (const FoundEntity& entity : entities)
    table.add({fmt::format("{:.4f}", entity.score), entity.label, std::to_string(entity.start),
               std::to_string(entity.end), entity.word});
  print_text("{}", table.str());
}

int run_tag(const TagOptions& options) {
  check_one_reads_input(options, options.task.labels);
  TextsRun run(options);
  if (!meets_requirement(run.session(), options)) return kCheckFailed;
  const std::vector<std::string> labels = find_labels(options.task, {options.model});
  naming_model(options.model, [&] {
    // A model without tags cannot be helped by labels.
    if (labels.empty())
      tasks::find_output(run.session().outputs(), {true, 1, true, "a number for each tag"});
    tasks::check_tags_are_known(labels);
  });
  const tasks::Aggregation aggregation = chosen(kAggregations, options.aggregation);
  const std::size_t before = run.tokenizer().special().before.size();
  std::vector<text::Encoding> encodings;
  std::vector<std::vector<FoundEntity>> found(run.texts().size());
  run.run(
      {true, labels.size(), false,
       fmt::format("{} classes: {}", labels.size(), fmt::join(labels, ", "))},
      [&](const InputText& text, int max_length) {
        check_single(text, "tag");
        auto [sequence, encoding] = encode(text.text, run.tokenizer(), max_length);
        encodings.push_back(std::move(encoding));
        return std::move(sequence);
      },
      [&](std::size_t index, std::span<const float> logits) {
        const text::Encoding& encoding = encodings[index];
        const std::string& text = run.texts()[index].text;
        const auto scores = probabilities(logits, before, encoding.ids.size(), labels.size());
        const auto entities =
            tasks::find_entities(text, encoding, scores, run.tokenizer(), labels, aggregation);
        found[index] = found_in(text, entities, before);
      });
  const char* key = aggregation == tasks::Aggregation::none ? "entity" : "entity_group";
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const InputText& text = run.texts()[i];
    nlohmann::ordered_json of_text = json_of(text);
    of_text["entities"] = nlohmann::ordered_json::array();
    for (const FoundEntity& entity : found[i]) {
      nlohmann::ordered_json one = {{key, entity.label}, {"score", entity.score}};
      if (aggregation == tasks::Aggregation::none) one["index"] = entity.index;
      one.update({{"word", entity.word}, {"start", entity.start}, {"end", entity.end}});
      of_text["entities"].push_back(std::move(one));
    }
    results.push_back(std::move(of_text));
    if (options.prints_text()) print_entities(text.text, found[i], i == 0, found.size() > 1);
  }
  run.report({{"aggregation", options.aggregation}}, std::move(results));
  return kOk;
}

}  // namespace

void add_tag(CLI::App& program, Action& action) {
  const auto options = std::make_shared<TagOptions>();
  CLI::App* command = add_texts_command(
      program, "tag",
      "Find names and other entities in texts\n\n"
      "Texts are the lines of TEXTS or of standard input, or JSON lines {\"text\": \"..\"} with an "
      "id. Tokens get the labels of the model; adjacent ones of the same type are merged, as in "
      "Hugging Face's pipelines: simple goes by their B- and I- prefixes alone; first, average and "
      "max label whole words first, by the first token, by the mean of the scores, by the token "
      "with the highest score; none lists tokens. start and end count characters.",
      "bertcl tag model.onnx texts.txt --aggregation first",
      "ONNX model with logits [batch, seq, labels]", *options);
  one_of(command->add_option("--aggregation", options->aggregation,
                             "How tokens become entities, as above"),
         names_of(kAggregations));
  add_labels_option(*command, options->task);
  command->callback([options, &action] { action = [options] { return run_tag(*options); }; });
}

}  // namespace bertcl::tools
