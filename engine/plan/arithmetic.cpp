// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a step, as reports name it and sum it up.
#include "plan/arithmetic.hpp"

namespace bertcl::plan {

Arithmetic Arithmetic::elements(ir::DType type) {
  if (type == ir::DType::f32) return fp32;
  if (type == ir::DType::f16) return fp16;
  if (type == ir::DType::bf16) return bf16;
  return {ir::name_of(type), Kind::moves};
}

Arithmetic Arithmetic::fp32_to(ir::DType results, bool of_int8) {
  if (ir::is_int8(results)) return {of_int8 ? "int8 > fp32 > int8" : "fp32 > int8", Kind::mixed};
  if (results == ir::DType::bf16)
    return of_int8 ? Arithmetic{"int8 > fp32 > bf16", Kind::int8}
                   : Arithmetic{"fp32 > bf16", Kind::fp32};
  return of_int8 ? Arithmetic{"int8 > fp32", Kind::int8} : fp32;
}

}  // namespace bertcl::plan
