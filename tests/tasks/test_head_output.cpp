// SPDX-License-Identifier: Apache-2.0
// Which output is that of a task.
#include "tasks/head_output.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tasks {
namespace {

plan::Port output(const std::string& name, ir::Shape shape) {
  return {name, {ir::DType::f32, std::move(shape)}};
}
const ir::Dim kBatch = ir::Dim::symbol("batch"), kSeq = ir::Dim::symbol("seq");

TEST(TaskOutput, IsTheOneOfTheShape) {
  const Head two{false, 2, false, "2 classes"}, one{false, 1, false, "1 score"};
  const Head tags{true, 5, false, "5 tags"}, words{true, 100, true, "100 tokens"};
  EXPECT_EQ(find_output({output("pooled", {kBatch, 768}), output("y", {kBatch, 2})}, two), "y");
  EXPECT_EQ(
      find_output(
          {output("a", {kBatch, 2}), output("logits", {kBatch, 2}), output("z", {kBatch, 2})}, two),
      "logits");
  EXPECT_EQ(find_output({output("score", {kBatch})}, one), "score");
  EXPECT_EQ(find_output({output("score", {kBatch, 1})}, one), "score");
  EXPECT_EQ(find_output({output("hidden", {kBatch, kSeq, 32}), output("y", {4, 64, 5})}, tags),
            "y");
  EXPECT_EQ(find_output({output("y", {kBatch, kSeq, 104})}, words), "y") << "padded";
}

TEST(TaskOutput, AnotherHeadIsRefusedWithAllOutputs) {
  const Head two{false, 2, false, "2 classes"}, words{true, 100, true, "100 tokens"};
  EXPECT_ERROR(AllOf(HasSubstr("logits f32[batch, 3], start f32[batch, seq]"),
                     HasSubstr("the task needs [batch, 2], with 2 classes")),
               find_output({output("logits", {kBatch, 3}), output("start", {kBatch, kSeq})}, two));
  EXPECT_ERROR(HasSubstr("[batch, seq, 100 or more]"),
               find_output({output("y", {kBatch, kSeq, 99})}, words));
}

}  // namespace
}  // namespace bertcl::tasks
