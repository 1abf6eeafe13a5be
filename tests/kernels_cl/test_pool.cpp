// SPDX-License-Identifier: Apache-2.0
// Pooled rows against plain loops: by work-items, and by work-groups with reductions of each kind.
#include <algorithm>
#include <cmath>

#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/rows.hpp"

namespace bertcl::tests {
namespace {

constexpr int32_t kMean = 0, kMax = 1, kCls = 2, kLast = 3;
constexpr float kMinNorm = 1e-12f;

struct Case {
  std::vector<size_t> lengths;
  size_t hidden = 0, columns = 0;
  int32_t kind = kMean, normalize = 0;
  bool masked = false;

  std::string name() const {
    return std::to_string(lengths.size()) + " sequences, " + std::to_string(columns) + " of " +
           std::to_string(hidden) + " columns, kind " + std::to_string(kind) +
           (normalize ? ", normalized" : "") + (masked ? ", masked" : "");
  }
};

struct Tokens {
  explicit Tokens(const Case& of) {
    for (const size_t length : of.lengths)
      offsets.push_back(offsets.back() + static_cast<int32_t>(length));
    const auto count = static_cast<size_t>(offsets.back());
    x = normal_values(count * of.hidden, static_cast<unsigned>(count + of.hidden));
    mask.assign(count, 1);
    for (size_t t = 0; of.masked && t < count; ++t) mask[t] = t % 3 == 1;
    for (size_t t = 0; t < count; ++t)  // what does not count may hold anything
      if (!mask[t])
        std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(t * of.hidden), of.hidden, nans()[1]);
  }
  std::vector<int32_t> offsets{0};
  std::vector<float> x;
  std::vector<uint8_t> mask;
};

std::vector<double> expected(const Case& of, const Tokens& tokens) {
  std::vector<double> out;
  for (size_t b = 0; b < of.lengths.size(); ++b) {
    std::vector<size_t> rows;
    for (int32_t t = tokens.offsets[b]; t < tokens.offsets[b + 1]; ++t)
      if (tokens.mask[static_cast<size_t>(t)]) rows.push_back(static_cast<size_t>(t));
    if (of.kind == kCls && !rows.empty()) rows = {rows.front()};
    if (of.kind == kLast && !rows.empty()) rows = {rows.back()};
    std::vector<double> vector;
    double squares = 0;
    for (size_t i = 0; i < of.columns; ++i) {
      double value = 0;
      for (size_t k = 0; k < rows.size(); ++k) {
        const double v = tokens.x[rows[k] * of.hidden + i];
        value = of.kind == kMax && k > 0 ? std::max(value, v) : of.kind == kMax ? v : value + v;
      }
      if (of.kind == kMean && !rows.empty()) value /= static_cast<double>(rows.size());
      vector.push_back(value);
      squares += value * value;
    }
    const double divisor = of.normalize ? std::max<double>(std::sqrt(squares), kMinNorm) : 1.0;
    for (const double v : vector) out.push_back(v / divisor);
  }
  return out;
}

/// 0 items: pool.cl, else work-groups of that many.
std::vector<float> pooled(const Case& of, const Tokens& tokens, int items, int subgroups) {
  opencl::Buffer mask;
  if (of.masked) mask = upload(tokens.mask);
  const Output<float> out(of.lengths.size() * of.columns);
  const auto vectors =
      static_cast<int>(ceil_div(of.columns, static_cast<size_t>(4 * std::max(items, 1))));
  opencl::Kernel kernel =
      items == 0 ? device().kernel("pool", "pool")
                 : group_kernel("pool_group", "pool",
                                {{"ITEMS", items}, {"VECTORS", vectors}, {"SUBGROUPS", subgroups}});
  kernels::set(kernel,
               kernels::Pool<KernelArgument>{.x = upload(tokens.x),
                                             .seq_offsets = upload(tokens.offsets),
                                             .key_mask = mask,
                                             .out = out.buffer(),
                                             .kind = of.kind,
                                             .hidden = static_cast<int32_t>(of.hidden),
                                             .columns = static_cast<int32_t>(of.columns),
                                             .unit_norm = of.normalize,
                                             .min_norm = kMinNorm,
                                             .batch = static_cast<int32_t>(of.lengths.size())});
  const auto group = static_cast<size_t>(items);
  if (items == 0)
    device().queue().launch_items(kernel, {of.lengths.size(), 1, 1});
  else
    device().queue().launch(kernel, {group * of.lengths.size(), 1, 1}, {group, 1, 1});
  device().queue().finish();
  return out.values();
}

struct Way {
  int items = 0, subgroups = 0;
};

class Pool : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const auto reason = lacks(GetParam().subgroups ? &opencl::Capabilities::subgroups : nullptr);
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  std::vector<float> run_case(const Case& of, const Tokens& tokens) const {
    return pooled(of, tokens, GetParam().items, GetParam().subgroups);
  }
};

