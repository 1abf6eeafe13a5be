// SPDX-License-Identifier: Apache-2.0
// Reading of post-processors.
#include "text/pipeline/post_processor.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace bertcl::text {
namespace {

using Ids = std::vector<std::int32_t>;

std::int32_t id_at(const JsonNode& node) {
  const std::int64_t id = node.integer();
  if (id < 0 || id > std::numeric_limits<std::int32_t>::max())
    node.fail("is {}; expected the id of a token", id);
  return static_cast<std::int32_t>(id);
}

/// Of a member ["[SEP]", 102].
std::int32_t id_of(const JsonNode& node, const char* key) { return id_at(node.at(key).element(1)); }

void trim(const JsonNode& node, PostProcessor& processor) {
  if (node.flag("trim_offsets", true))
    processor.trims.push_back(node.flag("add_prefix_space", true));
}

/// A template, taken apart at its texts.
struct Layout {
  std::vector<Ids> around{1};                  // before the first text, after it, ..
  std::string texts;                           // "A", "AB"
  std::vector<std::int64_t> text_token_types;  // of each text
  std::vector<std::int64_t> token_types;       // of the special tokens
  std::vector<std::size_t> places;             // after how many texts each of them stands
};

Layout read_layout(const JsonNode& node, const JsonNode& special) {
  Layout layout;
  node.each([&](const JsonNode& piece) {
    if (const auto text = piece.find("Sequence")) {
      const JsonNode id = text->at("id");
      if (id.string() != "A" && id.string() != "B")
        id.fail("is \"{}\"; expected \"A\" or \"B\"", id.string());
      layout.texts += id.string();
      layout.text_token_types.push_back(text->at("type_id").integer());
      layout.around.emplace_back();
      return;
    }
    const JsonNode token = piece.at("SpecialToken");
    const std::int64_t token_type = token.at("type_id").integer();
    special.at(token.at("id").string()).at("ids").each([&](const JsonNode& id) {
      layout.around.back().push_back(id_at(id));
      layout.token_types.push_back(token_type);
      layout.places.push_back(layout.texts.size());
    });
  });
  return layout;
}

void read_template(const JsonNode& node, SpecialTokens& tokens) {
  const JsonNode special = node.at("special_tokens");
  const JsonNode single = node.at("single"), pair = node.at("pair");
  const Layout one = read_layout(single, special);
  if (one.texts != "A") single.fail("is not one text; expected special tokens around \"A\"");
  const Layout two = read_layout(pair, special);
  if (two.texts != "AB") pair.fail("must be the first text followed by the second");
  const auto all_are = [](const std::vector<std::int64_t>& token_types, std::int64_t value) {
    for (const std::int64_t token_type : token_types)
      if (token_type != value) return false;
    return true;
  };
  if (!all_are(one.token_types, 0) || !all_are(one.text_token_types, 0))
    single.fail("has a token type (type_id) other than 0, which a single text cannot have");
  tokens.before = one.around[0];
  tokens.after = one.around[1];
  tokens.pair_before = two.around[0];
  tokens.pair_between = two.around[1];
  tokens.pair_after = two.around[2];
  tokens.token_types = !all_are(two.text_token_types, 0) || !all_are(two.token_types, 0);
  if (!tokens.token_types) return;
  bool ascends = two.text_token_types == std::vector<std::int64_t>{0, 1};
  for (std::size_t i = 0; i < two.token_types.size(); ++i) {
    const std::int64_t token_type = two.token_types[i];
    const bool between = two.places[i] == 1;
    if (between && token_type == 1) ++tokens.between_second;
    ascends =
        ascends && (between ? token_type == 1 || (token_type == 0 && tokens.between_second == 0)
                            : token_type == (two.places[i] == 2 ? 1 : 0));
  }
  if (!ascends)
    pair.fail(
        "has unsupported token types (type_id); expected 0, or 0 and then 1 from the second text "
        "or a token before it on");
}

/// `BertProcessing` and `RobertaProcessing` name their tokens [CLS] and [SEP].
void read_named(const JsonNode& node, bool roberta, SpecialTokens& tokens) {
  const std::int32_t begin = id_of(node, "cls"), end = id_of(node, "sep");
  tokens.before = tokens.pair_before = {begin};
  tokens.after = tokens.pair_after = {end};
  tokens.pair_between = roberta ? Ids{end, end} : Ids{end};
  tokens.token_types = !roberta;
}

void add_processor(const JsonNode& node, PostProcessor& processor, bool& framed) {
  const std::string& type = node.at("type").string();
  if (type == "Sequence") {
    node.at("processors").each([&](const JsonNode& each) {
      add_processor(each, processor, framed);
    });
    return;
  }
  if (framed)
    node.fail("has type '{}' after one that adds special tokens; it must be the last", type);
  if (type == "ByteLevel") return trim(node, processor);
  framed = true;
  if (type == "TemplateProcessing") {
    read_template(node, processor.special);
  } else if (type == "BertProcessing") {
    read_named(node, false, processor.special);
  } else if (type == "RobertaProcessing") {
    trim(node, processor);
    read_named(node, true, processor.special);
  } else {
    node.fail(
        "has unsupported type '{}' (supported: BertProcessing, ByteLevel, RobertaProcessing, "
        "Sequence, TemplateProcessing)",
        type);
  }
}

}  // namespace

PostProcessor read_post_processor(const JsonNode& node) {
  PostProcessor processor;
  bool framed = false;
  add_processor(node, processor, framed);
  return processor;
}

}  // namespace bertcl::text
