// Tiles of C one below the other, for sums of one chain of terms: what surrounds the multiply-adds,
// a call and the addresses of rows, is a fifth of a tile's time at 32 terms (48 of 256 cycles) and
// is paid once for all of them. B's rows are read where they lie.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

// The compiler would otherwise keep a register for each multiple of a stride, and has too few.
template <class T> TW_INLINE void forget_origin(T*& p) { asm("" : "+r"(p)); }

// sums += A[:, 0:k] B[0:k, :], where the last vector of B's rows is read up to `last` lanes if
// masked.
template <class T, int rows, int vectors, bool masked>
TW_INLINE void add_chain(std::int64_t k, const T* a, std::int64_t a_row, std::int64_t a_col,
                         const T* b, std::int64_t b_row, int last,
                         typename Vec<T>::Raw (&sums)[rows][vectors]) {
  constexpr int lanes = kLanes<T>, half = 4;
  using V = Vec<T>;
  const T* lower = a + half * a_row;
  for (std::int64_t p = 0; p < k; ++p) {
    typename V::Raw row[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      const T* from = b + v * lanes;
      row[v] = masked && v == vectors - 1 ? V::load(from, last).v : V::load(from).v;
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const T* const from = r < half ? a + r * a_row : lower + (r - half) * a_row;
      const typename V::Raw x = V(*from).v;
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = fma(x, row[v], sums[r][v]);
    }
    a += a_col;
    lower += a_col;
    forget_origin(lower);
    b += b_row;
  }
}

// The sums of a tile, in whole vectors, to a C that has more to go through than rows of vectors.
// The tile begins `i` rows below what `update` is for.
template <class T> [[gnu::noinline]] void finish_apart(int rows, int vectors, T* sums, T* c,
                                                       std::int64_t c_row, std::int64_t c_col,
                                                       int last, const Update<T>& update,
                                                       std::int64_t i) {
  constexpr int lanes = kLanes<T>;
  const int width = vectors * lanes;
  for (int j = 0; j < rows * width; j += lanes)
    (Vec<T>::load(sums + j) * Vec<T>(update.alpha)).store(sums + j);
  if (kStreamsTiles && update.streams) {
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < width; j += lanes)
        Vec<T>::load(sums + r * width + j).stream(c + r * c_row + j);
    return;
  }
  typename Update<T>::Room room;
  store_apart(rows, width - lanes + last, sums, width, c, c_row, c_col, update.at(i, 0, room));
}

enum class TileEnd { write, add, apart };

// `count` tiles of one height under each other, k at most a chain. `last` is the number of lanes
// used of the last vector; masked: nothing beyond B's last element is read.
template <class T, int rows, int vectors, bool masked>
void tile_column(std::int64_t count, std::int64_t k, const T* a, std::int64_t a_row,
                 std::int64_t a_col, const T* b, std::int64_t b_row, T* c, std::int64_t c_row,
                 std::int64_t c_col, int last, const Update<T>& update) {
  constexpr int lanes = kLanes<T>;
  // A masked load takes a slot of a multiply-add port. All rows but the last can do without: what
  // they read too much is the start of the next row, and those lanes are never stored.
  const std::int64_t whole = !masked ? k : b_row < lanes - last ? 0 : k - (k > 0);
  const bool by_rows = c_col == 1 && !update.epilogue && !(kStreamsTiles && update.streams);
  const TileEnd how = !by_rows || update.alpha != 1 ? TileEnd::apart
                      : update.beta == 0            ? TileEnd::write
                      : update.beta == 1            ? TileEnd::add
                                                    : TileEnd::apart;
  for (std::int64_t i = 0; i < count; ++i, a += rows * a_row, c += rows * c_row) {
    typename Vec<T>::Raw sums[rows][vectors] = {};
    add_chain<T, rows, vectors, false>(whole, a, a_row, a_col, b, b_row, last, sums);
    if constexpr (masked)
      add_chain<T, rows, vectors, true>(k - whole, a + whole * a_col, a_row, a_col,
                                        b + whole * b_row, b_row, last, sums);
    if (how == TileEnd::apart) [[unlikely]] {
      T out[rows * vectors * lanes];
      __builtin_memcpy(out, sums, sizeof sums);
      finish_apart<T>(rows, vectors, out, c, c_row, c_col, last, update, i * rows);
      continue;
    }
    T* to = c;
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        const bool part = masked && v == vectors - 1;
        Vec<T> sum(sums[r][v]);
        if (how == TileEnd::add)
          sum = sum + (part ? Vec<T>::load(to + v * lanes, last) : Vec<T>::load(to + v * lanes));
        part ? sum.store(to + v * lanes, last) : sum.store(to + v * lanes);
      }
      to += c_row;
      forget_origin(to);
    }
  }
}

template <class T> using ColumnFunction = void (*)(std::int64_t count, std::int64_t k, const T* a,
                                                   std::int64_t a_row, std::int64_t a_col,
                                                   const T* b, std::int64_t b_row, T* c,
                                                   std::int64_t c_row, std::int64_t c_col, int last,
                                                   const Update<T>& update);

// tile_columns<T, masked>.at[vectors - 1][rows - 1], for each size that fits the registers.
template <class T, bool masked> struct TileColumns {
  ColumnFunction<T> at[kTileVectors][kMaxTileRows];

  template <int vectors, int rows> constexpr void fill_rows() {
    if constexpr (rows <= tile_rows(vectors)) {
      at[vectors - 1][rows - 1] = tile_column<T, rows, vectors, masked>;
      fill_rows<vectors, rows + 1>();
    }
  }
  template <int vectors = 1> constexpr void fill() {
    if constexpr (vectors <= kTileVectors) {
      fill_rows<vectors, 1>();
      fill<vectors + 1>();
    }
  }
  constexpr TileColumns() : at{} { fill(); }
};
template <class T, bool masked> constexpr TileColumns<T, masked> tile_columns;

}  // namespace
}  // namespace tw::TW_ISA_NAME
