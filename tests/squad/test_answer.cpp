// SPDX-License-Identifier: Apache-2.0
// One question to one text, with a model that looks for two words.
#include "squad/answer.hpp"

#include "tests/squad/support.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/roberta_tokenizer.hpp"

namespace bertcl::squad {
namespace {

/// Points at the words "the cat": start on the first "the" of the document, end on "cat".
std::vector<float> cat_model(const Batch& batch) {
  std::vector<float> logits;
  for (std::size_t i = 0; i < batch.tokens(); ++i) {
    const bool in_document = batch.token_type_ids[i] == 1;
    const std::string& token = letter_tokenizer().token(static_cast<int>(batch.ids[i]));
    logits.push_back(in_document && token == "the" ? 6.0F : -4.0F);
    logits.push_back(in_document && token == "cat" ? 5.0F : -4.0F);
  }
  return logits;
}

TEST(Answer, IsFoundWithItsPlaceInTheText) {
  const std::string context = "Žž – x.\n\nOn  the  CAT, a mat.";
  const FoundAnswer found = answer_question("Who sat?", context, letter_tokenizer(), {}, cat_model);
  EXPECT_EQ(found.text, "the  CAT");
  ASSERT_TRUE(found.bytes.has_value());
  EXPECT_EQ(context.substr(found.bytes->begin, found.bytes->end - found.bytes->begin), "the  CAT");
  EXPECT_EQ(found.bytes->begin, 17u);
  EXPECT_EQ(found.characters, (Span{13, 21})) << "two letters and a dash take more than a byte";
  EXPECT_DOUBLE_EQ(found.score, 11.0);
  EXPECT_GT(found.probability, 0.9);
  EXPECT_FALSE(found.null_odds.has_value());
  EXPECT_EQ(found.nbest[0].text, "the CAT") << "the reference joins words by one space";
}

TEST(Answer, IsThatOfItsTokensInATextWithoutSpaces) {
  const std::string context = "cat,é,the.CAT";
  const FoundAnswer found = answer_question("Who?", context, letter_tokenizer(), {}, [](auto& b) {
    std::vector<float> logits(2 * b.ids.size(), -4.0F);
    for (std::size_t i = 0; i < b.ids.size(); ++i)  // the last "cat"
      if (letter_tokenizer().token(static_cast<int>(b.ids[i])) == "cat")
        logits[2 * i] = logits[2 * i + 1] = static_cast<float>(i);
    return logits;
  });
  EXPECT_EQ(found.text, "CAT");
  EXPECT_EQ(found.characters, (Span{10, 13}));
  EXPECT_EQ(found.nbest[0].text, "cat") << "as run_squad.py has it";
}

TEST(Answer, IsFoundFarInsideALongText) {
  std::string context;
  for (int i = 0; i < 3000; ++i) context += "dog mat ";
  const std::size_t place = context.size();
  context += "the cat ";
  for (int i = 0; i < 500; ++i) context += "on ";
  const FoundAnswer found = answer_question("Who?", context, letter_tokenizer(), {}, cat_model);
  EXPECT_EQ(found.text, "the cat");
  EXPECT_EQ(found.bytes, (Span{place, place + 7}));
  EXPECT_GT(found.features, 40u);
}

TEST(Answer, MayBeNone) {
  AnswerOptions options;
  options.predictions.version_2 = true;
  const FoundAnswer none =
      answer_question("Who?", "dog mat", letter_tokenizer(), options, [](const Batch& batch) {
        std::vector<float> logits = cat_model(batch);
        logits[0] = logits[1] = 3.0F;
        return logits;
      });
  EXPECT_EQ(none.text, "");
  EXPECT_FALSE(none.bytes.has_value());
  EXPECT_EQ(none.null_odds, 14.0);
  EXPECT_DOUBLE_EQ(none.score, 6.0) << "of the null answer";
  const FoundAnswer some =
      answer_question("Who?", "the cat", letter_tokenizer(), options, cat_model);
  EXPECT_EQ(some.text, "the cat");
  EXPECT_EQ(some.null_odds, -19.0);
}

TEST(Answer, NeedsWords) {
  const auto error_for = [](const char* question, const char* context) {
    return error_of([&] { answer_question(question, context, letter_tokenizer(), {}, cat_model); });
  };
  EXPECT_THAT(error_for(" ", "the cat"), HasSubstr("question has no tokens"));
  EXPECT_THAT(error_for("who", "\n"), HasSubstr("context has no tokens"));
}

TEST(Answer, OfATokenizerWithOffsetsIsCutFromTheText) {
  const text::Tokenizer& tokenizer = tests::roberta_tokenizer();
  const std::string context = "é  the\n  cat. the cat";
  // From the space before the first "the", a token of its own, to the first "cat".
  const auto model = [&](const Batch& batch) {
    std::vector<float> logits(2 * batch.tokens(), -4.0F);
    std::size_t at = 0;
    while (batch.ids[at] != tokenizer.token_id("Ġthe")) ++at;
    logits[2 * (at - 1)] = 6.0F;
    while (batch.ids[at] != tokenizer.token_id("Ġcat")) ++at;
    logits[2 * at + 1] = 5.0F;
    EXPECT_THAT(batch.token_type_ids, Each(0));
    return logits;
  };
  const FoundAnswer found = answer_question("the", context, tokenizer, {}, model);
  EXPECT_EQ(found.text, "the\n  cat");
  EXPECT_EQ(found.characters, (Span{3, 12}));
  EXPECT_EQ(found.nbest[0].text, found.text);
}

}  // namespace
}  // namespace bertcl::squad
