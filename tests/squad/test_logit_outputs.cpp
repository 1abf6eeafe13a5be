// SPDX-License-Identifier: Apache-2.0
// Which outputs are the logits of start and end.
#include "squad/logit_outputs.hpp"

#include <utility>

#include "tests/support/matchers.hpp"

namespace bertcl::squad {
namespace {

plan::Port output(const std::string& name, ir::Shape shape, ir::DType dtype = ir::DType::f32) {
  return {name, {dtype, std::move(shape)}};
}
ir::Shape rows() { return {ir::Dim::symbol("batch"), ir::Dim::symbol("seq")}; }

using Names = std::pair<std::string, std::string>;

Names start_and_end(const std::vector<plan::Port>& outputs) {
  const LogitOutputs found = find_logits(outputs);
  EXPECT_EQ(found.both, "");
  return {found.start, found.end};
}

TEST(LogitOutputs, AreFoundByTheirNamesInAnyOrder) {
  EXPECT_EQ(start_and_end({output("end_logits", rows()), output("start_logits", rows())}),
            Names("start_logits", "end_logits"));
  EXPECT_EQ(start_and_end({output("unstack:1", rows()), output("unstack:0", rows()),
                           output("unique_ids:0", {ir::Dim::symbol("batch")}, ir::DType::i64)}),
            Names("unstack:0", "unstack:1"));
}

TEST(LogitOutputs, NamesThatTellNothingAreInTheOrderOfTheFile) {
  EXPECT_EQ(start_and_end({output("z", rows()), output("first", rows())}), Names("z", "first"));
}

TEST(LogitOutputs, OneOutputMayHaveBoth) {
  const LogitOutputs found =
      find_logits({output("logits", {1, 384, 2}), output("end_of_text", rows())});
  EXPECT_EQ(found.both, "logits");
  EXPECT_EQ(found.start + found.end, "");
}

TEST(LogitOutputs, OtherHeadsAreRefusedWithTheirOutputs) {
  EXPECT_ERROR(HasSubstr("scores f32[batch, seq]"), find_logits({output("scores", rows())}));
  EXPECT_ERROR(HasSubstr("start_ids i64[batch, seq]"),
               find_logits({output("start_ids", rows(), ir::DType::i64)}));
}

}  // namespace
}  // namespace bertcl::squad
