// SPDX-License-Identifier: Apache-2.0
// The codes of elementwise kernels: those of operators, and those of activations, which are the
// same functions.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "kernels/types.hpp"
#include "ops/op.hpp"

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

}  // namespace
}  // namespace bertcl::plan
