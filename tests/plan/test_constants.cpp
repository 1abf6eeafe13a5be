// SPDX-License-Identifier: Apache-2.0
// Constants on the device: one buffer for those of the same bytes.
#include <gtest/gtest.h>

#include <numeric>

#include "ir/text.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {
namespace {

// External data may overlap: tensors of a file that start at one address.
TEST(Constants, ThoseOfOneAddressAreSharedIfTheyAreEqual) {
  const auto floats = std::make_shared<std::vector<float>>(64);
  std::iota(floats->begin(), floats->end(), 1.0f);
  const auto view = [&](ir::DType dtype, std::int64_t count) {
    return ir::Tensor(dtype, {count}, floats,
                      std::as_bytes(std::span(*floats)).first(static_cast<std::size_t>(4 * count)));
  };
  ir::Graph graph;
  const auto add = [&](ir::DType dtype, std::int64_t count) {
    const ir::Type type{dtype, {ir::Dim::symbol("n"), count}};
    ir::Value* x = graph.add_input("x", type);
    graph.add_output("y",
                     graph.add("Add", {x, graph.add_constant("c", view(dtype, count))}, {}, type));
  };
  add(ir::DType::f32, 0);
  add(ir::DType::f32, 4);
  add(ir::DType::f32, 64);
  add(ir::DType::i32, 4);
  add(ir::DType::f32, 4);
  const Plan plan = make_plan(graph, opencl::Context::create("cpu"), {});
  std::vector<std::size_t> sizes;
  for (const opencl::Buffer& constant : plan.constants) sizes.push_back(constant.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{0, 16, 256, 16}));
}

}  // namespace
}  // namespace bertcl::plan
