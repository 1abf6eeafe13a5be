// SPDX-License-Identifier: Apache-2.0
// Tokens that the files beside a vocabulary add to it.
//
//   tokenizer_config.json: {"added_tokens_decoder": {"30522": {"content": "<e1>", "lstrip": false,
//                           "special": true, ..}, ..}, "mask_token": "[MASK]",
//                           "additional_special_tokens": ["<e1>"], ..}
//   added_tokens.json: {"<e1>": 30522, ..}
#include "text/added_token_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "text/base/companion_files.hpp"
#include "text/base/file.hpp"
#include "text/base/json_node.hpp"
#include "text/pipeline/added_tokens.hpp"
#include "text/token_names.hpp"
#include "text/tokenizer_files.hpp"

namespace bertcl::text {
namespace {

using Json = nlohmann::json;

/// "added_tokens" of a document, and the ids that its next ones have: from the number of tokens on,
/// whatever ids these have, as in Hugging Face's tokenizers.
class AddedList {
 public:
  explicit AddedList(Json& document)
      : added_(document["added_tokens"]),
        vocabulary_(document["model"]["vocab"]),
        next_(std::ssize(vocabulary_)) {
    for (const Json& token : added_) next_ = std::max(next_, token["id"].get<std::int64_t>() + 1);
  }

  /// The id that a token has, or will have if it is added now.
  std::int64_t id_of(const std::string& content) {
    if (const Json* found = find(content)) return found->at("id").get<std::int64_t>();
    return id_in_vocabulary(content).value_or(next_);
  }

  bool lists(const std::string& content) { return find(content) != nullptr; }
  bool knows(const std::string& content) { return lists(content) || id_in_vocabulary(content); }

  /// A token that is there gets these flags.
  void add(const AddedToken& token) {
    const std::int64_t id = id_of(token.content);
    const Json json = {{"content", token.content},        {"id", id},
                       {"lstrip", token.strip_left},      {"normalized", token.normalized},
                       {"rstrip", token.strip_right},     {"special", token.special},
                       {"single_word", token.single_word}};
    if (Json* found = find(token.content))
      *found = json;
    else
      added_.push_back(json);
    if (id == next_) ++next_;
  }

  void skip_id() { ++next_; }

 private:
  Json* find(const std::string& content) {
    const auto found =
        std::ranges::find_if(added_, [&](const Json& each) { return each["content"] == content; });
    return found == added_.end() ? nullptr : &*found;
  }

  std::optional<std::int64_t> id_in_vocabulary(const std::string& content) const {
    if (vocabulary_.is_array()) {
      const auto found = std::ranges::find_if(vocabulary_, [&](const Json& piece) {
        return piece[0].get_ref<const std::string&>() == content;
      });
      if (found == vocabulary_.end()) return std::nullopt;
      return found - vocabulary_.begin();
    }
    const auto found = vocabulary_.find(content);
    if (found == vocabulary_.end() || !found->is_number_integer()) return std::nullopt;
    return found->get<std::int64_t>();
  }

  Json& added_;
  const Json& vocabulary_;
  std::int64_t next_;
};

struct NamedToken {
  AddedToken token;
  bool has_flags = false;  ///< not the name alone
  bool is_extra = false;   ///< from a list; added if the vocabulary lacks it
};

/// In the order in which transformers adds them; a key of `first` hides that of `second`.
std::vector<NamedToken> named_tokens(const JsonNode& first, const JsonNode& second) {
  const auto find = [&](const char* key) {
    const auto found = first.find(key);
    return found ? found : second.find(key);
  };
  std::vector<NamedToken> all;
  const auto add = [&](const JsonNode& node, bool is_extra) {
    NamedToken named{.token = {}, .is_extra = is_extra};
    if (node.value().is_object()) {
      named.token = read_added_token(node);
      named.token.normalized = node.flag("normalized", false);
      named.has_flags = true;
    } else {
      named.token.content = node.string();
      named.token.normalized = false;
    }
    named.token.special = true;
    if (!named.token.content.empty()) all.push_back(std::move(named));
  };
  for (const char* key :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
    if (const auto node = find(key)) add(*node, false);
  for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
    const auto list = find(key);
    if (!list || list->value().empty()) continue;
    if (list->value().is_object())
      list->each_member([&](const std::string&, const JsonNode& node) { add(node, true); });
    else
      list->each([&](const JsonNode& node) { add(node, true); });
    break;  // transformers ignores the second one
  }
  return all;
}

std::int64_t id_of_key(const std::string& key, const JsonNode& node) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc{} || end != key.data() + key.size()) node.fail("\"{}\" is not an id", key);
  return id;
}

}  // namespace

bool may_add_tokens(const std::filesystem::path& path) {
  return std::ranges::any_of(
      std::array{"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"},
      [&](const char* name) { return is_present(companion_file(path, name)); });
}

bool add_tokens_beside(const std::filesystem::path& path, Json& document) {
  const Json before = document["added_tokens"];
  const Json config = object_beside(path, "tokenizer_config.json");
  const std::string config_file = companion_file(path, "tokenizer_config.json").string();
  const JsonNode settings(config, config_file);
  const bool has_decoder = settings.find("added_tokens_decoder").has_value();
  const Json map = has_decoder ? Json::object() : object_beside(path, "special_tokens_map.json");
  const std::string map_file = companion_file(path, "special_tokens_map.json").string();
  const std::vector<NamedToken> named = named_tokens(JsonNode(map, map_file), settings);
  std::set<std::string> special, listed;
  for (const NamedToken& each : named) special.insert(each.token.content);

  AddedList list(document);
  std::multimap<std::int64_t, std::pair<AddedToken, JsonNode>> by_id;
  const Json others = has_decoder ? Json::object() : object_beside(path, "added_tokens.json");
  const std::string others_file = companion_file(path, "added_tokens.json").string();
  if (has_decoder)
    settings.at("added_tokens_decoder").each_member([&](const auto& key, const JsonNode& node) {
      AddedToken token = read_added_token(node);
      token.special = token.special || special.contains(token.content);
      by_id.emplace(id_of_key(key, node), std::pair(std::move(token), node));
    });
  JsonNode(others, others_file).each_member([&](const std::string& content, const JsonNode& id) {
    const bool is_special = special.contains(content);
    by_id.emplace(
        id.integer(),
        std::pair(AddedToken{.content = content, .normalized = !is_special, .special = is_special},
                  id));
  });
  for (const auto& [id, entry] : by_id) {
    const auto& [token, node] = entry;
    if (const std::int64_t expected = list.id_of(token.content); id != expected)
      node.fail(
          "is token {}, but \"{}\" is token {} in transformers, which numbers added tokens "
          "from the end of the vocabulary on; {}",
          id, token.content, expected, kSaveAsJson);
    list.add(token);
    listed.insert(token.content);
  }
  for (const auto& [token, has_flags, is_extra] : named) {
    if (!listed.insert(token.content).second || (list.lists(token.content) && !has_flags)) continue;
    if (is_extra || list.knows(token.content))
      list.add(token);
    else
      list.skip_id();  // transformers adds it, too, but it is none of the model's
  }
  return document["added_tokens"] != before;
}

}  // namespace bertcl::text
