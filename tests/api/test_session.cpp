// SPDX-License-Identifier: Apache-2.0
// The public session: packed sequences and padded tensors give the same, from any thread.
#include "bertcl/session.hpp"

#include <cmath>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "bertcl/version.hpp"
#include "tests/api/model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl {
namespace {

using tests::sequences_of;

class ApiSession : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    session_ = new Session(Session::load(tests::folder / "model.onnx"));
  }
  static void TearDownTestSuite() {
    delete session_;
    session_ = nullptr;
  }
  static Session* session_;
};
Session* ApiSession::session_ = nullptr;

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

/// Sequences as tensors [batch, seq], with garbage where padding is.
Tensors padded(const Sequences& s, std::int64_t seq) {
  std::vector<std::int64_t> ids, types, mask;
  for (std::size_t i = 0; i + 1 < s.offsets.size(); ++i)
    for (std::int64_t place = 0; place < seq; ++place) {
      const bool inside = place < s.offsets[i + 1] - s.offsets[i];
      const auto token = static_cast<std::size_t>(s.offsets[i] + place);
      ids.push_back(inside ? s.ids[token] : 77);
      types.push_back(inside ? s.token_type_ids[token] : 1);
      mask.push_back(inside);
    }
  const std::vector<std::int64_t> shape{s.count(), seq};
  return {{"input_ids", Tensor::of(shape, ids)},
          {"token_type_ids", Tensor::of(shape, types)},
          {"attention_mask", Tensor::of(shape, mask)}};
}

TEST_F(ApiSession, TellsOfTheModel) {
  const ModelInfo& info = session_->info();
  ASSERT_EQ(info.inputs.size(), 3u);
  EXPECT_EQ(info.inputs[0].name, "input_ids");
  EXPECT_EQ(info.inputs[0].type, ElementType::i64);
  EXPECT_THAT(info.inputs[0].shape, ElementsAre(-1, -1));
  ASSERT_EQ(info.outputs.size(), 2u);
  EXPECT_EQ(info.outputs[0].type, ElementType::f32);
  EXPECT_EQ(info.max_length, 512);
  EXPECT_EQ(info.vocab_size, 30522);
  EXPECT_EQ(info.heads, 12);
  EXPECT_FALSE(info.int8);
  EXPECT_EQ(info.task, Task::question_answering);
  EXPECT_EQ(info.precision, Precision::fp32);
  EXPECT_TRUE(info.takes_packed);
  EXPECT_FALSE(info.device.empty());
  EXPECT_THAT(version(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST_F(ApiSession, SequencesAndPaddedTensorsGiveTheSame) {
  const Sequences sequences = sequences_of({5, 33, 1, 16}, 1);
  const Tensors packed = session_->run(sequences);
  const Tensors rows = session_->run(padded(sequences, 40));
  ASSERT_EQ(packed.size(), 2u);
  for (const auto& [name, tensor] : packed) {
    EXPECT_THAT(tensor.shape(), ElementsAre(55)) << name;
    const auto all = floats(rows.at(name)), found = floats(tensor);
    std::vector<float> expected;
    for (std::size_t i = 0; i + 1 < sequences.offsets.size(); ++i)
      for (std::int64_t p = 0; p < sequences.offsets[i + 1] - sequences.offsets[i]; ++p)
        expected.push_back(all[i * 40 + static_cast<std::size_t>(p)]);
    EXPECT_EQ(found, expected) << name;
    for (const float logit : found) EXPECT_TRUE(std::isfinite(logit));
  }
}

TEST_F(ApiSession, ASequenceDoesNotDependOnItsNeighbours) {
  const Sequences all = sequences_of({20, 7, 41}, 2);
  const auto together = floats(session_->run(all).at("start_logits"));
  Sequences second;
  second.ids.assign(all.ids.begin() + 20, all.ids.begin() + 27);
  second.token_type_ids.assign(all.token_type_ids.begin() + 20, all.token_type_ids.begin() + 27);
  second.offsets = {0, 7};
  const auto alone = floats(session_->run(second).at("start_logits"));
  ASSERT_EQ(alone.size(), 7u);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_NEAR(alone[i], together[20 + i], 1e-4);
}

TEST_F(ApiSession, EightThreadsGetTheBitsOfOne) {
  std::vector<Sequences> inputs;
  std::vector<std::vector<float>> expected;
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{9}, {64, 3}, {1, 1, 30}, {120}}) {
    inputs.push_back(sequences_of(lengths, 3));
    expected.push_back(floats(session_->run(inputs.back()).at("end_logits")));
  }
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t run = t; run < t + 12; ++run)
        EXPECT_EQ(floats(session_->run(inputs[run % 4]).at("end_logits")), expected[run % 4]);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ApiSession, StartedRunsAreFinishedLater) {
  const Tensors inputs = padded(sequences_of({12}, 4), 12);
  const auto expected = floats(session_->run(inputs).at("start_logits"));
  Session::Run first = session_->start(inputs), second = session_->start(inputs);
  EXPECT_EQ(floats(second.finish().at("start_logits")), expected);
  EXPECT_EQ(floats(first.finish().at("start_logits")), expected);
  EXPECT_ERROR(HasSubstr("finished"), first.finish());
}

