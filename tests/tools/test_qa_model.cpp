// SPDX-License-Identifier: Apache-2.0
// Which input and output of a question-answering model means what, and excerpts of texts.
#include "tools/models/qa_model.hpp"

#include <gmock/gmock.h>

#include "bertcl/error.hpp"
#include "tools/report/excerpt.hpp"

namespace bertcl::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

plan::Port port(const std::string& name, ir::DType dtype, ir::Shape shape) {
  return {name, {dtype, std::move(shape)}};
}
ir::Shape rows() { return {ir::Dim::symbol("batch"), ir::Dim::symbol("seq")}; }
plan::Port ids(const std::string& name) { return port(name, ir::DType::i64, rows()); }
plan::Port logits(const std::string& name) { return port(name, ir::DType::f32, rows()); }

TEST(QaPorts, NamesOfHuggingFace) {
  const QaPorts ports =
      find_qa_ports({ids("input_ids"), ids("attention_mask"), ids("token_type_ids")},
                    {logits("start_logits"), logits("end_logits")});
  EXPECT_EQ(ports.ids, "input_ids");
  EXPECT_EQ(ports.mask, "attention_mask");
  EXPECT_EQ(ports.types, "token_type_ids");
  EXPECT_EQ(ports.start, "start_logits");
  EXPECT_EQ(ports.end, "end_logits");
  EXPECT_EQ(ports.batch, 0);
}

TEST(QaPorts, NamesOfTensorFlow) {
  const QaPorts ports = find_qa_ports(
      {port("unique_ids_raw_output___9:0", ir::DType::i64, {ir::Dim::symbol("batch")}),
       ids("segment_ids:0"), ids("input_mask:0"), ids("input_ids:0")},
      {logits("unstack:1"), logits("unstack:0"),
       port("unique_ids:0", ir::DType::i64, {ir::Dim::symbol("batch")})});
  EXPECT_EQ(ports.ids, "input_ids:0");
  EXPECT_EQ(ports.mask, "input_mask:0");
  EXPECT_EQ(ports.types, "segment_ids:0");
  EXPECT_THAT(ports.unused, ElementsAre("unique_ids_raw_output___9:0"));
  EXPECT_EQ(ports.start, "unstack:0");
  EXPECT_EQ(ports.end, "unstack:1");
}

TEST(QaPorts, OneOutputAndFixedShapes) {
  const QaPorts ports = find_qa_ports({port("input", ir::DType::i32, {1, 384})},
                                      {port("logits", ir::DType::f32, {1, 384, 2})});
  EXPECT_EQ(ports.both, "logits");
  EXPECT_EQ(ports.batch, 1);
  EXPECT_EQ(ports.seq, 384);
}

TEST(QaPorts, RefusesOtherModelsWithTheirPorts) {
  const auto message = [](const std::vector<plan::Port>& in, const std::vector<plan::Port>& out) {
    try {
      find_qa_ports(in, out);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message({ids("input_ids")}, {logits("scores")}), HasSubstr("scores f32[batch, seq]"));
  EXPECT_THAT(message({port("pixels", ir::DType::f32, {1, 3, 224, 224})}, {logits("start")}),
              HasSubstr("'pixels'"));
  EXPECT_THAT(message({ids("attention_mask")}, {logits("start"), logits("end")}),
              HasSubstr("no input for token ids"));
}

TEST(Excerpt, MarksTheSpanAndCutsBetweenWords) {
  const std::string text = "one two three four five six seven";
  const std::size_t four = text.find("four");
  EXPECT_EQ(excerpt(text, {four, four + 4}, {"[", "]"}), "one two three [four] five six seven");
  EXPECT_EQ(excerpt(text, {four, four + 4}, {"[", "]"}, 7), "... three [four] five ...");
  EXPECT_EQ(excerpt(text, {0, 3}, {"<", ">"}, 5), "<one> two ...");
  EXPECT_EQ(excerpt(text, {28, 33}, {"<", ">"}, 5), "... six <seven>");
  EXPECT_EQ(excerpt("a\n\n b\tc", {4, 5}, {"[", "]"}), "a [b] c");
}

}  // namespace
}  // namespace bertcl::tools
