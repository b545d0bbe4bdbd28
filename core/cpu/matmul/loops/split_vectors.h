// The micro-kernel of rung split on vectors: a tile of sums in registers, one partial product after
// the other from the smallest to the largest, so that small terms meet small sums.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

// 8 x 3 vectors: 24 sums, 3 vectors of B and a broadcast pair of A fill 32 registers, and 24 chains
// hide the latency of two dot products a cycle. 8 rows are half a block.
inline constexpr int kSplitTileRows = 8, kSplitTileVectors = 3;
inline constexpr int kSplitTileColumns = kSplitTileVectors * kSplitLines;
// B streams from L2 whatever the run; a longer one passes over C less often (5 % at 1024 and 2048
// squared), a shorter one adds up fewer terms in one go.
inline constexpr int kSplitRun = 512, kSplitRunOfOne = 1024;

template <int parts> inline constexpr PartialProduct kOrder[] = {{0, 0}};
template <> inline constexpr PartialProduct kOrder<2>[] = {{0, 1}, {1, 0}, {0, 0}};
template <>
inline constexpr PartialProduct kOrder<3>[] = {{0, 2}, {2, 0}, {1, 1}, {0, 1}, {1, 0}, {0, 0}};

// Blocks whose largest products are added up in one chain, where the sum is to be as exact as
// float32's: 32 terms of a short sum, 64 of a longer one (docs/notes/matmul.md has the errors of
// others). A break costs two percent of a chain's time.
template <int parts> TW_INLINE std::int64_t chain_of(std::int64_t blocks) {
  return parts < 3 ? blocks : blocks > 4 ? 2 : 1;
}

template <int parts, int vectors>
TW_INLINE void add_product(const std::uint16_t* a, const std::uint16_t* b, std::int64_t panel,
                           std::int64_t blocks, __m512 (&sums)[kSplitTileRows][vectors]) {
  for (std::int64_t block = 0; block < blocks; ++block) {
#pragma GCC unroll 1
    for (int pair = 0; pair < kSplitTerms / 2; ++pair) {
      __m512i row[vectors];
#pragma GCC unroll 3
      for (int v = 0; v < vectors; ++v)
        row[v] = _mm512_load_si512(b + v * panel + pair * kSplitTerms);
#pragma GCC unroll 8
      for (int r = 0; r < kSplitTileRows; ++r)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; ++v)
          sums[r][v] = add_pairs(sums[r][v], a + r * kSplitTerms + pair * 2, row[v]);
    }
    a += parts * kSplitBlock;
    b += parts * kSplitBlock;
  }
}

template <int vectors> TW_INLINE void clear(__m512 (&sums)[kSplitTileRows][vectors]) {
#pragma GCC unroll 8
  for (int r = 0; r < kSplitTileRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_setzero_ps();
}

template <int vectors>
TW_INLINE void put(__m512 (&sums)[kSplitTileRows][vectors], bool add, float* out) {
#pragma GCC unroll 8
  for (int r = 0; r < kSplitTileRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) {
      float* to = out + r * kSplitTileColumns + v * kSplitLines;
      _mm512_store_ps(to, add ? _mm512_add_ps(_mm512_load_ps(to), sums[r][v]) : sums[r][v]);
    }
}

template <int parts, int vectors>
void split_tile(const std::uint16_t* a, const std::uint16_t* b, std::int64_t blocks, float* out) {
  const std::int64_t panel = blocks * parts * kSplitBlock;
  __m512 sums[kSplitTileRows][vectors];
  clear<vectors>(sums);
  constexpr int kLast = int(sizeof kOrder<parts> / sizeof(PartialProduct)) - 1;
  for (int i = 0; i < kLast; ++i)
    add_product<parts, vectors>(a + kOrder<parts>[i].a * kSplitBlock,
                                b + kOrder<parts>[i].b * kSplitBlock, panel, blocks, sums);
  a += kOrder<parts>[kLast].a * kSplitBlock;
  b += kOrder<parts>[kLast].b * kSplitBlock;
  const std::int64_t chain = chain_of<parts>(blocks);
  for (std::int64_t block = 0;; block += chain) {
    const std::int64_t left = blocks - block;
    add_product<parts, vectors>(a + block * parts * kSplitBlock, b + block * parts * kSplitBlock,
                                panel, left < chain ? left : chain, sums);
    put<vectors>(sums, block > 0, out);
    if (left <= chain) return;
    clear<vectors>(sums);
  }
}

template <int parts> void multiply_parts(const SplitProduct& p) {
  constexpr decltype(&split_tile<parts, 1>) kTiles[] = {split_tile<parts, 1>, split_tile<parts, 2>,
                                                        split_tile<parts, 3>};
  alignas(64) float sums[kSplitTileRows * kSplitTileColumns];
  const std::int64_t line = p.blocks * parts * kSplitTerms;  // of a panel, for each of its 16 lines
  for (std::int64_t i = 0; i < p.m; i += kSplitTileRows)
    for (std::int64_t j = 0; j < p.n; j += kSplitTileColumns) {
      const std::int64_t rows = p.m - i < kSplitTileRows ? p.m - i : kSplitTileRows;
      const std::int64_t columns = p.n - j < kSplitTileColumns ? p.n - j : kSplitTileColumns;
      const std::int64_t half = i % kSplitLines;
      kTiles[(columns - 1) / kSplitLines](p.a + (i - half) * line + half * kSplitTerms,
                                          p.b + j * line, p.blocks, sums);
      store_sums(rows, columns, sums, kSplitTileColumns, moved(p.result, i, j));
    }
}
void multiply(const SplitProduct& p) {
  if (p.parts == 1) return multiply_parts<1>(p);
  if (p.parts == 2) return multiply_parts<2>(p);
  multiply_parts<3>(p);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
