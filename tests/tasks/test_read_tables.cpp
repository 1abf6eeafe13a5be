// SPDX-License-Identifier: Apache-2.0
// Tables of the tasks' data: their headers, their columns, what is refused.
#include "tasks/data/read_tables.hpp"

#include <fmt/format.h>

#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

TEST(ReadClassified, NamesTheColumnsOfAHeader) {
  const std::string expected = "expected text (or sentence, sentence1) and label (or labels)";
  for (const char* extension : {".csv", ".tsv"}) {
    const std::string separator = extension == std::string(".csv") ? "," : "\t";
    const auto refused = [&](const std::string& header) {
      return refusal(read_classified, header + "\n1" + separator + "fine" + separator + "pos\n",
                     extension);
    };
    EXPECT_THAT(refused("id" + separator + "text" + separator + "class"),
                HasSubstr(":1: the header is id, text, class; " + expected));
    EXPECT_THAT(refused("sentence" + separator + "class"),
                HasSubstr(":1: the header is sentence, class; " + expected));
  }
  EXPECT_THAT(refusal(read_classified, "label,review\npos,fine\n", ".csv"),
              HasSubstr(":1: the header is label, review; " + expected));
  EXPECT_THAT(
      refusal(read_classified, "fine\n", ".csv"),
      HasSubstr(":1: 1 column, expected 2: a text and its class, or a header with text (or"));
  EXPECT_THAT(refusal(read_scored_pairs, "sentence1,sentence2,likeness\na,b,1\n", ".csv"),
              HasSubstr(":1: the score is 'likeness', expected a number, or a header with "
                        "sentence1, sentence2 and score"));
  EXPECT_THAT(refusal(read_scored_pairs, "a,b\n", ".csv"),
              HasSubstr(":1: 2 columns, expected 3: two texts and a score, or a header with"));
}

TEST(ReadClassified, ColumnsByTheirNames) {
  const ScratchFile tsv("idx\tsentence2\tlabel\tsentence1\n7\tsecond\tyes\tfirst\n", ".tsv");
  const ScratchFile csv("label,text\nWorld,\"one, two\"\n", ".csv");
  const ScratchFile bare("\"one, two\",World\n", ".csv");
  const auto pairs = read_classified(tsv.path());
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].text, "first");
  EXPECT_EQ(pairs[0].second, "second");
  EXPECT_EQ(pairs[0].label, "yes");
  for (const ScratchFile* file : {&csv, &bare}) {
    const auto texts = read_classified(file->path());
    ASSERT_EQ(texts.size(), 1u);
    EXPECT_EQ(texts[0].text, "one, two");
    EXPECT_EQ(texts[0].label, "World");
  }
  EXPECT_THAT(refusal(read_classified, "words,label\na,b\n", ".csv"),
              AllOf(HasSubstr(".csv:1:"), HasSubstr("words, label"), HasSubstr("expected text")));
  EXPECT_THAT(refusal(read_classified, "text,label\na,b\nc\n", ".csv"),
              HasSubstr(".csv:3: 1 column, expected 2: as the header has"));
  EXPECT_THAT(refusal(read_classified, "a,b,c\n", ".csv"), HasSubstr("a text and its class"));
}

// A comma that nobody quoted: the text would lose its end.
TEST(ReadTables, RowsLongerThanTheHeaderAreRefused) {
  const std::string too_long = "expected 2: as the header has; ";
  EXPECT_THAT(
      refusal(read_classified, "label,text\n1,it was good, not bad\n0,awful\n", ".csv"),
      HasSubstr(".csv:2: 3 columns, " + too_long + "put a text that holds commas in double"));
  EXPECT_THAT(refusal(read_classified, "text\tlabels\na\tb\tc\n", ".tsv"),
              HasSubstr(".tsv:2: 3 columns, " + too_long + "a text cannot hold a tab"));
  EXPECT_THAT(refusal(read_scored_pairs, "score,sentence1,sentence2\n1,a,b, c\n", ".csv"),
              HasSubstr(".csv:2: 4 columns, expected 3: as the header has; put a text"));
  EXPECT_THAT(refusal(read_scored_pairs, "sentence1\tsentence2\tscore\na\tb\t1\t2\n", ".tsv"),
              HasSubstr(".tsv:2: 4 columns, expected 3: as the header has; a text cannot"));
  EXPECT_THAT(refusal(read_scored_pairs, "sentence1,sentence2,score\na,b\n", ".csv"),
              HasSubstr(".csv:2: 2 columns, expected 3: as the header has"));
}

