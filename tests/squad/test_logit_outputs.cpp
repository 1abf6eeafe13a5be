// SPDX-License-Identifier: Apache-2.0
// Which outputs are the logits of start and end.
#include "squad/logit_outputs.hpp"

#include <utility>

#include "ir/port.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::squad {
namespace {

ir::Port output(const std::string& name, ir::Shape shape, ir::DType dtype = ir::DType::f32) {
  return {name, {dtype, std::move(shape)}};
}
ir::Shape rows() { return {ir::Dim::symbol("batch"), ir::Dim::symbol("seq")}; }

TEST(LogitOutputs, AreFoundByTheirNamesInAnyOrder) {
  EXPECT_THAT(find_logits({output("end_logits", rows()), output("start_logits", rows())}),
              ElementsAre("start_logits", "end_logits"));
  EXPECT_THAT(find_logits({output("unstack:1", rows()), output("unstack:0", rows()),
                           output("unique_ids:0", {ir::Dim::symbol("batch")}, ir::DType::i64)}),
              ElementsAre("unstack:0", "unstack:1"));
}

TEST(LogitOutputs, NamesThatTellNothingAreInTheOrderOfTheFile) {
  EXPECT_THAT(find_logits({output("z", rows()), output("first", rows())}),
              ElementsAre("z", "first"));
}

TEST(LogitOutputs, OneOutputMayHaveBoth) {
  EXPECT_THAT(find_logits({output("logits", {1, 384, 2}), output("end_of_text", rows())}),
              ElementsAre("logits"));
}

TEST(LogitOutputs, OtherHeadsAreRefusedWithTheirOutputs) {
  EXPECT_ERROR(HasSubstr("scores f32[batch, seq]"), find_logits({output("scores", rows())}));
  EXPECT_ERROR(HasSubstr("start_ids i64[batch, seq]"),
               find_logits({output("start_ids", rows(), ir::DType::i64)}));
}

}  // namespace
}  // namespace bertcl::squad
