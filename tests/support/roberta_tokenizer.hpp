// SPDX-License-Identifier: Apache-2.0
// A small tokenizer like RoBERTa's: byte-level BPE, <s> first </s></s> second </s>.
#pragma once
#include <fstream>

#include "tests/support/scratch_folder.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tests {

/// Words "the" and "cat" with and without a space before them; letters of these; ids from 0:
/// <s>, <pad>, </s>, <unk>, <mask>.
inline const text::Tokenizer& roberta_tokenizer() {
  static const text::Tokenizer tokenizer = [] {
    const ScratchFolder folder;
    std::ofstream(folder / "vocab.json")
        << R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "Ġ": 5, "t": 6, "h": 7,
               "e": 8, "c": 9, "a": 10, "th": 11, "the": 12, "Ġthe": 13, "ca": 14, "cat": 15,
               "Ġcat": 16, ".": 17})";
    std::ofstream(folder / "merges.txt") << "#version: 0.2\nt h\nth e\nĠ the\nc a\nca t\nĠ cat\n";
    return text::Tokenizer::from_file(folder / "vocab.json");
  }();
  return tokenizer;
}

}  // namespace bertcl::tests
