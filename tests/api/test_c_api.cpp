// SPDX-License-Identifier: Apache-2.0
// The C interface: the bits of the C++ one, and a status for whatever is wrong.
#include <cstring>
#include <string>
#include <thread>

#include "bertcl/bertcl.h"
#include "bertcl/session.hpp"
#include "tests/api/model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl {
namespace {

const std::string kModel = (tests::folder / "model.onnx").string();

class CApi : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(bertcl_session_load(kModel.c_str(), nullptr, &session_), BERTCL_OK)
        << bertcl_last_error();
  }
  static void TearDownTestSuite() { bertcl_session_free(session_); }
  static bertcl_session* session_;
};
bertcl_session* CApi::session_ = nullptr;

bertcl_tensor empty_tensor() {
  bertcl_tensor tensor{};
  tensor.size = sizeof(tensor);
  return tensor;
}

TEST_F(CApi, GivesTheBitsOfTheCppInterface) {
  const Sequences s = tests::sequences_of({7, 19}, 1);
  const Session reference = Session::load(kModel);
  const Tensors expected = reference.run(s);
  const bertcl_sequences given{sizeof(given), 2, s.offsets.data(), s.ids.data(),
                               s.token_type_ids.data()};
  bertcl_results* results = nullptr;
  ASSERT_EQ(bertcl_session_run_sequences(session_, &given, nullptr, &results), BERTCL_OK)
      << bertcl_last_error();
  ASSERT_EQ(bertcl_results_count(results), 2u);
  for (const auto& [name, tensor] : expected) {
    bertcl_tensor found = empty_tensor();
    ASSERT_EQ(bertcl_results_find(results, name.c_str(), &found), BERTCL_OK);
    EXPECT_EQ(found.type, BERTCL_F32);
    ASSERT_EQ(found.rank, 1);
    EXPECT_EQ(found.shape[0], 26);
    ASSERT_EQ(found.bytes, tensor.bytes().size());
    EXPECT_EQ(std::memcmp(found.data, tensor.bytes().data(), found.bytes), 0);
  }
  bertcl_tensor other = empty_tensor();
  EXPECT_EQ(bertcl_results_find(results, "logits", &other), BERTCL_INVALID_ARGUMENT);
  EXPECT_STREQ(bertcl_last_error(),
               "the results have no output 'logits'; they have end_logits, start_logits");
  EXPECT_EQ(bertcl_results_get(results, 2, &other), BERTCL_INVALID_ARGUMENT);
  EXPECT_STREQ(bertcl_last_error(), "index 2 is out of range: there are 2 results");
  bertcl_results_free(results);
}

TEST_F(CApi, TensorsAreRunAndTheirErrorsTold) {
  const std::int64_t shape[] = {1, 3}, ids[] = {101, 2040, 102};
  const bertcl_tensor input{sizeof(input), "input_ids", BERTCL_I64, 2, shape, ids, sizeof(ids)};
  bertcl_results* results = nullptr;
  ASSERT_EQ(bertcl_session_run(session_, &input, 1, nullptr, &results), BERTCL_OK)
      << bertcl_last_error();
  bertcl_tensor output = empty_tensor();
  ASSERT_EQ(bertcl_results_get(results, 0, &output), BERTCL_OK);
  EXPECT_STREQ(output.name, "end_logits");
  EXPECT_EQ(output.rank, 2);
  bertcl_results_free(results);

  bertcl_tensor wrong = input;
  wrong.bytes = 8;
  EXPECT_EQ(bertcl_session_run(session_, &wrong, 1, nullptr, &results), BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("8 bytes"));
  EXPECT_EQ(results, nullptr);
  wrong = input;
  wrong.name = "ids";
  EXPECT_EQ(bertcl_session_run(session_, &wrong, 1, nullptr, &results), BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("'input_ids'"));
  wrong = input;
  wrong.type = 99;
  EXPECT_EQ(bertcl_session_run(session_, &wrong, 1, nullptr, &results), BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("input 'input_ids' has unknown element type 99"));
  const auto refusal = [&](auto bertcl_tensor::*member, auto value) {
    wrong = input;
    wrong.*member = value;
    EXPECT_EQ(bertcl_session_run(session_, &wrong, 1, nullptr, &results), BERTCL_INVALID_ARGUMENT);
    return std::string(bertcl_last_error());
  };
  EXPECT_EQ(refusal(&bertcl_tensor::name, nullptr), "input 0 has no name");
  EXPECT_EQ(refusal(&bertcl_tensor::shape, nullptr), "input 'input_ids' has a rank, but no shape");
  EXPECT_EQ(refusal(&bertcl_tensor::data, nullptr), "input 'input_ids' has bytes, but no data");
  EXPECT_EQ(refusal(&bertcl_tensor::rank, -1), "input 'input_ids' has rank -1");
  const bertcl_tensor twice[] = {input, input};
  EXPECT_EQ(bertcl_session_run(session_, twice, 2, nullptr, &results), BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("duplicate input '"));
}

