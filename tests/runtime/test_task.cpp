// SPDX-License-Identifier: Apache-2.0
// What a model is for, by outputs as exporters write them.
#include "runtime/task.hpp"

#include <gtest/gtest.h>

namespace bertcl::runtime {
namespace {

const ir::Dim kBatch = ir::Dim::symbol("batch"), kSeq = ir::Dim::symbol("seq");

Task task(const std::vector<std::pair<std::string, ir::Shape>>& outputs,
          ir::DType type = ir::DType::f32) {
  plan::Plan plan;
  plan.word_rows = 30522;
  for (const auto& [name, shape] : outputs) plan.model_outputs.push_back({name, {type, shape}});
  return task_of(plan);
}

TEST(Task, FollowsFromNamesAndShapes) {
  const ir::Shape tokens{kBatch, kSeq};
  EXPECT_EQ(task({{"start_logits", tokens}, {"end_logits", tokens}}), Task::question_answering);
  EXPECT_EQ(task({{"output_end_logits", tokens}}), Task::question_answering);
  EXPECT_EQ(task({{"unstack:0", tokens}, {"unstack:1", tokens}}), Task::question_answering);
  EXPECT_EQ(task({{"cls_squad_logits", {kBatch, kSeq, 2}}}), Task::question_answering);
  EXPECT_EQ(task({{"logits", {kBatch, 2}}}), Task::text_classification);
  EXPECT_EQ(task({{"logits", {kBatch, 1}}}), Task::text_classification);
  EXPECT_EQ(task({{"logits", {kBatch, kSeq, 13}}}), Task::token_classification);
  EXPECT_EQ(task({{"logits", {kBatch, kSeq, 30522}}}), Task::fill_mask);
  EXPECT_EQ(task({{"last_hidden_state", {kBatch, kSeq, 384}}}), Task::feature_extraction);
  EXPECT_EQ(task({{"sentence_embedding", {kBatch, 384}}}), Task::feature_extraction);
}

TEST(Task, OfAHeadBesideHiddenStatesIsTheHeads) {
  const ir::Shape hidden{kBatch, kSeq, 384};
  EXPECT_EQ(task({{"last_hidden_state", hidden}, {"logits", {kBatch, 2}}}),
            Task::text_classification);
  EXPECT_EQ(task({{"last_hidden_state", hidden}, {"pooler_output", {kBatch, 384}}}),
            Task::feature_extraction);
}

TEST(Task, IsUnknownWhereNothingTells) {
  EXPECT_EQ(task({}), Task::unknown);
  EXPECT_EQ(task({{"y", {kBatch, kSeq, 384}}}), Task::unknown);
  EXPECT_EQ(task({{"logits", {kBatch, 2}}}, ir::DType::i64), Task::unknown);
}

}  // namespace
}  // namespace bertcl::runtime
