// Products of few terms. Loading and storing is most of their work, so the micro-kernel's square
// tiles are the wrong shape: long rows of C are written one or two at a time from end to end; for
// rows no wider than a vector, B stays in registers and A streams past it. B may have any strides;
// without masked access C's rows are whole vectors.
#pragma once

#include "core/base/thresholds.h"

namespace tw::TW_ISA_NAME {
namespace {

// Six rows side by side, as in a tile, are more streams than memory likes: two (with one or two
// terms one) are 1.3-4 times as fast with a C of 8 MiB, and up to so many terms never slower.
inline constexpr int kLongRowTerms = 8;
// B takes half of the registers.
inline constexpr int kShortRowTerms = kRegisters / 2;

// What is done with sums: written, written around the caches, or whatever else Update says.
enum class Finish { write, stream, update };

template <class T, Finish how>
TW_INLINE void finish_sums(Vec<T> sums, T* c, int count, const Update<T>& update,
                           const MatmulEpilogue& epilogue, std::int64_t i, std::int64_t j) {
  using V = Vec<T>;
  if (how == Finish::update) {
    const auto load = [count](const T* p) TW_LAMBDA_INLINE {
      return kMaskedAccess ? V::load(p, count) : V::load(p);
    };
    if (update.beta != 0) sums = fma(V(update.beta), load(c), sums);
    if (epilogue.bias) {
      const T* bias = (const T*)epilogue.bias + i * epilogue.row + j * epilogue.col;
      sums = sums + (epilogue.col ? load(bias) : V(*bias));
    }
    if (epilogue.relu) sums = at_least(sums, V(T(0)));
  }
  if (count < kLanes<T>) return sums.store(c, count);
  how == Finish::stream ? sums.stream(c) : sums.store(c);
}

// C[i : i + rows, j : j + n], `b` being B's columns from j on.
template <class T, int terms, int rows, Finish how>
TW_INLINE void rows_of_block(const MatmulProblem& p, const Update<T>& update, const T* a,
                             const T* b, std::int64_t b_row, T* c, std::int64_t i, std::int64_t j,
                             std::int64_t n) {
  constexpr int lanes = kLanes<T>;
  using V = Vec<T>;
  const Update<T> local = update;  // what is stored cannot change it
  const MatmulEpilogue epilogue = update.epilogue ? *update.epilogue : MatmulEpilogue{};
  const std::int64_t c_row = p.c_row;
  typename V::Raw x[rows][terms];
#pragma GCC unroll 2
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int l = 0; l < terms; ++l) x[r][l] = V(a[(i + r) * p.a_row + l * p.a_col]).v;
  c += i * c_row + j;
  const auto step = [&](std::int64_t at, int count, auto load) TW_LAMBDA_INLINE {
    typename V::Raw sums[rows] = {};
#pragma GCC unroll 8
    for (int l = 0; l < terms; ++l) {
      const typename V::Raw y = load(b + l * b_row + at);
#pragma GCC unroll 2
      for (int r = 0; r < rows; ++r) sums[r] = fma(x[r][l], y, sums[r]);
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r)
      finish_sums<T, how>(V(sums[r]) * V(local.alpha), c + r * c_row + at, count, local, epilogue,
                          i + r, j + at);
  };
  std::int64_t at = 0;
#pragma GCC unroll 2
  for (; at + lanes <= n; at += lanes)
    step(at, lanes, [](const T* y) TW_LAMBDA_INLINE { return V::load(y).v; });
  const int rest = (int)(n - at);
  if (rest > 0) step(at, rest, [rest](const T* y) TW_LAMBDA_INLINE { return V::load(y, rest).v; });
}

// Of B at a time: a third of L1 or half.
inline constexpr std::int64_t kBytesOfRows = thresholds::kHalfL1Bytes;

template <class T, int terms, Finish how>
void long_rows(const MatmulProblem& p, const Update<T>& update, const T* a, const T* b, T* c) {
  constexpr std::int64_t width = kBytesOfRows / sizeof(T) / terms / kLanes<T> * kLanes<T>;
  for (std::int64_t j = 0; j < p.n; j += width) {
    const std::int64_t n = p.n - j < width ? p.n - j : width;
    alignas(64) T copy[width * terms];
    const T* rows = b + j * p.b_col;
    std::int64_t row = p.b_row;
    if (p.b_col != 1) {
      pack_panel(terms, n, rows, p.b_row, p.b_col, copy);
      rows = copy;
      row = vectors_of<T>(n) * kLanes<T>;
    }
    std::int64_t i = 0;
    for (; terms > 2 && i + 2 <= p.m; i += 2)
      rows_of_block<T, terms, 2, how>(p, update, a, rows, row, c, i, j, n);
    for (; i < p.m; ++i) rows_of_block<T, terms, 1, how>(p, update, a, rows, row, c, i, j, n);
  }
}

inline constexpr std::uintptr_t kPageBytes = 4096;

template <class T, int terms, Finish how>
void short_rows(const MatmulProblem& p, const Update<T>& update, const T* a, const T* b, T* c) {
  using V = Vec<T>;
  const int n = (int)p.n;
  const Update<T> local = update;  // what is stored cannot change it
  const MatmulEpilogue epilogue = update.epilogue ? *update.epilogue : MatmulEpilogue{};
  alignas(64) T copy[terms * kLanes<T>];
  pack_panel(terms, n, b, p.b_row, p.b_col, copy);
  typename V::Raw y[terms];
#pragma GCC unroll 16
  for (int l = 0; l < terms; ++l) y[l] = V::load(copy + l * kLanes<T>).v;

  // 4K aliasing: the processor compares the low 12 bits of addresses, so a load that follows a
  // store to the same offset in another page waits for it. The store of a vector here covers
  // several short rows of C; rows are taken in the direction in which loads move away from those
  // stores.
  const std::uintptr_t ahead =
      (reinterpret_cast<std::uintptr_t>(c) - reinterpret_cast<std::uintptr_t>(a)) % kPageBytes;
  const std::int64_t step = ahead < kPageBytes / 2 ? -1 : 1, rows = p.m;
  const std::int64_t a_row = p.a_row, a_col = p.a_col, c_row = p.c_row;
  for (std::int64_t i = step < 0 ? rows - 1 : 0; 0 <= i && i < rows; i += step) {
    typename V::Raw sums = {};
    const T* x = a + i * a_row;
#pragma GCC unroll 16
    for (int l = 0; l < terms; ++l) sums = fma(V(x[l * a_col]).v, y[l], sums);
    finish_sums<T, how>(V(sums) * V(local.alpha), c + i * c_row, n, local, epilogue, i, 0);
  }
}

template <class T> using FewTerms = void (*)(const MatmulProblem& p, const Update<T>& update,
                                             const T* a, const T* b, T* c);
// long_rows_of<T>[terms - 1][how], short_rows_of<T>[terms - 1][how]
template <class T, class = std::make_integer_sequence<int, kLongRowTerms>>
constexpr int long_rows_of = 0;
template <class T, int... term>
constexpr FewTerms<T> long_rows_of<T, std::integer_sequence<int, term...>>[kLongRowTerms][3] = {
    {long_rows<T, term + 1, Finish::write>, long_rows<T, term + 1, Finish::stream>,
     long_rows<T, term + 1, Finish::update>}...};
template <class T, class = std::make_integer_sequence<int, kShortRowTerms>>
constexpr int short_rows_of = 0;
template <class T, int... term>
constexpr FewTerms<T> short_rows_of<T, std::integer_sequence<int, term...>>[kShortRowTerms][3] = {
    {short_rows<T, term + 1, Finish::write>, short_rows<T, term + 1, Finish::stream>,
     short_rows<T, term + 1, Finish::update>}...};

template <class T>
inline void few_terms(const MatmulProblem& p, bool streams, const T* a, const T* b, T* c) {
  const Update<T> update = update_of<T>(p, 0, p.k);
  const Finish how = update.beta != 0 || update.epilogue ? Finish::update
                     : kStreams && streams               ? Finish::stream
                                                         : Finish::write;
  const auto& run = p.n <= kLanes<T> ? short_rows_of<T>[p.k - 1] : long_rows_of<T>[p.k - 1];
  run[(int)how](p, update, a, b, c);
  if (how == Finish::stream) finish_streams();
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
