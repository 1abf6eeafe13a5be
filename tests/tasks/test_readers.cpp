// SPDX-License-Identifier: Apache-2.0
// Data files of the tasks: what is read, what is refused.
#include "tasks/data/readers.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "squad/dataset.hpp"
#include "tasks/load.hpp"
#include "tasks/rank.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

TEST(ReadClassified, WithAndWithoutHeader) {
  for (const char* header : {"", "sentence\tlabel\n", "\xEF\xBB\xBFsentence\tlabel\r\n"}) {
    const ScratchFile file(std::string(header) + "a fine film \t1\r\n\nno\ttabs\t0\n");
    const auto texts = read_classified(file.path());
    ASSERT_EQ(texts.size(), 2u);
    EXPECT_EQ(texts[0].text, "a fine film");
    EXPECT_EQ(texts[0].label, "1");
    EXPECT_EQ(texts[0].id, "0");
    EXPECT_EQ(texts[1].text, "no\ttabs");
    EXPECT_EQ(texts[1].label, "0");
    EXPECT_FALSE(texts[0].second);
    EXPECT_EQ(texts[1].id, "1");
  }
}

TEST(ReadClassified, RefusesOtherFiles) {
  EXPECT_THAT(refusal(read_classified, "good\t1\nbad\t \n"),
              AllOf(HasSubstr(".txt:2:"), HasSubstr("'bad'"), HasSubstr("a tab, and its class")));
  EXPECT_THAT(refusal(read_classified, "no label"), HasSubstr("'no label'"));
  EXPECT_THAT(refusal(read_classified, std::string(59, 'x') + "é and more"),
              HasSubstr("'" + std::string(59, 'x') + " ..'"))
      << "long lines are cut between letters";
  EXPECT_THAT(refusal(read_classified, "sentence\tlabel\n"), HasSubstr("contains no text"));
  EXPECT_THAT(refusal(read_classified, "ok\t1\ncaf\xe9\t1\n"), HasSubstr(".txt:2: invalid UTF-8"));
  EXPECT_ERROR(HasSubstr("/no/such.tsv: cannot open"), read_classified("/no/such.tsv"));
}

TEST(ReadClassified, JsonLines) {
  const ScratchFile file(
      "\xEF\xBB\xBF{\"text\": \"caf\\u00e9\", \"label\": 2, \"id\": \"x\"}\r\n\n"
      "{\"label\": \"B\", \"sentence1\": \"a\", \"sentence2\": \"b\", \"more\": []}\n");
  const auto texts = read_classified(file.path());
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0].id, "x");
  EXPECT_EQ(texts[0].text, "café");
  EXPECT_EQ(texts[0].label, "2");
  EXPECT_FALSE(texts[0].second);
  EXPECT_EQ(texts[1].id, "1");
  EXPECT_EQ(texts[1].second, "b");
  const std::string good = "{\"text\": \"a\", \"label\": 1}\n";
  EXPECT_THAT(refusal(read_classified, good + "{\"text\": \"a\"}\n"),
              AllOf(HasSubstr(".txt:2: label is missing"), HasSubstr("each line is an object")));
  EXPECT_THAT(refusal(read_classified, good + "{\"label\": 1}\n"), HasSubstr("text is missing"));
  EXPECT_THAT(refusal(read_classified, good + "{\"text\": \"a\", \"label\": 0.5}"),
              HasSubstr(".txt:2: label is 0.5, expected a string or an integer"));
  EXPECT_THAT(refusal(read_classified, good + "\n{\"text\": "), HasSubstr(".txt:3: invalid JSON"));
  EXPECT_THAT(refusal(read_classified, good + "[1]\n"),
              HasSubstr(".txt:2: expected a JSON object; each line"));
}

