// SPDX-License-Identifier: Apache-2.0
// Equal nodes that become one.
#include "check.hpp"

namespace bertcl::passes {

Pass share_common();
namespace {

TEST(ShareCommon, EqualPairsBecomeOneAndOthersStay) {
  EXPECT_DIFF(share_common(), R"(graph g(%x: f32[4]) {
  const %s1: f32[] = 0.5
- const %s2: f32[] = 0.5
+ %a: i8[4] = QuantizeLinear(%x, %s1)
  const %s3: f32[] = 0.25
- %a: i8[4] = QuantizeLinear(%x, %s1)
- %b: i8[4] = QuantizeLinear(%x, %s2)
  %c: i8[4] = QuantizeLinear(%x, %s3)
- return %a as a, %b as b, %c as c
+ return %a as a, %a as b, %c as c
})");
}

}  // namespace
}  // namespace bertcl::passes
