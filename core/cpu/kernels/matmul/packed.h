// Rung 4, packed: cache blocks around the register blocks, after Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication" (2008), and BLIS. A block of B (kc x nc) is packed into panels
// and stays in L2 while all rows of A pass over it. A is broadcast straight from its rows where these
// are contiguous (packing it cost 3-15 %), else the rows of one tile are packed just in time.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

template <class T> struct BlockOfB {
  T* data;
  std::int64_t k, n;  // n: columns in use
  EvenSplit panels;   // of the block's vectors

  BlockOfB(T* data, std::int64_t k, std::int64_t n)
      : data(data), k(k), n(n), panels(vectors_of<T>(n), kTileVectors) {}
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
template <class T>
inline void tiles_along_row(const BlockOfB<T>& block, int rows, const T* a, std::int64_t a_row,
                            std::int64_t a_col, T* c, std::int64_t c_row, std::int64_t c_col,
                            const Update<T>& update) {
  block.each_panel([&](const T* panel, std::int64_t j, int vectors, int last) {
    tiles<T, false>.at[vectors - 1][rows - 1](block.k, a, a_row, a_col, panel, vectors * kLanes<T>,
                                              c + j * c_col, c_row, c_col, last, update);
  });
}

template <class T>
inline void rows_over_block(const MatmulProblem& p, const BlockOfB<T>& block, const T* a, T* c,
                            T* packed_a, const Update<T>& update) {
  // A strided row has one element in a cache line, and with a stride of a power of two few cache sets.
  const bool pack_a = p.a_col != 1 && block.k > 1;
  const EvenSplit rows(p.m, tile_rows(block.panels.at(0)));
  for (std::int64_t i = 0; i < rows.pieces; i += kPackTiles) {
    const int count = rows.pieces - i < kPackTiles ? (int)(rows.pieces - i) : kPackTiles;
    int heights[kPackTiles] = {};
    for (int t = 0; t < count; ++t) heights[t] = rows.at(i + t);
    if (pack_a) pack_tiles(count, heights, block.k, a, p.a_row, p.a_col, packed_a);
    for (int t = 0; t < count; ++t) {
      const T* tile_a = pack_a ? packed_a + t * packed_tile_stride<T>(block.k) : a;
      tiles_along_row(block, heights[t], tile_a, pack_a ? 1 : p.a_row, pack_a ? heights[t] : p.a_col,
                      c, p.c_row, p.c_col, update);
      a += heights[t] * p.a_row;
      c += heights[t] * p.c_row;
    }
  }
}

template <class T>
inline void packed_one(const MatmulProblem& p, const MatmulBlocks& blocks, const T* a, const T* b,
                       T* c, T* scratch) {
  constexpr std::int64_t tile_width = kTileVectors * kLanes<T>;
  const EvenSplit columns((p.n + tile_width - 1) / tile_width, blocks.nc / tile_width);
  for (std::int64_t i = 0, j = 0; i < columns.pieces; ++i) {
    const std::int64_t width = columns.at(i) * tile_width, n = p.n - j < width ? p.n - j : width;
    for (std::int64_t l = 0; l == 0 || l < p.k; l += blocks.kc) {
      const BlockOfB<T> block(scratch, p.k - l < blocks.kc ? p.k - l : blocks.kc, n);
      block.each_panel([&](T* panel, std::int64_t first, int vectors, int last) {
        pack_panel(block.k, (vectors - 1) * kLanes<T> + last,
                   b + l * p.b_row + (j + first) * p.b_col, p.b_row, p.b_col, panel);
      });
      rows_over_block(p, block, a + l * p.a_col, c + j * p.c_col, scratch + width * blocks.kc,
                      Update<T>{(T)p.alpha, l == 0 ? (T)p.beta : T(1)});
    }
    j += width;
  }
}

// `scratch` holds a block of B, rounded up to whole vectors, then kPackTiles tiles of A
template <class T> void packed(const MatmulProblem& p, const MatmulBlocks& blocks, void* scratch) {
  for (std::int64_t i = 0; i < p.batch; ++i)
    packed_one(p, blocks, (const T*)p.a + i * p.a_batch, (const T*)p.b + i * p.b_batch,
               (T*)p.c + i * p.c_batch, (T*)scratch);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