// Not plain text: nobody would see it.
TEST(ReadClassified, ABrokenFirstLineOfJson) {
  for (const char* line : {R"({"text": "a")", R"({"text": "a", "label": 1},)", R"({"text": tru})"})
    EXPECT_THAT(refusal(read_classified, line + std::string("\n{\"text\": \"b\", \"label\": 1}\n")),
                HasSubstr(".txt:1: invalid JSON"))
        << line;
}

TEST(ReadJsonLines, IdsAreUnique) {
  const std::string of_x = R"({"text": "a", "text_pair": "b", "label": 1, "id": "1"})";
  for (const char* second : {R"({"text": "a", "text_pair": "b", "label": 1, "id": 1})",
                             R"({"text": "a", "text_pair": "b", "label": 1})"}) {
    const std::string content = of_x + "\n" + second + "\n";
    for (const std::string& message :
         {refusal(read_classified, content), refusal(read_scored_pairs, content)})
      EXPECT_THAT(message, HasSubstr(".txt:2: id \"1\" is already used in line 1"));
  }
}

TEST(ReadJsonLines, IdsMayRepeatWhereNobodyAsksForThem) {
  const std::string line =
      R"({"text": "a", "text_pair": "b", "label": 1, "id": 7, "tokens": ["a"], "tags": ["O"]})";
  const ScratchFile file(line + "\n" + line + "\n");
  EXPECT_EQ(read_classified(file.path(), IdRule::any).size(), 2u);
  EXPECT_EQ(read_scored_pairs(file.path(), IdRule::any).size(), 2u);
  EXPECT_EQ(read_tagged(file.path(), IdRule::any).size(), 2u);
  EXPECT_EQ(read_named_texts(file.path(), IdRule::any).size(), 2u);
}

TEST(ReadClassified, TextsKnowTheirLines) {
  const auto lines = [](const std::string& content, const std::string& ending) {
    std::vector<std::size_t> found;
    for (const ClassifiedText& text : read_classified(ScratchFile(content, ending).path()))
      found.push_back(text.line);
    return found;
  };
  EXPECT_THAT(lines("a\t1\n\nb\t0\n", ".tsv"), ElementsAre(1, 3));
  EXPECT_THAT(lines("text,label\n\"a\nb\",1\nc,0\n", ".csv"), ElementsAre(2, 4));
  EXPECT_THAT(
      lines("{\"text\": \"a\", \"label\": 1}\n\n{\"text\": \"b\", \"label\": 0}\n", ".jsonl"),
      ElementsAre(1, 3));
}

// What is taken from a pipe to look at it is gone. Any pipe holds the 4 KiB of a page.
TEST(ReadClassified, APipeIsReadFromItsBeginning) {
  std::string lines;
  for (int i = 0; i < 500; ++i) lines += "good\t" + std::to_string(i % 2) + "\n";
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ASSERT_EQ(::write(pipe[1], lines.data(), lines.size()), std::ssize(lines));
  ::close(pipe[1]);
  const auto task = load_task({kClassify, "/proc/self/fd/" + std::to_string(pipe[0])}, 0);
  ::close(pipe[0]);
  EXPECT_EQ(task->size(), 500u);
  EXPECT_EQ(task->unit(), "texts");
}

TEST(ReadClassified, SeveralLabels) {
  const ScratchFile json(
      "{\"text\": \"a\", \"labels\": [\"joy\", 3]}\n{\"text\": \"b\", \"labels\": []}\n");
  const ScratchFile tsv("text\tlabels\na\t joy, 3\nb\t\n", ".tsv");
  const ScratchFile csv("labels,text\n\"joy,3\",a\n,b\n", ".csv");
  for (const ScratchFile* file : {&json, &tsv, &csv}) {
    const auto texts = read_classified(file->path());
    ASSERT_EQ(texts.size(), 2u) << file->path();
    EXPECT_EQ(texts[0].text, "a");
    ASSERT_TRUE(texts[0].labels && texts[1].labels) << file->path();
    EXPECT_THAT(*texts[0].labels, ElementsAre("joy", "3"));
    EXPECT_TRUE(texts[1].labels->empty());
  }
  const ScratchFile one("a\tjoy,3\n", ".tsv");
  EXPECT_FALSE(read_classified(one.path())[0].labels) << "a name may hold a comma";
  EXPECT_THAT(refusal(read_classified, "{\"text\": \"a\", \"labels\": \"joy\"}\n"),
              HasSubstr(".txt:1: labels is of type string, expected array"));
  EXPECT_THAT(split_labels(" a , b,"), ElementsAre("a", "b", ""));
}

