// SPDX-License-Identifier: Apache-2.0
// Real values of padded batches, element by element, and tables that do not depend on the batch.
#include "quant/calibration/padded_batch.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "bertcl/error.hpp"
#include "ir/port.hpp"
#include "quant/calibration/calibrate.hpp"
#include "tests/quant/observed.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

const ir::Dim kBatch = ir::Dim::symbol("batch"), kSeq = ir::Dim::symbol("seq");
const BatchSymbols kSymbols{{"batch"}, {"seq"}};
const std::vector<std::int64_t> kLengths{3, 7, 1, 5};

/// The elements that row `row` holds, by walking over all indices.
std::vector<float> plain_values(const ir::Shape& shape, std::size_t row) {
  // Each factor of each extent as a dimension of its own.
  std::vector<std::pair<char, std::int64_t>> sides;
  for (const ir::Dim& d : shape) {
    const auto has = [&](const char* s) {
      return std::count(d.symbols().begin(), d.symbols().end(), s) > 0;
    };
    if (has("batch")) sides.emplace_back('b', 4);
    if (has("seq")) sides.emplace_back('s', 7);
    sides.emplace_back('n', d.evaluate({{"batch", 1}, {"seq", 1}}));
  }
  std::int64_t count = 1;
  for (const auto& side : sides) count *= side.second;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    bool real = true;
    for (std::int64_t rest = i, k = static_cast<std::int64_t>(sides.size()) - 1; k >= 0; --k) {
      const auto [kind, extent] = sides[static_cast<std::size_t>(k)];
      const std::int64_t index = rest % extent;
      rest /= extent;
      real &= kind != 'b' || index == static_cast<std::int64_t>(row);
      real &= kind != 's' || index < kLengths[row];
    }
    if (real) values.push_back(static_cast<float>(i));
  }
  return values;
}

TEST(Unpadder, FindsTheValuesOfEachSample) {
  const ir::Shape shapes[] = {{kBatch, kSeq, 6},
                              {kBatch, 3, kSeq, kSeq},
                              {kBatch, 3, kSeq, 2},
                              {kBatch, 3, 2, kSeq},
                              {kBatch * kSeq, 6},
                              {kBatch, kSeq},
                              {kBatch * ir::Dim(3), kSeq, kSeq},
                              {1, kSeq, 6},
                              {kSeq, kBatch, 6},
                              {kBatch, 1, 1, kSeq},
                              {kBatch, 5},
                              {4, 2}};
  for (const ir::Shape& shape : shapes) {
    SCOPED_TRACE(ir::str(shape));
    std::vector<float> all(
        static_cast<std::size_t>(element_count(shape).evaluate({{"batch", 4}, {"seq", 7}})));
    std::iota(all.begin(), all.end(), 0.0f);
    const opencl::Buffer buffer = upload(all);
    Unpadder unpadder(device());
    const auto real = unpadder.real_values("t", buffer, shape, kSymbols, kLengths);
    const auto values = real.buffer.download<float>();
    ASSERT_EQ(real.slices.size(), kLengths.size());
    for (std::size_t row = 0; row < kLengths.size(); ++row) {
      const auto [first, count] = real.slices[row];
      ASSERT_LE(first + count, values.size());
      const std::vector<float> found(values.begin() + static_cast<std::ptrdiff_t>(first),
                                     values.begin() + static_cast<std::ptrdiff_t>(first + count));
      expect_equal(found, plain_values(shape, row), "row " + std::to_string(row));
    }
  }
}

TEST(Unpadder, LeavesWhatLiesSideBySideInPlace) {
  const opencl::Buffer buffer = upload(std::vector<float>(4 * 7 * 6));
  Unpadder unpadder(device());
  const auto real =
      unpadder.real_values("t", buffer, {kBatch, kSeq, ir::Dim(6)}, kSymbols, kLengths);
  EXPECT_EQ(&real.buffer, &buffer);
  EXPECT_EQ(real.slices[1], (ElementRange{42, 42}));
}

TEST(Unpadder, RefusesMoreElementsThanKernelsCount) {
  std::vector<std::int64_t> lengths(129, 1);
  lengths[0] = 64;  // [128, 4096, 64, 64] are 2^31 elements
  const opencl::Buffer buffer = upload(std::vector<float>(1));
  Unpadder unpadder(device());
  EXPECT_ERROR(
      HasSubstr("at most 2^31 - 1"),
      unpadder.real_values("t", buffer, {kBatch, ir::Dim(4096), kSeq, kSeq}, kSymbols, lengths));
}

