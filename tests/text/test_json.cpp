// SPDX-License-Identifier: Apache-2.0
// JSON: damage is named by file and place, and so is what is missing or of another type.
#include <nlohmann/json.hpp>

#include "tests/support/matchers.hpp"
#include "text/base/json_file.hpp"
#include "text/base/json_node.hpp"

namespace bertcl::text {
namespace {

TEST(ParseJson, DamageIsNamed) {
  const auto error = [](const std::string& text) {
    return error_of([&] { parse_json(text, "a.json"); });
  };
  EXPECT_THAT(error("{\"x\": "), StartsWith("a.json: invalid JSON: unexpected end"));
  EXPECT_THAT(error("{\"x\": 1]"), AllOf(StartsWith("a.json: invalid JSON (byte 8 of 8)")));
  EXPECT_THAT(error("{\"x\": \"\xFF\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(error("{\"x\": 1e999}"),
              AllOf(StartsWith("a.json: invalid JSON"), HasSubstr("1e999")))
      << "no double holds it";
}

TEST(ParseJson, WhatWasExpectedIsToldInWords) {
  const auto fault = [](const std::string& text) {
    const std::string error = error_of([&] { parse_json(text, "a.json"); });
    const std::string begin = "a.json: invalid JSON";
    return error.starts_with(begin) ? error.substr(begin.size()) : error;
  };
  EXPECT_EQ(fault(R"({"a": tru})"), " (byte 10 of 10): unexpected 'tru', expected a value");
  EXPECT_EQ(fault(R"({"a": NaN})"), " (byte 7 of 10): unexpected 'NaN', expected a value");
  EXPECT_EQ(fault("{\n  \"a\": 1,\n}"),
            " (line 3, column 1, byte 13 of 13): unexpected '}', expected a key in double quotes");
  EXPECT_EQ(fault("{'a': 1}"), " (byte 2 of 8): unexpected ''a'', expected a key in double quotes");
  EXPECT_EQ(fault(R"({"a" 1})"), " (byte 6 of 7): unexpected number, expected ':'");
  EXPECT_EQ(fault("[1 2]"), " (byte 4 of 5): unexpected number, expected ',' or ']'");
  EXPECT_EQ(fault(R"({"a": 1 "b": 2})"),
            " (byte 11 of 15): unexpected string, expected ',' or '}'");
  EXPECT_EQ(fault(R"(["; expected y", tru])"),
            " (byte 21 of 21): unexpected 'tru', expected a value");
  EXPECT_EQ(fault("{} x"), " (byte 4 of 4): unexpected 'x', expected the end");
  EXPECT_EQ(fault("\x01"), " (byte 1 of 1): unexpected byte 0x01, expected a value");
  EXPECT_EQ(fault(R"({"a": -})"), " (byte 8 of 8): invalid number: expected digit after '-'");
  EXPECT_EQ(fault("{\"a\": \"x\ny\"}"),
            " (line 1, column 9, byte 9 of 12): invalid string: control character U+000A (LF) must "
            "be escaped to \\u000A or \\n");
  EXPECT_EQ(fault("{\"a\": tru\n}"),
            " (line 1, column 10, byte 10 of 11): unexpected 'tru', expected a value");
  EXPECT_EQ(fault(R"({"a": "an unexpected \q thing"})"),
            " (byte 23 of 31): invalid string: forbidden character after backslash");
  EXPECT_EQ(fault("[1e999]"), ": the number 1e999 is too large");
  EXPECT_EQ(fault("[1,"), ": unexpected end after 3 bytes; was it copied in full?");
  EXPECT_EQ(fault(""), ": it is empty");
}

TEST(ParseJson, AnObjectIsKnownByItsBrace) {
  EXPECT_TRUE(begins_as_object(" \r\n\t{\"cut"));
  const std::string marked = "\xEF\xBB\xBF {\"x\": 1}";
  EXPECT_TRUE(begins_as_object(marked)) << "after a byte order mark";
  EXPECT_EQ(parse_json(marked).at("x"), 1);
  for (const char* other : {"", "  ", "[{", "word {", "\xEF\xBB\xBF", "\xEF\xBB{"})
    EXPECT_FALSE(begins_as_object(other));
}

TEST(JsonNode, WalksAlongMembersAndElements) {
  const auto json = parse_json(R"({"a": {"b": [{"c": "x"}, {"c": "y"}]}, "none": null})", "a.json");
  const JsonNode root(json, "a.json");
  std::vector<std::string> found;
  root.at("a").at("b").each([&](const JsonNode& element) {
    found.push_back(element.at("c").path() + "=" + element.at("c").string());
  });
  EXPECT_THAT(found, ElementsAre("a.b[0].c=x", "a.b[1].c=y"));
  found.clear();
  root.each_member([&](const std::string& key, const JsonNode& member) {
    found.push_back(key + " " + member.path());
  });
  EXPECT_THAT(found, ElementsAre("a a", "none none"));
  EXPECT_EQ(root.at("a").at("b").element(1).path(), "a.b[1]");
  EXPECT_TRUE(root.find("a"));
  EXPECT_FALSE(root.find("none"));
  EXPECT_FALSE(root.find("absent"));
}

TEST(JsonNode, WhatIsMissingOrOfAnotherTypeIsNamed) {
  const auto json = parse_json(
      R"({"s": "x", "i": -3, "f": 0.5, "b": true, "l": [1], "big": 18446744073709551615})", "");
  const JsonNode root(json, "a.json", "write it well");
  EXPECT_EQ(root.at("i").integer(), -3);
  EXPECT_EQ(root.at("i").number(), -3.0);
  EXPECT_EQ(root.at("f").number(), 0.5);
  EXPECT_TRUE(root.at("b").boolean());
  const auto error = [&](const auto& read) { return error_of([&] { read(root); }); };
  EXPECT_EQ(error([](const JsonNode& n) { n.at("x"); }), "a.json: x is missing; write it well");
  EXPECT_THAT(error([](const JsonNode& n) { n.at("s").integer(); }),
              HasSubstr("s is of type string, expected integer"));
  EXPECT_THAT(error([](const JsonNode& n) { n.at("f").integer(); }), HasSubstr("expected integer"));
  EXPECT_THAT(error([](const JsonNode& n) { n.at("big").integer(); }),
              HasSubstr("overflows 64 bits"));
  EXPECT_THAT(error([](const JsonNode& n) { n.at("s").number(); }), HasSubstr("expected number"));
  EXPECT_THAT(error([](const JsonNode& n) { n.at("i").boolean(); }), HasSubstr("expected boolean"));
  EXPECT_THAT(error([](const JsonNode& n) { n.at("i").string(); }), HasSubstr("expected string"));
  EXPECT_THAT(error([](const JsonNode& n) { n.at("s").at("t"); }), HasSubstr("expected object"));
  EXPECT_THAT(error([](const JsonNode& n) { n.at("l").find("t"); }), HasSubstr("expected object"));
  EXPECT_THAT(error([](const JsonNode& n) { n.each([](const JsonNode&) {}); }),
              HasSubstr("the file is of type object, expected array"));
  EXPECT_THAT(error([](const JsonNode& n) {
                n.at("l").each([](const JsonNode& element) { element.string(); });
              }),
              HasSubstr("l[0] is of type number, expected string"));
  EXPECT_THAT(error([](const JsonNode& n) { n.at("l").element(1); }),
              HasSubstr("l has 1 elements, expected more than 1"));
  EXPECT_EQ(error_of([&] { JsonNode(json).at("x"); }), "x is missing") << "no origin, no hint";
  EXPECT_ERROR(StartsWith("invalid JSON"), parse_json("["));
}

}  // namespace
}  // namespace bertcl::text
