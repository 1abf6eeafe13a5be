// SPDX-License-Identifier: Apache-2.0
// Views for the generic kernels.
#include "plan/strided.hpp"

#include <gtest/gtest.h>

namespace bertcl::plan {
namespace {

const ir::Dim batch = ir::Dim::symbol("batch"), seq = ir::Dim::symbol("seq");

TEST(Strided, ContiguousDimensionsJoin) {
  const ir::Shape shape{batch, seq, 8};
  const View v = coalesced({shape, {row_major(shape), row_major(shape)}});
  EXPECT_EQ(v.extents, (ir::Shape{ir::Dim(8) * batch * seq}));
  EXPECT_EQ(v.strides[0], (Strides{1}));
}

TEST(Strided, ABroadcastVectorKeepsItsOwnDimension) {
  const ir::Shape shape{batch, seq, 8};
  const View v = coalesced({shape, {row_major(shape), broadcast({8}, shape)}});
  EXPECT_EQ(v.extents, (ir::Shape{batch * seq, 8}));
  EXPECT_EQ(v.strides[1], (Strides{0, 1}));
}

TEST(Strided, TransposedHeads) {
  const ir::Shape from{batch, seq, 2, 4}, to{batch, 2, seq, 4};
  const Strides s = row_major(from);
  const View v = coalesced({to, {{s[0], s[2], s[1], s[3]}, row_major(to)}});
  EXPECT_EQ(v.extents, to);
  EXPECT_EQ(v.strides[0], (Strides{ir::Dim(8) * seq, 4, 8, 1}));
}

TEST(Strided, ExtentsOfOneDisappear) {
  const View v = coalesced({{1, seq, 1}, {{seq, 1, 1}}});
  EXPECT_EQ(v.extents, (ir::Shape{seq}));
}

}  // namespace
}  // namespace bertcl::plan