TEST(ReadJsonLines, PairsSentencesAndTexts) {
  const ScratchFile pairs(
      "{\"text\": \"a\", \"text_pair\": \"b\", \"score\": 4}\n"
      "{\"sentence1\": \"c\", \"sentence2\": \"d\", \"label\": 0.5}\n");
  const auto scored = read_scored_pairs(pairs.path());
  ASSERT_EQ(scored.size(), 2u);
  EXPECT_EQ(scored[0].score, 4.0);
  EXPECT_EQ(scored[1].second, "d");
  EXPECT_EQ(scored[1].score, 0.5);
  EXPECT_THAT(refusal(read_scored_pairs, "{\"text\": \"a\", \"score\": 1}"),
              HasSubstr("text_pair is missing"));
  const ScratchFile tagged(
      "{\"tokens\": [\"Oslo\", \"!\"], \"tags\": [\"B-place\", \"O\"], \"id\": \"city\"}\n");
  EXPECT_THAT(read_tagged(tagged.path()).at(0).tags, ElementsAre("B-place", "O"));
  EXPECT_EQ(read_tagged(tagged.path()).at(0).id, "city");
  EXPECT_THAT(refusal(read_tagged, "{\"tokens\": [\"a\"], \"ner_tags\": []}"),
              HasSubstr(".txt:1: 1 tokens and 0 tags"));
  const ScratchFile texts("{\"text\": \"one\"}\n{\"text\": \"{two}\"}\n");
  EXPECT_THAT(read_texts(texts.path()), ElementsAre("one", "{two}"));
  const ScratchFile named("{\"text\": \"one\"}\n{\"text\": \"two\", \"id\": 7}\n");
  EXPECT_EQ(read_named_texts(named.path()).at(0).id, "0");
  EXPECT_EQ(read_named_texts(named.path()).at(1).id, "7");
  EXPECT_THAT(refusal(read_named_texts, "{\"text\": \"a\", \"id\": 1}\n{\"text\": \"b\"}"),
              HasSubstr(":2: id \"1\" is already used in line 1"));
}

TEST(ReadJsonLines, TwoNamesOfOneMemberAreRefused) {
  EXPECT_THAT(refusal(read_classified, R"({"text": "a", "sentence1": "b", "label": 1})"),
              HasSubstr(".txt:1: members 'text' and 'sentence1' both give the text; drop or rename "
                        "one; each line is"));
  EXPECT_THAT(
      refusal(read_classified, R"({"text": "a", "label": "b", "labels": ["c"]})"),
      HasSubstr(".txt:1: members 'labels' and 'label' both give the label; drop or rename one"));
  EXPECT_THAT(
      refusal(read_tagged, R"({"tokens": ["a"], "tags": ["O"], "ner_tags": ["O"]})"),
      HasSubstr(".txt:1: members 'tags' and 'ner_tags' both give the tags; drop or rename one"));
  EXPECT_THAT(refusal(read_scored_pairs, R"({"text": "a", "text_pair": "b", "sentence2": "c"})"),
              HasSubstr(".txt:1: members 'text_pair' and 'sentence2' both give the second text"));
  const ScratchFile file(R"({"text": "a", "sentence1": null, "label": 1, "labels": null})");
  EXPECT_EQ(read_classified(file.path()).at(0).label, "1") << "null is as good as none";
  const ScratchFile sick(
      R"({"sentence1": "a", "sentence2": "b", "label": "NEUTRAL", "score": 3.5})");
  EXPECT_EQ(read_scored_pairs(sick.path()).at(0).score, 3.5);
}

