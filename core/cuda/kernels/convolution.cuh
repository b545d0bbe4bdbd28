// The three parts of a convolution as one contraction each: result[i, j] = sum over k of
// left(i, k) * right(k, j), for each group. Settings: TW_TYPE, TW_PART (0 forward, 1 gradient of the
// input, 2 of the weights).
//   forward   i: output channel   j: image, place of y   k: input channel, tap
//   input     i: input channel    j: image, place of x   k: output channel, tap
//   weights   i: output channel   j: input channel, tap  k: image, place of y
#include "prelude.cuh"
using T = TW_TYPE;

struct Convolution {
  int64_t batch, groups, in, out;
  int64_t x[3], kernel[3], y[3], stride[3], dilation[3], before[3];
  const T *a, *b, *bias;
  T* result;
};

struct Sizes {
  int64_t in, out, x, y, taps;  // channels of a group, places
};
TW_DEVICE Sizes sizes_of(const Convolution& p) {
  return {p.in / p.groups, p.out / p.groups, p.x[0] * p.x[1] * p.x[2], p.y[0] * p.y[1] * p.y[2],
          p.kernel[0] * p.kernel[1] * p.kernel[2]};
}

struct Place {
  int64_t at[3];
};
TW_DEVICE Place place_in(const int64_t (&sizes)[3], int64_t i) {
  const int64_t row = i / sizes[2];
  return {{row / sizes[1], row % sizes[1], i - row * sizes[2]}};
}
// The place of x under a tap of a window of y; negative: padding.
TW_DEVICE int64_t under(const Convolution& p, const Place& y, const Place& tap) {
  int64_t at = 0;
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    const int64_t x = y.at[d] * p.stride[d] - p.before[d] + tap.at[d] * p.dilation[d];
    if (x < 0 || x >= p.x[d]) return -1;
    at = at * p.x[d] + x;
  }
  return at;
}
// The window of y that has a place of x under its tap; negative: none.
TW_DEVICE int64_t over(const Convolution& p, const Place& x, const Place& tap) {
  int64_t at = 0;
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    const int64_t from = x.at[d] + p.before[d] - tap.at[d] * p.dilation[d];
    const int64_t y = from / p.stride[d];
    if (from < 0 || y * p.stride[d] != from || y >= p.y[d]) return -1;
    at = at * p.y[d] + y;
  }
  return at;
}

TW_DEVICE int64_t count_i(const Sizes& s) { return TW_PART == 1 ? s.in : s.out; }
TW_DEVICE int64_t count_j(const Convolution& p, const Sizes& s) {
  return TW_PART == 0 ? p.batch * s.y : TW_PART == 1 ? p.batch * s.x : s.in * s.taps;
}
TW_DEVICE int64_t count_k(const Convolution& p, const Sizes& s) {
  return TW_PART == 0 ? s.in * s.taps : TW_PART == 1 ? s.out * s.taps : p.batch * s.y;
}

// Indices lie within their counts.
TW_DEVICE T left(const Convolution& p, const Sizes& s, int64_t g, int64_t i, int64_t k) {
#if TW_PART == 0
  return p.b[(g * s.out + i) * s.in * s.taps + k];
#elif TW_PART == 1
  const int64_t o = k / s.taps;
  return p.b[((g * s.out + o) * s.in + i) * s.taps + (k - o * s.taps)];
#else
  const int64_t image = k / s.y;
  return p.b[(image * p.out + g * s.out + i) * s.y + (k - image * s.y)];
#endif
}
TW_DEVICE T right(const Convolution& p, const Sizes& s, int64_t g, int64_t k, int64_t j) {
#if TW_PART == 0
  const int64_t c = k / s.taps, image = j / s.y;
  const int64_t at = under(p, place_in(p.y, j - image * s.y), place_in(p.kernel, k - c * s.taps));
  return at < 0 ? T(0) : p.a[(image * p.in + g * s.in + c) * s.x + at];
#elif TW_PART == 1
  const int64_t o = k / s.taps, image = j / s.x;
  const int64_t at = over(p, place_in(p.x, j - image * s.x), place_in(p.kernel, k - o * s.taps));
  return at < 0 ? T(0) : p.a[(image * p.out + g * s.out + o) * s.y + at];
#else
  const int64_t c = j / s.taps, image = k / s.y;
  const int64_t at = under(p, place_in(p.y, k - image * s.y), place_in(p.kernel, j - c * s.taps));
  return at < 0 ? T(0) : p.a[(image * p.in + g * s.in + c) * s.x + at];
#endif
}
TW_DEVICE void put(const Convolution& p, const Sizes& s, int64_t g, int64_t i, int64_t j, T sum) {
#if TW_PART == 0
  const int64_t image = j / s.y;
  if (p.bias) sum += p.bias[g * s.out + i];
  p.result[(image * p.out + g * s.out + i) * s.y + (j - image * s.y)] = sum;
#elif TW_PART == 1
  const int64_t image = j / s.x;
  p.result[(image * p.in + g * s.in + i) * s.x + (j - image * s.x)] = sum;
#else
  p.result[(g * s.out + i) * s.in * s.taps + j] = sum;
#endif
}

