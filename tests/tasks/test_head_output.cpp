// SPDX-License-Identifier: Apache-2.0
// Which output is that of a task.
#include "tasks/head_output.hpp"

#include "ir/port.hpp"
#include "squad/batch.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tasks {
namespace {

ir::Port output(const std::string& name, ir::Shape shape) {
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
  EXPECT_THAT(find_outputs({output("end", {kBatch, kSeq}), output("start", {kBatch, kSeq})},
                           squad::logits_head()),
              ElementsAre("start", "end"));
  EXPECT_THAT(find_outputs({output("y", {kBatch, 2})}, two), ElementsAre("y"));
}

TEST(TaskOutput, AnotherHeadIsRefusedWithAllOutputs) {
  const Head two{false, 2, false, "2 classes"}, words{true, 100, true, "100 tokens"};
  EXPECT_ERROR(AllOf(HasSubstr("logits f32[batch, 3], start f32[batch, seq]"),
                     HasSubstr("the task needs [batch, 2], with 2 classes")),
               find_output({output("logits", {kBatch, 3}), output("start", {kBatch, kSeq})}, two));
  EXPECT_ERROR(HasSubstr("[batch, seq, 100 or more]"),
               find_output({output("y", {kBatch, kSeq, 99})}, words));
}

TEST(TaskOutput, TellsWhichTasksFit) {
  const auto fitting = [](const std::string& name, const ir::Shape& shape) {
    return fitting_tasks({output(name, shape)}, 30522);
  };
  EXPECT_THAT(fitting("last_hidden_state", {kBatch, kSeq, 384}),
              ElementsAre("retrieval", "similarity"));
  EXPECT_THAT(fitting("last_hidden_state", {kBatch, kSeq, 64}),
              ElementsAre("retrieval", "similarity"));
  EXPECT_THAT(fitting("sentence_embedding", {kBatch, 384}), ElementsAre("retrieval", "similarity"));
  EXPECT_THAT(fitting("logits", {kBatch, 3}), ElementsAre("classify"));
  EXPECT_THAT(fitting("logits", {kBatch, 150}), ElementsAre("classify"));
  EXPECT_THAT(fitting("y", {kBatch, 1}), ElementsAre("reranking", "similarity"));
  EXPECT_THAT(fitting("logits", {kBatch, kSeq, 9}), ElementsAre("tag"));
  EXPECT_THAT(fitting("logits", {kBatch, kSeq, 30522}), ElementsAre("fill-mask"));
  EXPECT_THAT(fitting("start", {kBatch, kSeq}), IsEmpty());
  EXPECT_THAT(fitting_tasks({output("a", {kBatch, kSeq, 384}), output("b", {kBatch, 384}),
                             output("c", {kBatch, 2})},
                            30522),
              ElementsAre("retrieval", "similarity", "classify"));
}

}  // namespace
}  // namespace bertcl::tasks
