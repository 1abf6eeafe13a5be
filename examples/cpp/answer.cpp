// SPDX-License-Identifier: Apache-2.0
// answer MODEL_FOLDER QUESTION TEXT: prints the words of the text that answer the question.
#include <bertcl/bertcl.hpp>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>

namespace {

constexpr std::size_t kLongestAnswer = 30;  // tokens

std::string join(const bertcl::Tokenizer& tokenizer, std::span<const std::int64_t> ids) {
  std::string text;
  for (const std::int64_t id : ids) {
    const std::string token = tokenizer.token(id);
    if (token.starts_with("##"))
      text += token.substr(2);
    else
      text += (text.empty() ? "" : " ") + token;
  }
  return text;
}

std::string answer(const std::filesystem::path& folder, const std::string& question,
                   const std::string& text) {
  const auto tokenizer = bertcl::Tokenizer::load_beside(folder);  // WordPiece, for join()
  const auto session = bertcl::Session::load(folder);
  const bertcl::Sequences pair = tokenizer.encode_pairs({{question, text}}, 384);
  const bertcl::Tensors logits = session.run(pair);
  if (!logits.contains("start_logits") || !logits.contains("end_logits"))
    throw bertcl::Error("the model gives no start_logits and end_logits");
  const auto start = logits.at("start_logits").values<float>();
  const auto end = logits.at("end_logits").values<float>();

  std::size_t first = 0, last = 0;  // the best span inside the text
  float best = -1e30f;
  for (std::size_t s = 0; s < start.size(); ++s)
    for (std::size_t e = s; e + 1 < end.size() && e < s + kLongestAnswer; ++e)
      if (pair.token_type_ids[s] == 1 && start[s] + end[e] > best) {
        best = start[s] + end[e];
        first = s;
        last = e;
      }
  if (first == 0)  // no token is of the second segment, as with RoBERTa
    throw bertcl::Error("the tokenizer tells question and text apart by no segments");
  return join(tokenizer, std::span(pair.ids).subspan(first, last + 1 - first));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::cerr << "usage: answer MODEL_FOLDER QUESTION TEXT\n";
    return 2;
  }
  try {
    std::cout << answer(arguments[1], arguments[2], arguments[3]) << "\n";
  } catch (const std::exception& error) {  // bertcl::Error, or of the C++ library
    std::cerr << error.what() << "\n";
    return 1;
  }
}
