// SPDX-License-Identifier: Apache-2.0
// What the inputs of a model may be called and how they may be typed.
#include <gtest/gtest.h>

#include <cmath>

#include "bertcl/error.hpp"
#include "encoder.hpp"
#include "ops/interpret.hpp"

namespace bertcl::runtime {
namespace {

constexpr std::int64_t batch = 2, seq = 5;
const std::vector<float> mask_values{1, 1, 1, 1, 1, 1, 1, 0, 0, 0};

Tensors inputs_with(ir::DType mask_type, const std::vector<float>& mask) {
  std::vector<float> x(batch * seq * 4);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(3 * i));
  return {{"x", ir::Tensor::of({batch, seq, 4}, std::move(x))},
          {"mask", ir::Tensor::of<float>({batch, seq}, mask).converted(mask_type)}};
}

void expect_rows_of_interpreter(const ir::Graph& graph, Session& session, const Tensors& inputs) {
  const auto expected =
      ops::interpret(graph, std::map<std::string, ir::Tensor>(inputs.begin(), inputs.end()));
  const Tensors outputs = session.run(inputs);
  ASSERT_EQ(outputs.at("y").shape(), (ir::Sizes{batch, seq, 4}));
  const auto y = outputs.at("y").as<float>(), e = expected[0].as<float>();
  for (std::size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(y[i], mask_values[i / 4] == 0 ? 0.0f : e[i], 1e-5) << "element " << i;
}

// Axes may bear any name, those of the sizes that packing adds as well.
TEST(Inputs, NamesOfAxesMeanNothingToPacking) {
  for (const auto& [b, s] : std::vector<std::pair<std::string, std::string>>{
           {"longest", "batch"}, {"offsets", "tokens"}, {"attention_rows", "longest"}}) {
    SCOPED_TRACE(b + ", " + s);
    Session session = Session::compile(masked_encoder("i64", b, s));
    expect_rows_of_interpreter(masked_encoder("i64", b, s), session,
                               inputs_with(ir::DType::i64, mask_values));
    EXPECT_EQ(session.statistics().tokens, 7);
  }
}

TEST(Inputs, AMaskMayBeFloat) {
  Session session = Session::compile(masked_encoder("f32"));
  expect_rows_of_interpreter(masked_encoder("f32"), session,
                             inputs_with(ir::DType::f32, mask_values));
  EXPECT_EQ(session.statistics().tokens, 7);  // padding is dropped as with integers
}

TEST(Inputs, AFloatMaskOfFractionsIsRefusedByName) {
  Session session = Session::compile(masked_encoder("f32"));
  std::vector<float> mask = mask_values;
  mask[6] = 0.5f;
  try {
    session.run(inputs_with(ir::DType::f32, mask));
    FAIL() << "a mask of 0.5 was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("input 'mask' holds 0.5 at element 6"), std::string::npos)
        << e.what();
  }
}

TEST(Inputs, AnIntegerMaskIsNotGivenAsFloat) {
  Session session = Session::compile(masked_encoder("i64"));
  EXPECT_THROW(session.run(inputs_with(ir::DType::f32, mask_values)), Error);
}

}  // namespace
}  // namespace bertcl::runtime
