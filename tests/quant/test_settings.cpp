// SPDX-License-Identifier: Apache-2.0
// Options of the quantizer by their names.
#include "quant/settings/settings.hpp"

#include <gtest/gtest.h>

#include "quant/presets.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant {
namespace {

using testing::HasSubstr;

Options with(const std::vector<Setting>& settings) {
  Options options = preset("default").options();
  apply(settings, {}, options);
  return options;
}

TEST(Settings, FlagsTakeTrueAndFalseAndTheLastOneCounts) {
  const auto residual = [](const std::vector<Setting>& settings) {
    return with(settings).placement.op_types.contains("Add");
  };
  EXPECT_FALSE(residual({}));
  EXPECT_TRUE(residual({{"residual", ""}}));
  EXPECT_TRUE(residual({{"residual", "true"}}));
  EXPECT_FALSE(residual({{"residual", "false"}}));
  EXPECT_TRUE(residual({{"no_residual", ""}, {"residual", ""}}));
  EXPECT_FALSE(residual({{"residual", ""}, {"no_residual", ""}}));
  EXPECT_TRUE(residual({{"no_residual", "false"}}));

  EXPECT_EQ(with({{"reduce_range", ""}}).weights.scheme.steps, Steps::reduced);
  EXPECT_EQ(with({{"reduce_range", "false"}}).weights.scheme.steps, Steps::standard);
  EXPECT_EQ(with({{"full_range", "false"}}).weights.scheme.steps, Steps::standard);
  EXPECT_EQ(with({{"two_sided", "false"}}).method_options.symmetric, true);
}

TEST(Settings, OtherValuesOfFlagsAreRefusedByName) {
  for (const char* flag : {"residual", "no_residual", "reduce_range", "narrow_range", "absolute"})
    for (const char* value : {"maybe", "x", "99999999999999999999"})
      EXPECT_ERROR(HasSubstr("is neither true nor false"), with({{flag, value}}));
}

}  // namespace
}  // namespace bertcl::quant