// Rung 1, naive: one thread an element of the result.
TW_KERNEL(convolution_naive, Convolution, 256) {
  const Sizes s = sizes_of(p);
  const int64_t j = int64_t(blockIdx.x) * 32 + threadIdx.x % 32;
  const int64_t i = int64_t(blockIdx.y) * 8 + threadIdx.x / 32, g = blockIdx.z;
  if (i >= count_i(s) || j >= count_j(p, s)) return;
  T sum = T(0);
  for (int64_t k = 0, end = count_k(p, s); k < end; ++k)
    sum += left(p, s, g, i, k) * right(p, s, g, k, j);
  put(p, s, g, i, j, sum);
}

// Rung 2, implicit: the tiles of a product in registers, whose elements are found where they lie: the
// unfolded image never exists. 64 x 64 of the result a block, 4 x 4 a thread, 16 terms at a time.
constexpr int kSide = 64, kDepth = 16;

TW_KERNEL(convolution_implicit, Convolution, 256) {
  __shared__ T a_tile[kDepth][kSide + 4], b_tile[kDepth][kSide + 4];
  const Sizes s = sizes_of(p);
  const int64_t i0 = int64_t(blockIdx.y) * kSide, j0 = int64_t(blockIdx.x) * kSide, g = blockIdx.z;
  const int64_t all_i = count_i(s), all_j = count_j(p, s), all_k = count_k(p, s);
  const int column = threadIdx.x % 16, row = threadIdx.x / 16;
  T sums[4][4];
#pragma unroll
  for (int r = 0; r < 4; ++r)
#pragma unroll
    for (int c = 0; c < 4; ++c) sums[r][c] = T(0);
  for (int64_t k0 = 0; k0 < all_k; k0 += kDepth) {
    for (int n = threadIdx.x; n < kSide * kDepth; n += 256) {
      // Of A terms lie together, of B places, but in gradients of weights.
      const int ai = n / kDepth, ak = n % kDepth;
      const bool in_a = i0 + ai < all_i && k0 + ak < all_k;
      a_tile[ak][ai] = in_a ? left(p, s, g, i0 + ai, k0 + ak) : T(0);
      const int bj = TW_PART == 2 ? n / kDepth : n % kSide;
      const int bk = TW_PART == 2 ? n % kDepth : n / kSide;
      const bool in_b = j0 + bj < all_j && k0 + bk < all_k;
      b_tile[bk][bj] = in_b ? right(p, s, g, k0 + bk, j0 + bj) : T(0);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      T l[4], r[4];
#pragma unroll
      for (int n = 0; n < 4; ++n) l[n] = a_tile[k][row * 4 + n];
#pragma unroll
      for (int n = 0; n < 4; ++n) r[n] = b_tile[k][column + n * 16];
#pragma unroll
      for (int m = 0; m < 4; ++m)
#pragma unroll
        for (int n = 0; n < 4; ++n) sums[m][n] += l[m] * r[n];
    }
    __syncthreads();
  }
#pragma unroll
  for (int m = 0; m < 4; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int64_t i = i0 + row * 4 + m, j = j0 + column + n * 16;
      if (i < all_i && j < all_j) put(p, s, g, i, j, sums[m][n]);
    }
}
