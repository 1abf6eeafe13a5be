// SPDX-License-Identifier: Apache-2.0
// Files of texts: JSON that is not one of lines is refused, not read as lines of text.
#include "text/base/data_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <utility>
#include <vector>

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

TEST(ReadData, AFileThatCannotBeReadIsNamed) {
  // It can be opened, and its first page is not there.
  const std::filesystem::path unreadable = "/proc/self/mem";
  if (!std::filesystem::exists(unreadable)) GTEST_SKIP() << "there is no /proc";
  EXPECT_EQ(error_of([&] { read_data(unreadable); }),
            "/proc/self/mem: cannot read: Input/output error");
}

TEST(ReadData, TextsMayBeginWithABracket) {
  for (const char* content : {"[", "[\n", "[\n]\n", "[Music] plays\n", "[\"a\"], he said\n",
                              "[{x}]\n", "[\tO\n\n{\tO\n", "[1]\n", "[\nand\n"})
    EXPECT_EQ(read_data(ScratchFile(content, ".txt").path()).content, content);
  EXPECT_EQ(read_data(ScratchFile("{\"text\": \"[\"}\n", ".json").path()).content,
            "{\"text\": \"[\"}\n");
}

TEST(ReadData, AJsonDocumentIsRefused) {
  for (const char* content :
       {"{\n  \"text\": \"a b\"\n}\n", "\xEF\xBB\xBF\xEF\xBB\xBF{\n\"text\": 1}\n",
        "{\"text\": \"a\",\n \"label\": 1}\n", "{ \"data\": {}}", "{\"data\": \"x\"}\n"})
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
  for (const char* content : {"a\rb\rc\r", "Oslo\tB-x\ris\tO", "\ra", "{a}\rb", "[a]\rb"})
    EXPECT_THAT(
        refusal_of_data(content, ".txt"),
        HasSubstr(".txt: lines end in CR alone; convert them to LF (tr '\\r' '\\n' < FILE)"))
        << content;
  for (const char* content : {"a\r", "a\rb\n", "a\r\nb\r\n", "", "\r", "{\r\"data\": []}"})
    EXPECT_EQ(read_data(ScratchFile(content, ".txt").path(), {Form::squad}).content, content);
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

TEST(ReadUtf8, OtherBytesAreRefusedWithARemedy) {
  const ScratchFile file("a\ncaf\xe9\n", ".txt");
  EXPECT_EQ(error_of([&] { read_utf8(file.path()); }),
            file.path().string() +
                ":2: invalid UTF-8 at byte 5 of 7; expected UTF-8 text (iconv -f ENCODING -t UTF-8 "
                "FILE converts other encodings)");
}

TEST(Excerpt, ShowsNulBytes) {
  EXPECT_EQ(excerpt_of(std::string_view("po\0s", 4)), "po\\x00s");
  EXPECT_EQ(excerpt_of(std::string(60, 'x')), std::string(60, 'x'));
  EXPECT_EQ(excerpt_of(std::string(59, 'x') + "é"), std::string(59, 'x') + " ..");
}

TEST(FormOf, IsThatOfTheContent) {
  const std::pair<Form, std::vector<const char*>> forms[] = {
      {Form::lines, {"", " \n", "a,b\n", "a\r", "[", "[]", "[1]", "[\"a\"]", "{", "{}", "{}\tO\n"}},
      {Form::json_lines,
       {R"({"version":1,"text":"a"})", R"({"data": "x", "text": "a"})", R"({"data": "x", "text")",
        R"({"version":1,"text":"\"data\": ["})", R"({"title": "a", "data": []})",
        "\xEF\xBB\xBF{\"a\": 1}", " \n {\"text\": \"a\"\n{", "{\"text\": 1},\n",
        "{ }\n{\"text\": 1}", "{\"data\": 1}\n{\"data\": 2}"}},
      {Form::squad,
       {R"({"version": "1.1", "data": [{}]})", "{\"data\":[]}", "{\"version\": 2, \"data\" : [",
        "\n{\"data\": [\n]}", "{\"title\": 1,\n\"data\": []", "{\r\"data\":\r[]}",
        R"({"version": 1, "more": {"data": [1]}})"}},
      {Form::document,
       {"{\"data\": 1}", "{ \"data\": {}}\n", "{\n\"text\": 1}", "{\"text\": 1,\n\"label\": 1}"}},
      {Form::array, {"[{}]", " [ { \"a\"", "[\n{\"data\": []}]"}},
      {Form::array_of_strings, {"[\n\"a\"", "[ \r\n \"a\"]"}},
      {Form::carriage_returns, {"a\rb", "{a}\rb\r", "[\r\"a\"]"}}};
  for (const auto& [form, contents] : forms)
    for (const char* content : contents)
      for (const char* path : {"a.txt", "a.jsonl", "json", ".json"})
        EXPECT_EQ(form_of(path, content), form) << path << content;
}

TEST(FormOf, AJsonFileThatBeginsAsJsonIsJson) {
  for (const char* path : {"a.json", "a.JSON"}) {
    for (const char* content : {"{", "{}", "{x}\n", "{\r}"})
      EXPECT_EQ(form_of(path, content), Form::document) << content;
    for (const char* content : {"[", "[]", "[1]", "[x"})
      EXPECT_EQ(form_of(path, content), Form::array) << content;
    EXPECT_EQ(form_of(path, "[\"a\"]"), Form::array_of_strings);
    EXPECT_EQ(form_of(path, "{\"text\": 1}\n"), Form::json_lines);
    EXPECT_EQ(form_of(path, "a\tb\n"), Form::lines);
  }
}

TEST(FormOf, ExtensionsTellTables) {
  for (const char* path : {"a.csv", "a.CSV"}) {
    EXPECT_EQ(form_of(path, "a\tb\n"), Form::commas);
    EXPECT_EQ(form_of(path, "{\"text\": 1}"), Form::json_lines);
  }
  for (const char* path : {"a.tsv", "a.Tsv"}) EXPECT_EQ(form_of(path, "a,b\n"), Form::tabs);
  EXPECT_EQ(form_of("csv", "a,b\n"), Form::lines);
  for (const char* content : {"text,label\na\tb,c\n", ""})
    EXPECT_EQ(form_of("-", content), Form::commas);
  for (const char* content : {"a, b\tc\n", "\n \na, b\tc\n"})
    EXPECT_EQ(form_of("-", content), Form::tabs);
}

}  // namespace
}  // namespace bertcl::text