TEST(ReadJsonLines, ControlCharactersOfIdsAreShown) {
  const std::string line = R"({"text": "a", "id": "a\u0000b"})";
  EXPECT_THAT(refusal(read_named_texts, line + "\n" + line),
              HasSubstr(":2: id \"a\\x00b\" is already used in line 1; ids must be unique"));
}

TEST(ReadClassified, Dev) {
  BERTCL_NEEDS("data/tasks/sst2/dev.tsv");
  const auto texts = read_classified(tests::shared_file("data/tasks/sst2/dev.tsv"));
  ASSERT_EQ(texts.size(), 872u);
  EXPECT_EQ(texts[0].text, "one long string of cliches");
  EXPECT_EQ(texts[0].label, "0");
  EXPECT_EQ(std::count_if(texts.begin(), texts.end(), [](auto& text) { return text.label == "1"; }),
            444);
}

TEST(ReadScoredPairs, Dev) {
  BERTCL_NEEDS("data/tasks/stsb/stsb-en-dev.csv");
  const auto pairs = read_scored_pairs(tests::shared_file("data/tasks/stsb/stsb-en-dev.csv"));
  ASSERT_EQ(pairs.size(), 1500u);
  EXPECT_EQ(pairs[1].second, "A child is riding a horse.");
  EXPECT_EQ(pairs[1].score, 4.75);
  for (const ScoredPair& pair : pairs) {
    EXPECT_GE(pair.score, 0.0);
    EXPECT_LE(pair.score, 5.0);
    EXPECT_FALSE(pair.first.empty() || pair.second.empty()) << pair.id;
  }
}

TEST(ReadTagged, SentencesBetweenBlankLines) {
  const ScratchFile file(
      "\xEF\xBB\xBF\n-DOCSTART- -X- O O\n\nNew NNP I-NP B-location\nYork\tI-location\n\t\n\n"
      "it\tO\n\xEF\xBB\xBF\n");
  const auto sentences = read_tagged(file.path());
  ASSERT_EQ(sentences.size(), 2u);
  EXPECT_THAT(sentences[0].words, ElementsAre("New", "York"));
  EXPECT_THAT(sentences[0].tags, ElementsAre("B-location", "I-location"));
  EXPECT_THAT(sentences[1].words, ElementsAre("it"));
}

TEST(ReadTagged, RefusesOtherFiles) {
  EXPECT_THAT(refusal(read_tagged, "it\tO\nalone\n"),
              AllOf(HasSubstr(".txt:2:"), HasSubstr("'alone'"), HasSubstr("B-person")));
  EXPECT_THAT(refusal(read_tagged, "it\tperson\n"), HasSubstr("'it\tperson'"));
  EXPECT_THAT(refusal(read_tagged, "\n"), HasSubstr("contains no sentence"));
}

TEST(ReadTagged, Wnut17) {
  const auto count = [](const std::vector<TaggedSentence>& sentences, const std::string& tag) {
    std::ptrdiff_t found = 0;
    for (const TaggedSentence& sentence : sentences)
      found += std::count(sentence.tags.begin(), sentence.tags.end(), tag);
    return found;
  };
  BERTCL_NEEDS("data/tasks/wnut17/emerging.dev.conll");
  BERTCL_NEEDS("data/tasks/wnut17/wnut17train.conll");
  const auto dev = read_tagged(tests::shared_file("data/tasks/wnut17/emerging.dev.conll"));
  EXPECT_EQ(dev.size(), 1009u);
  EXPECT_EQ(count(dev, "B-person"), 470);
  EXPECT_EQ(dev[0].words[0], "Stabilized");
  const auto train = read_tagged(tests::shared_file("data/tasks/wnut17/wnut17train.conll"));
  EXPECT_EQ(train.size(), 3394u);
  EXPECT_EQ(count(train, "I-corporation"), 46);
}

