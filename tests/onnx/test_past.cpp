// SPDX-License-Identifier: Apache-2.0
// Decoders' keys and values of earlier tokens, of which a text has none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.hpp"
#include "tests/onnx/text_model.hpp"

namespace bertcl::onnx_io {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::f32;
using tests::i64;

/// Keys that follow those of earlier tokens, whose input and shape these are.
onnx::ModelProto decoder(const std::string& past, const std::vector<std::string>& shape,
                         const std::string& outputs = "output { name: 'y' }") {
  auto model = tests::model_of(
      13, "node { op_type: 'Concat' input: '" + past + "' input: 'now' output: 'present.0.key'" +
              " attribute { name: 'axis' type: INT i: " + std::to_string(shape.size() - 2) +
              " } }"
              "node { op_type: 'Neg' input: 'present.0.key' output: 'y' }"
              "node { op_type: 'Shape' input: '" +
              past + "' output: 'sizes' }" + outputs);
  tests::add_value(*model.mutable_graph()->add_input(), "input_ids", i64, {"b", "s"});
  tests::add_value(*model.mutable_graph()->add_input(), past, f32, shape);
  auto now = shape;
  now[now.size() - 2] = "s";
  tests::add_value(*model.mutable_graph()->add_input(), "now", f32, now);
  return model;
}
std::string imported(const std::string& past, const std::vector<std::string>& shape,
                     const ReadOptions& options = {}) {
  return ir::print(tests::read(decoder(past, shape), options));
}

TEST(Past, KeysOfEarlierTokensAreEmpty) {
  for (const char* name : {"past_key_values.0.key", "past_key_values.11.value", "past_key_0",
                           "past_value_3", "past.0.key", "past_0"}) {
    const std::string text = imported(name, {"b", "2", "past_sequence_length", "8"});
    EXPECT_THAT(text, AllOf(HasSubstr("(%input_ids: i64[batch, seq], %now: f32[batch, 2, seq, 8])"),
                            HasSubstr("f32[batch, 2, seq, 8] = Concat(%now)"), HasSubstr("as y")))
        << name;
  }
  EXPECT_THAT(imported("past_key_values.0.key", {"", "2", "0", "8"}),
              HasSubstr("f32[batch, 2, 0, 8] = Expand"));
  EXPECT_THAT(imported("past_0", {"2", "b", "4", "past", "8"}), HasSubstr("Concat(%now)"));
}

TEST(Past, OtherInputsStay) {
  const auto stays = HasSubstr("Concat(%past");
  EXPECT_THAT(imported("past_key_values.0.key", {"b", "2", "7", "8"}), stays);
  EXPECT_THAT(imported("past_context", {"b", "2", "n", "8"}), stays);
  EXPECT_THAT(imported("past_key_values.0.key", {"b", "n", "8"}), stays);
  EXPECT_THAT(imported("past_key_values.0.key", {"b", "2", "past", "8"}, {.without_past = false}),
              stays);
}

TEST(Past, PresentKeysAreLeftOut) {
  const auto shape = std::vector<std::string>{"b", "2", "past", "8"};
  const auto outputs = "output { name: 'present.0.key' } output { name: 'y' }";
  const auto model = decoder("past_key_values.0.key", shape, outputs);
  EXPECT_THAT(ir::print(tests::read(model)), Not(HasSubstr("as present")));
  EXPECT_THAT(ir::print(tests::read(model, {.without_past = false})),
              HasSubstr("as present.0.key"));
  EXPECT_THAT(
      tests::failure(decoder("past_key_values.0.key", shape, "output { name: 'present.0.key' }")),
      HasSubstr("without past keys and values the model has no outputs; export hidden "
                "states or logits"));
}

}  // namespace
}  // namespace bertcl::onnx_io
