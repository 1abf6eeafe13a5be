// SPDX-License-Identifier: Apache-2.0
// The list of kernels that GemmS8 tests, beside the table of variants.
#include <set>
#include <string>

#include "tests/kernels_cl/gemm_variants.hpp"

namespace bertcl::tests {
namespace {

TEST(GemmS8Variants, AllOfTheTableAreTested) {
  std::set<std::string> tested;
  for (const GemmKernel& kernel : gemm_s8_variants()) tested.insert(kernel.program);
  for (const kernels::GemmVariant& variant : kernels::gemm_s8_variants()) {
    EXPECT_TRUE(tested.contains(variant.program)) << variant.name;
    EXPECT_TRUE(variant.small_m_program.empty() || tested.contains(variant.small_m_program))
        << variant.name;
  }
}

}  // namespace
}  // namespace bertcl::tests
