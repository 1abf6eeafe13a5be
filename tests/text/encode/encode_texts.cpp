// SPDX-License-Identifier: Apache-2.0
// encode_texts TOKENIZER [REPEATS]: tokens of texts, for comparison with other programs. Numbers
// are 32-bit integers of the machine. Input: for each text its bytes, after their number. Output:
// the special tokens (six lists: before, after, before, between and after a pair; whether there are
// token types, and how many tokens between the texts are of the second), then for each text a list
// of ids, and of first and last-plus-one characters. A list comes after its length. With REPEATS:
// the ids alone, that many times, and instead of them the tokens per second.
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "text/base/unicode.hpp"
#include "text/tokenizer.hpp"

namespace {

using bertcl::text::Tokenizer;
using Numbers = std::vector<std::int32_t>;

std::vector<std::string> read_texts() {
  const std::string input(std::istreambuf_iterator<char>(std::cin), {});
  std::vector<std::string> texts;
  for (std::size_t at = 0; at + 4 <= input.size();) {
    std::uint32_t size = 0;
    input.copy(reinterpret_cast<char*>(&size), 4, at);
    texts.push_back(input.substr(at + 4, size));
    at += 4 + size;
  }
  return texts;
}

void write_list(const Numbers& numbers) {
  const auto size = static_cast<std::int32_t>(numbers.size());
  std::cout.write(reinterpret_cast<const char*>(&size), sizeof size);
  std::cout.write(reinterpret_cast<const char*>(numbers.data()),
                  static_cast<std::streamsize>(numbers.size() * sizeof(std::int32_t)));
}

/// Characters before each byte of a text, and before its end.
Numbers characters_before(const std::string& text) {
  Numbers before(text.size() + 1);
  std::int32_t count = 0;
  for (std::size_t position = 0; position < text.size(); ++count) {
    const std::size_t begin = position;
    bertcl::text::next_code_point(text, position);
    for (std::size_t byte = begin; byte < position; ++byte) before[byte] = count;
  }
  before.back() = count;
  return before;
}

void write_tokens(const Tokenizer& tokenizer, const std::string& text) {
  const bertcl::text::Encoding encoding = tokenizer.encode_with_spans(text);
  const Numbers before = characters_before(text);
  Numbers places;
  for (const auto& [begin, end] : encoding.spans) {
    places.push_back(before.at(begin));
    places.push_back(before.at(end));
  }
  write_list(encoding.ids);
  write_list(places);
}

}  // namespace

int main(int argc, char** argv) try {
  const Tokenizer tokenizer = Tokenizer::from_file(argv[1]).as_tokenizer_json();
  const std::vector<std::string> texts = read_texts();
  if (argc > 2) {
    const auto start = std::chrono::steady_clock::now();
    std::size_t tokens = 0;
    for (int repeat = 0; repeat < std::stoi(argv[2]); ++repeat)
      for (const std::string& text : texts) tokens += tokenizer.encode(text).size();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << static_cast<double>(tokens) / seconds.count() << '\n';
    return 0;
  }
  const bertcl::text::SpecialTokens& special = tokenizer.special();
  for (const auto* list : {&special.before, &special.after, &special.pair_before,
                           &special.pair_between, &special.pair_after})
    write_list(*list);
  write_list({special.token_types ? 1 : 0, static_cast<int>(special.between_second)});
  for (const std::string& text : texts) write_tokens(tokenizer, text);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