// The class would be the last column, and the text all before it.
TEST(ReadTables, MoreColumnsNeedAHeaderThatNamesThem) {
  const std::string expected = "3 columns, expected 2: a text and its class, or a header with text";
  EXPECT_THAT(refusal(read_classified, "1,a good film,pos\n", ".csv"),
              HasSubstr(":1: " + expected));
  EXPECT_THAT(refusal(read_classified, "1\ta good film\tpos\n", ".tsv"),
              HasSubstr(":1: " + expected));
  EXPECT_THAT(refusal(read_classified, "fine\tpos\n1\ta good film\tpos\n", ".TSV"),
              HasSubstr(":2: " + expected));
  EXPECT_THAT(refusal(read_classified, "sentence\tlabel\n1\ta good film\tpos\n", ".tsv"),
              HasSubstr(":2: 3 columns, expected 2: as the header has; a text cannot hold a tab"));
}

TEST(ReadTables, BlankLinesMayPrecedeTheHeader) {
  for (const char* blank : {"\n", "\r\n", " \n\n", "\t\n"})
    for (const auto& [header, extension] : {std::pair("text\tlabel\n", ".tsv"),
                                            {"text\tlabels\n", ".tsv"},
                                            {"words\tlabel\n", ".txt"}}) {
      const ScratchFile file(blank + std::string(header) + "fine\tpos\n", extension);
      const auto texts = read_classified(file.path());
      ASSERT_EQ(texts.size(), 1u) << blank << header;
      EXPECT_EQ(texts[0].text, "fine") << blank << header;
      EXPECT_FALSE(texts[0].first_row);
    }
  EXPECT_THAT(refusal(read_classified, "\n\nsentence\tclass\nfine\tpos\n", ".tsv"),
              HasSubstr(".tsv:3: the header is sentence, class; expected text"));
  const ScratchFile pairs("\t\nsentence1\tsentence2\tscore\na\tb\t2\n", ".tsv");
  EXPECT_EQ(read_scored_pairs(pairs.path()).at(0).second, "b");
  EXPECT_THAT(refusal(read_scored_pairs, "\n\na\tb\thigh\n", ".tsv"),
              HasSubstr(".tsv:3: the score"));
  EXPECT_THAT(refusal(read_classified, "\t\n", ".tsv"), HasSubstr("contains no text"));
}

// As pandas writes the index of a table, and as spreadsheets write a column that is empty.
TEST(ReadClassified, ColumnsMayHaveNoName) {
  for (const char* content : {"\ttext\tlabel\n0\tfine\tpos\n", "\tlabel\ttext\r\n0\tpos\tfine\r\n",
                              "text\tlabel\t\nfine\tpos\t\n", "\ttext\tlabels\n0\tfine\tpos\n"}) {
    const ScratchFile file(content, ".tsv");
    const auto texts = read_classified(file.path());
    ASSERT_EQ(texts.size(), 1u) << content;
    EXPECT_EQ(texts[0].text, "fine") << content;
    EXPECT_EQ(texts[0].label, "pos") << content;
  }
}

TEST(ReadTables, NamesOfAHeaderAreComparedWithoutCaseAndBlanks) {
  for (const auto& [content, extension] : {std::pair("Text,Label\nfine,pos\n", ".csv"),
                                           {"text, label\nfine,pos\n", ".csv"},
                                           {"LABEL,Sentence\npos,fine\n", ".csv"},
                                           {"Text\tLabel\nfine\tpos\n", ".tsv"},
                                           {"Index\tLabel\tSENTENCE1\n0\tpos\tfine\n", ".tsv"},
                                           {"label\ttext\npos\tfine\n", ".tsv"},
                                           {"Labels\tText\npos\tfine\n", ".tsv"},
                                           {"Text\tLabels\nfine\tpos\n", ".tsv"}}) {
    const auto texts = read_classified(ScratchFile(content, extension).path());
    ASSERT_EQ(texts.size(), 1u) << content;
    EXPECT_EQ(texts[0].text, "fine") << content;
    EXPECT_EQ(texts[0].label, "pos") << content;
    const bool several = std::string_view(content).find("abels") != std::string_view::npos;
    EXPECT_EQ(texts[0].labels.has_value(), several) << content;
  }
  EXPECT_THAT(refusal(read_classified, "Text,Category\na,b\n", ".csv"),
              HasSubstr(":1: the header is Text, Category; expected text"));
  const ScratchFile pairs("Score,Sentence1, SENTENCE2\n2.5,a,b\n", ".csv");
  EXPECT_EQ(read_scored_pairs(pairs.path()).at(0).second, "b");
}

