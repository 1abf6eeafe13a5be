// SPDX-License-Identifier: Apache-2.0
// The codes of elementwise kernels: those of operators, and those of activations, which are the
// same functions.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "kernels/types.hpp"
#include "ops/op.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::plan {
namespace {

TEST(ElementwiseCodes, AnActivationHasThatOfItsOperator) {
  for (const auto& [activation, op] :
       std::map<std::string, std::string>{{"gelu", "Gelu"}, {"relu", "Relu"}, {"tanh", "Tanh"}})
    EXPECT_EQ(kernels::unary_code(activation), ops::find(op)->traits.unary_code) << op;
}

TEST(ElementwiseCodes, NoTwoOperatorsShareOne) {
  std::map<std::int32_t, std::string> unary, binary;
  for (const std::string& op : ops::names()) {
    const ops::Traits& traits = ops::find(op)->traits;
    EXPECT_TRUE(!traits.unary_code || unary.emplace(*traits.unary_code, op).second) << op;
    EXPECT_TRUE(!traits.binary_code || binary.emplace(*traits.binary_code, op).second) << op;
  }
  EXPECT_FALSE(unary.empty() || binary.empty());
}

TEST(ElementwiseCodes, OfATypeThatNoKernelTakesNameTheOthers) {
  EXPECT_ERROR(testing::StrEq(
                   "no kernels for element type u16 (supported: f32, u8, i8, f16, i32, i64, bool, "
                   "bf16)"),
               kernels::type_code(ir::DType::u16));
}

}  // namespace
}  // namespace bertcl::plan
