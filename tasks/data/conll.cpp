// SPDX-License-Identifier: Apache-2.0
// CoNLL: words with their tags.
#include "tasks/data/conll.hpp"

#include <fmt/format.h>

#include <string_view>

#include "text/base/file.hpp"

namespace bertcl::tasks {

void read_conll(const text::DataFile& file, std::vector<TaggedSentence>& sentences) {
  bool open = false;
  text::each_line(file.content, [&](std::string_view line, std::size_t number) {
    line = text::trimmed(line);
    // The development file of WNUT17 ends in a byte order mark.
    if (line.empty() || line == text::kByteOrderMark || line.starts_with("-DOCSTART-")) {
      open = false;
      return;
    }
    const std::size_t word_end = line.find_first_of(" \t");
    const std::string_view tag = line.substr(line.find_last_of(" \t") + 1);
    const bool is_tag = tag == "O" || ((tag.size() == 1 || (tag.size() > 2 && tag[1] == '-')) &&
                                       std::string_view("BIES").find(tag[0]) != tag.npos);
    if (word_end == std::string_view::npos || !is_tag)
      text::fail_at(
          file, number,
          fmt::format("'{}': expected a word, a tab, and a tag such as O, B-person or I-person",
                      text::excerpt_of(line)));
    if (!open) sentences.emplace_back();
    open = true;
    sentences.back().words.emplace_back(line.substr(0, word_end));
    sentences.back().tags.emplace_back(tag);
    sentences.back().lines.push_back(number);
  });
}

}  // namespace bertcl::tasks
