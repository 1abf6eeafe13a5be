// SPDX-License-Identifier: Apache-2.0
// Models from memory, whose bytes may go when nobody reads them; what a session takes of memory.
#include <cstring>
#include <memory>
#include <string>

#include "bertcl/bertcl.h"
#include "bertcl/bertcl.hpp"
#include "tests/api/model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl {
namespace {

using tests::sequences_of;

std::string bits(const Tensors& tensors) {
  std::string all;
  for (const auto& [name, tensor] : tensors)
    all.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
  return all;
}

std::string bits_from_file(const Sequences& sequences) {
  return bits(Session::load(tests::model).run(sequences));
}

TEST(ApiModelBytes, GiveTheBitsOfTheFileAndAreCopiedWithoutAnOwner) {
  const Sequences sequences = sequences_of({9, 30}, 1);
  std::string bytes = tests::bytes_of_model();
  const Session session = Session::load(ModelBytes{std::as_bytes(std::span(bytes))});
  bytes.assign(bytes.size(), '\x5a');
  EXPECT_EQ(bits(session.run(sequences)), bits_from_file(sequences));
}

TEST(ApiModelBytes, OfAnOwnerStayAsTheyAre) {
  const std::string content = tests::bytes_of_model();
  const auto owner = std::make_shared<const std::string>(content);
  const ModelBytes model{std::as_bytes(std::span(*owner)), owner};
  const Sequences sequences = sequences_of({9, 30}, 1);
  for (int load = 0; load < 2; ++load) {
    EXPECT_EQ(bits(Session::load(model).run(sequences)), bits_from_file(sequences));
    EXPECT_TRUE(*owner == content) << "load " << load;
  }
}

TEST(ApiModelBytes, AnOwnerLivesAsLongAsTheSessionReads) {
  const Sequences sequences = sequences_of({9, 30}, 1);
  auto owner = std::make_shared<const std::string>(tests::bytes_of_model());
  const std::weak_ptr<const std::string> alive = owner;
  ModelBytes model{std::as_bytes(std::span(*owner)), owner};
  {
    const Session session = Session::load(model);
    model.owner = nullptr;
    owner = nullptr;
    EXPECT_EQ(bits(session.run(sequences)), bits_from_file(sequences));
  }
  EXPECT_TRUE(alive.expired());
}

TEST(ApiModelBytes, KeepTheMetadataOfTheFile) {
  // metadata_props, field 14 of a ModelProto: its fields may come in any order.
  const std::string bytes = tests::bytes_of_model() +
                            "\x72\x0f\n\x06"
                            "author"
                            "\x12\x05"
                            "Lovel";
  const Session session = Session::load(ModelBytes{std::as_bytes(std::span(bytes))});
  EXPECT_EQ(session.info().metadata.at("author"), "Lovel");
}

TEST(ApiModelBytes, DamagedOnesAreRefused) {
  const auto load = [](std::string_view bytes) {
    return error_of([&] { Session::load(ModelBytes{std::as_bytes(std::span(bytes))}); });
  };
  const std::string all = tests::bytes_of_model();
  EXPECT_THAT(load(""), HasSubstr("model in memory: the file is empty"));
  EXPECT_THAT(load("no model"), HasSubstr("model in memory: not an ONNX"));
  EXPECT_THAT(load(std::string_view(all).substr(0, all.size() / 2)), HasSubstr("model in memory"));
}

TEST(ApiModelBytes, LoadInC) {
  const std::string bytes = tests::bytes_of_model();
  bertcl_session* session = nullptr;
  ASSERT_EQ(bertcl_session_load_bytes(bytes.data(), bytes.size(), nullptr, &session), BERTCL_OK)
      << bertcl_last_error();
  EXPECT_EQ(bertcl_session_input_count(session), 3u);
  bertcl_session_free(session);
  EXPECT_EQ(bertcl_session_load_bytes(nullptr, 3, nullptr, &session), BERTCL_INVALID_ARGUMENT);
  EXPECT_EQ(bertcl_session_load_bytes("abc", 3, nullptr, &session), BERTCL_INVALID_FILE);
  EXPECT_EQ(session, nullptr);
}

// Not the one that lies in the current folder.
TEST(ApiModelBytes, EvaluationNeedsAVocabulary) {
  const std::string bytes = tests::bytes_of_model();
  bertcl_session* session = nullptr;
  ASSERT_EQ(bertcl_session_load_bytes(bytes.data(), bytes.size(), nullptr, &session), BERTCL_OK)
      << bertcl_last_error();
  bertcl_evaluate_options options{};
  options.size = sizeof(options);
  char* report = nullptr;
  EXPECT_EQ(bertcl_evaluate(session, "none.json", &options, &report), BERTCL_INVALID_ARGUMENT);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("set vocabulary"));
  EXPECT_EQ(report, nullptr);
  bertcl_session_free(session);
}

TEST(ApiMemory, IsThatOfTheLargestBatchesSoFar) {
  const Session session = Session::load(tests::model);
  const MemoryUse loaded = session.memory();
  EXPECT_EQ(loaded.weights, session.info().weight_bytes);
  EXPECT_GT(loaded.weights, 20 << 20);
  EXPECT_EQ(loaded.runs, 0);
  const std::int64_t small = session.run_memory(1, 16), large = session.run_memory(4, 128);
  EXPECT_LT(small, large);
  session.run(sequences_of({128, 128, 128, 128}, 1));
  EXPECT_EQ(session.memory().runs, large);
  session.run(sequences_of({16}, 1));
  EXPECT_EQ(session.memory().runs, large);
  EXPECT_EQ(session.memory().requests, 1);
  Session::Run first = session.start(sequences_of({16}, 1));
  Session::Run second = session.start(sequences_of({16}, 1));
  EXPECT_EQ(session.memory().runs, large + small);
  EXPECT_EQ(session.memory().requests, 2);
}

TEST(ApiMemory, OfARunIsRefusedWhereTheRunIs) {
  const Session session = Session::load(tests::model);
  EXPECT_ERROR(HasSubstr("512"), session.run_memory(1, 513));
  EXPECT_ERROR(HasSubstr("at least"), session.run_memory(0, 16));
}

}  // namespace
}  // namespace bertcl
