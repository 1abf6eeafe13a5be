// SPDX-License-Identifier: Apache-2.0
// Sizes that do not fit 64 bits are errors.
#include <gtest/gtest.h>

#include <limits>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"
#include "ir/dim.hpp"
#include "ir/tensor.hpp"

namespace bertcl::ir {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(Checked, ProductsAndSums) {
  EXPECT_EQ(product(1LL << 31, 1LL << 31, "a"), 1LL << 62);
  EXPECT_THROW(product(1LL << 32, 1LL << 31, "a"), Error);
  EXPECT_EQ(sum(kMax - 1, 1, "a"), kMax);
  EXPECT_THROW(sum(kMax, 1, "a"), Error);
}

TEST(Checked, Dimensions) {
  EXPECT_THROW(Dim(1LL << 40) * Dim(1LL << 40), Error);
  EXPECT_THROW((Dim::symbol("n") * Dim(1LL << 40)).evaluate({{"n", 1LL << 40}}), Error);
  EXPECT_FALSE(Dim::parse("4611686018427387904*4"));
  EXPECT_FALSE(Dim::divide(Dim(std::numeric_limits<std::int64_t>::min()), Dim(-1)));
  EXPECT_EQ(element_count(Shape{Dim(kMax), Dim(kMax), Dim(0)}), Dim(0)) << "it has none";
}

TEST(Checked, Tensors) {
  EXPECT_THROW(Tensor::zeros(DType::f32, {1LL << 32, 1LL << 32}), Error);
  EXPECT_THROW(Tensor::zeros(DType::f32, {1LL << 62}), Error);
  EXPECT_THROW(Tensor(DType::f32, {1LL << 32, 1LL << 32}, nullptr, {}), Error);
  EXPECT_EQ(Tensor::zeros(DType::f32, {1LL << 62, 0}).size(), 0);
}

}  // namespace
}  // namespace bertcl::ir
