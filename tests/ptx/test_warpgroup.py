# SPDX-License-Identifier: Apache-2.0
"""wgmma of the interpreter: layouts in shared memory, fragments, and what it refuses."""
import unittest

import numpy as np

from errors import PtxError
from machine import launch
from memory import GlobalMemory
from snippets import run
from toolchain import program_of, require_tools
from warpgroup import cells_of, places

FENCES = "fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned;"
DONE = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
MULTIPLY = "wgmma.mma_async.sync.aligned.m64n8k32.s32.{}.s8 {{%r10, %r11, %r12, %r13}}, %rd7, %rd8, 1;"
STORES = "".join(f"st.global.b32 [%rd2+{4 * i}], %r{10 + i};" for i in range(4))
B_BEGIN = 2048 // 16  # of B after 64 rows of 32 bytes, in cells


def descriptor(begin, swizzle, between_rows, between_cells=1):
    return begin | between_cells << 16 | between_rows << 32 | swizzle << 62


def laid_out(matrix):
    """[rows][32] without swizzle: 8 rows of 16 bytes together, then the next 8, then the second cell."""
    return matrix.reshape(-1, 8, 2, 16).transpose(2, 0, 1, 3).tobytes()


def body(kind="s8", before=FENCES, after=DONE):
    """Copies the inputs to shared memory: A and B, 64 + 8 rows of 32 bytes, and multiplies from there."""
    a, b = descriptor(0, 0, 8, 64), descriptor(B_BEGIN, 0, 8, 8)
    return f"""mov.u64 %rd5, space; mul.wide.u32 %rd6, %r0, 16; add.s64 %rd7, %rd5, %rd6;
  add.s64 %rd8, %rd1, %rd6; ld.global.v4.u32 {{%r20, %r21, %r22, %r23}}, [%rd8];
  st.shared.v4.u32 [%rd7], {{%r20, %r21, %r22, %r23}}; setp.gt.u32 %p1, %r0, 15; @%p1 bra $copied;
  ld.global.v4.u32 {{%r20, %r21, %r22, %r23}}, [%rd8+2048];
  st.shared.v4.u32 [%rd7+2048], {{%r20, %r21, %r22, %r23}};
$copied:
  mov.u32 %r10, 5; mov.u32 %r11, 5; mov.u32 %r12, 5; mov.u32 %r13, 5;
  shr.u64 %rd5, %rd5, 4; add.s64 %rd7, %rd5, {a}; add.s64 %rd8, %rd5, {b};
  {before} {MULTIPLY.format(kind)} {after} {STORES}"""


class Wgmma(unittest.TestCase):
    def operands(self):
        random = np.random.default_rng(4)
        a, b = (random.integers(-128, 128, (n, 32)).astype(np.int8) for n in (64, 8))
        data = np.frombuffer(laid_out(a) + laid_out(b), np.uint8)
        return a, b, data

    def refused(self, message, text):
        with self.assertRaisesRegex(PtxError, message):
            run(text, self.operands()[2], 4, np.int32, lanes=128)

    def test_products_of_both_signs(self):
        a, b, data = self.operands()
        for kind, of in (("s8", np.int8), ("u8", np.uint8)):
            found = run(body(kind), data, 4, np.int32, lanes=128, groups=1)
            expected = a.view(of).astype(np.int32) @ b.T.astype(np.int32) + 5
            np.testing.assert_array_equal(found, expected[places(8)])

    def test_the_probe_with_each_swizzle(self):
        require_tools()
        a, b = (np.random.default_rng(s).integers(-128, 128, (64, 64)).astype(np.int8) for s in (5, 6))
        start = np.arange(2 * 64 * 64, dtype=np.int32).reshape(2, 64, 64)
        wide = [of.astype(np.int32) @ b.T.astype(np.int32) for of in (a, a.view(np.uint8))]
        for cells in (2, 4):
            memory = GlobalMemory()
            launch(program_of("probe_wgmma", "probe_wgmma", ("MATRIX_EMULATED=0", f"CELLS_K={cells}"), 90), memory,
                   (256,), (256,), [memory.add("a", a), memory.add("b", b), memory.add("start", start),
                                    memory.add("out", np.zeros_like(start), writable=True, filled=False)])
            np.testing.assert_array_equal(memory.get("out", np.int32).reshape(start.shape), start + wide)

    def test_what_is_refused(self):
        self.refused("sums that wgmma has not delivered: st.global", body(after=""))
        self.refused("sums that wgmma has not delivered", body(after="wgmma.commit_group.sync.aligned;"))
        self.refused("sums that wgmma has not delivered", body(after="wgmma.wait_group.sync.aligned 0;"))
        self.refused("sums that wgmma has not delivered", body(after=DONE.replace(" 0;", " 1;")))
        self.refused("without fence.proxy.async", body(before=FENCES.split(";", 1)[1]))
        self.refused("race: wgmma reads", body(before=FENCES.replace("bar.sync 0;", "")))
        self.refused("without wgmma.fence", body(before=FENCES.replace("wgmma.fence.sync.aligned;", "")))
        self.refused("nobody has written", body(before=FENCES + "add.s64 %rd8, %rd8, 8;"))
        self.refused("descriptors of a warpgroup differ", body(before=FENCES + "@%p1 add.s64 %rd8, %rd8, 0;"
                                                               "@%p1 add.s64 %rd8, %rd8, 1;"))
        self.refused("part of a warpgroup", body(before=FENCES + "@%p1 bra $multiply;\n$multiply:\n@!%p1 ret;"))
        self.refused("still reads", body(after="bar.sync 0; mov.u64 %rd5, space; st.shared.u32 [%rd5], %r0;" + DONE))
        self.refused("unknown instruction", body().replace("%rd8, 1;", "%rd8, 0;"))

    def test_swizzles(self):
        # The first cells of rows 0 to 8 as PTX ISA's figures show them: 8 rows meet all banks.
        for swizzle, pitch, expected in ((1, 128, (0, 1, 2, 3, 4, 5, 6, 7, 0)), (2, 64, (0, 0, 1, 1, 2, 2, 3, 3, 0)),
                                         (3, 32, (0, 0, 0, 0, 1, 1, 1, 1, 0))):
            cells = cells_of(np.uint64(descriptor(128, swizzle, 8 * pitch // 16)), 16)
            self.assertEqual(((cells[:9, 0] - 2048 - np.arange(9) * pitch) // 16).tolist(), list(expected))
            self.assertEqual(len({c % 128 for c in cells[:8, 0]}), 8)
            np.testing.assert_array_equal(cells[:, 1], cells[:, 0] ^ 16)
        # 32 bytes further along K, as the kernel goes on in a strip of 64.
        cells = cells_of(np.uint64(descriptor(128 + 2, 2, 32)), 8)
        self.assertEqual(((cells[:, 0] - 2048 - np.arange(8) * 64) // 16).tolist(), [2, 2, 3, 3, 0, 0, 1, 1])
        for bad in (descriptor(8, 1, 64), descriptor(0, 2, 16), descriptor(0, 3, 16) | 1 << 49):
            with self.assertRaises(ValueError):
                cells_of(np.uint64(bad), 8)
