// SPDX-License-Identifier: Apache-2.0
// The list of passes, and what is left out of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bertcl/error.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {
namespace {

std::set<std::string> names_without(const std::string& pass) {
  std::set<std::string> names;
  for (const Pass& p : pipeline({.disabled = {pass}})) names.insert(p.name);
  return names;
}

TEST(Pipeline, WhatServesADisabledPassAloneIsLeftOutWithIt) {
  const std::set<std::string> all = names_without("");
  for (const std::string pass : {"pack_tokens", "find_attention", "find_embedding"}) {
    EXPECT_TRUE(all.contains(pass));
    EXPECT_FALSE(names_without("pack_tokens").contains(pass)) << pass;
  }
  EXPECT_FALSE(names_without("lower_attention_q").contains("find_attention"));
  EXPECT_EQ(names_without("find_gelu").size(), all.size() - 1);
}

TEST(Pipeline, RowsOfPaddingStayMaskedWhereTheyAreKept) {
  const auto has = [](bool drop_padding) {
    Options options;
    options.drop_padding = drop_padding;
    const auto all = pipeline(options);
    return std::any_of(all.begin(), all.end(),
                       [](const Pass& pass) { return pass.name == "drop_row_mask"; });
  };
  EXPECT_TRUE(has(true));
  EXPECT_FALSE(has(false));
}

TEST(Pipeline, EndsWithThePassThatIsNamed) {
  const auto some = pipeline_up_to("find_gelu");
  EXPECT_EQ(some.back().name, "find_gelu");
  EXPECT_EQ(some.front().name, pipeline({}).front().name);
  EXPECT_LT(some.size(), pipeline({}).size());
  EXPECT_THROW(pipeline_up_to("find_gelus"), Error);
}

TEST(Pipeline, WhatEveryGraphNeedsStays) {
  EXPECT_THROW(pipeline({.disabled = {"resolve_shapes"}}), Error);
}

}  // namespace
}  // namespace bertcl::passes
