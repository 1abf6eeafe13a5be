// SPDX-License-Identifier: Apache-2.0
// Tables: quotes, and extensions in capitals.
#include "tasks/data/table.hpp"

#include <gtest/gtest.h>

#include "tasks/data/readers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

TEST(ParseTable, RefusesTextAfterAClosingQuote) {
  const auto parsed = [](std::string_view text) { return parse_table(text, ',', true, "a.csv"); };
  const std::string expected = ": text after a closing quote (its field begins in line ";
  // Two unclosed quotes.
  EXPECT_ERROR(HasSubstr("a.csv:4" + expected + "2); a quote inside quotes is written twice"),
               parsed("text,label\n\"Hello,pos\nbad,neg\n\"World,pos\nx,neg\n"));
  EXPECT_ERROR(HasSubstr("a.csv:1" + expected + "1)"), parsed("\"a\"b,pos\n"));
  EXPECT_ERROR(HasSubstr("a.csv:1" + expected + "1)"), parsed("\"a\" \"b\",pos\n"));
  const Table table = parsed("\"a\"\"b\",\"\" ,\"c\"\r\nd \"e\",f,\"g\"\r");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(table.rows[0], testing::ElementsAre("a\"b", " ", "c"));
  EXPECT_THAT(table.rows[1], testing::ElementsAre("d \"e\"", "f", "g\r"));
}

TEST(ReadTables, ExtensionsInCapitals) {
  const ScratchFile csv("text,label\n\"a, b\",pos\n", ".CSV");
  EXPECT_EQ(read_classified(csv.path()).at(0).text, "a, b");
  const ScratchFile tsv("a, b\tc\t3\n", ".TSV");
  EXPECT_EQ(read_scored_pairs(tsv.path()).at(0).first, "a, b");
}

}  // namespace
}  // namespace bertcl::tasks
