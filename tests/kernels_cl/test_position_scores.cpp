// SPDX-License-Identifier: Apache-2.0
// Scores of relative positions against a plain loop over rows and keys.
#include <algorithm>
#include <numeric>
#include <random>

#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/attention.hpp"

namespace bertcl::tests {
namespace {

struct PositionCase {
  std::vector<int32_t> lengths;
  int32_t heads = 2, head_size = 8, count = 12, block_rows = 32, offset = 0;
  bool of_keys = false, adds = false;
  int32_t type = kF32, zero_point = 0;
  int32_t shape = 0;         // of the random numbers
  bool by_distance = false;  // positions are distances, up to half of `count`

  std::string name() const {
    return std::to_string(lengths.size()) + " sequences, " + std::to_string(heads) + " heads of " +
           std::to_string(head_size) + ", " + std::to_string(count) + " positions, " +
           std::to_string(block_rows) + " rows an item" + (of_keys ? ", of keys" : "") +
           (adds ? ", with an addend" : "") + ", type " + std::to_string(type);
  }
  int32_t longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
  int32_t index_row() const { return longest() + 3; }  // the batch was padded further
  int32_t tokens() const { return std::accumulate(lengths.begin(), lengths.end(), 0); }
  int32_t stride() const { return offset + heads * head_size + 5; }
  std::vector<int32_t> offsets() const {
    std::vector<int32_t> all{0};
    for (const int32_t length : lengths) all.push_back(all.back() + length);
    return all;
  }
  /// Bytes of x, and the same as numbers; floats outside of the heads are NaN.
  std::pair<std::vector<uint8_t>, std::vector<double>> x() const {
    const auto elements = static_cast<size_t>(tokens() * stride());
    std::vector<uint8_t> bytes;
    std::vector<double> numbers;
    if (type == kF32) {
      auto values = normal_values(elements, 1);
      for (size_t i = 0; i < elements; ++i) {
        const auto column = static_cast<int32_t>(i % static_cast<size_t>(stride()));
        if (column < offset || column >= offset + heads * head_size)
          values[i] = std::numeric_limits<float>::quiet_NaN();
      }
      bytes.resize(elements * sizeof(float));
      std::memcpy(bytes.data(), values.data(), bytes.size());
      numbers.assign(values.begin(), values.end());
    } else {
      bytes = integers<uint8_t>(elements, 1, 0, 255);
      for (const uint8_t byte : bytes)
        numbers.push_back((type == kU8 ? byte : static_cast<int8_t>(byte)) - zero_point);
    }
    return {std::move(bytes), std::move(numbers)};
  }
  /// Places of rows and keys have any positions, some of them counted from the end; those of
  /// padding have none.
  std::vector<int32_t> index() const {
    auto all = integers<int32_t>(static_cast<size_t>(index_row() * index_row()), 2 + shape, -count,
                                 count - 1);
    for (int32_t i = 0; i < index_row(); ++i)
      for (int32_t j = 0; j < index_row(); ++j) {
        int32_t& position = all[static_cast<size_t>(i * index_row() + j)];
        if (i >= longest() || j >= longest())
          position = std::numeric_limits<int32_t>::max();
        else if (by_distance)
          position = std::clamp(i - j + count / 2, 0, count - 1);
      }
    return all;
  }
  /// NaN in places past the last row of a sequence.
  std::vector<float> addend() const {
    auto all = normal_values(static_cast<size_t>(heads * tokens() * longest()), 4);
    for (size_t i = 0; i < all.size(); ++i)
      if (!is_result(i)) all[i] = std::numeric_limits<float>::quiet_NaN();
    return all;
  }
  /// Whether the element of the result is one of a row and a key of the same sequence.
  bool is_result(size_t element) const {
    const auto row = static_cast<int32_t>(element % static_cast<size_t>(longest()));
    auto key = static_cast<int32_t>(element / static_cast<size_t>(longest())) % tokens();
    for (const int32_t length : lengths) {
      if (key < length) return row < length;
      key -= length;
    }
    return false;
  }
};

/// [heads][size][count] in panels of 32 columns.
std::vector<float> in_panels(const PositionCase& of, const std::vector<float>& table) {
  const int32_t panels = (of.count + 31) / 32;
  std::vector<float> packed(static_cast<size_t>(of.heads * panels * of.head_size * 32), 0.0f);
  for (int32_t row = 0; row < of.heads * of.head_size; ++row)
    for (int32_t i = 0; i < of.count; ++i)
      packed[static_cast<size_t>(
          ((row / of.head_size * panels + i / 32) * of.head_size + row % of.head_size) * 32 +
          i % 32)] = table[static_cast<size_t>(row * of.count + i)];
  return packed;
}

/// The same in the words of position_scores_s8, of integers that are bytes of u8 less their zero
/// point; `zero_point` is that of x as s8.
std::vector<int32_t> in_words(const PositionCase& of, const std::vector<float>& table,
                              int32_t bytes_zero_point, int32_t zero_point) {
  const int32_t panels = (of.count + 31) / 32, words = (of.head_size + 3) / 4 + 1;
  std::vector<int32_t> packed(static_cast<size_t>(of.heads * panels * words * 32), 0);
  for (int32_t row = 0; row < of.heads * of.head_size; ++row)
    for (int32_t i = 0; i < of.count; ++i) {
      const int32_t d = row % of.head_size;
      const auto number = static_cast<int32_t>(table[static_cast<size_t>(row * of.count + i)]);
      int32_t* column = &packed[static_cast<size_t>(
          (row / of.head_size * panels + i / 32) * words * 32 + i % 32)];
      column[0] -= zero_point * number;
      column[(d / 4 + 1) * 32] |= (number + bytes_zero_point) << d % 4 * 8;
    }
  return packed;
}

constexpr float scale = 0.0371f;  // no power of two: a product is rounded, or not before a sum
constexpr int32_t kBytesZeroPoint = 90;  // of positions in bytes

struct PositionVariant {
  std::string name;
  opencl::Defines defines = {};

