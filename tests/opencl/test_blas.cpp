// SPDX-License-Identifier: Apache-2.0
// CLBlast against a plain loop in double on ragged sizes, and its errors.
#include <cmath>
#include <limits>
#include <random>

#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/launch/blas.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::opencl {
namespace {

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(-1.0f, 1.0f);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(engine);
  return values;
}

std::vector<double> reference(const Gemm& g, const std::vector<float>& a,
                              const std::vector<float>& b, const std::vector<float>& c) {
  std::vector<double> result(c.begin(), c.end());
  for (size_t batch = 0; batch < g.batch; ++batch)
    for (size_t i = 0; i < g.m; ++i)
      for (size_t j = 0; j < g.n; ++j) {
        double sum = 0;
        for (size_t k = 0; k < g.k; ++k)
          sum += double{a[batch * g.a_stride + i * g.k + k]} *
                 double{b[batch * g.b_stride + k * g.n + j]};
        double& out = result[batch * g.c_stride + i * g.n + j];
        out = sum + (g.beta == 0 ? 0 : double{g.beta} * out);
      }
  return result;
}

TEST(Blas, AgreesWithAPlainLoopOnRaggedSizes) {
  auto context = Context::create("cpu");
  const size_t sizes[][3] = {{1, 1, 1},    {1, 2, 384},    {37, 50, 65},
                             {63, 64, 65}, {128, 96, 100}, {7, 129, 31}};
  unsigned seed = 1;
  for (const auto& [m, n, k] : sizes)
    for (int form = 0; form < 4; ++form) {
      Gemm g;
      g.m = m, g.n = n, g.k = k;
      g.beta = form & 1 ? 2.0f : 0.0f;
      g.batch = form & 2 ? 3 : 1;
      g.a_stride = m * k + 2, g.b_stride = form == 3 ? 0 : k * n + 1, g.c_stride = m * n + 3;
      const auto a = random_values(g.a_stride * g.batch, seed++);
      const auto b = random_values(g.b_stride * g.batch + k * n, seed++);
      // What beta = 0 overwrites may be anything, what lies outside of C stays as it is.
      std::vector<float> c = random_values(g.c_stride * g.batch, seed++);
      if (g.beta == 0) c[0] = c[m * n - 1] = std::numeric_limits<float>::quiet_NaN();
      Buffer buffer_a = context->allocate(a.size() * sizeof(float));
      Buffer buffer_b = context->allocate(b.size() * sizeof(float));
      Buffer buffer_c = context->allocate(c.size() * sizeof(float));
      buffer_a.upload(a);
      buffer_b.upload(b);
      buffer_c.upload(c);
      gemm_f32(*context, g, buffer_a, buffer_b, buffer_c);
      const auto found = buffer_c.download<float>();
      const auto expected = reference(g, a, b, c);
      double error = 0, norm = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        error += (found[i] - expected[i]) * (found[i] - expected[i]);
        norm += expected[i] * expected[i];
      }
      EXPECT_LE(std::sqrt(error / norm), 80 * std::numeric_limits<float>::epsilon())
          << m << "x" << n << "x" << k << " form " << form;
      for (size_t i = 0; i < found.size(); ++i) {
        if (i % g.c_stride >= m * n) {
          ASSERT_EQ(found[i], c[i]) << "written outside of C at " << i;
        }
      }
    }
}

TEST(Blas, ErrorsNameTheMatrixAndTheSizes) {
  auto context = Context::create("cpu");
  Buffer small = context->allocate(16), large = context->allocate(1024);
  Gemm g;
  g.m = 4, g.n = 4, g.k = 4;
  const auto message = [&](const Buffer& a, const Buffer& b, Buffer& c) {
    return error_of([&] { gemm_f32(*context, g, a, b, c, "ffn.0"); });
  };
  EXPECT_THAT(message(small, large, large), HasSubstr("ffn.0: GEMM of 4x4x4"));
  EXPECT_THAT(message(small, large, large), HasSubstr("A needs 64 bytes, but its buffer has 16"));
  EXPECT_THAT(message(large, small, large), HasSubstr("B needs"));
  EXPECT_THAT(message(large, large, small), HasSubstr("C needs"));
  g.k = 0;
  EXPECT_THAT(message(large, large, large), HasSubstr("kInvalidDimension"));
  g.m = 0;
  EXPECT_EQ(message(large, large, large), kNoError);
}

TEST(Blas, HalfNeedsTheCapability) {
  auto context = Context::create("cpu");
  if (context->capabilities().fp16) GTEST_SKIP() << "the device has half";
  Buffer buffer = context->allocate(1024);
  Gemm g;
  g.m = 4, g.n = 4, g.k = 4;
  EXPECT_ERROR(HasSubstr("does not support fp16 arithmetic"),
               gemm_f16(*context, g, buffer, buffer, buffer));
}

TEST(Blas, ProfileCoversTheWholeCall) {
  auto context = Context::create("cpu");
  Buffer buffer = context->allocate(100 * 100 * sizeof(float));
  Buffer result = context->allocate(100 * 100 * sizeof(float));
  buffer.fill(0);
  Gemm g;
  g.m = 100, g.n = 100, g.k = 100;
  gemm_f32(*context, g, buffer, buffer, result);
  context->queue().enable_profiling(true);
  for (int i = 0; i < 2; ++i) gemm_f32(*context, g, buffer, buffer, result, "gemm");
  const auto entries = context->queue().profile();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].label, "gemm");
  EXPECT_EQ(entries[0].kernel, "CLBlast");
  EXPECT_EQ(entries[0].calls, 2u);
  EXPECT_GT(entries[0].ns, 0u);
}

}  // namespace
}  // namespace bertcl::opencl
