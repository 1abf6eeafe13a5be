// SPDX-License-Identifier: Apache-2.0
// Texts that a command reads from a file or from standard input.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tools {

/// A text, or two that are read together.
struct InputText {
  std::string id, text;  ///< `id` may be empty
  std::optional<std::string> second;
  std::string place;     ///< "texts.txt:2", for messages
  std::size_t line = 0;  ///< 2 then
};

/// Lines, blank ones too, or JSON lines {"text": ".."} with text_pair and id; "-" is standard
/// input. Throws Error that names file and line, where there is no text, or where standard input is
/// a terminal.
std::vector<InputText> read_input_texts(const std::string& path);

/// Throws Error naming the text and the command if it is a pair.
void check_single(const InputText& text, const std::string& command);

/// What `encode` returns. What the tokenizer cannot search is told with the place of the text.
template <class Encode>
auto naming_text(const InputText& text, const Encode& encode) {
  try {
    return encode();
  } catch (const text::SearchError& error) {
    throw Error(text.place + ": " + error.what());
  }
}

}  // namespace bertcl::tools
