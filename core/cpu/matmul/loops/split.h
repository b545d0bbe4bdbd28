// Rung 7, split: x = high + middle + low, three bfloat16 of 8 bits each, is exact for a float32 of
// 24 bits. Of the nine products of such sums the six largest leave an error below float32's own
// rounding; three leave 16 bits. After Henry, Tang and Heinecke, "Leveraging the bfloat16 datatype
// for higher-precision computations" (2019). This file: splitting while packing, and the store.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

typedef float Floats __attribute__((vector_size(64)));
typedef std::uint32_t Bits __attribute__((vector_size(64)));
typedef std::uint16_t Halves __attribute__((vector_size(32)));
typedef std::uint16_t Pairs __attribute__((vector_size(64)));

TW_INLINE Floats load_floats(const float* x) {
  Floats out;
  __builtin_memcpy(&out, x, sizeof out);
  return out;
}
TW_INLINE Bits load_halves(const BFloat16* x) {
  Halves bits;
  __builtin_memcpy(&bits, x, sizeof bits);
  return __builtin_convertvector(bits, Bits);
}
TW_INLINE Floats load_floats(const BFloat16* x) { return (Floats)(load_halves(x) << 16); }

// Round to nearest, ties to even, in the upper half of each lane; not for NaN.
TW_INLINE Bits rounded(Bits x) { return (x + 0x7fff + (x >> 16 & 1)) & 0xffff0000; }

// The parts in the upper halves of lanes. What is left after two of them has 8 bits: no rounding.
template <int parts> TW_INLINE void split(Floats x, Bits (&out)[parts]) {
#pragma GCC unroll 3
  for (int part = 0; part < parts; ++part) {
    out[part] = part == 2 ? (Bits)x : rounded((Bits)x);
    if (part + 1 < parts) x -= (Floats)out[part];
  }
}

// Magnitudes seen so far; zero less one is the largest number, so that zeros are left out.
template <class Lanes> struct Watch {
  using Lane = std::remove_reference_t<decltype(Lanes{}[0])>;
  static constexpr int shift = 32 - 8 * (int)sizeof(Lane);
  Lanes largest = {}, below_smallest = ~Lanes{};
  TW_INLINE void add(Lanes x) {
    const Lanes magnitude = x & (Lane)((Lane)~0 >> 1), below = magnitude - 1;
    largest = magnitude > largest ? magnitude : largest;
    below_smallest = below < below_smallest ? below : below_smallest;
  }
  // Bits of float32, whatever the lanes.
  TW_INLINE void add_to(SplitRange& out) const {
    for (int i = 0; i < (int)(sizeof(Lanes) / sizeof(Lane)); ++i) {
      const std::uint32_t high = (std::uint32_t)largest[i] << shift;
      const std::uint32_t low =
          (((std::uint32_t)below_smallest[i] + 1) << shift) - 1;  // all bits set: none, as before
      if (high > out.largest) out.largest = high;
      if (low < out.below_smallest) out.below_smallest = low;
    }
  }
};
struct Watches {
  Watch<Bits> floats;
  Watch<Pairs> halves;
  TW_INLINE SplitRange range() const {
    SplitRange out{0, ~0u};
    floats.add_to(out);
    halves.add_to(out);
    return out;
  }
};

// bfloat16 that needs no scale: there is nothing to split.
TW_INLINE void copy_along(const BFloat16* x, std::int64_t line, std::uint16_t* out,
                          Watches& watch) {
  for (int i = 0; i < kSplitLines; ++i) {
    Pairs pairs;
    __builtin_memcpy(&pairs, x + i * line, sizeof pairs);
    watch.halves.add(pairs);
    __builtin_memcpy(out + i * kSplitTerms, &pairs, sizeof pairs);
  }
}
TW_INLINE void copy_across(const BFloat16* x, std::int64_t term, std::uint16_t* out,
                           Watches& watch) {
  for (int pair = 0; pair < kSplitTerms / 2; ++pair, x += 2 * term) {
    const Pairs pairs = (Pairs)(load_halves(x) | load_halves(x + term) << 16);
    watch.halves.add(pairs);
    __builtin_memcpy(out + pair * kSplitTerms, &pairs, sizeof pairs);
  }
}
// A block whose terms are contiguous in memory, as lines of 32 terms.
template <class T, int parts> TW_INLINE void pack_along(const T* x, std::int64_t line, float scale,
                                                        std::uint16_t* out, Watches& watch) {
  for (int i = 0; i < kSplitLines; ++i, x += line)
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Floats values = load_floats(x + half * 16);
      watch.floats.add((Bits)values);
      Bits split_values[parts];
      split<parts>(values * scale, split_values);
#pragma GCC unroll 3
      for (int part = 0; part < parts; ++part) {
        const Halves narrow = __builtin_convertvector(split_values[part] >> 16, Halves);
        __builtin_memcpy(out + part * kSplitBlock + i * kSplitTerms + half * 16, &narrow,
                         sizeof narrow);
      }
    }
}

