# SPDX-License-Identifier: Apache-2.0
"""What the interpreter's memory refuses, and what it lets pass."""
import unittest

import numpy as np

from errors import PtxError
from machine import launch
from memory import GlobalMemory
from snippets import run, words
from toolchain import program_of, require_tools

ZERO = words(np.zeros(64, np.int32), lanes=64)
AT = "mov.u64 %rd5, space; mul.wide.u32 %rd6, %r0, 4; add.s64 %rd7, %rd5, %rd6;"  # a word of each lane
OUT = "st.global.b32 [%rd2], %r9;"
COPY = """mul.wide.u32 %rd6, %r0, 16; mov.u64 %rd5, space; add.s64 %rd7, %rd5, %rd6; add.s64 %rd8, %rd1, %rd6;
  cp.async.cg.shared.global [%rd7], [%rd8], 16, %r5;
"""
SIXTEEN = "mov.u32 %r5, 16;"


class Refusals(unittest.TestCase):
    def refuse(self, body, message, lanes=64, inputs=ZERO, **more):
        with self.assertRaisesRegex(PtxError, message) as raised:
            run(body, inputs, 1, lanes=lanes, **more)
        return raised.exception

    def test_global_bounds_and_alignment(self):
        error = self.refuse("add.s64 %rd3, %rd3, 764; ld.global.u32 %r9, [%rd3+4];" + OUT, "out of bounds.*'in'")
        self.assertEqual(error.lane, 0)
        error = self.refuse("ld.global.u32 %r9, [%rd3+12];" + OUT, "byte 768 of 'in' of 768 bytes")
        self.assertEqual(error.lane, 63)  # the last alone reads past the end
        self.assertIn("ld.global.u32 %r9, [%rd3+12]", str(error))
        self.refuse("ld.global.u32 %r9, [%rd1+-4];" + OUT, "out of bounds")
        self.refuse("ld.global.u32 %r9, [%rd3+2];" + OUT, "misaligned")
        self.refuse("ld.global.v2.u32 {%r9, %r10}, [%rd3];" + OUT, "misaligned.*8 bytes", inputs=ZERO)
        self.refuse("mov.u64 %rd3, 0; ld.global.u32 %r9, [%rd3];" + OUT, "out of bounds")

    def test_buffers_are_not_aligned_farther_than_the_contract(self):
        self.refuse("ld.global.v2.u32 {%r9, %r10}, [%rd1];" + OUT, "misaligned", align=4)

    def test_global_stores(self):
        self.refuse("st.global.u32 [%rd3], %r0;" + "mov.u32 %r9, 0;" + OUT, "read-only")
        self.refuse("ld.global.u32 %r9, [%rd2];" + OUT, "nobody has written")
        self.refuse("ld.param.u64 %rd4, [kernel_param_1]; st.global.u32 [%rd4], %r0;", "race: two work-items")
        with self.assertRaisesRegex(PtxError, "were not written"):
            run("setp.gt.s32 %p1, %r0, 3; @%p1 bra $end; mov.u32 %r9, 0;" + OUT + "$end:", ZERO, 1, lanes=64)

    def test_race_in_global_memory(self):
        self.refuse("mov.u32 %r9, 1;" + OUT + """bar.sync 0; ld.param.u64 %rd4, [kernel_param_1];
  ld.global.u32 %r10, [%rd4]; st.global.u32 [%rd2], %r10;""", "another work-item wrote in this launch")

    def test_shared_bounds(self):
        self.refuse(AT + "st.shared.u32 [%rd7+4000], %r0;", "out of bounds")
        self.refuse(AT + "st.shared.u32 [%rd7+1], %r0;", "misaligned")
        self.refuse(AT + "ld.shared.u32 %r9, [%rd7];" + OUT, "nobody has written")

    def test_races_in_shared_memory(self):
        write, read = "st.shared.u32 [%rd7], %r0;", "ld.shared.u32 %r9, [%rd8];"
        other = "xor.b32 %r10, %r0, {}; mul.wide.u32 %rd6, %r10, 4; add.s64 %rd8, %rd5, %rd6;"
        for distance in (1, 32):  # in the same warp, and in another
            start = AT + other.format(distance)
            self.refuse(start + write + read + OUT, "reads shared bytes that another work-item wrote")
            self.refuse(start + write + "bar.sync 0;" + read + write + OUT, "another work-item read since")
            fine = run(start + write + "bar.sync 0;" + read + "bar.sync 0;" + write + OUT, ZERO, 1, lanes=64)
            np.testing.assert_array_equal(fine[:, 0], np.arange(64) ^ distance)
        self.refuse("mov.u64 %rd5, space; st.shared.u32 [%rd5], %r0;", "at once")
        self.refuse("mov.u64 %rd5, space; st.shared.u32 [%rd5], %r1; mov.u32 %r9, 0;" + OUT, "at once")
        # Many read a word, then one of them writes it.
        self.refuse(AT + write + "bar.sync 0; ld.shared.u32 %r9, [%rd5]; setp.eq.s32 %p1, %r0, 63;"
                    "@%p1 st.shared.u32 [%rd5], %r0;" + OUT, "another work-item read since")

    def test_bytes_of_a_word_are_told_apart(self):
        body = """mov.u64 %rd5, space; cvt.u64.u32 %rd6, %r0; add.s64 %rd7, %rd5, %rd6; cvt.u16.u32 %rs1, %r0;
  st.shared.u8 [%rd7], %rs1; bar.sync 0; ld.shared.u8 %r9, [%rd7];""" + OUT
        np.testing.assert_array_equal(run(body, ZERO, 1, lanes=64)[:, 0], np.arange(64))

    def test_barriers_in_divergent_branches(self):
        self.refuse("setp.lt.s32 %p1, %r0, 5; @%p1 bra $end; bar.sync 0; $end: mov.u32 %r9, 0;" + OUT,
                    "divergent barrier")
        self.refuse("setp.lt.s32 %p1, %r0, 5; @%p1 bra $other; bar.sync 0; bra.uni $end; $other: bar.sync 0;"
                    "$end: mov.u32 %r9, 0;" + OUT, "divergent barrier")
        # Work-groups may differ.
        run("setp.lt.s32 %p1, %r0, 64; @%p1 bra $end; bar.sync 0; $end: mov.u32 %r9, 0;" + OUT,
            words(np.zeros(1, np.int32), lanes=128), 1, lanes=64, groups=2)

    def test_copies_arrive_at_their_wait_and_not_before(self):
        inputs = np.arange(64 * 4, dtype=np.uint32)
        end = "ld.shared.u32 %r9, [%rd7];" + OUT
        start = SIXTEEN + COPY
        fine = run(start + "cp.async.commit_group; cp.async.wait_group 0;" + end, inputs, 1, lanes=64)
        np.testing.assert_array_equal(fine[:, 0], np.arange(64) * 4)
        fine = run(start + "cp.async.wait_all;" + end, inputs, 1, lanes=64)
        np.testing.assert_array_equal(fine[:, 0], np.arange(64) * 4)
        nothing = run("mov.u32 %r5, 0;" + COPY + "cp.async.wait_all;" + end, inputs, 1, lanes=64)
        np.testing.assert_array_equal(nothing, 0)
        for wait in ("", "cp.async.commit_group;", "cp.async.wait_group 0;",
                     "cp.async.commit_group; cp.async.wait_group 1;", "bar.sync 0;"):
            self.refuse(start + wait + end, "load of shared bytes that cp.async has not delivered", inputs=inputs)
        self.refuse(start + "st.shared.u32 [%rd7], %r0;", "store of shared bytes that cp.async", inputs=inputs)
        # The wait of one work-item says nothing of the copies of another without a barrier.
        other = "xor.b32 %r10, %r0, 1; mul.wide.u32 %rd6, %r10, 16; add.s64 %rd7, %rd5, %rd6;"
        self.refuse(start + "cp.async.wait_all;" + other + end, "race: reads shared", inputs=inputs)
        self.refuse(start + "bar.sync 0; cp.async.wait_all;" + other + end, "race: reads shared", inputs=inputs)
        fine = run(start + "cp.async.wait_all; bar.sync 0;" + other + end, inputs, 1, lanes=64)
        np.testing.assert_array_equal(fine[:, 0], (np.arange(64) ^ 1) * 4)

    def test_copies_have_bounds(self):
        inputs = np.arange(64 * 4, dtype=np.uint32)
        self.refuse(SIXTEEN + COPY.replace("[%rd8]", "[%rd8+16]"), "out of bounds", inputs=inputs)
        self.refuse(SIXTEEN + COPY.replace("[%rd8]", "[%rd8+4]"), "misaligned source", inputs=inputs)
        self.refuse(SIXTEEN + COPY.replace("[%rd7]", "[%rd7+8]"), "misaligned cp.async", inputs=inputs)

    def test_arguments_are_counted(self):
        require_tools()
        with self.assertRaisesRegex(PtxError, "8 arguments are expected, 1 are given"):
            launch(program_of("row_sums", "row_sums", (), 75), GlobalMemory(), (1,), (1,), [np.int32(1)])

    def test_the_probe_of_copies(self):
        require_tools()
        memory, a = GlobalMemory(), np.arange(1, 129, dtype=np.int32).reshape(32, 4)
        launch(program_of("probe_copy_async", "probe_copy_async", ("COPY_ASYNC=2",)), memory, (32,), (32,),
               [memory.add("a", a), memory.add("out", np.zeros(128, np.int32), writable=True, filled=False)])
        a[::3] = 0
        np.testing.assert_array_equal(memory.get("out", np.int32).reshape(32, 4), a[::-1])