TEST(ReadMovieReviews, ZipInTurn) {
  BERTCL_NEEDS("data/tasks/movie_reviews.zip");
  const auto reviews = read_movie_reviews(tests::shared_file("data/tasks/movie_reviews.zip"));
  ASSERT_EQ(reviews.size(), 2000u);
  EXPECT_EQ(reviews[0].id, "neg/cv000_29416.txt");
  EXPECT_EQ(reviews[0].label, "neg");
  EXPECT_EQ(reviews[0].text.size(), 4043u);
  EXPECT_EQ(reviews[1].id.substr(0, 9), "pos/cv000");
  EXPECT_EQ(reviews[1].label, "pos");
  EXPECT_EQ(reviews[1999].id, "pos/cv999_13106.txt");
}

TEST(ReadMovieReviews, FoldersAndRefusals) {
  const tests::ScratchFolder scratch;
  const std::filesystem::path& folder = scratch.path();
  std::filesystem::create_directories(folder / "test/neg");
  std::filesystem::create_directories(folder / "test/pos");
  std::ofstream(folder / "test/readme.txt") << "about";
  EXPECT_ERROR(HasSubstr("contains no reviews"), read_movie_reviews(folder));
  std::ofstream(folder / "test/neg/0_3.txt") << "bad";
  std::ofstream(folder / "test/pos/0_9.txt") << "good";
  std::ofstream(folder / "test/pos/1_8.txt") << "fine";
  std::ofstream(folder / "test/pos/2_7.txt") << "caf\xe9";
  EXPECT_ERROR(HasSubstr("'pos/2_7.txt': invalid UTF-8 at byte 3 of 4"),
               read_movie_reviews(folder));
  std::filesystem::remove(folder / "test/pos/2_7.txt");
  std::ofstream(folder / "test/neg/._0_3.txt") << "caf\xe9";  // as macOS leaves them
  const auto reviews = read_movie_reviews(folder);
  std::filesystem::create_directories(folder / "train/neg");
  std::ofstream(folder / "train/neg/0_3.txt") << "bad, too";
  EXPECT_ERROR(HasSubstr("two reviews are named 'neg/0_3.txt'"), read_movie_reviews(folder));
  ASSERT_EQ(reviews.size(), 3u);
  EXPECT_EQ(reviews[0].text, "bad");
  EXPECT_EQ(reviews[1].id, "pos/0_9.txt");
  EXPECT_EQ(reviews[2].label, "pos");
  EXPECT_THAT(refusal(read_movie_reviews, "words", ".zip"),
              AllOf(HasSubstr("cannot open as .zip"), HasSubstr("neg/*.txt")));
}

// All of them take lines and JSON lines.
TEST(Readers, TakeTheFormsTheyCanRead) {
  using Path = std::filesystem::path;
  const char* none = "is a single JSON document";
  const struct {
    std::function<void(const Path&)> read;
    std::string of_squad, of_document;  // what the refusal says
  } readers[] = {
      {[](const Path& path) { read_classified(path); }, none, none},
      {[](const Path& path) { read_scored_pairs(path); }, none, none},
      {[](const Path& path) { read_tagged(path); }, none, none},
      {[](const Path& path) { read_passages(path, "q"); }, none, none},
      {[](const Path& path) { read_texts(path); }, none, none},
      {[](const Path& path) { read_named_texts(path); }, kNoError, none},
      {[](const Path& path) { read_texts_or_pairs(path); }, kNoError, none},
      {[](const Path& path) { squad::load_dataset(path); }, kNoError, "data is missing"}};
  const std::string squad = R"({"data": [{"paragraphs": [
    {"context": "One.", "qas": [{"id": "q", "question": "Who?", "answers": [{"text": "One"}]}]}]}]})";
  for (const auto& reader : readers) {
    const auto refused = [&](const std::string& content) {
      const ScratchFile file(content, ".txt");
      return error_of([&] { reader.read(file.path()); });
    };
    EXPECT_THAT(refused(squad), HasSubstr(reader.of_squad));
    EXPECT_THAT(refused("{\n\"text\": \"a\"}"), HasSubstr(reader.of_document));
    EXPECT_THAT(refused("[{\"text\": \"a\"}]"), HasSubstr("is a JSON array; write one object"));
    EXPECT_THAT(refused("[\n\"a\"]"), HasSubstr("is a JSON array; write one text"));
    EXPECT_THAT(refused("a\rb"), HasSubstr("lines end in CR alone"));
  }
}

