// SPDX-License-Identifier: Apache-2.0
// Options of the commands that tokenize.
#include "tools/options/vocabulary_options.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <system_error>

#include "bertcl/error.hpp"
#include "onnx/read_model.hpp"
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "text/model_tokenizer.hpp"
#include "tools/options/file_options.hpp"

namespace bertcl::tools {

void add_vocabulary_options(CLI::App& command, VocabularyOptions& options) {
  input_file(command.add_option(
      "--vocab", options.vocabulary,
      "Tokenizer: tokenizer.json, vocab.txt (WordPiece), vocab.json with merges.txt, or "
      "sentencepiece.bpe.model; by default the one beside the model"));
  const auto set = [](std::optional<bool>& value) { return [&value](bool yes) { value = yes; }; };
  add_switch(
      command, "--lower-case,--no-lower-case{false},--cased{false}", set(options.lower_case),
      "Lower-case the text, or keep case (--no-lower-case, --cased); by default as in "
      "tokenizer_config.json beside the vocabulary, else tokenizer.json itself, else lower case");
  add_switch(command, "--strip-accents,--no-strip-accents{false}", set(options.strip_accents),
             "Drop accents, or keep them; by default as in those files, else like case");
}

CLI::Option* add_max_length_option(CLI::App& command, std::optional<int>& max_length,
                                   const std::string& what) {
  return positive(
      command, "--max-seq-length", max_length,
      "Maximum tokens of " + what +
          ", special tokens included; by default as many as the model and its files allow, or 512");
}

namespace {

/// Where a model is damaged, that is told before what it lacks beside it.
std::filesystem::path find_vocabulary(const std::vector<std::filesystem::path>& models) {
  try {
    return text::find_vocabulary(models, "give the model's with --vocab FILE");
  } catch (const Error&) {
    for (const std::filesystem::path& model : models) onnx_io::external_files(model);
    throw;
  }
}

}  // namespace

text::Tokenizer load_squad_tokenizer(const VocabularyOptions& options,
                                     const std::vector<std::filesystem::path>& models) {
  for (const std::filesystem::path& model : models) {  // before what it lacks beside it
    std::error_code error;
    if (!std::filesystem::exists(model, error))
      throw Error(model.string() + ": " + (error ? error.message() : "no such file"));
  }
  std::filesystem::path vocabulary = options.vocabulary;
  if (vocabulary.empty()) vocabulary = find_vocabulary(models);
  text::TokenizerOptions tokenizer;
  tokenizer.lower_case = options.lower_case;
  tokenizer.strip_accents = options.strip_accents;
  text::Tokenizer made = text::load_with_config(vocabulary, tokenizer);
  if (!made.is_bert() && (options.lower_case || options.strip_accents))
    fail("{}: --lower-case and --strip-accents are for BERT's WordPiece only; leave them out",
         vocabulary.string());
  return made;
}

text::Tokenizer load_tokenizer(const VocabularyOptions& options,
                               const std::vector<std::filesystem::path>& models) {
  return load_squad_tokenizer(options, models).as_tokenizer_json();
}

}  // namespace bertcl::tools
