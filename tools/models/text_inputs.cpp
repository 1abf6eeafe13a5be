// SPDX-License-Identifier: Apache-2.0
// Lines, and JSON lines.
#include "tools/models/text_inputs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::tools {

std::vector<InputText> read_input_texts(const std::string& path) {
  if (path == "-" && isatty(STDIN_FILENO) == 1)
    throw Error("no texts: name a file of texts, or give them on standard input");
  const text::DataFile file = text::read_data(path);
  const auto place = [&](std::size_t line) { return fmt::format("{}:{}", file.name, line); };
  std::vector<InputText> texts;
  if (file.form == text::Form::json_lines) {
    text::each_object(file, R"(each line is an object {"text": ".."})",
                      [&](const text::JsonNode& object, std::size_t number) {
                        const auto id = object.find("id"), pair = object.find("text_pair");
                        texts.push_back({id ? text::name_of(*id) : "", object.at("text").string(),
                                         pair ? std::optional(pair->string()) : std::nullopt,
                                         place(number), number});
                      });
  } else {
    text::each_text(file, "text", [&](std::string_view line, std::size_t number) {
      texts.push_back({"", std::string(line), std::nullopt, place(number), number});
    });
  }
  return texts;
}

void check_single(const InputText& text, const std::string& command) {
  if (text.second) fail("{}: has text_pair, but {} reads single texts", text.place, command);
}

}  // namespace bertcl::tools