TEST_F(CApi, PortsAreDescribed) {
  EXPECT_EQ(bertcl_session_input_count(session_), 3u);
  EXPECT_EQ(bertcl_session_output_count(session_), 2u);
  bertcl_tensor port = empty_tensor();
  ASSERT_EQ(bertcl_session_input(session_, 0, &port), BERTCL_OK);
  EXPECT_STREQ(port.name, "input_ids");
  EXPECT_EQ(port.type, BERTCL_I64);
  EXPECT_EQ(port.shape[1], -1);
  EXPECT_EQ(bertcl_session_output(session_, 2, &port), BERTCL_INVALID_ARGUMENT);
  EXPECT_STREQ(bertcl_last_error(), "index 2 is out of range: there are 2 outputs");
}

TEST_F(CApi, OutputsAreThoseThatAreWanted) {
  const std::int64_t shape[] = {1, 3}, ids[] = {101, 2040, 102};
  const bertcl_tensor input{sizeof(input), "input_ids", BERTCL_I64, 2, shape, ids, sizeof(ids)};
  const char* names[] = {"start_logits", "logits"};
  bertcl_run_options options{sizeof(options), names, 1};
  bertcl_results* results = nullptr;
  ASSERT_EQ(bertcl_session_run(session_, &input, 1, &options, &results), BERTCL_OK);
  ASSERT_EQ(bertcl_results_count(results), 1u);
  bertcl_tensor output = empty_tensor();
  ASSERT_EQ(bertcl_results_get(results, 0, &output), BERTCL_OK);
  EXPECT_STREQ(output.name, "start_logits");
  bertcl_results_free(results);
  options.output_count = 2;
  EXPECT_EQ(bertcl_session_run(session_, &input, 1, &options, &results), BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("no output 'logits'"));
  names[1] = nullptr;
  EXPECT_EQ(bertcl_session_run(session_, &input, 1, &options, &results), BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("the name of output 1 of the options is NULL"));
  options.size = 0;
  EXPECT_EQ(bertcl_session_run(session_, &input, 1, &options, &results), BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("the size of options is 0; set it to the sizeof"));
}

TEST_F(CApi, TellsOfTheModel) {
  bertcl_model_info info{};
  EXPECT_EQ(bertcl_session_info(session_, &info), BERTCL_INVALID_ARGUMENT);
  info.size = sizeof(info);
  ASSERT_EQ(bertcl_session_info(session_, &info), BERTCL_OK);
  EXPECT_EQ(info.task, BERTCL_TASK_QUESTION_ANSWERING);
  EXPECT_EQ(info.precision, BERTCL_PRECISION_FP32);
  EXPECT_EQ(info.heads, 12);
  EXPECT_EQ(info.max_length, 512);
  EXPECT_EQ(info.takes_packed, 1);
  EXPECT_STRNE(info.device, "");
  std::int64_t one = 0, two = 0;
  ASSERT_EQ(bertcl_session_run_memory(session_, 1, 64, &one), BERTCL_OK);
  ASSERT_EQ(bertcl_session_run_memory(session_, 2, 64, &two), BERTCL_OK);
  EXPECT_GT(two, one);
  EXPECT_EQ(bertcl_session_run_memory(session_, 1, 600, &two), BERTCL_INVALID_ARGUMENT);
}

