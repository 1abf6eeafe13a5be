// SPDX-License-Identifier: Apache-2.0
// Tables of sizes in device memory.
#include "runtime/size_tables.hpp"

#include <vector>

#include "runtime/session.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {
namespace {

TEST(SizeTables, HoldTheSizesOfTheLastWrite) {
  const Session session = Session::compile(ir::parse(R"(graph g(%x: f32[n, 3, m]) {
  %a: f32[m, n, 3] = Transpose(%x) {perm = [2, 0, 1]}
  %b: f32[3, m, n] = Transpose(%a) {perm = [2, 0, 1]}
  return %a as a, %b as b
})"));
  const plan::Plan& plan = session.plan();
  SizeTables tables(plan);
  for (const ir::Bindings& sizes : {ir::Bindings{{"n", 4}, {"m", 9}}, {{"n", 70}, {"m", 1}}}) {
    tables.write(sizes);
    std::size_t table = 0;
    for (const plan::Step& step : plan.steps)
      for (const plan::Argument& a : step.arguments)
        if (const auto* expected = std::get_if<plan::SizeTable>(&a)) {
          std::vector<std::int64_t> values;
          for (const plan::SizeExpr& size : expected->values)
            values.push_back(size.evaluate(sizes));
          EXPECT_THAT(tables.buffer(table++).download<std::int32_t>(), ElementsAreArray(values));
        }
    EXPECT_GE(table, 2u);
  }
}

}  // namespace
}  // namespace bertcl::runtime