  bool takes_bytes() const { return name == "x86_vnni"; }
  std::string program() const { return (takes_bytes() ? "s8_" : "f32_") + name; }
};

/// The kernel's result and its error flag.
std::pair<std::vector<float>, int32_t> scores_of(const PositionVariant& variant,
                                                 const PositionCase& of,
                                                 const std::vector<uint8_t>& x,
                                                 const std::vector<float>& table,
                                                 const std::vector<int32_t>& index,
                                                 const std::vector<float>& addend) {
  const int32_t row = of.longest(), head = of.tokens() * row;
  const Output<float> out(static_cast<size_t>(of.heads * head));
  const auto error = upload(std::vector<int32_t>{0});
  const bool blocks = variant.name.starts_with("x86");
  opencl::Defines defines = variant.defines;
  if (blocks) defines["POSITIONS"] = (of.count + 31) / 32 * 32;
  opencl::Kernel kernel =
      device().kernel("position_scores_" + variant.program(),
                      variant.takes_bytes() ? "position_scores_s8" : "position_scores", defines);
  const opencl::Buffer positions =
      variant.takes_bytes()
          ? upload(in_words(of, table, kBytesZeroPoint, of.zero_point - (of.type == kU8 ? 128 : 0)))
          : upload(in_panels(of, table));
  kernels::set(kernel, kernels::PositionScores<KernelArgument>{
                           .x = upload(x),
                           .x_stride = of.stride(),
                           .x_offset = of.offset,
                           .x_type = of.type,
                           .x_zero_point = of.zero_point,
                           .positions = positions,
                           .positions_zero_point = variant.takes_bytes() ? kBytesZeroPoint : 0,
                           .position_count = of.count,
                           .index = upload(index),
                           .index_row = of.index_row(),
                           .of_keys = static_cast<int32_t>(of.of_keys),
                           .addend = of.adds ? upload(addend) : opencl::Buffer(),
                           .out = out.buffer(),
                           .out_row = row,
                           .out_head = head,
                           .seq_offsets = upload(of.offsets()),
                           .heads = of.heads,
                           .head_size = of.head_size,
                           .scale = scale,
                           .block_rows = of.block_rows,
                           .error = error});
  const auto heads = static_cast<size_t>(of.heads), longest = static_cast<size_t>(row);
  if (variant.name == "group") {
    const size_t items = 256, tiles = ceil_div(longest, 64);
    device().queue().launch(kernel, {items * tiles, heads * tiles, of.lengths.size()},
                            {items, 1, 1});
    device().queue().finish();
  } else {
    const auto rows = blocks ? static_cast<size_t>(of.block_rows) : size_t{1};
    run(kernel, ceil_div(longest, rows), heads, of.lengths.size());
  }
  return {out.values(), error.download<int32_t>()[0]};
}

constexpr uint32_t kPoisonWord = 0xAAAAAAAA;  // of an Output that nobody wrote

std::vector<uint32_t> as_words(const std::vector<float>& values) {
  std::vector<uint32_t> words;
  for (const float value : values) words.push_back(std::bit_cast<uint32_t>(value));
  return words;
}

class PositionScores : public ::testing::TestWithParam<PositionVariant> {
 protected:
  void SetUp() override {
    if (!GetParam().takes_bytes()) return;
    const std::string why = lacks(&opencl::Capabilities::avx512_vnni);
    if (!why.empty()) GTEST_SKIP() << why;
  }
  /// The case as this variant can run it.
  static PositionCase adapted(PositionCase of) {
    if (GetParam().takes_bytes() && of.type == kF32) {
      of.type = of.count % 2 == 0 ? kU8 : kS8;
      of.zero_point = of.type == kU8 ? 131 : -7;
    }
    return of;
  }
  /// [heads][size][count]; integers where they have to be bytes.
  static std::vector<float> table_of(const PositionCase& of) {
    const auto elements = static_cast<size_t>(of.heads * of.head_size * of.count);
    if (!GetParam().takes_bytes()) return normal_values(elements, 3);
    std::vector<float> table;
    for (const uint8_t byte : integers<uint8_t>(elements, 3, 0, 255))
      table.push_back(static_cast<float>(byte - kBytesZeroPoint));
    return table;
  }
  void expect_right(const PositionCase& shape) const {
    const PositionCase of = adapted(shape);
    const int32_t row = of.longest(), head = of.tokens() * row, seq = of.index_row();
    const auto [bytes, x] = of.x();
    const auto table = table_of(of);
    const auto index = of.index();
    const auto addend = of.addend();
    std::vector<double> expected(static_cast<size_t>(of.heads * head), 0.0);
    const auto offsets = of.offsets();
    for (size_t s = 0; s < of.lengths.size(); ++s)
      for (int32_t h = 0; h < of.heads; ++h)
        for (int32_t i = 0; i < of.lengths[s]; ++i)
          for (int32_t key = 0; key < of.lengths[s]; ++key) {
            const int32_t from = of.of_keys ? key : i, to = of.of_keys ? i : key;
            int32_t position = index[static_cast<size_t>(from * seq + to)];
            if (position < 0) position += of.count;
            double sum = 0;
            for (int32_t d = 0; d < of.head_size; ++d)
              sum += x[static_cast<size_t>((offsets[s] + from) * of.stride() + of.offset +
                                           h * of.head_size + d)] *
                     table[static_cast<size_t>((h * of.head_size + d) * of.count + position)];
            const auto at = static_cast<size_t>(h * head + (offsets[s] + key) * row + i);
            expected[at] = sum * scale + (of.adds ? addend[at] : 0.0f);
          }
    auto [found, error] = scores_of(GetParam(), of, bytes, table, index, addend);
    EXPECT_EQ(error, 0) << of.name();
    if (GetParam().name == "group" || GetParam().takes_bytes()) {
      const auto plain = scores_of({"ref"}, of, bytes, table, index, addend).first;
      expect_equal(as_words(found), as_words(plain), of.name());
    }
    for (size_t i = 0; i < found.size(); ++i)
      if (!of.is_result(i)) {
        ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), kPoisonWord) << of.name() << " at " << i;
        found[i] = 0.0f;
      }
    expect_close(found, expected, of.name());
  }
};

