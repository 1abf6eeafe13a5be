// SPDX-License-Identifier: Apache-2.0
// The names of arithmetic in reports, and what they are summed up as.
#include <gtest/gtest.h>

#include <tuple>

#include "plan/arithmetic.hpp"

namespace bertcl::plan {
namespace {

TEST(Arithmetic, HasANameAndAKind) {
  using enum Arithmetic::Kind;
  for (const auto& [type, name, kind] :
       {std::tuple{Arithmetic(), "", moves},
        {Arithmetic::copy, "copy", moves},
        {Arithmetic::fill, "fill", moves},
        {Arithmetic::sizes, "sizes", moves},
        {Arithmetic::int8, "int8", int8},
        {Arithmetic::fp16, "fp16", fp16},
        {Arithmetic::fp16_weights, "fp16w", fp16},
        {Arithmetic::bf16, "bf16", bf16},
        {Arithmetic::fp32, "fp32", fp32},
        {Arithmetic::quantize, "fp32 <> int8", mixed},
        {Arithmetic::elements(ir::DType::f32), "fp32", fp32},
        {Arithmetic::elements(ir::DType::f16), "fp16", fp16},
        {Arithmetic::elements(ir::DType::bf16), "bf16", bf16},
        {Arithmetic::elements(ir::DType::i8), "i8", moves},
        {Arithmetic::elements(ir::DType::boolean), "bool", moves},
        {Arithmetic::fp32_to(ir::DType::f32), "fp32", fp32},
        {Arithmetic::fp32_to(ir::DType::u8), "fp32 > int8", mixed},
        {Arithmetic::fp32_to(ir::DType::bf16), "fp32 > bf16", fp32},
        {Arithmetic::fp32_to(ir::DType::f32, true), "int8 > fp32", int8},
        {Arithmetic::fp32_to(ir::DType::i8, true), "int8 > fp32 > int8", mixed},
        {Arithmetic::fp32_to(ir::DType::bf16, true), "int8 > fp32 > bf16", int8}}) {
    EXPECT_EQ(type.str(), name);
    EXPECT_EQ(type.kind(), kind) << name;
  }
}

}  // namespace
}  // namespace bertcl::plan