// A block whose lines are contiguous in memory, as pairs of terms of 16 lines.
template <class T, int parts> TW_INLINE void pack_across(const T* x, std::int64_t term, float scale,
                                                         std::uint16_t* out, Watches& watch) {
  for (int pair = 0; pair < kSplitTerms / 2; ++pair, x += 2 * term) {
    const Floats even = load_floats(x), odd = load_floats(x + term);
    watch.floats.add((Bits)even);
    watch.floats.add((Bits)odd);
    Bits first[parts], second[parts];
    split<parts>(even * scale, first);
    split<parts>(odd * scale, second);
#pragma GCC unroll 3
    for (int part = 0; part < parts; ++part) {
      const Bits pairs = (second[part] & 0xffff0000) | first[part] >> 16;
      __builtin_memcpy(out + part * kSplitBlock + pair * kSplitTerms, &pairs, sizeof pairs);
    }
  }
}

// Lines of terms become pairs of lines and back: a square of 16 pairs.
TW_INLINE void transpose_block(std::uint16_t* block) {
  typename Vec<std::int32_t>::Raw square[kSplitLines];
  __builtin_memcpy(square, block, sizeof square);
  transpose<std::int32_t>(square);
  __builtin_memcpy(block, square, sizeof square);
}

// One block of any strides; what lies beyond the operand is zero.
template <class T, int parts, bool columns>
TW_INLINE void pack_block(const SplitSource& source, std::int64_t line, std::int64_t term,
                          std::uint16_t* out, Watches& watch) {
  const T* x = (const T*)source.data + line * source.line + term * source.term;
  const std::int64_t lines = source.lines - line, terms = source.terms - term;
  const bool whole = lines >= kSplitLines && terms >= kSplitTerms;
  const bool across = whole && source.line == 1 && source.term != 1;
  if (whole && (across || source.term == 1)) {
    if constexpr (std::is_same_v<T, BFloat16>) {
      if (source.scale == 1) {
        across ? copy_across(x, source.term, out, watch) : copy_along(x, source.line, out, watch);
        if (across != columns) transpose_block(out);
        return;
      }
    }
    across ? pack_across<T, parts>(x, source.term, source.scale, out, watch)
           : pack_along<T, parts>(x, source.line, source.scale, out, watch);
  } else {
    T gathered[kSplitBlock] = {};
    for (std::int64_t i = 0; i < lines && i < kSplitLines; ++i)
      for (std::int64_t l = 0; l < terms && l < kSplitTerms; ++l)
        gathered[i * kSplitTerms + l] = x[i * source.line + l * source.term];
    pack_along<T, parts>(gathered, kSplitTerms, source.scale, out, watch);
  }
  if (across != columns)
    for (int part = 0; part < parts; ++part) transpose_block(out + part * kSplitBlock);
}

template <class T, int parts, bool columns>
void pack(const SplitSource& source, std::uint16_t* out, SplitRange* range) {
  const std::int64_t blocks = (source.terms + kSplitTerms - 1) / kSplitTerms;
  const std::int64_t panels = (source.lines + kSplitLines - 1) / kSplitLines;
  Watches watch;
  // Along k where terms are contiguous, else across lines: with the memory, page after page.
  const bool along = source.term == 1;
  const std::int64_t outer = along ? panels : blocks, inner = along ? blocks : panels;
  for (std::int64_t i = 0; i < outer; ++i)
    for (std::int64_t j = 0; j < inner; ++j) {
      const std::int64_t panel = along ? i : j, block = along ? j : i;
      pack_block<T, parts, columns>(source, panel * kSplitLines, block * kSplitTerms,
                                    out + (panel * blocks + block) * parts * kSplitBlock, watch);
    }
  *range = watch.range();
}

