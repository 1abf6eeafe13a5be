// SPDX-License-Identifier: Apache-2.0
// Sequences without padding: the bits of padded tensors, packed on their way in or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "default_model.hpp"
#include "ir/text.hpp"
#include "runtime/sequences.hpp"
#include "tests/support/error_of.hpp"

namespace bertcl::runtime {
namespace {

using testing::HasSubstr;
using tests::error_of;

/// Sequences with the ids and segments of padded tensors.
struct Packed {
  std::vector<std::int64_t> ids, types, offsets{0};
  Sequences view() const { return {ids, types, offsets}; }
};

Packed packed(const Tensors& batch, const std::vector<std::int64_t>& lengths, std::int64_t seq) {
  Packed result;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t s = 0; s < lengths[i]; ++s) {
      const auto at = i * static_cast<std::size_t>(seq) + static_cast<std::size_t>(s);
      result.ids.push_back(batch.at("input_ids").as<std::int64_t>()[at]);
      result.types.push_back(batch.at("token_type_ids").as<std::int64_t>()[at]);
    }
    result.offsets.push_back(static_cast<std::int64_t>(result.ids.size()));
  }
  return result;
}

/// Rows of real tokens, by hand.
template <class T>
std::vector<T> real_rows(const ir::Tensor& padded, const std::vector<std::int64_t>& lengths) {
  const auto all = padded.as<T>();
  const auto seq = static_cast<std::size_t>(padded.shape()[1]);
  const std::size_t row = all.size() / lengths.size() / seq;
  std::vector<T> rows;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto from = all.subspan(i * seq * row, static_cast<std::size_t>(lengths[i]) * row);
    rows.insert(rows.end(), from.begin(), from.end());
  }
  return rows;
}

const std::vector<std::vector<std::int64_t>> kLengths = {
    {1}, {7}, {1, 1, 1}, {5, 33, 1, 16}, {31, 32, 33}, {127, 2, 65}, {13, 11, 7, 5, 3, 2, 1}};

void expect_bits_of_tensors(Session& session) {
  unsigned seed = 1;
  for (const auto& lengths : kLengths) {
    const std::int64_t longest = *std::ranges::max_element(lengths);
    const Tensors batch = batch_of(lengths, longest, ++seed);
    const Tensors expected = session.run(batch);
    const RunStatistics padded = session.statistics();
    const Tensors found = session.run(packed(batch, lengths, longest).view());
    EXPECT_EQ(session.statistics().tokens, padded.tokens);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, tensor] : found) {
      const std::vector<float> rows = real_rows<float>(expected.at(name), lengths);
      ASSERT_EQ(tensor.shape()[0], std::accumulate(lengths.begin(), lengths.end(), 0));
      EXPECT_TRUE(std::ranges::equal(tensor.as<float>(), rows)) << name << ", batch " << seed;
    }
  }
}

TEST(Sequences, GiveTheBitsOfPaddedTensors) {
  Session session = Session::load(model);
  ASSERT_TRUE(takes_packed(session.plan()));
  expect_bits_of_tensors(session);
}

TEST(Sequences, ArePaddedWhereThePlanKeepsPadding) {
  SessionOptions options;
  options.drop_padding = false;
  Session session = Session::load(model, options);
  expect_bits_of_tensors(session);
}

/// An embedding alone.
constexpr const char* kNoMask = R"(graph g(%input_ids: i64[batch, seq]) {
  const %table: f32[10, 4] = splat 0.5
  %rows: f32[batch, seq, 4] = Gather(%table, %input_ids) {axis = 0}
  return %rows as last_hidden_state
})";

TEST(Sequences, OfDifferentLengthsNeedAMaskWhereTheyArePadded) {
  SessionOptions options;
  options.drop_padding = false;
  Session session = Session::compile(ir::parse(kNoMask), options);
  const std::vector<std::int64_t> ids{1, 2, 3}, even{0, 1, 2}, uneven{0, 1, 3};
  EXPECT_ERROR(HasSubstr("no mask"), session.run(Sequences{ids, {}, uneven}));
  const Tensors found = session.run(Sequences{std::span(ids).first(2), {}, even});
  EXPECT_EQ(found.at("last_hidden_state").shape(), (ir::Sizes{2, 4}));
}

TEST(Sequences, WrongOnesAreErrors) {
  Session session = Session::load(model);
  const auto run = [&](const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& types,
                       const std::vector<std::int64_t>& offsets) {
    return error_of([&] { session.run(Sequences{ids, types, offsets}); });
  };
  EXPECT_THAT(run({}, {}, {}), HasSubstr("offsets"));
  EXPECT_THAT(run({}, {}, {0}), HasSubstr("no sequences"));
  EXPECT_THAT(run({1, 2}, {}, {0, 3}), HasSubstr("offsets"));
  EXPECT_THAT(run({1, 2}, {}, {1, 2}), HasSubstr("offsets"));
  EXPECT_THAT(run({1, 2}, {}, {0, 2, 1, 2}), HasSubstr("sequence 1"));
  EXPECT_THAT(run({1, 2}, {}, {0, 1, 1, 2}), HasSubstr("sequence 1 has 0 tokens"));
  EXPECT_THAT(run({1, 2}, {0}, {0, 2}), HasSubstr("segments"));
  EXPECT_THAT(run({1, std::int64_t{1} << 40}, {}, {0, 2}), HasSubstr("token id"));
  EXPECT_THAT(run({1, -1}, {}, {0, 2}), HasSubstr("token id"));
  EXPECT_THAT(run(std::vector<std::int64_t>(513, 5), {}, {0, 513}), HasSubstr("512"));
}

TEST(Outputs, AreOnlyThoseThatAreWanted) {
  Session session = Session::load(model);
  const Tensors batch = batch_of({9, 4}, 9, 1);
  const Tensors all = session.run(batch), one = session.run(batch, {"end_logits"});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one.at("end_logits"), all.at("end_logits"));
  EXPECT_EQ(session.run(packed(batch, {9, 4}, 9).view(), {"end_logits", "start_logits"}).size(),
            2u);
  const std::string error = error_of([&] { session.run(batch, {"end_logits", "logits"}); });
  EXPECT_THAT(error, HasSubstr("no output 'logits'"));
  EXPECT_THAT(error, HasSubstr("start_logits, end_logits"));
  EXPECT_EQ(session.run(batch).size(), 2u);  // what one run wants is not kept for the next
}

}  // namespace
}  // namespace bertcl::runtime
