// The micro-kernel of rung split on tile registers: 2 x 2 tiles of C, two of A, two of B. A tile
// product sums 32 terms apart before it adds them to C, so few roundings happen at C's size, and
// the order of partial products may serve the loads: each differs from the one before in one
// operand. Only the largest of six are a pass of their own behind the others: one rounding at C's
// size in 32 terms, not six.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

inline constexpr int kSplitTileRows = 32, kSplitTileColumns = 32;
// A panel of A, 32 rows of one part, takes 32 KiB and stays in L1.
inline constexpr int kSplitRun = 512, kSplitRunOfOne = 512;
inline constexpr int kLineBytes = kSplitTerms * 2;

template <int parts> inline constexpr PartialProduct kOrder[] = {{0, 0}};
template <> inline constexpr PartialProduct kOrder<2>[] = {{0, 1}, {0, 0}, {1, 0}};
template <>
inline constexpr PartialProduct kOrder<3>[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};
template <int parts> inline constexpr int kFirstPass =
    parts == 3 ? products_of(parts) - 1 : products_of(parts);

// The next panel of A, asked for piece by piece while this one is worked on.
struct NextPanel {
  const char* at;
  std::int64_t lines;  // cache lines to ask for in each block along k
};

// Products [first, last) of one block along k.
template <int parts, int rows, int columns, int first, int last, int step = first>
TW_INLINE void add_products(const std::uint16_t* a, const std::uint16_t* b, std::int64_t panel) {
  if constexpr (step < last) {
    constexpr PartialProduct now = kOrder<parts>[step], before = kOrder<parts>[step ? step - 1 : 0];
    if constexpr (step == first || now.a != before.a) {
      tile_load<4>(a + now.a * kSplitBlock, kLineBytes);
      if constexpr (rows == 2) tile_load<5>(a + panel + now.a * kSplitBlock, kLineBytes);
    }
    if constexpr (step == first || now.b != before.b) {
      tile_load<6>(b + now.b * kSplitBlock, kLineBytes);
      if constexpr (columns == 2) tile_load<7>(b + panel + now.b * kSplitBlock, kLineBytes);
    }
    tile_dot<0, 4, 6>();
    if constexpr (columns == 2) tile_dot<1, 4, 7>();
    if constexpr (rows == 2) tile_dot<2, 5, 6>();
    if constexpr (rows == 2 && columns == 2) tile_dot<3, 5, 7>();
    add_products<parts, rows, columns, first, last, step + 1>(a, b, panel);
  }
}

template <int rows, int columns> TW_INLINE void store_tiles(char* out, std::int64_t row_bytes) {
  tile_store<0>(out, row_bytes);
  if constexpr (columns == 2) tile_store<1>(out + kLineBytes, row_bytes);
  if constexpr (rows == 2) tile_store<2>(out + 16 * row_bytes, row_bytes);
  if constexpr (rows == 2 && columns == 2)
    tile_store<3>(out + 16 * row_bytes + kLineBytes, row_bytes);
}

// `m` rows by `n` columns of C, where rows and columns are those of tile registers in use.
template <int parts, int rows, int columns>
void split_tile(const SplitProduct& p, const std::uint16_t* a, const std::uint16_t* b,
                std::int64_t m, std::int64_t n, const SplitResult& result, NextPanel next) {
  const std::int64_t panel = p.blocks * parts * kSplitBlock;
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
  for (std::int64_t block = 0; block < p.blocks; ++block) {
    for (std::int64_t line = 0; line < next.lines; ++line, next.at += 64)
      __builtin_prefetch(next.at, 0, 2);
    add_products<parts, rows, columns, 0, kFirstPass<parts>>(
        a + block * parts * kSplitBlock, b + block * parts * kSplitBlock, panel);
  }
  if constexpr (kFirstPass<parts> < products_of(parts))
    for (std::int64_t block = 0; block < p.blocks; ++block)
      add_products<parts, rows, columns, kFirstPass<parts>, products_of(parts)>(
          a + block * parts * kSplitBlock, b + block * parts * kSplitBlock, panel);
  const bool plain = result.alpha == 1 && result.beta == 0 && result.col == 1 && !result.bfloat16;
  if (plain && m == rows * kSplitLines && n == columns * kSplitLines)
    return store_tiles<rows, columns>((char*)result.c, result.row * 4);
  alignas(64) float sums[kSplitTileRows * kSplitTileColumns];
  store_tiles<rows, columns>((char*)sums, kSplitTileColumns * 4);
  store_sums(m, n, sums, kSplitTileColumns, result);
}

template <int parts> void multiply_parts(const SplitProduct& p) {
  constexpr decltype(&split_tile<parts, 1, 1>) kTiles[2][2] = {
      {split_tile<parts, 1, 1>, split_tile<parts, 1, 2>},
      {split_tile<parts, 2, 1>, split_tile<parts, 2, 2>}};
  const std::int64_t line = p.blocks * parts * kSplitTerms;  // of a panel, for each of its 16 lines
  const std::int64_t tiles = (p.n + kSplitTileColumns - 1) / kSplitTileColumns;
  configure_tiles();
  for (std::int64_t i = 0; i < p.m; i += kSplitTileRows) {
    const std::int64_t rows = p.m - i < kSplitTileRows ? p.m - i : kSplitTileRows;
    const std::int64_t after = p.m - i - rows < kSplitTileRows ? p.m - i - rows : kSplitTileRows;
    // Spread over this panel's tiles and their blocks along k.
    const std::int64_t wanted = (after + kSplitLines - 1) / kSplitLines * kSplitLines * line / 32;
    const std::int64_t pieces = tiles * p.blocks;
    const std::int64_t lines = pieces > 0 ? (wanted + pieces - 1) / pieces : 0;
    const char* ahead = (const char*)(p.a + (i + kSplitTileRows) * line);
    for (std::int64_t j = 0; j < p.n; j += kSplitTileColumns) {
      const std::int64_t columns = p.n - j < kSplitTileColumns ? p.n - j : kSplitTileColumns;
      kTiles[rows > kSplitLines][columns > kSplitLines](p, p.a + i * line, p.b + j * line, rows,
                                                        columns, moved(p.result, i, j),
                                                        {ahead, after > 0 ? lines : 0});
      ahead += lines * p.blocks * 64;
    }
  }
  release_tiles();
}
void multiply(const SplitProduct& p) {
  if (p.parts == 1) return multiply_parts<1>(p);
  if (p.parts == 2) return multiply_parts<2>(p);
  multiply_parts<3>(p);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
