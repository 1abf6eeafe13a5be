// SPDX-License-Identifier: Apache-2.0
// int8 GEMM for x86 with AVX2: out[M][N] = epilogue(A[M][K] x B[K][N]). Sums are exact.
//
//            N                    A: u8 or s8, row-major. B: s8 in panels: the four bytes (quad) of
//        o-------o                one column along K lie together, 16 columns side by side.
//      K |  [B]  |                One work-item makes 6 rows x 64 columns as 4 tiles of 16
//        o-------o                columns, each in 12 registers of 8 sums.
//     K      N
//   o---o o-------o               pmaddubsw multiplies u8 by s8 and adds neighbours in 16 bits,
// M |[A]| |  [C]  | M             where they saturate; pmaddwd by ones then adds to 32 bits:
//   o---o o-------o
//        a0 a1 a2 a3 x w0 w1 w2 w3  ->  a0 w0 + a1 w1 | a2 w2 + a3 w3  ->  their sum
//
// u8 values are at most 255, so whether a pair can saturate depends on its weights alone:
// prepack_s8.cl lists, panel by panel, the quads without such a pair in any column first. The other
// quads take twice pmaddwd, on bytes widened to 16 bits: a0 w0 + a2 w2, then a1 w1 + a3 w3.
//
// Layout: panel width 16, K group 4: B[ceil(N/16)][ceil(K/4)][16][4], zero-padded past N and K.
// After it the order of the quads, u16 [ceil(N/16)][ceil(K/4) + ceil(K/ORDER_BLOCK)]: for each
// block of K the number of quads that cannot saturate, then all of its quads, those first.
// Tile: 6 rows x 64 columns.  Grid: (ceil(M/6), ceil(N/64)), work-group (1,1,1). Arguments: see
// gemm_s8_ref.cl.
#include "persistent/place.clh"
#include "gemm/epilogue.clh"
#include "gemm/tile_order.clh"
#include "lib/word.clh"

#ifndef ORDER_BLOCK
#define ORDER_BLOCK 768  // along K, a multiple of 32; as GemmVariant::order_block
#endif
#define TILE_ROWS 6
#define TILE_COLUMNS 16
#define TILES 4  // side by side, a panel each
#define STEP_BYTES (4 * TILE_COLUMNS)
#define QUADS (ORDER_BLOCK / 4)  // of a block
// Of a copied row. More than it needs, so that rows begin in different sets of the cache.
#define ROW_QUADS (QUADS + 16)

typedef char Char32 __attribute__((vector_size(32)));
typedef short Short16 __attribute__((vector_size(32)));
typedef uint8 __attribute__((aligned(1), may_alias)) Uint8Any;

// A block of the rows of A, from where the tiles broadcast quads.
typedef struct __attribute__((aligned(32))) {
  uint bytes[TILE_ROWS][ROW_QUADS];
  uint even[TILE_ROWS][ROW_QUADS], odd[TILE_ROWS][ROW_QUADS];  // of the bytes, in 16 bits each
} Rows;

static int8 dot2(int8 a, short16 b) {
  return __builtin_astype(
      __builtin_ia32_pmaddwd256(__builtin_astype(a, Short16), __builtin_astype(b, Short16)), int8);
}

// Sum of a quad of products for each of 8 columns, where no pair of them saturates.
static int8 dot4_unsaturated(int8 a, int8 b) {
  return dot2(__builtin_astype(__builtin_ia32_pmaddubsw256(__builtin_astype(a, Char32),
                                                           __builtin_astype(b, Char32)),
                               int8),
              (short16)(1));
}

#define SPLIT_BYTES(i, at, type, words)                      \
  {                                                          \
    const type quads = (words) ^ flip;                       \
    *(type*)(rows->bytes[i] + (at)) = quads;                 \
    *(type*)(rows->even[i] + (at)) = quads & 0x00ff00ff;     \
    *(type*)(rows->odd[i] + (at)) = quads >> 8 & 0x00ff00ff; \
  }

// Row i of a block of `count` bytes. s8 becomes u8 by its top bit, if `flip` has it.
static void copy_row(Rows* rows, int i, __global const uchar* bytes, int count, uint flip) {
  const int vectors = count / 32, whole = count / 4;
  for (int v = 0; v < vectors; v++)
    SPLIT_BYTES(i, 8 * v, uint8, ((__global const Uint8Any*)bytes)[v])
  for (int q = 8 * vectors; q < whole; q++)
    SPLIT_BYTES(i, q, uint, (uint)((__global const WordAny*)bytes)[q])
  if (count % 4) SPLIT_BYTES(i, whole, uint, (uint)tail_word(bytes + 4 * whole, count % 4))
}