TEST_F(ApiSession, OutputsAreThoseThatAreWanted) {
  const Sequences sequences = sequences_of({12, 3}, 4);
  const Tensors all = session_->run(sequences);
  for (const auto& [name, tensor] : all) {
    const RunOptions one{.outputs = {name}};
    const Tensors found = session_->run(sequences, one);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(floats(found.at(name)), floats(tensor));
    EXPECT_EQ(floats(session_->start(sequences, one).finish().at(name)), floats(tensor));
  }
  EXPECT_ERROR(HasSubstr("start_logits"), session_->run(sequences, {.outputs = {"logits"}}));
}

TEST_F(ApiSession, WrongSequencesAreErrors) {
  const auto run = [](const Sequences& s) { return session_->run(s); };
  EXPECT_ERROR(HasSubstr("no sequences"), run({}));
  EXPECT_ERROR(HasSubstr("offsets"), run({{1, 2}, {}, {0, 3}}));
  EXPECT_ERROR(HasSubstr("sequence 1"), run({{1, 2}, {}, {0, 2, 1, 2}}));
  EXPECT_ERROR(HasSubstr("token_type_ids has 1"), run({{1, 2}, {0}, {0, 2}}));
  EXPECT_ERROR(HasSubstr("token id"), run({{1, 1 << 20}, {}, {0, 2}}));
  EXPECT_ERROR(HasSubstr("512"), run(sequences_of({513}, 5)));
}

TEST(ApiLoad, ErrorsNameTheFile) {
  EXPECT_ERROR(HasSubstr("/nowhere/model.onnx"), Session::load("/nowhere/model.onnx"));
  EXPECT_ERROR(HasSubstr("int8"),
               Session::load(tests::folder / "model.onnx", {.require_int8 = true}));
}

TEST(ApiTensor, HoldsACopyAndChecksTypeAndSize) {
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  const Tensor tensor = Tensor::of({2, 3}, values);
  values[0] = 9;
  EXPECT_THAT(floats(tensor), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(tensor.size(), 6);
  EXPECT_EQ(Tensor().size(), 0);
  EXPECT_ERROR(HasSubstr("the tensor holds f32"), tensor.values<std::int64_t>());
  EXPECT_ERROR(HasSubstr("24 bytes"), Tensor::of({2, 2}, values));
  EXPECT_ERROR(HasSubstr("-1"), Tensor::of({-1, 6}, values));
  EXPECT_ERROR(HasSubstr("unknown element type 99"), Tensor(static_cast<ElementType>(99), {}, {}));
  EXPECT_ERROR(HasSubstr("unknown element type -1"), size_of(static_cast<ElementType>(-1)));
}

template <class T>
void expect_type(const char* name) {
  const std::vector<T> values{0, 1};
  const Tensor tensor = Tensor::of({2}, values);
  EXPECT_STREQ(name_of(tensor.type()), name);
  EXPECT_EQ(size_of(tensor.type()), sizeof(T));
  EXPECT_EQ(tensor.values<T>()[1], T{1});
}

TEST(ApiTensor, HoldsAnyNumbersOfCpp) {
  expect_type<bool>("bool"), expect_type<float>("f32"), expect_type<double>("f64");
  expect_type<std::int8_t>("i8"), expect_type<std::uint8_t>("u8");
  expect_type<std::int16_t>("i16"), expect_type<std::uint16_t>("u16");
  expect_type<std::int32_t>("i32"), expect_type<std::uint32_t>("u32");
  expect_type<std::int64_t>("i64"), expect_type<std::uint64_t>("u64");
  expect_type<long>("i64"), expect_type<long long>("i64"), expect_type<unsigned long long>("u64");
}

TEST(ApiTensor, LacksMemoryAsAnError) {
  const std::byte one{};
  const auto many = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
  EXPECT_ERROR_CODE(
      ErrorCode::out_of_memory,
      Tensor(ElementType::u8, {std::numeric_limits<std::int64_t>::max()}, {&one, many}));
}

TEST(Moved, ObjectsAreErrorsAndTensorsStay) {
  Tensor tensor = Tensor::of<float>({1}, {3});
  const Tensor other = std::move(tensor);
  EXPECT_THAT(floats(tensor), ElementsAre(3));
  Session session = Session::load(tests::model);
  const Session to = std::move(session);
  EXPECT_ERROR(HasSubstr("this session was moved from"), session.info());
  EXPECT_ERROR(HasSubstr("this session was moved from"), session.run(sequences_of({3}, 1)));
  Session::Run run = to.start(sequences_of({3}, 1));
  run = to.start(sequences_of({4}, 1));
  Session::Run last = std::move(run);
  EXPECT_EQ(last.finish().at("end_logits").shape(), (std::vector<std::int64_t>{4}));
  EXPECT_ERROR(HasSubstr("this run was moved from"), run.finish());
  Tokenizer tokenizer = Tokenizer::load_beside(tests::model);
  const Tokenizer kept = std::move(tokenizer);
  EXPECT_ERROR(HasSubstr("this tokenizer was moved from"), tokenizer.size());
}

}  // namespace
}  // namespace bertcl
