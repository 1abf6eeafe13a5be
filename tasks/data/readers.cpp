// SPDX-License-Identifier: Apache-2.0
// Data files of lines: JSON lines, plain text.
#include "tasks/data/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "squad/dataset.hpp"
#include "support/comma_list.hpp"
#include "tasks/data/conll.hpp"
#include "tasks/data/read_tables.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::tasks {
namespace {

using text::Form;
using text::JsonNode;
using text::name_of;

constexpr const char* kTextForm = R"(each line is an object {"text": ".."})";
constexpr const char* kClassifiedForm =
    R"(each line is an object {"text": "..", "label": ".."}, with "text_pair" for two texts, )"
    R"(and "labels": ["..", ..] for several classes)";
constexpr const char* kScoredForm =
    R"(each line is an object {"text": "..", "text_pair": "..", "score": 3.5})";
constexpr const char* kTaggedForm =
    R"(each line is an object {"tokens": ["Oslo", ..], "tags": ["B-place", ..]})";

constexpr auto kFirstNames = {"text", "sentence", "sentence1"};

/// The member of one of these names, which gives `meaning`. Throws Error if there are two.
std::optional<JsonNode> find_any(const JsonNode& object, std::string_view meaning,
                                 std::initializer_list<const char*> names) {
  std::optional<JsonNode> only;
  std::string_view its_name;
  for (const std::string_view name : names) {
    const auto found = object.find(name);
    if (found && only)
      object.fail_naming(fmt::format("members '{}' and '{}' both give {}; drop or rename one",
                                     its_name, name, meaning));
    if (!found) continue;
    only.emplace(*found);
    its_name = name;
  }
  return only;
}

/// The text of an object, and the second one of a pair.
TextOrPair texts_of(const JsonNode& object) {
  const auto first = find_any(object, "the text", kFirstNames);
  const auto second = find_any(object, "the second text", {"text_pair", "sentence2"});
  std::optional<std::string> other;
  if (second) other = second->string();
  return {first ? first->string() : object.at("text").string(), other};
}

/// The keys of predictions: each object's id, or its position where it has none.
class ItemIds {
 public:
  ItemIds(const text::DataFile& file, IdRule rule) : file_(file), rule_(rule) {}

  /// Throws Error that names the lines of two objects with one id.
  std::string of(const JsonNode& object, std::size_t line) {
    const auto given = object.find("id");
    const std::string id = given ? name_of(*given) : std::to_string(lines_.size());
    const auto [place, is_new] = lines_.try_emplace(id, line);
    if (!is_new && rule_ == IdRule::unique)
      text::fail_at(file_, line,
                    fmt::format("id \"{}\" is already used in line {}; ids must be unique, and a "
                                "line without an id gets its index, from 0",
                                text::excerpt_of(id), place->second));
    return id;
  }

 private:
  const text::DataFile& file_;
  const IdRule rule_;
  std::map<std::string, std::size_t> lines_;
};

/// True if the first of JSON lines has a question, its context, and no text of its own.
bool asks_questions(std::string_view content) {
  // A damaged line is an error where all of them are read.
  const nlohmann::json first =
      nlohmann::json::parse(text::first_line(content).text, nullptr, /*allow_exceptions=*/false);
  if (!first.is_object()) return false;
  const JsonNode object(first);
  const auto has = [&](std::string_view name) { return object.find(name).has_value(); };
  return has("question") && has("context") && std::ranges::none_of(kFirstNames, has);
}

/// The contexts of SQuAD: of a file, or of JSON lines with questions. None for data of another
/// form.
std::optional<std::vector<std::string>> squad_contexts(const text::DataFile& file) {
  const bool is_squad =
      file.form == Form::json_lines ? asks_questions(file.content) : file.form == Form::squad;
  return is_squad ? std::optional(squad::parse_dataset(file).contexts) : std::nullopt;
}

/// Calls take(text, object, line): lines of text without the blank ones, of which `object` is null,
/// or the texts of JSON lines. Throws Error if there are none.
template <class Take>
void each_text(const text::DataFile& file, const std::string& hint, const Take& take) {
  bool any = false;
  if (file.form == Form::json_lines) {
    text::each_object(file, hint, [&](const JsonNode& object, std::size_t line) {
      any = true;
      take(texts_of(object), &object, line);
    });
  } else {
    text::each_line(file.content, [&](std::string_view line, std::size_t number) {
      if (text::is_blank(line)) return;
      any = true;
      take(TextOrPair{std::string(line), std::nullopt}, nullptr, number);
    });
  }
  if (!any) throw Error(file.name + ": contains no text");
}

}  // namespace

std::vector<std::string> split_labels(std::string_view text) {
  if (text::is_blank(text)) return {};
  std::vector<std::string> labels = comma_list(text);
  for (std::string& label : labels) label = std::string(text::trimmed(label));
  return labels;
}

