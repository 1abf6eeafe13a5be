// SPDX-License-Identifier: Apache-2.0
// Options of the commands that tokenize.
#include "tools/options/vocabulary_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "bertcl/error.hpp"
#include "tasks/companion_files.hpp"
#include "text/json_file.hpp"
#include "text/json_node.hpp"
#include "tools/options/file_options.hpp"

namespace bertcl::tools {

void add_vocabulary_options(CLI::App& command, VocabularyOptions& options) {
  input_file(command.add_option(
                 "--vocab", options.vocabulary,
                 "Tokenizer: vocab.txt (WordPiece), tokenizer.json, vocab.json with merges.txt,"
                 "\nor sentencepiece.bpe.model; by default the one beside the model"))
      ->type_name("FILE");
  // add_flag() would set an optional that no flag names.
  const auto flag = [&](const char* names, std::optional<bool>& value, const char* text) {
    command.add_flag_function(
        names, [&value](std::int64_t count) { value = count > 0; }, text);
  };
  flag("--lower-case,--no-lower-case{false},--cased{false}", options.lower_case,
       "Lower-case the text, or keep case (--no-lower-case, --cased); by default as "
       "in\ntokenizer_config.json beside the vocabulary, else tokenizer.json itself, else\nlower "
       "case");
  flag("--strip-accents,--no-strip-accents{false}", options.strip_accents,
       "Drop accents, or keep them; by default as in those files, else like case");
}

text::Tokenizer load_tokenizer(const VocabularyOptions& options,
                               const std::vector<std::filesystem::path>& models) {
  std::filesystem::path vocabulary = options.vocabulary;
  std::vector<std::string> tried;
  for (const std::filesystem::path& model : models) {
    if (!vocabulary.empty()) break;
    const std::filesystem::path candidate = tasks::companion_file(model, "vocab.txt");
    if (std::filesystem::exists(candidate)) vocabulary = candidate;
    tried.push_back(candidate.string());
  }
  // If there is no vocab.txt. The reader reports other kinds.
  for (const std::filesystem::path& model : models)
    for (const char* name :
         {"tokenizer.json", "vocab.json", "sentencepiece.bpe.model", "spiece.model"})
      if (const auto other = tasks::companion_file(model, name);
          vocabulary.empty() && std::filesystem::exists(other))
        vocabulary = other;
  if (vocabulary.empty()) {
    throw Error(fmt::format(
        "no vocabulary at {}, and no tokenizer.json; give the model's with --vocab FILE",
        fmt::join(tried, " or ")));
  }
  text::TokenizerOptions tokenizer;
  tokenizer.lower_case = options.lower_case;
  tokenizer.strip_accents = options.strip_accents;
  const std::filesystem::path config = vocabulary.parent_path() / "tokenizer_config.json";
  if (std::filesystem::exists(config)) {
    const std::string origin = config.string();
    const nlohmann::json json = text::read_json(config);
    const text::JsonNode settings(json, origin);
    const auto read = [&](std::optional<bool>& option, const char* key) {
      const auto found = settings.find(key);
      if (found && !option) option = found->boolean();
    };
    read(tokenizer.lower_case, "do_lower_case");
    read(tokenizer.strip_accents, "strip_accents");
    read(tokenizer.split_cjk, "tokenize_chinese_chars");
  }
  text::Tokenizer made = text::Tokenizer::from_file(vocabulary, tokenizer);
  if (!made.is_bert() && (options.lower_case || options.strip_accents))
    throw Error(fmt::format(
        "{}: --lower-case and --strip-accents are for BERT's WordPiece only; leave them out",
        vocabulary.string()));
  return made;
}

}  // namespace bertcl::tools