TEST(Unpadder, NamesATensorWhosePaddingCannotBeTold) {
  for (const ir::Shape& shape :
       {ir::Shape{kBatch, kSeq * ir::Dim(3)}, ir::Shape{ir::Dim::symbol("words"), 2},
        ir::Shape{kBatch, kBatch}, ir::Shape{kSeq, kSeq, kSeq, kSeq}})
    EXPECT_ERROR(HasSubstr("'hidden'"), box_of("hidden", shape, kSymbols, kLengths, 0))
        << ir::str(shape);
  // Without padding the order of the factors does not matter.
  const std::vector<std::int64_t> equal{7, 7};
  EXPECT_EQ(box_of("t", {kBatch, kSeq * ir::Dim(3)}, kSymbols, equal, 1).first, 21);
}

std::vector<Sample> samples(const std::vector<std::size_t>& lengths) {
  std::mt19937 generator(4);
  std::vector<Sample> all;
  for (const std::size_t length : lengths) {
    Sample s;
    for (std::size_t i = 0; i < length; ++i) s.ids.push_back(1996 + generator() % 8000);
    all.push_back(s);
  }
  return all;
}

SampleSource source(const std::vector<Sample>& all, std::size_t& next) {
  return [&all, &next]() -> std::optional<Sample> {
    if (next == all.size()) return std::nullopt;
    return all[next++];
  };
}

ir::Port port(const std::string& name, const ir::Shape& shape) {
  return {name, {ir::DType::i64, shape}};
}

TEST(Batches, KeepTheOrderAndDoNotPadWithoutAMask) {
  const auto all = samples({5, 5, 3, 3, 3, 9});
  const auto sizes_of = [&](const std::vector<ir::Port>& ports, int size, bool tells = true) {
    std::size_t next = 0;
    const SampleSource from = source(all, next);
    Batches batches(ports, from, size, tells);
    std::vector<std::size_t> sizes;
    for (auto group = batches.next(); !group.empty(); group = batches.next())
      sizes.push_back(group.size());
    return sizes;
  };
  const ir::Shape shape{kBatch, kSeq};
  const auto ids = port("input_ids", shape), mask = port("attention_mask", shape);
  EXPECT_EQ(sizes_of({ids, mask}, 4), (std::vector<std::size_t>{4, 2}));
  EXPECT_EQ(sizes_of({ids, mask}, 1), (std::vector<std::size_t>(6, 1)));
  EXPECT_EQ(sizes_of({ids, mask}, 4, false), (std::vector<std::size_t>{2, 3, 1}));
  EXPECT_EQ(sizes_of({ids}, 4), (std::vector<std::size_t>{2, 3, 1}));
  for (const int fixed : {1, 2})
    EXPECT_ERROR(AllOf(HasSubstr("'input_ids'"), HasSubstr("one by one; leave out 'batch'")),
                 sizes_of({port("input_ids", {fixed, 9})}, 2));
  EXPECT_THROW(sizes_of({ids}, 0), Error);
}

// 21 samples: batches of 8 leave a ragged last one, and each is padded.
TEST(Calibrate, TheTableDoesNotDependOnTheBatch) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < 21; ++i) lengths.push_back(4 + 31 * i % 29);
  const auto all = samples(lengths);
  const auto path = bertcl::tests::source_file("models/minilm-l6-squad/model.onnx");
  const std::string layer = "/m/bert/encoder/layer.0/";
  const std::set<std::string> tensors{
      "/m/bert/embeddings/position_embeddings/Gather_output_0",
      layer + "attention/self/Softmax_output_0",
      layer + "attention/self/Transpose_2_output_0",
      layer + "attention/self/Transpose_output_0",
      layer + "intermediate/intermediate_act_fn/Mul_1_output_0",
      "/m/bert/encoder/layer.5/output/LayerNorm/LayerNormalization_output_0"};
  runtime::SessionOptions session_options;
  session_options.observe = {tensors.begin(), tensors.end()};
  auto session = runtime::Session::load(path, session_options);
  for (const Method& m : methods())
    for (const bool moving : {false, true}) {
      if (moving && m.name != "minmax") continue;
      MethodOptions options;
      options.moving_average = moving;
      std::optional<Calibration> alone;
      for (const int batch : {1, 8, 21}) {
        std::size_t next = 0;
        const Calibration c = calibrate(session, tensors, m, options, source(all, next), batch);
        EXPECT_EQ(c.samples, 21);
        if (!alone) alone = c;
        EXPECT_EQ(c.data_sha256, alone->data_sha256);
        for (const std::string& t : tensors)
          EXPECT_EQ(c.ranges.at(t), alone->ranges.at(t))
              << m.name << " of " << t << ", batch " << batch << ": " << c.ranges.at(t).low
              << " .. " << c.ranges.at(t).high << " for " << alone->ranges.at(t).low << " .. "
              << alone->ranges.at(t).high;
      }
    }
}

}  // namespace
}  // namespace bertcl::quant::tests
