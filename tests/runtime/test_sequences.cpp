// SPDX-License-Identifier: Apache-2.0
// Sequences without padding: the bits of padded tensors, packed on their way in or not.
#include <fmt/format.h>

#include <numeric>

#include "default_model.hpp"
#include "runtime/row_values.hpp"
#include "runtime/sequences.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {
namespace {

/// Sequences with the ids and segments of padded tensors.
struct Packed {
  std::vector<std::int64_t> ids, token_type_ids, offsets{0};
  Sequences view() const { return {ids, token_type_ids, offsets}; }
};

Packed packed(const Tensors& batch, const std::vector<std::int64_t>& lengths, std::int64_t seq) {
  Packed result;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t s = 0; s < lengths[i]; ++s) {
      const auto at = i * static_cast<std::size_t>(seq) + static_cast<std::size_t>(s);
      result.ids.push_back(batch.at("input_ids").as<std::int64_t>()[at]);
      result.token_type_ids.push_back(batch.at("token_type_ids").as<std::int64_t>()[at]);
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
  EXPECT_ERROR(HasSubstr("no attention mask"), session.start(Sequences{ids, {}, uneven}));
  const Tensors found = session.start(Sequences{std::span(ids).first(2), {}, even}).finish();
  EXPECT_EQ(found.at("last_hidden_state").shape(), (ir::Sizes{2, 4}));
}

/// Rows of tokens and of sequences, and what has neither.
std::string without_mask(const std::string& batch, const std::string& seq) {
  return fmt::format(R"(graph g(%input_ids: i64[{0}, {1}]) {{
  const %table: f32[10, 3] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 9]
  %rows: f32[{0}, {1}, 3] = Gather(%table, %input_ids) {{axis = 0}}
  %sums: f32[{0}, 3] = ReduceSum(%rows) {{axes = [1], keepdims = 0}}
  %all: f32[3] = ReduceMax(%rows) {{axes = [0, 1], keepdims = 0}}
  %turned: f32[{0}, 3, {1}] = Transpose(%rows) {{perm = [0, 2, 1]}}
  return %rows as rows, %sums as sums, %all as all, %turned as turned
}})",
                     batch, seq);
}

TEST(Sequences, RunTogetherByLengthOrByTheBatchOfTheFile) {
  const std::vector<std::int64_t> ids{1, 2, 3, 4, 5, 6, 7, 8}, offsets{0, 2, 3, 5, 6, 8};
  Session free = Session::compile(ir::parse(without_mask("batch", "seq")));
  std::vector<float> rows, sums;
  for (std::size_t i = 0; i < 5; ++i) {
    const auto begin = static_cast<std::size_t>(offsets[i]);
    const auto end = static_cast<std::size_t>(offsets[i + 1]);
    const std::vector<std::int64_t> one{0, offsets[i + 1] - offsets[i]};
    const Tensors found = free.run(Sequences{std::span(ids).subspan(begin, end - begin), {}, one});
    const auto add = [&](std::vector<float>& to, const std::string& name) {
      const auto values = found.at(name).as<float>();
      to.insert(to.end(), values.begin(), values.end());
    };
    add(rows, "rows"), add(sums, "sums");
  }
  for (const char* batch : {"batch", "2", "4", "7"}) {
    Session session = Session::compile(ir::parse(without_mask(batch, "seq")));
    const Tensors found = session.run(Sequences{ids, {}, offsets}, {"rows", "sums"});
    EXPECT_EQ(found.at("rows"), (ir::Tensor::of({8, 3}, rows))) << batch;
    EXPECT_EQ(found.at("sums"), (ir::Tensor::of({5, 3}, sums))) << batch;
    const auto refusal = [&](const std::string& output) {
      return error_of([&] { session.run(Sequences{ids, {}, offsets}, {output}); });
    };
    EXPECT_THAT(refusal("all"), HasSubstr("output 'all' [3] has no batch axis")) << batch;
    EXPECT_THAT(refusal("turned"), HasSubstr("run those of one length together")) << batch;
  }
}

/// The tokens of each sequence, as decoders with a classification head find the last one.
std::string counting_ids(const std::string& seq) {
  return fmt::format(R"(graph g(%input_ids: i64[batch, {0}], %attention_mask: i64[batch, {0}]) {{
  const %padding: i64[] = 3
  const %table: f32[10, 1] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
  %rows: f32[batch, {0}, 1] = Gather(%table, %input_ids) {{axis = 0}}
  %is_padding: bool[batch, {0}] = Equal(%input_ids, %padding)
  %is_token: bool[batch, {0}] = Not(%is_padding)
  %ones: f32[batch, {0}] = Cast(%is_token) {{to = "f32"}}
  %count: f32[batch] = ReduceSum(%ones) {{axes = [1], keepdims = 0}}
  return %count as count, %rows as rows
}})",
                     seq);
}