// A caller that was compiled with an older header, whose structs end earlier.
TEST_F(CApi, ShorterStructsAreFilledUpWithDefaults) {
  bertcl_tensor port;
  std::memset(&port, 0x5a, sizeof(port));
  port.size = offsetof(bertcl_tensor, rank);
  ASSERT_EQ(bertcl_session_input(session_, 0, &port), BERTCL_OK);
  EXPECT_EQ(port.size, offsetof(bertcl_tensor, rank));
  EXPECT_EQ(port.type, BERTCL_I64);
  EXPECT_EQ(port.rank, 0x5a5a5a5a) << "beyond the caller's struct";

  bertcl_session_options options{};
  options.size = offsetof(bertcl_session_options, require_int8);
  options.require_int8 = 1;  // beyond it
  bertcl_session* session = nullptr;
  ASSERT_EQ(bertcl_session_load(kModel.c_str(), &options, &session), BERTCL_OK);
  bertcl_session_free(session);
  options.size = sizeof(options);
  EXPECT_EQ(bertcl_session_load(kModel.c_str(), &options, &session), BERTCL_UNSUPPORTED);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("int8"));
  EXPECT_EQ(session, nullptr);
}

// Callers with a newer header, whose tensors are longer: inputs lie one after the other by their
// size.
TEST_F(CApi, LongerTensorsAreRead) {
  struct Longer {
    bertcl_tensor tensor;
    const void* added;
  };
  const std::int64_t shape[] = {1, 3}, ids[] = {101, 2040, 102}, types[] = {0, 1, 1};
  Longer inputs[] = {
      {{sizeof(Longer), "input_ids", BERTCL_I64, 2, shape, ids, sizeof(ids)}, nullptr},
      {{sizeof(Longer), "token_type_ids", BERTCL_I64, 2, shape, types, sizeof(types)}, nullptr}};
  bertcl_results* results = nullptr;
  ASSERT_EQ(bertcl_session_run(session_, &inputs[0].tensor, 2, nullptr, &results), BERTCL_OK)
      << bertcl_last_error();
  bertcl_results_free(results);
  inputs[1].added = ids;  // with a meaning that this version does not know
  EXPECT_EQ(bertcl_session_run(session_, &inputs[0].tensor, 2, nullptr, &results),
            BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(),
              HasSubstr("a member that this version of bertcl does not know; set it to 0"));
  for (const std::size_t size : {offsetof(bertcl_tensor, bytes), 1000 * sizeof(bertcl_tensor)}) {
    inputs[0].tensor.size = size;
    EXPECT_EQ(bertcl_session_run(session_, &inputs[0].tensor, 1, nullptr, &results),
              BERTCL_INVALID_ARGUMENT);
    EXPECT_THAT(bertcl_last_error(), HasSubstr("the size of input 0 is "));
  }
}

TEST_F(CApi, LongerOptionsMayOnlyHoldZeros) {
  struct Longer {
    bertcl_run_options options;
    std::int64_t added;
  } longer{{sizeof(longer), nullptr, 0}, 0};
  const std::int64_t shape[] = {1, 3}, ids[] = {101, 2040, 102};
  const bertcl_tensor input{sizeof(input), "input_ids", BERTCL_I64, 2, shape, ids, sizeof(ids)};
  bertcl_results* results = nullptr;
  ASSERT_EQ(bertcl_session_run(session_, &input, 1, &longer.options, &results), BERTCL_OK)
      << bertcl_last_error();
  bertcl_results_free(results);
  longer.added = 1;
  EXPECT_EQ(bertcl_session_run(session_, &input, 1, &longer.options, &results),
            BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(),
              HasSubstr("a member that this version of bertcl does not know; set it to 0"));
}

