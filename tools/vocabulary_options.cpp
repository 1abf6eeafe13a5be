// SPDX-License-Identifier: Apache-2.0
// Options of the commands that tokenize.
#include "tools/vocabulary_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "bertcl/error.hpp"
#include "text/json_file.hpp"
#include "tools/file_options.hpp"

namespace bertcl::tools {
namespace {

/// A setting of a tokenizer_config.json; none where it is absent or null.
std::optional<bool> setting(const nlohmann::json& config, const char* key,
                            const std::string& origin) {
  if (!config.is_object()) {
    throw Error(fmt::format("{}: is of type {}, expected an object", origin, config.type_name()));
  }
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (!found->is_boolean()) {
    throw Error(fmt::format("{}: {} is of type {}, expected true or false", origin, key,
                            found->type_name()));
  }
  return found->get<bool>();
}

}  // namespace

void add_vocabulary_options(CLI::App& command, VocabularyOptions& options) {
  input_file(command.add_option("--vocab", options.vocabulary,
                                "WordPiece vocabulary; by default vocab.txt beside the model"))
      ->type_name("FILE");
  // add_flag() would set an optional that no flag names.
  const auto flag = [&](const char* names, std::optional<bool>& value, const char* text) {
    command.add_flag_function(
        names, [&value](std::int64_t count) { value = count > 0; }, text);
  };
  flag("--lower-case,--no-lower-case{false},--cased{false}", options.lower_case,
       "Lower-case the text, or keep case (--no-lower-case, --cased); by default as\n"
       "tokenizer_config.json beside the vocabulary says, else lower case");
  flag("--strip-accents,--no-strip-accents{false}", options.strip_accents,
       "Drop accents, or keep them; by default as that file says, else as case is");
}

text::WordPieceTokenizer load_tokenizer(const VocabularyOptions& options,
                                        const std::vector<std::filesystem::path>& models) {
  std::filesystem::path vocabulary = options.vocabulary;
  std::vector<std::string> tried;
  for (const std::filesystem::path& model : models) {
    if (!vocabulary.empty()) break;
    const std::filesystem::path candidate = model.parent_path() / "vocab.txt";
    if (std::filesystem::exists(candidate)) vocabulary = candidate;
    tried.push_back(candidate.string());
  }
  // Of another kind: the reader says what it is.
  for (const std::filesystem::path& model : models)
    for (const char* name : {"sentencepiece.bpe.model", "spiece.model", "tokenizer.json"})
      if (const auto other = model.parent_path() / name;
          vocabulary.empty() && std::filesystem::exists(other))
        vocabulary = other;
  if (vocabulary.empty()) {
    throw Error(fmt::format("no vocabulary at {}; name that of the model by --vocab FILE",
                            fmt::join(tried, " or ")));
  }
  std::optional<bool> lower_case = options.lower_case, strip_accents = options.strip_accents;
  const std::filesystem::path config = vocabulary.parent_path() / "tokenizer_config.json";
  if (std::filesystem::exists(config)) {
    const nlohmann::json json = text::read_json(config);
    if (!lower_case) lower_case = setting(json, "do_lower_case", config.string());
    if (!strip_accents) strip_accents = setting(json, "strip_accents", config.string());
  }
  text::TokenizerOptions tokenizer;
  tokenizer.lower_case = lower_case.value_or(true);
  tokenizer.strip_accents = strip_accents;
  return text::WordPieceTokenizer::from_file(vocabulary, tokenizer);
}

}  // namespace bertcl::tools