TEST(Sequences, HaveThePaddingThatTheModelLooksFor) {
  const std::vector<std::int64_t> ids{4, 5, 6, 7, 8, 9, 4}, offsets{0, 2, 6, 7};
  const auto found = [&](const std::string& seq, std::optional<std::int64_t> padding) {
    SessionOptions options;
    options.pad_token_id = [=] { return padding; };
    Session session = Session::compile(ir::parse(counting_ids(seq)), options);
    return session.run(Sequences{ids, {}, offsets});
  };
  const ir::Tensor counts = ir::Tensor::of<float>({3}, {2, 4, 1});
  const ir::Tensor rows = ir::Tensor::of<float>({7, 1}, {4, 5, 6, 7, 8, 9, 4});
  for (const char* seq : {"seq", "5"}) {
    EXPECT_EQ(found(seq, 3).at("count"), counts) << seq;
    EXPECT_EQ(found(seq, 3).at("rows"), rows) << seq;
  }
  // Nobody says it, or says another: those of one length run together.
  EXPECT_EQ(found("seq", std::nullopt).at("count"), counts);
  EXPECT_EQ(found("seq", 0).at("count"), counts);
  EXPECT_EQ(found("seq", 0).at("rows"), rows);
  EXPECT_ERROR(HasSubstr("finds padding by token id 3"), found("5", std::nullopt));
}

TEST(Sequences, PaddingIsAskedForWhereTheModelReadsIt) {
  const auto asks = [](const std::string& graph) {
    bool asked = false;
    SessionOptions options;
    options.pad_token_id = [&] { return asked = true, std::nullopt; };
    Session::compile(ir::parse(graph), options);
    return asked;
  };
  EXPECT_TRUE(asks(counting_ids("seq")));
  EXPECT_FALSE(asks(without_mask("batch", "seq")));
}

TEST(Sequences, OfOtherSizesThanTheFilesAreErrors) {
  Session session = Session::compile(ir::parse(without_mask("2", "4")));
  const std::vector<std::int64_t> ids{1, 2, 3, 4, 5}, long_one{0, 5}, short_one{0, 3}, whole{0, 4};
  const auto error = [&](const std::vector<std::int64_t>& offsets) {
    const auto tokens = static_cast<std::size_t>(offsets.back());
    return error_of([&] { session.run(Sequences{std::span(ids).first(tokens), {}, offsets}); });
  };
  EXPECT_THAT(error(long_one), HasSubstr("sequence of 5 tokens, the model takes at most 4"));
  EXPECT_THAT(error(short_one), HasSubstr("give sequences of that length"));
  EXPECT_EQ(error(whole), kNoError);
  EXPECT_ERROR(HasSubstr("the model takes 2 sequences at a time, 1 were given"),
               session.start(Sequences{std::span(ids).first(4), {}, whole}));
}

TEST(Outputs, OfAsManyColumnsAsTokensAreTheirs) {
  Session session = Session::compile(ir::parse(without_mask("batch", "3")));
  const std::vector<std::int64_t> ids{1, 2, 3, 4, 5, 6}, offsets{0, 3, 6};
  const Tensors found = session.run(Sequences{ids, {}, offsets});
  EXPECT_EQ(found.at("rows").shape(), (ir::Sizes{6, 3}));
  EXPECT_EQ(found.at("sums").shape(), (ir::Sizes{2, 3}));
  EXPECT_EQ(found.at("turned").shape(), (ir::Sizes{2, 3, 3}));
}

TEST(Outputs, OfRowsStandSideBySide) {
  Session session = Session::load(model);
  const Packed two = packed(batch_of({5, 3}, 5, 1), {5, 3}, 5);
  const Tensors all = session.run(two.view());
  const auto start = all.at("start_logits").as<float>(), end = all.at("end_logits").as<float>();
  std::vector<float> pairs;
  for (std::size_t i = 0; i < 8; ++i) pairs.insert(pairs.end(), {start[i], end[i]});
  EXPECT_EQ(row_values(session, two.view(), {"start_logits", "end_logits"}, true), pairs);
  EXPECT_ERROR(HasSubstr("output 'end_logits' has shape [8], expected 2 rows, one for each "
                         "sequence"),
               row_values(session, two.view(), {"end_logits"}, false));
  Session sums = Session::compile(ir::parse(without_mask("batch", "3")));
  const std::vector<std::int64_t> ids{1, 2, 3, 4, 5, 6}, offsets{0, 3, 6};
  EXPECT_EQ(row_values(sums, {ids, {}, offsets}, {"sums"}, false).size(), 6u);
  EXPECT_ERROR(HasSubstr("output 'sums' has shape [2, 3], expected 6 rows, one for each token; "
                         "export the model with a free sequence length"),
               row_values(sums, {ids, {}, offsets}, {"sums"}, true));
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
  EXPECT_THAT(run({1, 2}, {0}, {0, 2}), HasSubstr("token_type_ids has 1"));
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
