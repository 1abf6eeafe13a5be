// SPDX-License-Identifier: Apache-2.0
// Reading of SentencePiece models, and of vocab.json with merges.txt.
#include "text/tokenizer_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "sentencepiece.pb.h"
#include "support/fail.hpp"
#include "text/added_token_files.hpp"
#include "text/base/base64.hpp"
#include "text/base/companion_files.hpp"
#include "text/base/data_file.hpp"
#include "text/base/file.hpp"
#include "text/base/json_node.hpp"
#include "text/token_names.hpp"
#include "text/tokenizer_class.hpp"
#include "text/tokenizer_json.hpp"

namespace bertcl::text {
namespace {

using Json = nlohmann::json;

Json special_token(const std::string& content, std::int64_t id) {
  return {{"content", content},  {"id", id},        {"lstrip", content == "<mask>"},
          {"normalized", false}, {"rstrip", false}, {"single_word", false},
          {"special", true}};
}

/// Whether RoBERTa's tokenizer reads a text as if a space stood before it.
bool adds_prefix_space(const std::filesystem::path& path) {
  const Json json = object_beside(path, "tokenizer_config.json");
  const std::string origin = companion_file(path, "tokenizer_config.json").string();
  return JsonNode(json, origin).flag("add_prefix_space", false);
}

Json sequence_piece(const char* id) { return {{"Sequence", {{"id", id}, {"type_id", 0}}}}; }
Json special_piece(const char* id) { return {{"SpecialToken", {{"id", id}, {"type_id", 0}}}}; }

Json xlm_roberta_template() {
  const Json a = sequence_piece("A"), b = sequence_piece("B");
  const Json begin = special_piece("<s>"), end = special_piece("</s>");
  return {{"type", "TemplateProcessing"},
          {"single", {begin, a, end}},
          {"pair", {begin, a, end, end, b, end}},
          {"special_tokens",
           {{"<s>", {{"id", "<s>"}, {"ids", {0}}, {"tokens", {"<s>"}}}},
            {"</s>", {{"id", "</s>"}, {"ids", {2}}, {"tokens", {"</s>"}}}}}}};
}

/// As of files without one (decoders_of()).
Json decoder_of_pieces() {
  return {{"type", "Sequence"},
          {"decoders",
           {{{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "never"}},
            {{"type", "ByteFallback"}},
            {{"type", "Fuse"}},
            {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
}

Json normalizer_of(const sentencepiece::ModelProto& model) {
  Json normalizers = Json::array();
  const std::string& charsmap = model.normalizer_spec().precompiled_charsmap();
  if (!charsmap.empty())
    normalizers.push_back({{"type", "Precompiled"},
                           {"precompiled_charsmap", base64(std::as_bytes(std::span(charsmap)))}});
  normalizers.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
  normalizers.push_back(
      {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\u2581"}});
  return {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
}

}  // namespace

void check_word_pieces(const std::filesystem::path& path) {
  const std::string family = tokenizer_class_beside(path);
  // Those that transformers reads as BERT's.
  if (!may_be_one_of(family,
                     {"Bert", "ConvBert", "DPRContextEncoder", "DPRQuestionEncoder", "DistilBert",
                      "Electra", "LayoutLM", "Lxmert", "MobileBert", "RetriBert", "SqueezeBert"}))
    fail("{}: this is a vocabulary of {}, but vocab.txt is read as BERT's; {}", path.string(),
         family, kSaveAsJson);
}

bool is_sentence_piece(std::string_view content) {
  return content.starts_with("\n") && content.find('\0') != std::string_view::npos;
}

Json document_of_sentence_piece(const std::string& content, const std::filesystem::path& path) {
  const auto fail = [&](const std::string& what) {
    bertcl::fail("{}: {}; {}", path.string(), what, kSaveAsJson);
  };
  sentencepiece::ModelProto model;
  if (!model.ParseFromString(content)) fail("damaged SentencePiece model");
  if (model.trainer_spec().model_type() != sentencepiece::TrainerSpec::UNIGRAM)
    fail("a SentencePiece model that is not of type unigram");
  const std::string family = tokenizer_class_beside(path);
  const std::vector<std::string> first{"<unk>", "<s>", "</s>"};
  bool known = may_be_one_of(family, {"XLMRoberta", "XLMRobertaXL"});
  for (int i = 0; i < 3; ++i)
    known = known && model.pieces_size() > i && model.pieces(i).piece() == first[i];
  if (!known)
    fail(fmt::format("a SentencePiece model{}{} whose ids are not numbered like XLM-RoBERTa's",
                     family.empty() ? "" : " of ", family));

  Json vocab = Json::array();
  for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) vocab.push_back({token, 0.0});
  for (int i = 3; i < model.pieces_size(); ++i)
    vocab.push_back({model.pieces(i).piece(), static_cast<double>(model.pieces(i).score())});
  vocab.push_back({"<mask>", 0.0});
  Json added = Json::array();
  for (std::int64_t id = 0; id < 4; ++id) added.push_back(special_token(vocab[id][0], id));
  added.push_back(special_token("<mask>", std::ssize(vocab) - 1));
  Json document = {
      {"added_tokens", std::move(added)},
      {"normalizer", normalizer_of(model)},
      {"pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}}},
      {"post_processor", xlm_roberta_template()},
      {"decoder", decoder_of_pieces()},
      {"model",
       {{"type", "Unigram"},
        {"unk_id", 3},
        {"byte_fallback", model.trainer_spec().byte_fallback()},
        {"vocab", std::move(vocab)}}}};
  add_tokens_beside(path, document);
  return document;
}

Json document_of_merges(Json vocabulary, const std::filesystem::path& path) {
  const std::string family = tokenizer_class_beside(path);
  // Those that transformers reads as RoBERTa's.
  if (!may_be_one_of(family, {"Roberta", "Bart", "LED", "Longformer", "Luke", "Mvp"}))
    fail("{}: this is a vocabulary of {}, but vocab.json is read as RoBERTa's; {}", path.string(),
         family, kSaveAsJson);
  Json added = Json::array();
  std::vector<Json> ids;
  for (const char* token : {"<s>", "<pad>", "</s>", "<unk>", "<mask>"}) {
    const auto found = vocabulary.find(token);
    if (found == vocabulary.end() || !found->is_number_integer())
      fail("{}: the vocabulary lacks {}, so it is not RoBERTa's; {}", path.string(), token,
           kSaveAsJson);
    ids.push_back(*found);
    added.push_back(special_token(token, found->get<std::int64_t>()));
  }
  const std::filesystem::path file = path.parent_path() / "merges.txt";
  Json merges = Json::array();
  check_regular_file(file);
  each_line(read_file(file), [&](std::string_view line, std::size_t number) {
    if (line.starts_with("#version") || line.empty()) return;
    const std::size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos)
      fail("{}:{}: is \"{}\"; expected two tokens with a space between", file.string(), number,
           excerpt_of(line));
    merges.push_back({line.substr(0, space), line.substr(space + 1)});
  });
  const bool prefixed = adds_prefix_space(path);
  Json document = {
      {"added_tokens", std::move(added)},
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", prefixed}, {"trim_offsets", true}}},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}}},
      {"post_processor",
       {{"type", "RobertaProcessing"},
        {"cls", {"<s>", ids[0]}},
        {"sep", {"</s>", ids[2]}},
        {"trim_offsets", true},
        {"add_prefix_space", prefixed}}},
      {"model",
       {{"type", "BPE"}, {"vocab", std::move(vocabulary)}, {"merges", std::move(merges)}}}};
  add_tokens_beside(path, document);
  return document;
}

Json document_of_vocabulary(std::span<const std::string> tokens, const TokenizerOptions& options) {
  Json vocabulary = Json::object(), added = Json::array();
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary[tokens[id]] = id;
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    if (vocabulary.contains(token))
      added.push_back(special_token(token, vocabulary[token].get<std::int64_t>()));
  const Json cls = {"[CLS]", vocabulary.at("[CLS]")}, sep = {"[SEP]", vocabulary.at("[SEP]")};
  return {{"added_tokens", std::move(added)},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", options.split_cjk.value_or(true)},
            {"strip_accents", options.strip_accents ? Json(*options.strip_accents) : Json()},
            {"lowercase", options.lower_case.value_or(true)}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"post_processor", {{"type", "BertProcessing"}, {"cls", cls}, {"sep", sep}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", options.max_word_chars.value_or(100)},
            {"vocab", std::move(vocabulary)}}}};
}

}  // namespace bertcl::text