TEST_P(PositionScores, AsAPlainLoop) {
  for (const bool of_keys : {false, true})
    for (const bool adds : {false, true})
      for (const int32_t head_size : {1, 7, 32, 64})
        for (const int32_t count : {1, 31, 32, 33, 100})
          expect_right({.lengths = {1, 15, 0, 16, 17, 33},
                        .head_size = head_size,
                        .count = count,
                        .offset = 3,
                        .of_keys = of_keys,
                        .adds = adds});
}

TEST_P(PositionScores, Bytes) {
  for (const bool of_keys : {false, true}) {
    expect_right({.lengths = {20, 5}, .of_keys = of_keys, .type = kU8, .zero_point = 117});
    expect_right({.lengths = {20, 5}, .of_keys = of_keys, .type = kS8, .zero_point = -3});
  }
}

TEST_P(PositionScores, LongSequencesAndWideHeads) {
  for (const bool of_keys : {false, true}) {
    expect_right({.lengths = {200}, .heads = 1, .count = 512, .of_keys = of_keys});
    expect_right({.lengths = {70},
                  .heads = 3,
                  .head_size = 256,
                  .block_rows = 64,
                  .of_keys = of_keys,
                  .adds = true});
  }
}

TEST_P(PositionScores, LengthsAroundTiles) {
  for (const int32_t length : {1, 15, 16, 17, 31, 63, 64, 65, 127, 128, 129})
    for (const bool of_keys : {false, true})
      expect_right({.lengths = {length, 3, 65 - length % 64},
                    .heads = 1,
                    .head_size = 17,
                    .count = 2 * length + 1,
                    .offset = length % 2 * 4,
                    .of_keys = of_keys,
                    .adds = length % 4 == 1,
                    .by_distance = true});
}

