// SPDX-License-Identifier: Apache-2.0
// Which operators have a kernel, as docs/operators.md says.
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "ops/op.hpp"
#include "plan/builder.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::plan {
namespace {

/// Passes put others in their place, which have kernels.
const std::set<std::string> kReplaced = {"LayerNormalization", "QLinearMatMul", "RMSNormalization",
                                         "OneHot", "Trilu"};

TEST(Operators, TheDocumentationMarksThoseWithoutAKernel) {
  std::ifstream page(tests::source_file("docs/operators.md"));
  std::vector<std::string> marked, without;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("- `") || line.find('`', 3) == line.npos) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    if (line.ends_with("` (host only)")) marked.push_back(name);
    if (ops::find(name) && !find_lowering(name) && !kReplaced.contains(name))
      without.push_back(name);
  }
  EXPECT_THAT(marked, ElementsAreArray(without));
  EXPECT_FALSE(without.empty());
}

}  // namespace
}  // namespace bertcl::plan