TEST_F(CApi, NullAndEmptyStructsAreRefused) {
  bertcl_results* results = nullptr;
  bertcl_session* session = nullptr;
  bertcl_tensor tensor{};
  bertcl_session_options options{};
  bertcl_sequences sequences{};
  EXPECT_EQ(bertcl_session_load(nullptr, nullptr, &session), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_session_load("x", nullptr, nullptr), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_session_load("x", &options, &session), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_session_input(session_, 0, &tensor), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_session_input(nullptr, 0, &tensor), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_session_run(session_, nullptr, 1, nullptr, &results), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_session_run(session_, &tensor, 1, nullptr, &results), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_session_run(nullptr, &tensor, 1, nullptr, &results), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_session_run_sequences(session_, &sequences, nullptr, &results),
            BERTCL_INVALID_ARGUMENT);
  const int64_t endless[] = {0, INT64_MAX}, id = 0;
  const bertcl_sequences longer_than_memory{sizeof(sequences), 1, endless, &id, nullptr};
  EXPECT_EQ(bertcl_session_run_sequences(session_, &longer_than_memory, nullptr, &results),
            BERTCL_OUT_OF_MEMORY);
  const bertcl_sequences endless_count{sizeof(sequences), INT64_MAX, endless, &id, nullptr};
  EXPECT_EQ(bertcl_session_run_sequences(session_, &endless_count, nullptr, &results),
            BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("count must be 1 to 2147483647"));
  bertcl_evaluate_options no_labels{};
  no_labels.size = sizeof(no_labels);
  no_labels.label_count = 2;
  char* report = nullptr;
  EXPECT_EQ(bertcl_evaluate(session_, "x.json", &no_labels, &report), BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("labels must not be NULL"));
  EXPECT_EQ(bertcl_session_load("", nullptr, &session), BERTCL_IO);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("the path of the model is empty"));
  EXPECT_EQ(bertcl_results_get(nullptr, 0, &tensor), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_results_find(nullptr, "x", &tensor), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_results_count(nullptr), 0u);
  bertcl_session_free(nullptr);
  bertcl_results_free(nullptr);
}

TEST_F(CApi, OptionsThatMeanNothingAreRefused) {
  const auto error_of_options = [](auto change) -> std::string {
    bertcl_session_options options{};
    options.size = sizeof(options);
    change(options);
    bertcl_session* session = nullptr;
    EXPECT_EQ(bertcl_session_load(kModel.c_str(), &options, &session), BERTCL_INVALID_ARGUMENT);
    EXPECT_EQ(session, nullptr);
    return bertcl_last_error();
  };
  EXPECT_THAT(error_of_options([](auto& o) { o.max_memory = -1; }),
              HasSubstr("'max_memory' is -1"));
  EXPECT_THAT(error_of_options([](auto& o) { o.requests = -5; }), HasSubstr("'requests' is -5"));
  EXPECT_THAT(error_of_options([](auto& o) { o.requests = BERTCL_MAX_REQUESTS + 1; }),
              HasSubstr("'requests' is 1025, expected 1 to 1024 runs in flight"));
  EXPECT_THAT(error_of_options([](auto& o) { o.normalize = 1; }), HasSubstr("need 'pooling'"));
  EXPECT_THAT(error_of_options([](auto& o) { o.dimensions = 8; }), HasSubstr("need 'pooling'"));
  EXPECT_THAT(error_of_options([](auto& o) { o.pooling = "mean", o.dimensions = -8; }),
              HasSubstr("'dimensions' is -8"));
}

TEST_F(CApi, EachThreadHasItsOwnLastError) {
  bertcl_session* session = nullptr;
  ASSERT_EQ(bertcl_session_load("/nowhere/a.onnx", nullptr, &session), BERTCL_IO);
  std::thread([&] {
    EXPECT_STREQ(bertcl_last_error(), "");
    EXPECT_EQ(bertcl_session_load("/nowhere/b.onnx", nullptr, &session), BERTCL_IO);
    EXPECT_THAT(bertcl_last_error(), HasSubstr("b.onnx"));
  }).join();
  EXPECT_THAT(bertcl_last_error(), HasSubstr("a.onnx"));
}

}  // namespace
}  // namespace bertcl
