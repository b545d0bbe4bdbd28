// Rung 3, simd: register blocks. One panel of B at a time is packed for the whole of k, then every
// tile of C under it is computed in registers. C is touched once, but a long panel falls out of
// cache.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

// All rows of C under one packed panel of `vectors` vectors.
template <class T> inline void rows_under_panel(std::int64_t m, std::int64_t k,
                                                std::int64_t vectors, int last, const T* a,
                                                std::int64_t a_row, std::int64_t a_col,
                                                const T* panel, T* c, std::int64_t c_row,
                                                std::int64_t c_col, const Update<T>& update) {
  const EvenPieces rows(m, tile_rows((int)vectors));
  typename Update<T>::Room room;
  RowsAhead<T> nothing(a);
  for (std::int64_t i = 0; i < rows.pieces; ++i) {
    const int height = rows.at(i);
    tiles<T>.at[vectors - 1][height - 1](k, a, a_row, a_col, panel, vectors * kLanes<T>, c, c_row,
                                         c_col, last, update.at(rows.start(i), 0, room), nothing);
    a += height * a_row;
    c += height * c_row;
  }
}

template <class T>
inline void simd_one(const MatmulProblem& p, const T* a, const T* b, T* c, T* panel) {
  const Update<T> update = update_of<T>(p, 0, p.k);
  typename Update<T>::Room room;
  const EvenPieces panels(vectors_of<T>(p.n), kTileVectors);
  std::int64_t j = 0;
  for (std::int64_t i = 0; i < panels.pieces; ++i) {
    const std::int64_t vectors = panels.at(i), width = vectors * kLanes<T>;
    const std::int64_t used = p.n - j < width ? p.n - j : width;
    pack_panel(p.k, used, b + j * p.b_col, p.b_row, p.b_col, panel);
    rows_under_panel(p.m, p.k, vectors, last_lanes<T>(used), a, p.a_row, p.a_col, panel,
                     c + j * p.c_col, p.c_row, p.c_col, update.at(0, j, room));
    j += width;
  }
}

// `scratch` holds k * kTileVectors vectors.
template <class T> void simd(const MatmulProblem& p, const MatmulBlocks&, void* scratch) {
  for (std::int64_t i = 0; i < p.batch; ++i)
    simd_one(p, (const T*)p.a + i * p.a_batch, (const T*)p.b + i * p.b_batch,
             (T*)p.c + i * p.c_batch, (T*)scratch);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
