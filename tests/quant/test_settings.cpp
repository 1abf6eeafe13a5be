// SPDX-License-Identifier: Apache-2.0
// Options of the quantizer by their names.
#include "quant/settings/settings.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "quant/presets.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant {
namespace {

using testing::AllOf, testing::HasSubstr;

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
  for (const char* yes : {"yes", "on", "1", "True"})
    EXPECT_TRUE(residual({{"residual", yes}})) << yes;
  for (const char* no : {"no", "off", "0", "-1"}) EXPECT_FALSE(residual({{"residual", no}})) << no;

  EXPECT_EQ(with({{"reduce_range", ""}}).weights.scheme.steps, Steps::reduced);
  EXPECT_EQ(with({{"reduce_range", "false"}}).weights.scheme.steps, Steps::standard);
  EXPECT_EQ(with({{"full_range", "false"}}).weights.scheme.steps, Steps::standard);
  EXPECT_EQ(with({{"two_sided", "false"}}).method_options.symmetric, true);
}

TEST(Settings, OtherValuesOfFlagsAreRefusedByName) {
  for (const auto& [flag, name] : {std::pair{"residual", "residual"},
                                   {"no_residual", "residual"},
                                   {"reduce_range", "reduce_range"},
                                   {"narrow_range", "full_range"},
                                   {"absolute", "two_sided"}}) {
    for (const char* value : {"maybe", "x"})
      EXPECT_ERROR(AllOf(HasSubstr(name), HasSubstr("is neither true nor false")),
                   with({{flag, value}}));
    EXPECT_ERROR(HasSubstr("is neither true nor false"), with({{flag, "99999999999999999999"}}));
  }
}

}  // namespace
}  // namespace bertcl::quant
