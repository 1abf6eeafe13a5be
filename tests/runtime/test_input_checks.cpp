// SPDX-License-Identifier: Apache-2.0
// What is said about inputs that do not fit the plan.
#include <cstdint>
#include <limits>

#include "kernels/shared_numbers.hpp"
#include "runtime/inputs.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::runtime {
namespace {

/// ids i64[batch, seq], mask f32[batch, seq], types i64[batch, seq], x f32[batch, 4]
plan::Plan encoder_plan() {
  const ir::Dim batch = ir::Dim::symbol("batch"), seq = ir::Dim::symbol("seq");
  plan::Plan plan;
  plan.model_inputs = {{"ids", {ir::DType::i64, {batch, seq}}},
                       {"mask", {ir::DType::f32, {batch, seq}}},
                       {"types", {ir::DType::i64, {batch, seq}}},
                       {"x", {ir::DType::f32, {batch, 4}}}};
  plan.inputs = {{plan::InputKind::packed_ids, "ids", 0},
                 {plan::InputKind::key_mask, "mask", 1},
                 {plan::InputKind::packed_token_types, "types", 2},
                 {plan::InputKind::dense, "x", 3}};
  plan.mask_input = "mask";
  return plan;
}

ir::Tensor integers(const ir::Sizes& shape, std::int64_t value = 1) {
  return ir::Tensor::of(
      shape, std::vector<std::int64_t>(static_cast<std::size_t>(ir::element_count(shape)), value));
}
ir::Tensor floats(const ir::Sizes& shape, float value = 1.0f) {
  return ir::Tensor::of(
      shape, std::vector<float>(static_cast<std::size_t>(ir::element_count(shape)), value));
}

TEST(InputChecks, NamesAreThoseOfTheModel) {
  const plan::Plan plan = encoder_plan();
  Tensors inputs{{"ids", integers({2, 5})}, {"x", floats({2, 4})}};
  check_names(plan, inputs);  // mask and types have defaults
  inputs["y"] = floats({1});
  EXPECT_EQ(error_of([&] { check_names(plan, inputs); }),
            "the model has no input 'y'; its inputs are ids, mask, types, x");
  EXPECT_EQ(error_of([&] {
              check_names(plan, {{"ids", integers({2, 5})}});
            }),
            "input 'x' (f32[batch, 4]) is missing");
  EXPECT_ERROR(HasSubstr("input 'ids' (i64[batch, seq]) is missing"),
               check_names(plan, {{"x", floats({2, 4})}}));
}

TEST(InputChecks, NoValueIsChangedByItsType) {
  const auto message = [](const ir::Tensor& given, ir::DType wanted) {
    return error_of([&] { without_loss(given, wanted, "a"); });
  };
  EXPECT_EQ(message(floats({2}, 1.9f), ir::DType::i64), "input 'a' is f32, expected i64");
  EXPECT_EQ(message(floats({2}), ir::DType::boolean), "input 'a' is f32, expected bool");
  EXPECT_EQ(message(ir::Tensor::of<std::int64_t>({2}, {255, 300}), ir::DType::u8),
            "input 'a' holds 300 at element 1, which u8 cannot hold");
  EXPECT_THAT(message(integers({1}, -1), ir::DType::u64), HasSubstr("holds -1 at element 0"));
  EXPECT_THAT(message(integers({1}, (1LL << 53) + 1), ir::DType::i32), HasSubstr("i32 cannot"));
  EXPECT_THAT(message(integers({1}, 2), ir::DType::boolean), HasSubstr("bool cannot hold"));
  EXPECT_THAT(without_loss(integers({2}, -7), ir::DType::i32, "a").to_ints(), ElementsAre(-7, -7));
  EXPECT_THAT(without_loss(integers({1}, 3), ir::DType::f32, "a").to_doubles(), ElementsAre(3));
}

TEST(InputChecks, ShapesGiveTheSizes) {
  plan::Plan plan = encoder_plan();
  const auto sizes = [&](ir::Sizes ids, ir::Sizes x) {
    return bind_shapes(plan, shapes_of({{"ids", integers(ids)}, {"x", floats(x)}}));
  };
  EXPECT_EQ(sizes({2, 5}, {2, 4}), (ir::Bindings{{"batch", 2}, {"seq", 5}}));
  EXPECT_EQ(error_of([&] {
              sizes({2, 5}, {2, 3});
            }),
            "input 'x' has shape [2, 3], expected [batch, 4]");
  EXPECT_ERROR(HasSubstr("input 'ids' has shape [2]"), sizes({2}, {2, 4}));
  EXPECT_EQ(error_of([&] {
              sizes({2, 5}, {3, 4});
            }),
            "input 'x' has batch = 3 but input 'ids' has 2");
  plan.equal_sizes = {{ir::Dim::symbol("batch"), ir::Dim::symbol("seq")}};
  EXPECT_ERROR(HasSubstr("requires batch and seq to be equal, the inputs give 2 and 5"),
               sizes({2, 5}, {2, 4}));
}

// Of no elements, whose memory no other check would refuse.
TEST(InputChecks, ExtentsAreThoseThatKernelsCount) {
  constexpr std::int64_t most = kernels::kMaxElements;
  const plan::Plan plan = encoder_plan();
  const auto sizes = [&](std::int64_t batch, std::int64_t seq) {
    return bind_shapes(plan, {{"ids", {batch, seq}}});
  };
  EXPECT_EQ(sizes(0, most), (ir::Bindings{{"batch", 0}, {"seq", most}}));
  EXPECT_EQ(error_of([&] { sizes(0, most + 1); }),
            "input 'ids' has shape [0, 2147418112]; extents are limited to 2147418111; use a "
            "smaller batch");
  EXPECT_ERROR(HasSubstr("[9223372036854775807, 0]"), sizes(INT64_MAX, 0));
}

TEST(InputChecks, IdsAreWholeNumbers) {
  const plan::Plan plan = encoder_plan();
  EXPECT_THAT(integers_of(plan, {}, "ids"), IsEmpty());
  EXPECT_THAT(integers_of(plan, {{"ids", integers({1, 2}, 7)}}, "ids"), ElementsAre(7, 7));
  EXPECT_EQ(error_of([&] {
              integers_of(plan, {{"ids", floats({1, 2})}}, "ids");
            }),
            "input 'ids' is f32, expected integers");
}

TEST(InputChecks, MasksAreZerosAndOnes) {
  plan::Plan plan = encoder_plan();
  EXPECT_THAT(mask_of(plan, {}), IsEmpty());
  EXPECT_THAT(mask_of(plan, {{"mask", floats({1, 2})}}), ElementsAre(1, 1));
  for (const float value : {0.5f, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(), 4e9f})
    EXPECT_ERROR(AllOf(HasSubstr("input 'mask' holds"), HasSubstr("at element 0; ids and masks")),
                 mask_of(plan, {{"mask", floats({1, 2}, value)}}))
        << value;
  EXPECT_EQ(error_of([&] {
              mask_of(plan, {{"mask", integers({1, 2}, -1)}});
            }),
            "input 'mask' holds -1 at element 0; a mask is 1 for tokens and 0 for padding");
  plan.mask_input.clear();
  EXPECT_THAT(mask_of(plan, {{"mask", floats({1, 2})}}), IsEmpty()) << "it masks no keys";
}

TEST(InputChecks, SequencesEndWithTheTableAndTheSums) {
  plan::Plan plan = encoder_plan();
  ops::Packing packing;
  packing.longest = 513;
  check_length(plan, packing);  // no limit
  plan.max_positions = 512;
  EXPECT_ERROR(HasSubstr("513 tokens, the model's position table ends at 512"),
               check_length(plan, packing));
  plan.max_positions = 513;
  plan.max_keys = 512;
  EXPECT_ERROR(HasSubstr("int8 attention sums at most 512"), check_length(plan, packing));
}

}  // namespace
}  // namespace bertcl::runtime
