// SPDX-License-Identifier: Apache-2.0
// Questions, contexts and reference answers of a SQuAD file (v1.1 or v2.0).
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "text/base/data_file.hpp"

namespace bertcl::squad {

struct Question {
  std::string id;
  std::string text;
  std::vector<std::string> answers;
  bool is_impossible = false;
  std::size_t context = 0;  ///< index into Dataset::contexts
};

struct Dataset {
  bool version_2 = false;  ///< the file has an `is_impossible` key
  std::vector<std::string> contexts;
  std::vector<Question> questions;  ///< in the order of the file

  const std::string& context_of(const Question& question) const {
    return contexts[question.context];
  }
};

/// Reads a SQuAD file, or JSON lines with `question`, `context` and `answers` ({"text": [..]}), and
/// `id` where there is one; "-" is standard input. Throws Error that names the file and, for broken
/// JSON, line, column and byte; for a missing key or a wrong type the place in it, e.g.
/// data[3].paragraphs[0].qas[2].id.
Dataset load_dataset(const std::filesystem::path& path);

/// The same of a file that has been read.
Dataset parse_dataset(const text::DataFile& file);

}  // namespace bertcl::squad