TEST(ReadTables, TwoColumnsOfOneMeaningAreRefused) {
  for (const auto& [header, columns] :
       {std::pair("text,text,label", "1 and 2 both give the text (text, text)"),
        {"text,label,Label", "2 and 3 both give the label (label, Label)"},
        {"labels,text,label", "1 and 3 both give the label (labels, label)"},
        {"text,sentence1,label", "1 and 2 both give the text (text, sentence1)"},
        {"text_pair,label,text,sentence2",
         "1 and 4 both give the second text (text_pair, sentence2)"}})
    EXPECT_THAT(refusal(read_classified, header + std::string("\na,b,c,d\n"), ".csv"),
                HasSubstr(fmt::format(".csv:1: columns {}; drop or rename one", columns)));
  EXPECT_THAT(refusal(read_scored_pairs, "sentence1,sentence1,sentence2,score\na,b,c,1\n", ".csv"),
              HasSubstr(".csv:1: columns 1 and 2 both give the text (sentence1, sentence1); drop"));
  EXPECT_THAT(refusal(read_scored_pairs, "score,sentence1,sentence2,score\n1,a,b,1\n", ".csv"),
              HasSubstr(".csv:1: columns 1 and 4 both give the score (score, score); drop"));
}

TEST(ReadScoredPairs, ColumnsHaveTheNamesOfJsonLines) {
  for (const char* header : {"sentence1,sentence2,score", "text,text_pair,score",
                             "sentence1,sentence2,label", "sentence,text_pair,Label"}) {
    const ScratchFile file(header + std::string("\na,b,+1.5\n"), ".csv");
    const auto pairs = read_scored_pairs(file.path());
    ASSERT_EQ(pairs.size(), 1u) << header;
    EXPECT_EQ(pairs[0].first, "a") << header;
    EXPECT_EQ(pairs[0].second, "b") << header;
    EXPECT_EQ(pairs[0].score, 1.5) << header;
  }
  const ScratchFile sick("label,text,text_pair,score\nNEUTRAL,a,b,3.5\n", ".csv");
  EXPECT_EQ(read_scored_pairs(sick.path()).at(0).score, 3.5);
  for (const char* score : {"+", "++1", "+-1", "1+"})
    EXPECT_THAT(refusal(read_scored_pairs, fmt::format("a,b,{}\n", score), ".csv"),
                HasSubstr(fmt::format("the score is '{}'", score)));
}

TEST(ReadClassified, AFirstRowThatNamesTextsNeedsAHeader) {
  const std::string row = "text\tpos\n";
  EXPECT_THAT(
      refusal(read_classified, row + "sentence\tneg\n", ".tsv"),
      AllOf(HasSubstr(":1: the header is text, pos; expected text"),
            HasSubstr("if the first row is data, put a header line \"text, label\" above it")));
  EXPECT_EQ(read_classified(ScratchFile("text\tlabel\n" + row, ".tsv").path()).at(0).text, "text");
  EXPECT_EQ(read_classified(ScratchFile("text,label\ntext,pos\n", ".csv").path()).at(0).text,
            "text");
  EXPECT_THAT(refusal(read_classified, "text\t" + std::string(100'000, 'x') + "\n", ".tsv").size(),
              testing::Lt(400u));
}

TEST(ReadScoredPairs, QuotesHeadersAndTabs) {
  const ScratchFile plain("\"A man, \"\"old\"\", sits.\",He\nsits.,0\n", ".csv");
  EXPECT_ERROR(HasSubstr(".csv:1: 2 columns"), read_scored_pairs(plain.path()));
  const ScratchFile csv("\"A man, \"\"old\"\", sits.\",\"He\nsits.\",4.75\r\n\na,b,0\n", ".csv");
  const auto pairs = read_scored_pairs(csv.path());
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].first, "A man, \"old\", sits.");
  EXPECT_EQ(pairs[0].second, "He\nsits.");
  EXPECT_EQ(pairs[0].score, 4.75);
  EXPECT_EQ(pairs[1].id, "1");
  const ScratchFile tsv(
      "index\tgenre\tsentence1\tsentence2\tscore\n"
      "0\tnews\tHe said \"no.\tHe said, no.\t5.000\n",
      ".tsv");
  const auto glue = read_scored_pairs(tsv.path());
  ASSERT_EQ(glue.size(), 1u);
  EXPECT_EQ(glue[0].first, "He said \"no.");
  EXPECT_EQ(glue[0].second, "He said, no.");
  EXPECT_EQ(glue[0].score, 5.0);
}

TEST(ReadScoredPairs, RefusesOtherFiles) {
  EXPECT_THAT(refusal(read_scored_pairs, "a,b,1\na,b,high\n", ".csv"),
              AllOf(HasSubstr(".csv:2:"), HasSubstr("'high'")));
  EXPECT_THAT(refusal(read_scored_pairs, "a,\"b\n,1\na,b,2\n", ".csv"),
              HasSubstr(".csv:1: unterminated quote"));
  EXPECT_THAT(refusal(read_scored_pairs, "a,b,nan\n", ".csv"), HasSubstr("'nan'"));
  EXPECT_THAT(refusal(read_scored_pairs, "a,b,c,1\n", ".csv"), HasSubstr("4 columns, expected 3"));
  EXPECT_THAT(refusal(read_scored_pairs, "\n \n", ".csv"), HasSubstr("contains no pair"));
}

}  // namespace
}  // namespace bertcl::tasks
