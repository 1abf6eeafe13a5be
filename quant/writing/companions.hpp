// SPDX-License-Identifier: Apache-2.0
// The files beside a model that say how it is used: its vocabulary, its tokenizer, its classes.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "support/written_files.hpp"

namespace bertcl::quant {

/// The companions that lie beside this file, a model or a vocabulary.
std::vector<std::filesystem::path> companion_files(const std::filesystem::path& file);

/// Companions of one model that are to lie beside another one, too.
class Companions {
 public:
  /// Those of `model` (text::companion_file()): config.json, and the files of
  /// sentence-transformers and those of its tokenizer; with `vocabulary` (not empty) that file, as
  /// vocab.txt or tokenizer.json, and the files of the tokenizer beside it. Throws Error that names
  /// a companion beside `output` that differs, or that the model does not have: they are those of
  /// another model. Files that differ are let pass by `replace`.
  Companions(const std::filesystem::path& model, const std::filesystem::path& vocabulary,
             const std::filesystem::path& output, bool replace);

  /// Adds copies of what is not there yet to `written`; gives their names.
  std::vector<std::string> copy(WrittenFiles& written) const;

 private:
  struct Companion {
    std::string name;  // below the folder
    std::filesystem::path from, to;
  };
  std::vector<Companion> missing_;  // or to be replaced
};

}  // namespace bertcl::quant