template <bool columns>
void pack_any(const SplitSource& source, std::uint16_t* out, SplitRange* range) {
  if (source.bfloat16) return pack<BFloat16, 1, columns>(source, out, range);
  if (source.parts == 1) return pack<float, 1, columns>(source, out, range);
  if (source.parts == 2) return pack<float, 2, columns>(source, out, range);
  pack<float, 3, columns>(source, out, range);
}
void pack_rows(const SplitSource& source, std::uint16_t* out, SplitRange* range) {
  pack_any<false>(source, out, range);
}
void pack_columns(const SplitSource& source, std::uint16_t* out, SplitRange* range) {
  pack_any<true>(source, out, range);
}

TW_INLINE float widened(float x) { return x; }
TW_INLINE float widened(BFloat16 x) {
  return __builtin_bit_cast(float, (std::uint32_t)x.bits << 16);
}
TW_INLINE void narrow(float x, float& out) { out = x; }
TW_INLINE void narrow(float x, BFloat16& out) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t near = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  out.bits = (std::uint16_t)(x != x ? bits >> 16 | 0x40 : near);
}
TW_INLINE void narrow(Floats x, float* out) { __builtin_memcpy(out, &x, sizeof x); }
TW_INLINE void narrow(Floats x, BFloat16* out) {
  const Bits bits = x != x ? ((Bits)x | 0x400000) : rounded((Bits)x);
  const Halves halves = __builtin_convertvector(bits >> 16, Halves);
  __builtin_memcpy(out, &halves, sizeof halves);
}

// Contiguous rows, plain sums or sums added to C: what a product without factors needs.
template <class T, bool add> TW_INLINE void store_plain(std::int64_t m, std::int64_t n,
                                                        const float* sums, std::int64_t sums_row,
                                                        T* c, std::int64_t c_row) {
  for (std::int64_t i = 0; i < m; ++i, sums += sums_row, c += c_row) {
    std::int64_t j = 0;
    for (; j + kSplitLines <= n; j += kSplitLines) {
      Floats sum = load_floats(sums + j);
      if (add) sum += load_floats(c + j);
      narrow(sum, c + j);
    }
    for (; j < n; ++j) narrow(add ? sums[j] + widened(c[j]) : sums[j], c[j]);
  }
}

// Factors are applied in float64: a power of two that undoes the operands' scales may lie beyond
// float32.
template <class T> [[gnu::noinline]] void store_scaled(std::int64_t m, std::int64_t n,
                                                       const float* sums, std::int64_t sums_row,
                                                       const SplitResult& result) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      T& c = ((T*)result.c)[i * result.row + j * result.col];
      double sum = result.alpha * sums[i * sums_row + j];
      if (result.beta != 0) sum = fma(result.beta, (double)widened(c), sum);
      narrow((float)sum, c);
    }
}

template <class T> TW_INLINE void store_rows(std::int64_t m, std::int64_t n, const float* sums,
                                             std::int64_t sums_row, const SplitResult& result) {
  const bool plain = result.alpha == 1 && result.col == 1;
  if (plain && result.beta == 0)
    return store_plain<T, false>(m, n, sums, sums_row, (T*)result.c, result.row);
  if (plain && result.beta == 1)
    return store_plain<T, true>(m, n, sums, sums_row, (T*)result.c, result.row);
  store_scaled<T>(m, n, sums, sums_row, result);
}
void store_sums(std::int64_t m, std::int64_t n, const float* sums, std::int64_t sums_row,
                const SplitResult& result) {
  if (result.bfloat16) return store_rows<BFloat16>(m, n, sums, sums_row, result);
  store_rows<float>(m, n, sums, sums_row, result);
}

// The same result, from element (i, j) on.
inline SplitResult moved(SplitResult result, std::int64_t i, std::int64_t j) {
  result.c = (char*)result.c + (i * result.row + j * result.col) * (result.bfloat16 ? 2 : 4);
  return result;
}

// Which parts of A and B make a partial product.
struct PartialProduct {
  int a, b;
};
constexpr int products_of(int parts) { return parts * (parts + 1) / 2; }

}  // namespace
}  // namespace tw::TW_ISA_NAME