TEST(ReadTexts, OfSquadAreItsContextsWhateverItsName) {
  const std::string squad = R"({"data": [{"paragraphs": [
    {"context": "One.", "qas": [{"id": "q", "question": "Who?", "answers": [{"text": "One"}]}]},
    {"context": " ", "qas": []}]}]})";
  const std::string line =
      R"({"question": "Who?", "context": "One.", "answers": [{"text": "One"}]})";
  for (const char* extension : {".json", ".JSON", ".txt"}) {
    for (const std::string& content : {squad, line}) {
      const ScratchFile file(content, extension);
      const auto texts = read_texts_or_pairs(file.path());
      ASSERT_EQ(texts.size(), 1u) << extension << content;
      EXPECT_EQ(texts[0].text, "One.") << extension << content;
      EXPECT_EQ(read_named_texts(file.path()).at(0).text, "One.") << extension << content;
    }
    const ScratchFile lines("{\"text\": \"a\"}\n", extension);
    EXPECT_EQ(read_texts_or_pairs(lines.path()).at(0).text, "a") << extension;
    EXPECT_EQ(read_named_texts(lines.path()).at(0).text, "a") << extension;
    const std::string other = "{\n \"text\": \"a\"\n}\n";
    EXPECT_THAT(refusal(read_named_texts, other, extension), HasSubstr("a single JSON document"));
    EXPECT_THAT(refusal(read_texts_or_pairs, other, extension),
                HasSubstr("a single JSON document"));
  }
}

// Lines of SQuAD have a question and a context as members, and no text of their own.
TEST(ReadTexts, JsonLinesWithATextAreNotSquad) {
  for (const char* line : {R"({"text": "a", "question": "q", "context": "c", "id": 7})",
                           R"({"sentence": "a", "question": "q", "context": "c", "id": 7})",
                           R"({"id": 7, "text": "a", "kind": "question", "source": "context"})"}) {
    const ScratchFile file(line, ".jsonl");
    ASSERT_EQ(read_named_texts(file.path()).size(), 1u) << line;
    EXPECT_EQ(read_named_texts(file.path())[0].text, "a") << line;
    EXPECT_EQ(read_named_texts(file.path())[0].id, "7") << line;
    EXPECT_EQ(read_texts_or_pairs(file.path()).at(0).text, "a") << line;
  }
  const ScratchFile blank(
      "\n{\"question\": \"q\", \"context\": \"c\", \"answers\": [], \"id\": 1, \"text\": null}\n",
      ".jsonl");
  EXPECT_EQ(read_named_texts(blank.path()).at(0).text, "c");
  EXPECT_THAT(refusal(read_named_texts, R"({"kind": "question", "source": "context"})", ".jsonl"),
              HasSubstr(".jsonl:1: text is missing"));
  EXPECT_THAT(refusal(read_named_texts, R"({"question": "q", "context": })", ".jsonl"),
              HasSubstr(".jsonl:1: "));
}

TEST(ReadTexts, LeavesOutBlankOnes) {
  const ScratchFile file("one\r\n\n  \ntwo words\nthree");
  EXPECT_THAT(read_texts(file.path()), ElementsAre("one", "two words", "three"));
  EXPECT_THAT(refusal(read_texts, " \n"), HasSubstr("contains no text"));
}

}  // namespace
}  // namespace bertcl::tasks
