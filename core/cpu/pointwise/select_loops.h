// `where` by bools as they lie, a byte each, over numbers of any type of up to eight bytes.
#pragma once
#include "core/cpu/pointwise/pointwise_loops.h"

namespace tw::TW_ISA_NAME {
namespace {

#ifdef TW_HAS_MASKED_ACCESS
// The lanes of b where bytes hold, else of c.
template <class T> TW_INLINE Vec<T> selected(__mmask64 chosen, Vec<T> b, Vec<T> c) {
  using Raw = typename Vec<T>::Raw;
  const auto p = (__m512i)b.v, q = (__m512i)c.v;
  if constexpr (sizeof(T) == 1) return Vec<T>((Raw)_mm512_mask_mov_epi8(q, chosen, p));
  if constexpr (sizeof(T) == 2) return Vec<T>((Raw)_mm512_mask_mov_epi16(q, (__mmask32)chosen, p));
  if constexpr (sizeof(T) == 4) return Vec<T>((Raw)_mm512_mask_mov_epi32(q, (__mmask16)chosen, p));
  if constexpr (sizeof(T) == 8) return Vec<T>((Raw)_mm512_mask_mov_epi64(q, (__mmask8)chosen, p));
}
// Which of as many bytes as a vector has lanes hold.
template <int lanes> TW_INLINE __mmask64 which_hold(const std::uint8_t* mask) {
  if constexpr (lanes == 64) {
    const __m512i x = _mm512_loadu_si512(mask);
    return _mm512_test_epi8_mask(x, x);
  } else if constexpr (lanes == 32) {
    const __m256i x = _mm256_loadu_si256((const __m256i*)mask);
    return _mm256_test_epi8_mask(x, x);
  } else {
    const auto* const p = (const __m128i*)mask;
    const __m128i x = lanes == 16 ? _mm_loadu_si128(p) : _mm_loadl_epi64(p);
    return _mm_test_epi8_mask(x, x);
  }
}

template <Traffic traffic, class T>
TW_INLINE void select_lanes(std::int64_t n, T* y, const void* const* inputs, const int* step) {
  constexpr int L = kLanes<T>;
  constexpr bool beyond_l1 = traffic != Traffic::in_l1;
  const auto* mask = static_cast<const std::uint8_t*>(inputs[0]);
  const auto *b = static_cast<const T*>(inputs[1]), *c = static_cast<const T*>(inputs[2]);
  const std::int64_t of_mask = step[0] * L, of_b = step[1] * L, of_c = step[2] * L;
  for (; n >= L; n -= L) {
    const Vec<T> v =
        selected(which_hold<L>(mask), load_lanes<beyond_l1>(b), load_lanes<beyond_l1>(c));
    if constexpr (traffic == Traffic::nontemporal)
      v.stream(y);
    else
      v.store(y);
    y += L;
    mask += of_mask;
    b += of_b;
    c += of_c;
  }
  if (n == 0) return;
  const int rest = static_cast<int>(n);
  std::uint8_t bytes[kVectorBytes];
  store_bytes(bytes, load_bytes<__m512i>(mask, rest), kVectorBytes);
  selected(which_hold<L>(bytes), Vec<T>::load(b, rest), Vec<T>::load(c, rest)).store(y, rest);
}
template <class T> void select_kernel(std::int64_t n, void* y, const void* const* inputs,
                                      const int* step, Traffic traffic) {
  T* const out = static_cast<T*>(y);
  if (traffic == Traffic::in_l1) return select_lanes<Traffic::in_l1>(n, out, inputs, step);
  if (traffic == Traffic::beyond_l1) return select_lanes<Traffic::beyond_l1>(n, out, inputs, step);
  select_lanes<Traffic::nontemporal>(n, out, inputs, step);
  finish_streams();
}
constexpr SelectTable make_select_table() {
  return {{select_kernel<std::uint8_t>, select_kernel<std::uint16_t>, select_kernel<std::uint32_t>,
           select_kernel<std::uint64_t>}};
}
#elif defined(__AVX2__)
// The lanes of b where bytes hold, else of c. GCC 12 widens bytes one by one without intrinsics.
template <class T> TW_INLINE Vec<T> selected(const std::uint8_t* mask, Vec<T> b, Vec<T> c) {
  const auto* const p = (const __m128i*)mask;
  __m256i x;
  if constexpr (sizeof(T) == 1) x = _mm256_loadu_si256((const __m256i*)mask);
  if constexpr (sizeof(T) == 2) x = _mm256_cvtepi8_epi16(_mm_loadu_si128(p));
  if constexpr (sizeof(T) == 4) x = _mm256_cvtepi8_epi32(_mm_loadl_epi64(p));
  if constexpr (sizeof(T) == 8) x = _mm256_cvtepi8_epi64(_mm_loadu_si32(p));
  return (typename Mask<T>::Raw)x == 0 ? c.v : b.v;
}
template <class T>
void select_kernel(std::int64_t n, void* out, const void* const* inputs, const int* step, Traffic) {
  constexpr int L = kLanes<T>;
  const auto* mask = static_cast<const std::uint8_t*>(inputs[0]);
  const auto *b = static_cast<const T*>(inputs[1]), *c = static_cast<const T*>(inputs[2]);
  auto* y = static_cast<T*>(out);
  const std::int64_t of_mask = step[0] * L, of_b = step[1] * L, of_c = step[2] * L;
  for (; n >= L; n -= L) {
    selected(mask, Vec<T>::load(b), Vec<T>::load(c)).store(y);
    y += L;
    mask += of_mask;
    b += of_b;
    c += of_c;
  }
  const int rest = static_cast<int>(n);
  std::uint8_t bytes[L] = {};
  for (int i = 0; i < rest; ++i) bytes[i] = mask[i];
  if (rest > 0) selected(bytes, Vec<T>::load(b, rest), Vec<T>::load(c, rest)).store(y, rest);
}
constexpr SelectTable make_select_table() {
  return {{select_kernel<std::uint8_t>, select_kernel<std::uint16_t>, select_kernel<std::uint32_t>,
           select_kernel<std::uint64_t>}};
}
#else
constexpr SelectTable make_select_table() { return {}; }
#endif

}  // namespace
}  // namespace tw::TW_ISA_NAME