std::vector<ClassifiedText> read_classified(const std::filesystem::path& path, IdRule rule) {
  if (holds_movie_reviews(path)) return read_movie_reviews(path);
  const text::DataFile file = text::read_data(path);
  std::vector<ClassifiedText> texts;
  if (file.form == Form::json_lines) {
    ItemIds ids(file, rule);
    text::each_object(file, kClassifiedForm, [&](const JsonNode& object, std::size_t number) {
      const auto [first, second] = texts_of(object);
      const auto several =
          find_any(object, "the label", {"labels", "label"}) ? object.find("labels") : std::nullopt;
      texts.push_back({ids.of(object, number),
                       first,
                       second,
                       several ? "" : name_of(object.at("label")),
                       {},
                       number});
      if (!several) return;
      texts.back().labels.emplace();
      several->each([&](const JsonNode& label) { texts.back().labels->push_back(name_of(label)); });
    });
  } else if (file.form == Form::commas) {
    read_classified_table(file, ',', texts);
  } else {
    read_classified_lines(file, texts);
  }
  if (texts.empty()) throw Error(file.name + ": contains no text");
  return texts;
}

std::vector<ScoredPair> read_scored_pairs(const std::filesystem::path& path, IdRule rule) {
  const text::DataFile file = text::read_data(path);
  std::vector<ScoredPair> pairs;
  if (file.form == Form::json_lines) {
    ItemIds ids(file, rule);
    text::each_object(file, kScoredForm, [&](const JsonNode& object, std::size_t number) {
      auto [first, second] = texts_of(object);
      if (!second) second = object.at("text_pair").string();
      // SICK has both: how related two texts are, and the class of the pair.
      auto score = object.find("score");
      if (!score) score = object.find("label");
      pairs.push_back({ids.of(object, number), first, *second,
                       score ? score->number() : object.at("score").number()});
    });
  } else {
    read_scored_table(file, pairs);
  }
  if (pairs.empty()) throw Error(file.name + ": contains no pair of texts");
  return pairs;
}

std::vector<TaggedSentence> read_tagged(const std::filesystem::path& path, IdRule rule) {
  const text::DataFile file = text::read_data(path);
  std::vector<TaggedSentence> sentences;
  if (file.form == Form::json_lines) {
    ItemIds ids(file, rule);
    text::each_object(file, kTaggedForm, [&](const JsonNode& object, std::size_t number) {
      TaggedSentence sentence;
      object.at("tokens").each(
          [&](const JsonNode& word) { sentence.words.push_back(word.string()); });
      const auto tags = find_any(object, "the tags", {"tags", "ner_tags"});
      (tags ? *tags : object.at("tags")).each([&](const JsonNode& tag) {
        sentence.tags.push_back(tag.string());
      });
      if (sentence.words.size() != sentence.tags.size())
        text::fail_at(file, number,
                      fmt::format("{} tokens and {} tags; expected one tag for each token",
                                  sentence.words.size(), sentence.tags.size()));
      sentence.id = ids.of(object, number);
      sentence.lines.assign(sentence.tags.size(), number);
      sentences.push_back(std::move(sentence));
    });
  } else {
    read_conll(file, sentences);
  }
  if (std::ranges::all_of(sentences,
                          [](const TaggedSentence& sentence) { return sentence.words.empty(); }))
    throw Error(file.name + ": contains no sentence");
  return sentences;
}

std::vector<std::string> read_texts(const std::filesystem::path& path) {
  std::vector<std::string> texts;
  each_text(text::read_data(path), kTextForm, [&](TextOrPair text, const JsonNode*, std::size_t) {
    texts.push_back(std::move(text.text));
  });
  return texts;
}

std::vector<NamedText> read_named_texts(const std::filesystem::path& path, IdRule rule) {
  const text::DataFile file = text::read_data(path, {Form::squad});
  if (auto contexts = squad_contexts(file)) return without_ids(std::move(*contexts));
  ItemIds ids(file, rule);
  std::vector<NamedText> texts;
  each_text(file, kTextForm, [&](TextOrPair text, const JsonNode* object, std::size_t line) {
    texts.push_back({std::move(text.text), object ? ids.of(*object, line) : ""});
  });
  return texts;
}

std::vector<NamedText> without_ids(std::vector<std::string> texts) {
  std::vector<NamedText> named;
  for (std::string& text : texts) named.push_back({std::move(text)});
  return named;
}

std::vector<TextOrPair> read_texts_or_pairs(const std::filesystem::path& path) {
  const text::DataFile file = text::read_data(path, {Form::squad});
  std::vector<TextOrPair> texts;
  const auto add = [&](TextOrPair text) {
    if (!text::is_blank(text.text) || (text.second && !text::is_blank(*text.second)))
      texts.push_back(std::move(text));
  };
  if (auto contexts = squad_contexts(file)) {
    for (std::string& context : *contexts) add({std::move(context), std::nullopt});
  } else {
    each_text(file, std::string(kTextForm) + R"(, with "text_pair" for two)",
              [&](TextOrPair text, const JsonNode*, std::size_t) { add(std::move(text)); });
  }
  if (texts.empty()) throw Error(file.name + ": contains no text");
  return texts;
}

}  // namespace bertcl::tasks