TEST_P(Pool, AsPlainLoops) {
  const std::pair<size_t, size_t> sizes[] = {{1, 1},     {3, 2},    {16, 16}, {31, 31},
                                             {63, 61},   {64, 64},  {65, 63}, {128, 127},
                                             {384, 384}, {384, 128}};
  for (const auto& [hidden, columns] : sizes)
    for (const int32_t kind : {kMean, kMax, kCls, kLast})
      for (const bool masked : {false, true})
        for (const int32_t normalize : {0, 1}) {
          const Case of{{1, 7, 2, 31, 1, 16}, hidden, columns, kind, normalize, masked};
          const Tokens tokens(of);
          expect_close(run_case(of, tokens), expected(of, tokens), of.name());
        }
}

TEST_P(Pool, ManyTokensOfOneSequence) {
  const Case of{{509}, 384, 384, kMean, 1, false};
  const Tokens tokens(of);
  expect_close(run_case(of, tokens), expected(of, tokens), of.name());
}

// The row of a sequence has the same bits whatever else is in the batch.
TEST_P(Pool, ARowDoesNotDependOnTheBatch) {
  const Case of{{5, 13, 1, 29}, 97, 97, kMean, 1, false};
  const Tokens tokens(of);
  const std::vector<float> together = run_case(of, tokens);
  for (size_t b = 0; b < of.lengths.size(); ++b) {
    const Case one{{of.lengths[b]}, of.hidden, of.columns, kMean, 1, false};
    Tokens alone(one);
    std::copy_n(tokens.x.begin() +
                    static_cast<std::ptrdiff_t>(static_cast<size_t>(tokens.offsets[b]) * of.hidden),
                alone.x.size(), alone.x.begin());
    const auto begin = together.begin() + static_cast<std::ptrdiff_t>(b * of.columns);
    expect_equal(run_case(one, alone), {begin, begin + static_cast<std::ptrdiff_t>(of.columns)},
                 "sequence " + std::to_string(b));
  }
}

// Both add the tokens in their order; groups load some at a time.
TEST_P(Pool, SumsHaveTheBitsOfThoseOfWorkItems) {
  for (const auto& [hidden, columns] : {std::pair<size_t, size_t>{97, 93}, {100, 97}, {512, 509}})
    for (const int32_t kind : {kMean, kMax})
      for (const bool masked : {false, true}) {
        const Case of{{1, 2, 3, 4, 5, 7, 8, 9, 61}, hidden, columns, kind, 0, masked};
        const Tokens tokens(of);
        expect_equal(run_case(of, tokens), pooled(of, tokens, 0, 0), of.name());
      }
}

// As torch's clamp_min: a norm of NaN is one, a row of zeros stays.
TEST_P(Pool, NanSpreadsOverItsOwnRowAndZerosStay) {
  for (const int32_t kind : {kMean, kMax}) {
    const Case of{{3, 2, 4}, 33, 33, kind, 1, false};
    Tokens tokens(of);
    tokens.x[33 + 5] = nans()[0];
    std::fill(tokens.x.begin() + 3 * 33, tokens.x.begin() + 5 * 33, 0.0f);
    const std::vector<float> out = run_case(of, tokens);
    for (size_t i = 0; i < 33; ++i) {
      EXPECT_TRUE(std::isnan(out[i])) << i;
      EXPECT_EQ(out[33 + i], 0.0f) << i;
      EXPECT_TRUE(std::isfinite(out[66 + i])) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Pool,
                         ::testing::Values(Way{}, Way{64, 0}, Way{256, 0}, Way{64, 1}),
                         [](const auto& test) {
                           return test.param.items == 0
                                      ? std::string("items")
                                      : "groups_of_" + std::to_string(test.param.items) +
                                            (test.param.subgroups ? "_subgroups" : "");
                         });

}  // namespace
}  // namespace bertcl::tests