TEST_P(PositionScores, RandomShapes) {
  std::mt19937 random(11);
  const auto any_of = [&](std::initializer_list<int32_t> values) {
    return values.begin()[random() % values.size()];
  };
  for (int32_t shape = 0; shape < 60; ++shape) {
    PositionCase of{.lengths = {},
                    .heads = any_of({1, 2, 3}),
                    .head_size = any_of({1, 3, 4, 15, 16, 17, 31, 32, 48, 64, 65}),
                    .count = any_of({1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 131}),
                    .block_rows = any_of({16, 32, 48}),
                    .offset = any_of({0, 1, 4, 8}),
                    .of_keys = random() % 2 == 0,
                    .adds = random() % 2 == 0,
                    .type = any_of({kF32, kU8, kS8}),
                    .shape = shape,
                    .by_distance = random() % 2 == 0};
    if (of.type != kF32) of.zero_point = any_of({0, -3, 100});
    for (int32_t i = any_of({1, 2, 3}); i > 0; --i)
      of.lengths.push_back(any_of({1, 2, 5, 13, 16, 17, 31, 61, 63, 64, 65, 97}));
    expect_right(of);
  }
}

TEST_P(PositionScores, AnIndexOutsideOfTheTableIsReported) {
  for (const int32_t wrong : {12, -13, 1 << 30, -(1 << 30)}) {
    const PositionCase of = adapted({.lengths = {20}});
    auto index = of.index();
    index[static_cast<size_t>(18 * of.index_row() + 19)] = wrong;
    const auto table = table_of(of);
    EXPECT_EQ(scores_of(GetParam(), of, of.x().first, table, index, {}).second, 1) << wrong;
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, PositionScores,
                         ::testing::Values(PositionVariant{"ref"}, PositionVariant{"group"},
                                           PositionVariant{"x86_vnni"}, PositionVariant{"x86"},
                                           PositionVariant{"x86", {{"LANES", 8}}}),
                         [](const auto& variant) {
                           return variant.param.name +
                                  (variant.param.defines.empty() ? "" : "_LANES8");
                         });

}  // namespace
}  // namespace bertcl::tests
