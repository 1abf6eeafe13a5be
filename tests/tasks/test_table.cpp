// SPDX-License-Identifier: Apache-2.0
// What separates the fields of a table.
#include "tasks/table.hpp"

#include <gtest/gtest.h>

#include "tasks/readers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

TEST(Separator, IsThatOfTheExtension) {
  for (const char usual : {',', '\t'}) {
    EXPECT_EQ(separator_of("a.csv", "a\tb\n", usual), ',');
    EXPECT_EQ(separator_of("a.CSV", "a\tb\n", usual), ',');
    EXPECT_EQ(separator_of("a.tsv", "a,b\n", usual), '\t');
    EXPECT_EQ(separator_of("a.Tsv", "a,b\n", usual), '\t');
    EXPECT_EQ(separator_of("a.txt", "a,b\n", usual), usual);
    EXPECT_EQ(separator_of("csv", "a,b\n", usual), usual);
  }
}

TEST(Separator, OfStandardInputIsThatOfTheFirstLine) {
  for (const char usual : {',', '\t'}) {
    EXPECT_EQ(separator_of("-", "text,label\na\tb,c\n", usual), ',');
    EXPECT_EQ(separator_of("-", "a, b\tc\n", usual), '\t');
    EXPECT_EQ(separator_of("-", "", usual), ',');
  }
}

TEST(ReadTables, ExtensionsInCapitals) {
  const ScratchFile csv("text,label\n\"a, b\",pos\n", ".CSV");
  EXPECT_EQ(read_classified(csv.path()).at(0).text, "a, b");
  const ScratchFile tsv("a, b\tc\t3\n", ".TSV");
  EXPECT_EQ(read_scored_pairs(tsv.path()).at(0).first, "a, b");
}

}  // namespace
}  // namespace bertcl::tasks
