// SPDX-License-Identifier: Apache-2.0
// Texts that a command reads from a file or from standard input.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace bertcl::tools {

/// A text, or two that are read together.
struct InputText {
  std::string id, text;  ///< `id` may be empty
  std::optional<std::string> second;
  std::string place;  ///< "texts.txt:2", for messages
};

/// Lines that are not blank, or JSON lines {"text": ".."} with text_pair and id; "-" is standard
/// input. Throws Error that names file and line, or where there is no text.
std::vector<InputText> read_input_texts(const std::string& path);

}  // namespace bertcl::tools
