// SPDX-License-Identifier: Apache-2.0
// What every HTML report keeps to.
#pragma once
#include <string>
#include <vector>

#include "tests/support/matchers.hpp"

namespace bertcl::tests {

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// Reads the tags of a page; fails where one is not closed, or closed without being open.
inline void expect_well_formed(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const std::size_t end = page.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = page.substr(at + 1, end - at - 1);
    at = end;
    if (tag.starts_with('!') || tag.ends_with('/')) continue;
    const std::string name = tag.substr(0, tag.find_first_of(" \n"));
    if (name.starts_with('/')) {
      ASSERT_FALSE(open.empty()) << tag;
      ASSERT_EQ(open.back(), name.substr(1));
      open.pop_back();
    } else {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty()) << open.back();
}

/// Well formed, filled in, and without anything from elsewhere or that runs.
inline void expect_page(const std::string& page) {
  expect_well_formed(page);
  for (const char* outside : {"http", "src=", "href=", "url(", "@import", "<script", "<link"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  // Readers of screens follow the heads of tables.
  EXPECT_EQ(count(page, "<th>"), 0u);
  EXPECT_EQ(count(page, "<th "), count(page, "scope=\"col\"") + count(page, "scope=\"row\""));
}

}  // namespace bertcl::tests
