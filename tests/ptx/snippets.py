# SPDX-License-Identifier: Apache-2.0
"""Small kernels in PTX, for tests of the interpreter itself."""
import numpy as np

from machine import Program, launch
from memory import GlobalMemory
from parser import parse

HEAD = """
.version 7.5
.target sm_80, texmode_independent
.address_size 64
"""


def run(body, inputs, out_count, out_dtype=np.uint32, lanes=32, groups=1, before="", align=16):
    """out[lane * out_count ..] of a kernel of one-dimensional groups. In `body`, %rd1 is the address of the inputs,
    %rd2 that of the lane's outputs, %r0 the lane, %r1 .. %r3 its first three input words."""
    inputs = np.ascontiguousarray(inputs)
    width = np.dtype(out_dtype).itemsize * out_count
    text = HEAD + before + f"""
.entry kernel(.param .u64 .ptr .global .align 1 kernel_param_0, .param .u64 .ptr .global .align 1 kernel_param_1)
{{
  .reg .pred %p<9>;
  .reg .b16 %rs<20>;
  .reg .b32 %r<60>;
  .reg .f32 %f<20>;
  .reg .b64 %rd<20>;
  .shared .align 16 .b8 space[4096];
  ld.param.u64 %rd1, [kernel_param_0];
  ld.param.u64 %rd2, [kernel_param_1];
  mov.u32 %r50, %tid.x;
  mov.u32 %r51, %ctaid.x;
  mov.u32 %r52, %ntid.x;
  mad.lo.s32 %r0, %r51, %r52, %r50;
  mul.wide.u32 %rd3, %r0, {width};
  add.s64 %rd2, %rd2, %rd3;
  mul.wide.u32 %rd3, %r0, 12;
  add.s64 %rd3, %rd1, %rd3;
  {'''ld.global.b32 %r1, [%rd3];
  ld.global.b32 %r2, [%rd3+4];
  ld.global.b32 %r3, [%rd3+8];''' if inputs.nbytes >= 12 * lanes * groups else ''}
  {body}
  ret;
}}
"""
    memory = GlobalMemory()
    arguments = [memory.add("in", inputs, align),
                 memory.add("out", np.zeros(lanes * groups * out_count, out_dtype), writable=True, filled=False)]
    launch(Program(parse(text), "kernel"), memory, (lanes * groups,), (lanes,), arguments)
    return memory.get("out", out_dtype).reshape(lanes * groups, out_count)


def words(*columns, lanes=32):
    """Input words [lanes][3] of up to three columns, each of any 32-bit type, repeated to all lanes."""
    filled = [np.resize(np.asarray(c), lanes).view(np.uint32) for c in columns]
    return np.stack(filled + [np.zeros(lanes, np.uint32)] * (3 - len(filled)), axis=1)
