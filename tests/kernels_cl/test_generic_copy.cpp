// SPDX-License-Identifier: Apache-2.0
// Kernels that move elements: copy_strided, where, gather, pack, unpack, cast, range.
#include <algorithm>
#include <numeric>

#include "device_test.hpp"
#include "kernels/contracts/elementwise.hpp"
#include "kernels/contracts/move.hpp"

namespace bertcl::tests {
namespace {

using Ints = std::vector<int32_t>;

Ints row_major_strides(const Ints& dims) {
  Ints strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

int32_t element_count(const Ints& dims) {
  return std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>());
}

/// Place of each element of the view, in row-major order.
std::vector<int64_t> places(const Ints& dims, const Ints& strides) {
  std::vector<int64_t> result(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < result.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) result[i] += rest % dims[d] * strides[d];
  }
  return result;
}

Ints concat(std::initializer_list<Ints> lists) {
  Ints result;
  for (const Ints& list : lists) result.insert(result.end(), list.begin(), list.end());
  return result;
}

template <typename T>
std::string suffix() {
  return std::to_string(sizeof(T));
}

template <typename T>
void expect_copy(const Ints& dims, const Ints& from, const Ints& to, int32_t from_start,
                 int32_t to_start, size_t from_size, size_t to_size) {
  const auto source = integers<T>(from_size, 1, 0, 200);
  for (int32_t chunk : {1, 5, 64, 100000}) {
    std::vector<T> expected(to_size);
    std::memset(expected.data(), 0xAA, to_size * sizeof(T));
    const auto read = places(dims, from), write = places(dims, to);
    for (size_t i = 0; i < read.size(); ++i)
      expected[to_start + write[i]] = source[from_start + read[i]];
    Output<T> out(to_size);
    run("copy_strided", "copy_strided_" + suffix<T>(),
        ceil_div(static_cast<size_t>(element_count(dims)), static_cast<size_t>(chunk)),
        kernels::CopyStrided<KernelArgument>{.source = upload(source),
                                             .target = out.buffer(),
                                             .source_start = from_start,
                                             .target_start = to_start,
                                             .shape = upload(concat({dims, from, to})),
                                             .rank = static_cast<int32_t>(dims.size()),
                                             .count = element_count(dims),
                                             .chunk = chunk});
    expect_equal(out.values(), expected, "chunk " + std::to_string(chunk));
  }
}

template <typename T>
class CopyStrided : public ::testing::Test {};
using ElementTypes = ::testing::Types<uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(CopyStrided, ElementTypes);

TYPED_TEST(CopyStrided, Transpose) {
  // [2][35][3][17] -> [2][3][35][17], and with the last dimension moved.
  expect_copy<TypeParam>({2, 3, 35, 17}, {35 * 51, 17, 51, 1}, row_major_strides({2, 3, 35, 17}), 0,
                         0, 3570, 3570);
  expect_copy<TypeParam>({2, 17, 3, 35}, {35 * 51, 1, 17, 51}, row_major_strides({2, 17, 3, 35}), 0,
                         0, 3570, 3570);
}

TYPED_TEST(CopyStrided, SliceConcatExpandBackwards) {
  expect_copy<TypeParam>({4, 40}, {100, 1}, {40, 1}, 30, 0, 400, 160);  // a slice
  expect_copy<TypeParam>({4, 40}, {40, 1}, {100, 1}, 0, 30, 160, 400);  // a part of a concat
  expect_copy<TypeParam>({3, 5, 20}, {0, 20, 1}, {100, 20, 1}, 0, 0, 100, 300);  // expand
  expect_copy<TypeParam>({3, 50}, {1, 0}, {50, 1}, 0, 0, 3, 150);                // expand the last
  expect_copy<TypeParam>({6, 7}, {7, -1}, {7, 1}, 6, 0, 42, 42);                 // backwards
}

TYPED_TEST(CopyStrided, SixDimensionsAndScalar) {
  expect_copy<TypeParam>({2, 3, 2, 3, 2, 5}, {1, 2, 6, 12, 36, 72},
                         row_major_strides({2, 3, 2, 3, 2, 5}), 0, 0, 360, 360);
  expect_copy<TypeParam>({}, {}, {}, 4, 1, 5, 3);
}

TYPED_TEST(CopyStrided, Fill) {
  std::vector<TypeParam> expected(60);
  std::memset(expected.data(), 0xAA, 60 * sizeof(TypeParam));
  for (size_t row = 0; row < 3; ++row)
    for (size_t i = 0; i < 7; ++i) expected[row * 20 + 4 + i] = 77;
  Output<TypeParam> out(60);
  run("copy_strided", "fill_strided_" + suffix<TypeParam>(), 3,
      kernels::FillStrided<KernelArgument>{.value = upload(std::vector<TypeParam>{77}),
                                           .target = out.buffer(),
                                           .target_start = 4,
                                           .shape = upload(concat({{3, 7}, {0, 0}, {20, 1}})),
                                           .rank = 2,
                                           .count = 21,
                                           .chunk = 10});
  expect_equal(out.values(), expected, "fill");
}

TYPED_TEST(CopyStrided, Where) {
  const Ints dims{3, 4, 33}, c_strides{0, 33, 1}, a_strides{132, 33, 1}, b_strides{0, 0, 0};
  const auto condition = integers<uint8_t>(132, 1, 0, 1);
  const auto a = integers<TypeParam>(396, 2, 0, 200), b = integers<TypeParam>(1, 3, 0, 200);
  const auto c = places(dims, c_strides), x = places(dims, a_strides);
  std::vector<TypeParam> expected;
  for (size_t i = 0; i < 396; ++i) expected.push_back(condition[c[i]] ? a[x[i]] : b[0]);
  Output<TypeParam> out(396);
  run("where", "where_" + suffix<TypeParam>(), 8,
      kernels::Where<KernelArgument>{
          .condition = upload(condition),
          .a = upload(a),
          .b = upload(b),
          .out = out.buffer(),
          .shape = upload(concat({dims, c_strides, a_strides, b_strides})),
          .rank = 3,
          .count = 396,
          .chunk = 50});
  expect_equal(out.values(), expected, "where");
}

template <typename T, typename Index>
void expect_gather(int32_t outer, int32_t axis, int32_t inner, const std::vector<Index>& indices,
                   int32_t expected_error) {
  const auto count = static_cast<int32_t>(indices.size());
  const auto data = integers<T>(static_cast<size_t>(outer * axis * inner), 1, 0, 200);
  std::vector<T> expected;
  for (int32_t o = 0; o < outer; ++o)
    for (Index index : indices) {
      const int64_t row = std::clamp<int64_t>(index < 0 ? index + axis : index, 0, axis - 1);
      for (int32_t i = 0; i < inner; ++i) expected.push_back(data[(o * axis + row) * inner + i]);
    }
  Output<T> out(expected.size());
  auto error = upload(Ints{0});
  run("gather", "gather_" + suffix<T>(), ceil_div(static_cast<size_t>(outer * count), 2),
      kernels::Gather<KernelArgument>{.data = upload(data),
                                      .indices = upload(indices),
                                      .index_type = sizeof(Index) == 8 ? kS64 : kS32,
                                      .out = out.buffer(),
                                      .outer = outer,
                                      .axis = axis,
                                      .inner = inner,
                                      .index_count = count,
                                      .error = error,
                                      .rows_per_item = 2});
  expect_equal(out.values(), expected, "gather");
  EXPECT_EQ(error.template download<int32_t>()[0], expected_error);
}

TYPED_TEST(CopyStrided, Gather) {
  expect_gather<TypeParam, int32_t>(1, 30, 37, {0, 29, 5, 5, -1, -30}, 0);
  expect_gather<TypeParam, int64_t>(3, 7, 16, {6, 0, -7}, 0);
  expect_gather<TypeParam, int64_t>(5, 2, 1, {1}, 0);
  expect_gather<TypeParam, int64_t>(1, 4, 3, {0, 4, 1}, 1);
  expect_gather<TypeParam, int64_t>(1, 4, 3, {0, int64_t{1} << 40, 1}, 1);
  expect_gather<TypeParam, int32_t>(1, 4, 3, {-5}, 1);
}

TEST(PackTokens, ThereAndBack) {
  for (int32_t row_bytes : {1, 3, 4, 60, 64, 768, 770, 3072}) {
    const Ints offsets{0, 5, 5, 6, 15};
    const int32_t batch = 4, seq = 9, tokens = 15;
    const auto bytes = static_cast<size_t>(row_bytes);
    const auto packed = integers<uint8_t>(tokens * bytes, 1, 0, 255);
    std::vector<uint8_t> padded(static_cast<size_t>(batch * seq) * bytes, 0);
    for (int32_t b = 0; b < batch; ++b)
      std::copy(packed.begin() + offsets[b] * row_bytes,
                packed.begin() + offsets[b + 1] * row_bytes, padded.begin() + b * seq * row_bytes);
    Output<uint8_t> out_padded(padded.size()), out_packed(packed.size());
    run("unpack", "unpack", ceil_div(36, 5),
        kernels::Unpack<KernelArgument>{.packed = upload(packed),
                                        .padded = out_padded.buffer(),
                                        .seq_offsets = upload(offsets),
                                        .batch = batch,
                                        .seq = seq,
                                        .row_bytes = row_bytes,
                                        .second_bytes = 0,
                                        .rows_per_item = 5});
    expect_equal(out_padded.values(), padded, "unpack");
    for (size_t i = 5 * bytes; i < 9 * bytes; ++i) padded[i] = 0x77;  // padding may hold anything
    run("pack", "pack", ceil_div(36, 5),
        kernels::Pack<KernelArgument>{.padded = upload(padded),
                                      .packed = out_packed.buffer(),
                                      .seq_offsets = upload(offsets),
                                      .batch = batch,
                                      .seq = seq,
                                      .row_bytes = row_bytes,
                                      .rows_per_item = 5});
    expect_equal(out_packed.values(), packed, "pack");
  }
}

TEST(PackTokens, RowsAreSplit) {
  const Ints offsets{0, 5, 5, 6, 15};
  const std::size_t columns = 20;
  const auto packed = integers<int32_t>(15 * columns, 1, -1000, 1000);
  for (const std::size_t first : {1u, 3u, 16u, 19u}) {
    std::vector<int32_t> expected[2];
    for (std::size_t b = 0; b < 4; ++b)
      for (std::size_t s = 0; s < 9; ++s) {
        const auto row = static_cast<std::size_t>(offsets[b]) + s;
        const bool is_padding = row >= static_cast<std::size_t>(offsets[b + 1]);
        for (std::size_t i = 0; i < columns; ++i)
          expected[i >= first].push_back(is_padding ? 0 : packed[row * columns + i]);
      }
    Output<int32_t> padded(expected[0].size()), second(expected[1].size());
    run("unpack", "unpack", ceil_div(36, 5),
        kernels::Unpack<KernelArgument>{.packed = upload(packed),
                                        .padded = padded.buffer(),
                                        .second = second.buffer(),
                                        .seq_offsets = upload(offsets),
                                        .batch = 4,
                                        .seq = 9,
                                        .row_bytes = static_cast<int32_t>(4 * first),
                                        .second_bytes = static_cast<int32_t>(4 * (columns - first)),
                                        .rows_per_item = 5});
    expect_equal(padded.values(), expected[0], "first part");
    expect_equal(second.values(), expected[1], "second part");
  }
}

template <typename From, typename To>
void expect_cast(const std::vector<From>& x, int32_t from, const std::vector<To>& expected,
                 int32_t to) {
  Output<To> out(x.size());
  run("cast", "cast", ceil_div(x.size(), 3),
      kernels::Cast<KernelArgument>{.x = upload(x),
                                    .from = from,
                                    .y = out.buffer(),
                                    .to = to,
                                    .count = static_cast<int32_t>(x.size()),
                                    .chunk = 3});
  expect_equal(out.values(), expected, std::to_string(from) + " to " + std::to_string(to));
}

TEST(Cast, BetweenAllKinds) {
  const std::vector<float> f{0.0f, 1.5f, -2.75f, 100.0f, -0.0f};
  expect_cast<float, int32_t>(f, kF32, {0, 1, -2, 100, 0}, kS32);
  expect_cast<float, int64_t>(f, kF32, {0, 1, -2, 100, 0}, kS64);
  expect_cast<float, int8_t>(f, kF32, {0, 1, -2, 100, 0}, kS8);
  expect_cast<float, uint8_t>({0.0f, 200.9f}, kF32, {0, 200}, kU8);
  expect_cast<float, uint8_t>(f, kF32, {0, 1, 1, 1, 0}, kBool);
  expect_cast<float, uint16_t>({1.0f, -2.0f, 65504.0f, 0.1f}, kF32,
                               {0x3C00, 0xC000, 0x7BFF, 0x2E66}, kF16);
  expect_cast<uint16_t, float>({0x3C00, 0xC000, 0x7BFF}, kF16, {1.0f, -2.0f, 65504.0f}, kF32);
  const std::vector<int64_t> big{(int64_t{1} << 53) + 1, -5, 0, (int64_t{1} << 32) + 7};
  expect_cast<int64_t, int32_t>(big, kS64, {1, -5, 0, 7}, kS32);
  expect_cast<int64_t, int64_t>(big, kS64, big, kS64);
  expect_cast<int64_t, float>(big, kS64, {9007199254740992.0f, -5.0f, 0.0f, 4294967296.0f}, kF32);
  expect_cast<int64_t, uint8_t>({0, 256, -1}, kS64, {0, 1, 1}, kBool);
  expect_cast<int32_t, int64_t>({-1, 7}, kS32, {-1, 7}, kS64);
  expect_cast<uint8_t, int64_t>({255, 1}, kU8, {255, 1}, kS64);
  expect_cast<int8_t, float>({-128, 1}, kS8, {-128.0f, 1.0f}, kF32);
  expect_cast<uint8_t, float>({1, 0}, kBool, {1.0f, 0.0f}, kF32);
}

template <typename T>
void expect_range(T start, T delta) {
  std::vector<T> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(start + static_cast<T>(i) * delta);
  Output<T> out(100);
  const std::string type = sizeof(T) == 8 ? "i64" : "i32";
  run("range", "range_" + type, 4,
      kernels::Range<KernelArgument>{.start = upload(std::vector<T>{start}),
                                     .delta = upload(std::vector<T>{delta}),
                                     .out = out.buffer(),
                                     .count = 100,
                                     .chunk = 30});
  expect_equal(out.values(), expected, type);
}

TEST(Range, AllTypes) {
  expect_range<int64_t>(int64_t{1} << 40, -3);
  expect_range<int32_t>(-7, 5);
}

}  // namespace
}  // namespace bertcl::tests
