// SPDX-License-Identifier: Apache-2.0
// Every question and context of SQuAD v1.1 dev against recorded tokens of other tokenizers.
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/files.hpp"
#include "tests/support/tokens_of.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::text {
namespace {

using nlohmann::json;

const char* const questions_file = "data/golden/hfswift_question_tokens.json";
const char* const basic_file = "data/golden/hfswift_basic_tokenized_questions.json";
const char* const ids_file = "data/golden/hfswift_tokenized_questions.json";
const char* const hashes_file = "data/golden/dev11_context_wordpiece_hashes.json";
const char* const dev_file = "data/squad/dev-v1.1.json";

json read(const std::string& relative) {
  std::ifstream file(tests::shared_file(relative));
  return json::parse(file);
}

Tokenizer tokenizer() {
  return Tokenizer::from_file(tests::source_file("models/minilm-l6-squad/vocab.txt"));
}

std::vector<std::string> contexts() {
  std::vector<std::string> result;
  const json dev = read(dev_file);
  for (const json& article : dev["data"]) {
    for (const json& paragraph : article["paragraphs"]) result.push_back(paragraph["context"]);
  }
  return result;
}

/// First 16 hexadecimal digits of SHA-256 over the ids joined by commas.
std::string hash(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) {
    if (!text.empty()) text += ',';
    text += std::to_string(id);
  }
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::string result;
  for (int i = 0; i < 8; ++i) {
    result += "0123456789abcdef"[digest[i] >> 4];
    result += "0123456789abcdef"[digest[i] & 15];
  }
  return result;
}

TEST(GoldenTokens, AllQuestionsAreEqual) {
  BERTCL_NEEDS(questions_file);
  BERTCL_NEEDS(basic_file);
  BERTCL_NEEDS(ids_file);
  const json questions = read(questions_file);
  const json basic = read(basic_file);
  const json ids = read(ids_file);
  ASSERT_EQ(questions.size(), 10570u);
  ASSERT_EQ(basic.size(), questions.size());
  ASSERT_EQ(ids.size(), questions.size());
  const Tokenizer pieces = tokenizer();
  int differences = 0;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const std::string text = questions[i]["original"];
    const json words = pieces.basic().tokenize(text);
    const bool equal = words == questions[i]["basic"] && words == basic[i] &&
                       json(tokens_of(pieces, text)) == questions[i]["wordpiece"] &&
                       json(pieces.encode(text)) == ids[i];
    if (!equal && ++differences <= 5) ADD_FAILURE() << "question " << i << ": " << text;
  }
  EXPECT_EQ(differences, 0);
}

TEST(GoldenTokens, AllContextsHaveTheRecordedHash) {
  BERTCL_NEEDS(hashes_file);
  BERTCL_NEEDS(dev_file);
  const json hashes = read(hashes_file);
  const std::vector<std::string> texts = contexts();
  ASSERT_EQ(hashes.size(), 2067u);
  ASSERT_EQ(texts.size(), hashes.size());
  const Tokenizer pieces = tokenizer();
  std::size_t total = 0;
  int differences = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::vector<std::int32_t> ids = pieces.encode(texts[i]);
    total += ids.size();
    const bool equal = ids.size() == hashes[i][0] && hash(ids) == hashes[i][1].get<std::string>();
    if (!equal && ++differences <= 5) {
      ADD_FAILURE() << "context " << i << ": " << ids.size() << " pieces, expected "
                    << hashes[i][0];
    }
  }
  EXPECT_EQ(differences, 0);
  EXPECT_EQ(total, 329916u);
}

TEST(GoldenTokens, ThreadsShareOneTokenizer) {
  BERTCL_NEEDS(dev_file);
  const std::vector<std::string> texts = contexts();
  ASSERT_EQ(texts.size(), 2067u);
  const Tokenizer pieces = tokenizer();
  std::vector<std::vector<std::int32_t>> expected;
  for (const std::string& text : texts) expected.push_back(pieces.encode(text));
  std::atomic<int> differences = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (pieces.encode(texts[i]) != expected[i]) ++differences;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(differences, 0);
}

}  // namespace
}  // namespace bertcl::text
