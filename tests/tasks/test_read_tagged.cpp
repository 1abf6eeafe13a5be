// SPDX-License-Identifier: Apache-2.0
// Sentences without tokens, and tags without a type.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tasks/data/readers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

TEST(ReadTagged, TagsWithoutAType) {
  const ScratchFile file("deep\tB\nlearning\tI\n");
  EXPECT_EQ(read_tagged(file.path()).at(0).tags, (std::vector<std::string>{"B", "I"}));
}

TEST(ReadTagged, LinesWithoutTokensHaveAnId) {
  const ScratchFile file(
      "{\"tokens\": [], \"tags\": []}\n{\"tokens\": [\"a\"], \"tags\": [\"B\"]}\n", ".jsonl");
  const auto sentences = read_tagged(file.path());
  ASSERT_EQ(sentences.size(), 2u);
  EXPECT_EQ(sentences[0].id, "0");
  EXPECT_TRUE(sentences[0].words.empty());
  EXPECT_EQ(sentences[1].id, "1");
}

}  // namespace
}  // namespace bertcl::tasks
