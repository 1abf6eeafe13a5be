// SPDX-License-Identifier: Apache-2.0
// Codes of errors: what a caller can do about each, in C++ and in C.
#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "api/c_boundary.hpp"
#include "bertcl/bertcl.h"
#include "bertcl/bertcl.hpp"
#include "tests/api/model.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl {
namespace {
std::string message_of_c = "of an earlier failure";
bool message_has_memory = true;
}  // namespace

/// The library's is its own.
std::string& c::last_error() {
  if (!std::exchange(message_has_memory, true)) throw std::bad_alloc();
  return message_of_c;
}

namespace {

template <class Work>
std::string code_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    static const std::vector<std::string> names = {
        "invalid_argument", "invalid_file", "unsupported", "device", "out_of_memory", "io", "busy",
        "cancelled",        "internal"};  // from 1 on
    return names.at(static_cast<std::size_t>(error.code()) - 1);
  }
  return "none";
}

std::string code_of_load(const std::filesystem::path& model, const SessionOptions& options = {}) {
  return code_of([&] { Session::load(model, options); });
}

TEST(ApiErrors, LoadingTellsFilesModelsDevicesAndMemoryApart) {
  const tests::ScratchFolder folder;
  EXPECT_EQ(code_of_load("/nowhere/model.onnx"), "io");
  EXPECT_EQ(code_of_load(folder.path()), "io");
  EXPECT_EQ(code_of_load(folder.write("text.onnx", "not a model")), "invalid_file");
  EXPECT_EQ(code_of_load(folder.write("empty.onnx", "")), "invalid_file");
  EXPECT_EQ(code_of([&] { Tokenizer::load(folder / "vocab.txt"); }), "io");
  EXPECT_EQ(code_of([&] { Tokenizer::load(folder.write("vocab.txt", "a\nb\n")); }), "invalid_file");
  SessionOptions options{.device = "no such device"};
  EXPECT_EQ(code_of_load(tests::model, options), "device");
  options = {};
  options.max_memory = 1 << 20;
  EXPECT_EQ(code_of_load(tests::model, options), "out_of_memory");
  options = {};
  options.require_int8 = true;
  EXPECT_EQ(code_of_load(tests::model, options), "unsupported");
  options = {};
  options.precision = static_cast<Precision>(7);
  EXPECT_EQ(code_of_load(tests::model, options), "invalid_argument");
}

TEST(ApiErrors, AnOperatorThatIsNotKnownIsUnsupportedAndACutFileDamaged) {
  const tests::ScratchFolder folder;
  std::string bytes = tests::bytes_of_model();
  ASSERT_FALSE(bytes.empty());
  EXPECT_EQ(code_of_load(folder.write("cut.onnx", bytes.substr(0, bytes.size() - 1000))),
            "invalid_file");
  const std::size_t at = bytes.find("\x22\x07Softmax");  // op_type of a node
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 9, "\x22\x07Softmix");
  EXPECT_EQ(code_of_load(folder.write("softmix.onnx", bytes)), "unsupported");
}

TEST(ApiErrors, RunsTellInputsAndRequestsApart) {
  const Session session = Session::load(tests::model, {.requests = 1});
  const Tensors inputs{{"input_ids", Tensor::of<std::int64_t>({1, 3}, {101, 2040, 102})}};
  EXPECT_EQ(code_of([&] { session.run(Tensors{}); }), "invalid_argument");
  EXPECT_EQ(code_of([&] { session.run(Sequences{}); }), "invalid_argument");
  EXPECT_EQ(code_of([&] { session.run(tests::sequences_of({513}, 1)); }), "invalid_argument");
  Session::Run run = session.start(inputs);
  EXPECT_EQ(code_of([&] { session.start(inputs); }), "busy");
  run.finish();
  EXPECT_EQ(code_of([&] { run.finish(); }), "invalid_argument");
}

TEST(ApiErrors, MemoryThatABatchNeedsIsReckonedBeforeItRuns) {
  SessionOptions options;
  options.max_memory = 140 << 20;  // some above the weights
  const Session session = Session::load(tests::model, options);
  session.run(tests::sequences_of({8}, 1));
  const std::vector<std::int64_t> many(64, 512);
  EXPECT_EQ(code_of([&] { session.run(tests::sequences_of(many, 1)); }), "out_of_memory");
}

TEST(ApiErrors, StatusesOfCAreTheCodes) {
  bertcl_session* session = nullptr;
  EXPECT_EQ(bertcl_session_load("/nowhere/model.onnx", nullptr, &session), BERTCL_IO);
  bertcl_session_options options{};
  options.size = sizeof(options);
  options.device = "no such device";
  EXPECT_EQ(bertcl_session_load(tests::model.c_str(), &options, &session), BERTCL_DEVICE);
  options.device = nullptr;
  options.max_memory = 1 << 20;
  EXPECT_EQ(bertcl_session_load(tests::model.c_str(), &options, &session), BERTCL_OUT_OF_MEMORY);
  EXPECT_EQ(session, nullptr);
}

TEST(ApiErrors, AMessageOfCIsThatOfItsStatus) {
  const auto failing = [] { throw Error("a failure", ErrorCode::io); };
  message_has_memory = false;
  EXPECT_EQ(c::guarded(failing), BERTCL_OUT_OF_MEMORY);
  EXPECT_EQ(message_of_c, "out of memory");
  EXPECT_EQ(c::guarded(failing), BERTCL_IO);
  EXPECT_EQ(message_of_c, "a failure");
}

TEST(ApiErrors, WhateverACallbackOfCThrowsCancelsTheCall) {
  const tests::ScratchFolder folder;
  const Sequences sample = tests::sequences_of({8}, 1);
  const bertcl_sequences samples{sizeof(samples), 1, sample.offsets.data(), sample.ids.data(),
                                 nullptr};
  bertcl_quantize_options options{};
  options.size = sizeof(options);
  options.progress = [](void*, const char*, std::int64_t, std::int64_t) -> int { throw 42; };
  const std::string output = (folder / "int8.onnx").string();
  EXPECT_EQ(
      bertcl_quantize_sequences(tests::model.c_str(), output.c_str(), &samples, &options, nullptr),
      BERTCL_CANCELLED);
  EXPECT_STREQ(bertcl_last_error(),
               "the callback failed: it threw an exception of an unknown type");
  EXPECT_FALSE(std::filesystem::exists(output));
}

}  // namespace
}  // namespace bertcl
