// Rung 4, packed: cache blocks around the register blocks, after Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication" (2008), and BLIS. A block of B (kc x nc) is packed into
// panels and stays in L2 while all rows of A pass over it. A is broadcast straight from its rows
// where these are contiguous (packing it cost 3-15 %), else the rows of one tile are packed just in
// time.
#pragma once
#include "core/base/thresholds.h"
#include "core/runtime/interruption.h"

namespace tw::TW_ISA_NAME {
namespace {

template <class T> struct BlockOfB {
  T* data;
  std::int64_t k, n;  // n: columns in use
  EvenPieces panels;  // of the block's vectors

  BlockOfB(T* data, std::int64_t k, std::int64_t n)
      : data(data), k(k), n(n), panels(vectors_of<T>(n), kTileVectors) {}
  std::int64_t chains() const { return panels.pieces * ((k + kChain - 1) / kChain); }
  // Calls f(panel data, first column, vectors, lanes used of the last vector).
  template <class F> TW_INLINE void each_panel(F f) const {
    std::int64_t j = 0;
    for (std::int64_t i = 0; i < panels.pieces; ++i) {
      const int vectors = panels.at(i);
      const std::int64_t width = vectors * kLanes<T>;
      f(data + j * k, j, vectors, n - j < width ? last_lanes<T>(n - j) : kLanes<T>);
      j += width;
    }
  }
};

// One row of tiles: the rows of A stay in L1 while the panels of B stream past.
template <class T> inline void tiles_along_row(const BlockOfB<T>& block, int rows, const T* a,
                                               std::int64_t a_row, std::int64_t a_col, T* c,
                                               std::int64_t c_row, std::int64_t c_col,
                                               const Update<T>& update, RowsAhead<T> ahead) {
  typename Update<T>::Room room;
  block.each_panel([&](const T* panel, std::int64_t j, int vectors, int last) {
    tiles<T>.at[vectors - 1][rows - 1](block.k, a, a_row, a_col, panel, vectors * kLanes<T>,
                                       c + j * c_col, c_row, c_col, last, update.at(0, j, room),
                                       ahead);
  });
}

// The rows of A for one run along k, cut into tiles: where they lie, or packed.
template <class T> struct RowsOfA {
  const T* data;
  std::int64_t row, col;  // strides; where packed, those of a tile come from its height
  T* packed;              // null where not
  std::int64_t k;
  EvenPieces tiles;

  RowsOfA(const MatmulProblem& p, const T* a, std::int64_t k, int most_rows, T* scratch)
      : data(a), row(p.a_row), col(p.a_col), packed(nullptr), k(k), tiles(p.m, most_rows) {
    // A strided row has one element in a cache line, and with a stride of a power of two few sets.
    if (p.a_col != 1 && k > 1) pack(p.m, scratch);
  }
  void pack(std::int64_t m, T* scratch) {
    packed = scratch;
    for (std::int64_t i = 0; i < tiles.pieces; i += kPackTiles) {
      const int count = tiles.pieces - i < kPackTiles ? (int)(tiles.pieces - i) : kPackTiles;
      pack_tiles(tiles, i, count, m, k, data, row, col, scratch);
    }
  }
};

template <class T> inline void rows_over_block(const RowsOfA<T>& rows, const BlockOfB<T>& block,
                                               T* c, std::int64_t c_row, std::int64_t c_col,
                                               const Update<T>& update) {
  const T* a = rows.data;
  typename Update<T>::Room room;
  for (std::int64_t i = 0; i < rows.tiles.pieces; ++i) {
    const int height = rows.tiles.at(i);
    const Update<T>& here = update.at(rows.tiles.start(i), 0, room);
    if (rows.packed) {
      const T* const packed = rows.packed + i * packed_tile_stride<T>(rows.k);
      tiles_along_row(block, height, packed, 1, height, c, c_row, c_col, here,
                      RowsAhead<T>(packed));
    } else {
      const int next = i + 1 < rows.tiles.pieces ? rows.tiles.at(i + 1) : 0;
      tiles_along_row(block, height, a, rows.row, rows.col, c, c_row, c_col, here,
                      RowsAhead<T>(a + height * rows.row, rows.row, next, rows.k, block.chains()));
    }
    a += height * rows.row;
    c += height * c_row;
  }
}

// Rows of B taken at a time for all panels of a block: the hardware reads ahead along a row, and a
// panel's share of it alone, four lines, is over before it has begun (2 % at 1024 x 1024).
inline constexpr std::int64_t kPackRows = 16;
// And these many rows further down are asked for, a panel's share of them (Zen 5: 0.5-1 % of a
// product of 1500 or 2048).

template <class T> inline void pack_block(const BlockOfB<T>& block, const T* b, std::int64_t b_row,
                                          std::int64_t b_col) {
  const std::int64_t rows = b_col == 1 ? kPackRows : block.k;
  for (std::int64_t l = 0; l < block.k; l += rows)
    block.each_panel([&](T* panel, std::int64_t j, int vectors, int last) {
      pack_panel(block.k - l < rows ? block.k - l : rows, (vectors - 1) * kLanes<T> + last,
                 b + l * b_row + j * b_col, b_row, b_col, panel + l * vectors * kLanes<T>,
                 thresholds::kStepsAhead);
    });
}

// One run along k: A is packed once, if at all, then each block of B passes under it.
template <class T> inline void packed_run(const MatmulProblem& p, const MatmulBlocks& blocks,
                                          std::int64_t k, const T* a, const T* b, T* c, T* scratch,
                                          const Update<T>& update) {
  constexpr std::int64_t tile_width = kTileVectors * kLanes<T>;
  // Blocks of several panels are whole panels wide; single panels are made equally wide.
  const std::int64_t unit = blocks.nc > tile_width ? tile_width : kLanes<T>;
  const EvenPieces columns((p.n + unit - 1) / unit, blocks.nc / unit);
  const auto block_at = [&](std::int64_t i, std::int64_t j) {
    const std::int64_t width = columns.at(i) * unit;
    return BlockOfB<T>(scratch, k, p.n - j < width ? p.n - j : width);
  };
  const RowsOfA<T> rows(p, a, k, tile_rows(block_at(0, 0).panels.at(0)),
                        scratch + blocks.kc * blocks.nc);
  typename Update<T>::Room room;
  std::int64_t j = 0;
  for (std::int64_t i = 0; i < columns.pieces; ++i) {
    end_early_if_asked();
    const BlockOfB<T> block = block_at(i, j);
    pack_block(block, b + j * p.b_col, p.b_row, p.b_col);
    rows_over_block(rows, block, c + j * p.c_col, p.c_row, p.c_col, update.at(0, j, room));
    j += columns.at(i) * unit;
  }
}

// All runs along k for a part of C, which begins at (i, j).
template <class T> inline void packed_part(const MatmulProblem& p, const MatmulBlocks& blocks,
                                           std::int64_t i, std::int64_t rows, std::int64_t j,
                                           std::int64_t columns, const T* a, const T* b, T* c,
                                           T* scratch) {
  MatmulProblem part = p;
  part.m = rows;
  part.n = columns;
  part.epilogue = moved<T>(p.epilogue, i, j);
  for (std::int64_t l = 0; l == 0 || l < p.k; l += blocks.kc)
    packed_run(part, blocks, p.k - l < blocks.kc ? p.k - l : blocks.kc,
               a + i * p.a_row + l * p.a_col, b + l * p.b_row + j * p.b_col,
               c + i * p.c_row + j * p.c_col, scratch,
               update_of<T>(part, l, l + blocks.kc, blocks.streams));
}

// `scratch` holds a block of B, rounded up to whole tiles, and the packed tiles of all rows of A.
template <class T> void packed(const MatmulProblem& p, const MatmulBlocks& blocks, void* scratch) {
  const EvenPieces rows(p.m, blocks.part_m > 0 ? blocks.part_m : p.m);
  const std::int64_t width = blocks.part_n > 0 ? blocks.part_n : p.n;
  for (std::int64_t i = 0; i < p.batch; ++i) {
    const T* a = (const T*)p.a + i * p.a_batch;
    const T* b = (const T*)p.b + i * p.b_batch;
    T* c = (T*)p.c + i * p.c_batch;
    for (std::int64_t r = 0; r < rows.pieces; ++r)
      for (std::int64_t j = 0; j < p.n; j += width)
        packed_part(p, blocks, rows.start(r), rows.size + (r < rows.longer), j,
                    p.n - j < width ? p.n - j : width, a, b, c, (T*)scratch);
  }
  if (blocks.streams) finish_streams();
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