// Adds the products of quads with a panel: of all four bytes, where no pair of them saturates.
static __attribute__((always_inline)) void add_quads(int8 c[TILE_ROWS][2],
                                                     const uint rows[TILE_ROWS][ROW_QUADS],
                                                     __global const char* panel,
                                                     __global const ushort* order, int quads) {
  for (int s = 0; s < quads; s++) {
    const int q = order[s];
    const int8 b0 = vload8(0, (__global const int*)(panel + q * STEP_BYTES));
    const int8 b1 = vload8(1, (__global const int*)(panel + q * STEP_BYTES));
#pragma unroll
    for (int i = 0; i < TILE_ROWS; i++) {
      const int8 a = (int8)(rows[i][q]);
      c[i][0] += dot4_unsaturated(a, b0);
      c[i][1] += dot4_unsaturated(a, b1);
    }
  }
}

// The same of their even or odd bytes, which `rows` holds in 16 bits.
static __attribute__((always_inline)) void add_halves(int8 c[TILE_ROWS][2],
                                                      const uint rows[TILE_ROWS][ROW_QUADS],
                                                      __global const char* panel,
                                                      __global const ushort* order, int quads,
                                                      const int odd) {
  const short up = odd ? 0 : 8, down = 8;
  for (int s = 0; s < quads; s++) {
    const int q = order[s];
    const short16 b0 = vload16(0, (__global const short*)(panel + q * STEP_BYTES)) << up >> down;
    const short16 b1 = vload16(1, (__global const short*)(panel + q * STEP_BYTES)) << up >> down;
#pragma unroll
    for (int i = 0; i < TILE_ROWS; i++) {
      const int8 a = (int8)(rows[i][q]);
      c[i][0] += dot2(a, b0);
      c[i][1] += dot2(a, b1);
    }
  }
}

ONE_ITEM KERNEL gemm_s8(GEMM_S8_PARAMETERS PLACE_PARAMETER) {
  const Tile at = tile_of_item(PLACE, BLOCK_TILES);
  const int row0 = at.row * TILE_ROWS, column0 = at.panel * TILES * TILE_COLUMNS;
  const int all_panels = (N + TILE_COLUMNS - 1) / TILE_COLUMNS, panel0 = at.panel * TILES;
  const int tiles = min(TILES, all_panels - panel0);
  const int groups = (K + 3) / 4, blocks = (groups + QUADS - 1) / QUADS;
  const size_t panel_bytes = (size_t)groups * STEP_BYTES;
  __global const ushort* orders = (__global const ushort*)(b + all_panels * panel_bytes);

  int16 sums[TILE_ROWS][TILES];
  for (int i = 0; i < TILE_ROWS; i++) {
    for (int t = 0; t < TILES; t++) sums[i][t] = (int16)(0);
  }
  Rows rows;
  for (int block = 0; block < blocks; block++) {
    const int k0 = block * ORDER_BLOCK, count = min(ORDER_BLOCK, K - k0);
    // Rows past M repeat the last one; their sums are not stored.
    for (int i = 0; i < TILE_ROWS; i++)
      copy_row(&rows, i, a + (size_t)min(row0 + i, M - 1) * K + k0, count,
               a_signed ? 0x80808080 : 0);
    for (int t = 0; t < tiles; t++) {
      int8 c[TILE_ROWS][2];
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) c[i][0] = c[i][1] = (int8)(0);
      const size_t panel = panel0 + t;
      __global const char* w = b + panel * panel_bytes + (size_t)k0 * TILE_COLUMNS;
      __global const ushort* order = orders + panel * (groups + blocks) + block * (QUADS + 1);
      const int exact = *order++, saturating = (count + 3) / 4 - exact;
      add_quads(c, rows.bytes, w, order, exact);
      add_halves(c, rows.even, w, order + exact, saturating, 0);
      add_halves(c, rows.odd, w, order + exact, saturating, 1);
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) sums[i][t] += (int16)(c[i][0], c[i][1]);
    }
  }
  finish_s8((const int16*)sums, TILES, min(TILE_ROWS, M - row0), row0, column0,
            zero_point_of(zero_point, x_zero_point, a_signed) + (a_signed ? 128 : 0), column_sums,
            scale, bias, out_inv_scale, out_zero_point, out, N, has_bias, activation, out_type,
            x_scale, row_sums, w_zero_point, row_scale);
}

MERGEABLE(gemm_s8, GEMM_S8_ARGUMENTS)
