// SPDX-License-Identifier: Apache-2.0
// What a norm writes, in tests of one kernel against another.
#pragma once
#include <string>

#include "device_test.hpp"

namespace bertcl::tests {

/// f32 and two quantized results.
struct NormResults {
  explicit NormResults(size_t count) : sum(count), out(count), q(count), r(count) {}
  Output<float> sum, out;
  Output<uint8_t> q;
  Output<int8_t> r;
  void expect(const NormResults& expected, const std::string& what) const {
    expect_close(sum.values(), expected.sum.values(), what + ", sum");
    expect_close(out.values(), expected.out.values(), what);
    expect_quantized(q.values(), expected.q.values(), what + ", u8");
    expect_quantized(r.values(), expected.r.values(), what + ", s8");
  }
};

}  // namespace bertcl::tests
