// SPDX-License-Identifier: Apache-2.0
// unpack and Split in one.
#include <fmt/format.h>

#include "check.hpp"

namespace bertcl::passes {

Pass fuse_unpack_split();
namespace {

/// A graph of packed rows [$tokens, 5] that are unpacked and split along `axis`.
std::string split_along(std::string_view axis, std::string_view type, std::string_view more = "") {
  return fmt::format(R"(graph g(%x: {1}[$tokens, 5], %o: i32[$offsets]) {{
  %u: {1}[batch, seq, 5] = unpack(%x, %o)
  %s: {1}[batch, seq, 2], %e: {1}[batch, seq, 3] = Split(%u) {{axis = {0}, split = [2, 3]}}
  return %e as end, %s as start{2}
}})",
                     axis, type, more);
}

TEST(FuseUnpackSplit, PartsOfTheColumns) {
  for (const char* type : {"f32", "i64"})
    for (const char* axis : {"2", "-1"})
      EXPECT_REWRITE(fuse_unpack_split(), split_along(axis, type),
                     fmt::format(R"(graph g(%x: {0}[$tokens, 5], %o: i32[$offsets]) {{
  %s: {0}[batch, seq, 2], %e: {0}[batch, seq, 3] = unpack(%x, %o)
  return %e as end, %s as start
}})",
                                 type));
}

TEST(FuseUnpackSplit, WholeRowsThatAreReadAreUnpackedOnce) {
  EXPECT_UNCHANGED(fuse_unpack_split(), split_along("2", "f32", ", %u as whole"));
}

TEST(FuseUnpackSplit, BytesAreNoWords) {
  EXPECT_UNCHANGED(fuse_unpack_split(), split_along("2", "u8"));
}

TEST(FuseUnpackSplit, OtherAxesAndMorePartsStay) {
  EXPECT_UNCHANGED(fuse_unpack_split(), R"(graph g(%x: f32[$tokens, 3], %o: i32[$offsets]) {
  %u: f32[4, seq, 3] = unpack(%x, %o)
  %s: f32[1, seq, 3], %e: f32[3, seq, 3] = Split(%u) {axis = 0, split = [1, 3]}
  return %s as s, %e as e
})");
  EXPECT_UNCHANGED(fuse_unpack_split(), R"(graph g(%x: f32[$tokens, 3], %o: i32[$offsets]) {
  %u: f32[batch, seq, 3] = unpack(%x, %o)
  %a: f32[batch, seq, 1], %b: f32[batch, seq, 1], %c: f32[batch, seq, 1] = Split(%u) {axis = 2, split = [1, 1, 1]}
  return %a as a, %b as b, %c as c
})");
}

}  // namespace
}  // namespace bertcl::passes
