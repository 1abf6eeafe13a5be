// SPDX-License-Identifier: Apache-2.0
// Files of texts: JSON that is not one of lines is refused, not read as lines of text.
#include "text/data_file.hpp"

#include <gtest/gtest.h>

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::text {
namespace {

using tests::ScratchFile;

std::string refusal_of_data(const std::string& content, const std::string& extension) {
  const ScratchFile file(content, extension);
  return error_of([&] { read_data(file.path()); });
}

TEST(ReadData, AJsonArrayIsRefused) {
  const std::string objects = ": is a JSON array; write one object a line (jq -c '.[]' FILE)";
  for (const char* content :
       {"[\n {\"text\": \"a\"},\n {\"text\": \"b\"}\n]\n", "[{\"text\": \"a\"}]", "[{}]",
        "\xEF\xBB\xBF \n[\r\n\t{ \"text\": \"a\"}\r\n]", "[{\n \"text\": \"a\"}]"})
    for (const char* extension : {".json", ".txt", ".jsonl"})
      EXPECT_THAT(refusal_of_data(content, extension), HasSubstr(extension + objects)) << content;
  const std::string strings = ": is a JSON array; write one text a line (jq -r '.[]' FILE)";
  for (const char* extension : {".json", ".txt"})
    EXPECT_THAT(refusal_of_data("[\n  \"a\",\n  \"b\"\n]\n", extension),
                HasSubstr(extension + strings));
  EXPECT_THAT(refusal_of_data("[\"a\", \"b\"]\n", ".JSON"), HasSubstr(".JSON" + strings));
  EXPECT_THAT(refusal_of_data("[1, 2]\n", ".json"), HasSubstr(".json" + objects));
}

TEST(ReadData, TextsMayBeginWithABracket) {
  for (const char* content : {"[", "[\n", "[\n]\n", "[Music] plays\n", "[\"a\"], he said\n",
                              "[{x}]\n", "[\tO\n\n{\tO\n", "[1]\n", "[\nand\n"})
    EXPECT_EQ(read_data(ScratchFile(content, ".txt").path()).content, content);
  EXPECT_EQ(read_data(ScratchFile("{\"text\": \"[\"}\n", ".json").path()).content,
            "{\"text\": \"[\"}\n");
}

TEST(ReadData, AJsonDocumentIsRefused) {
  for (const char* content : {"{\n  \"text\": \"a b\"\n}\n", "{\"text\": \"a\",\n \"label\": 1}\n",
                              "{ \"data\": {}}", "{\"data\": \"x\"}\n"})
    for (const char* extension : {".json", ".txt", ".jsonl"})
      EXPECT_THAT(
          refusal_of_data(content, extension),
          HasSubstr(std::string(extension) + ": is a single JSON document; write one object "
                                             "a line (jq -c . FILE)"))
          << content;
  for (const char* squad : {"{\"version\": \"1.1\", \"data\": []}", "{\n \"data\" :\n [{}]}"})
    EXPECT_THAT(refusal_of_data(squad, ".txt"),
                HasSubstr("document; write one object a line (jq -c '.data[].paragraphs[] | {text: "
                          ".context}' FILE)"));
  for (const char* damaged : {"{\n", "{x}\n", "{}\n"})
    EXPECT_THAT(
        refusal_of_data(damaged, ".json"),
        HasSubstr(".json: is a single JSON document; write one object a line (jq -c . FILE)"));
  for (const char* text : {"{}\tO\n", "{x}, \"y\":\n", "{\n", "{ and\n\"so\"\n"})
    EXPECT_EQ(read_data(ScratchFile(text, ".txt").path()).content, text);
}

TEST(ReadData, LinesThatEndInCarriageReturnsAloneAreRefused) {
  for (const char* content : {"a\rb\rc\r", "Oslo\tB-x\ris\tO", "\ra"})
    EXPECT_THAT(
        refusal_of_data(content, ".txt"),
        HasSubstr(".txt: lines end in CR alone; convert them to LF (tr '\\r' '\\n' < FILE)"))
        << content;
  for (const char* content : {"a\r", "a\rb\n", "a\r\nb\r\n", "", "\r", "{\r\"data\": []}"})
    EXPECT_THAT(read_data_or_document(ScratchFile(content, ".txt").path()).content, content);
}

TEST(ReadUtf8, Utf16IsRefused) {
  const auto refused = [](std::string_view content) {
    const ScratchFile file(std::string(content), ".txt");
    return error_of([&] { read_utf8(file.path()); });
  };
  using namespace std::string_view_literals;
  EXPECT_THAT(refused("a\0b\0"sv), HasSubstr(".txt: looks like UTF-16; convert it to UTF-8 (iconv "
                                             "-f UTF-16LE -t UTF-8 FILE)"));
  EXPECT_THAT(refused("\0a\0\n\0b"sv), HasSubstr("iconv -f UTF-16BE"));
  EXPECT_THAT(refused("\xff\xfe\x41\x04"sv), HasSubstr("iconv -f UTF-16LE"));
  EXPECT_THAT(refused("\xfe\xff"sv), HasSubstr("iconv -f UTF-16BE"));
  for (const std::string_view content : {"a\0b"sv, "a\0\0b"sv, "a\0bc"sv, "ab\0\0"sv, "\0\0\0\0"sv})
    EXPECT_EQ(read_utf8(ScratchFile(std::string(content), ".txt").path()).content, content);
}

TEST(Excerpt, ShowsNulBytes) {
  EXPECT_EQ(excerpt_of(std::string_view("po\0s", 4)), "po\\x00s");
  EXPECT_EQ(excerpt_of(std::string(60, 'x')), std::string(60, 'x'));
  EXPECT_EQ(excerpt_of(std::string(59, 'x') + "é"), std::string(59, 'x') + " ..");
}

TEST(IsJsonLines, TheFirstKeyMayHaveAnyName) {
  for (const char* lines :
       {R"({"version":1,"text":"a"})", R"({"data": "x", "text": "a"})", R"({"data": "x", "text")",
        R"({"version":1,"text":"\"data\": ["})", "{}\n{\"text\": 1}",
        "{\"data\": \"x\", \"text\": \"a\"}\n{\"data\": \"y\", \"text\": \"b\"}"}) {
    EXPECT_TRUE(is_json_lines(lines)) << lines;
    EXPECT_FALSE(is_squad(lines)) << lines;
  }
  for (const char* squad : {R"({"version": "1.1", "data": [{}]})", "{\"data\":[]}",
                            "{\"version\": 2, \"data\" : [", "\n{\"data\": [\n]}"}) {
    EXPECT_FALSE(is_json_lines(squad)) << squad;
    EXPECT_TRUE(is_squad(squad)) << squad;
  }
}

}  // namespace
}  // namespace bertcl::text
