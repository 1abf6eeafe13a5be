// SPDX-License-Identifier: Apache-2.0
// answer MODEL_FOLDER QUESTION TEXT: prints the words of the text that answer the question.
#include <algorithm>
#include <bertcl/bertcl.hpp>
#include <cctype>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kLongestAnswer = 30;  // tokens

struct Part {  // of the text, in bytes
  std::size_t begin = 0, end = 0;
};

/// The word or mark that each token of the text is of. WordPiece makes no token across a blank or a
/// mark, so the tokens of the parts between these are those of the text.
std::vector<Part> parts_of_tokens(const bertcl::Tokenizer& tokenizer, const std::string& text) {
  const auto is = [&](int (*kind)(int), std::size_t i) {
    return kind(static_cast<unsigned char>(text[i])) != 0;
  };
  std::vector<Part> parts;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = begin + 1;
    if (!is(std::ispunct, begin) && !is(std::isspace, begin))
      while (end < text.size() && !is(std::ispunct, end) && !is(std::isspace, end)) ++end;
    const std::string part = text.substr(begin, end - begin);
    parts.insert(parts.end(), tokenizer.encode(part).size(), {begin, end});
  }
  return parts;
}

std::string answer(const std::filesystem::path& folder, const std::string& question,
                   const std::string& text) {
  const auto tokenizer = bertcl::Tokenizer::load_beside(folder);  // WordPiece: see above
  const auto session = bertcl::Session::load(folder);
  const bertcl::Sequences pair = tokenizer.encode_pairs({{question, text}}, 384);
  const bertcl::Tensors logits = session.run(pair);
  if (!logits.contains("start_logits") || !logits.contains("end_logits"))
    throw bertcl::Error("the model gives no start_logits and end_logits");
  const auto start = logits.at("start_logits").values<float>();
  const auto end = logits.at("end_logits").values<float>();

  const std::size_t text_begin =
      std::ranges::find(pair.token_type_ids, 1) - pair.token_type_ids.begin();
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
  const std::vector<Part> parts = parts_of_tokens(tokenizer, text);
  const std::size_t begin = parts.at(first - text_begin).begin;
  return text.substr(begin, parts.at(last - text_begin).end - begin);
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
