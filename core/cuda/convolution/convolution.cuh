// A part of a convolution as one contraction for each group: result[i, j] is the sum over k of
// left[i, k] * right[k, j].
//             i               j                     k                     left    right
//   forward   output channel  image, place of y     input channel, tap    weight  x
//   input     input channel   image, place of x     output channel, tap   weight  gradient of y
//   weights   output channel  input channel, tap    image, place of y     gradient of y, x
// Elements of `right` are found where they lie: a place in it has coordinates that are a sum of one
// that belongs to k and one that belongs to j, and zeros around. So one text serves all three; what
// differs is how k and j become places (core/cuda/convolution/convolution.cpp). Of a strided convolution, the
// places of x fall into phases, each of which sees its own taps: a phase is such a contraction.
//
// Settings: TW_TYPE, TW_AXES (of space: the last one, two or three of three), and for rung implicit
// TW_EACH (rows and columns of a thread), TW_HIGH, TW_WIDE (of a block), TW_LINES (1: neighbours
// along k lie together in `right`, 0: along j).
#include "register_tile.cuh"
#include "tensor_core.cuh"
#include "convolution_parameters.h"
using T = TW_TYPE;
using Convolution = ConvolutionOf<T>;

TW_DEVICE int32_t divide(int32_t n, const Divisor& d) {
  return int32_t((uint32_t(uint64_t(uint32_t(n)) * d.factor >> 32) + uint32_t(n)) >> d.shift);
}

#ifndef TW_HIGH
// ---- Rung 1, naive: one thread an element of the result ----

TW_KERNEL(convolution_naive, Convolution, kBlockThreads) {
  const Walk &columns = p.columns[blockIdx.y], &along = p.along[blockIdx.y];
  const int64_t g = blockIdx.z, i = blockIdx.x % p.rows;
  const int64_t j = blockIdx.x / p.rows * kBlockThreads + threadIdx.x;
  if (j >= columns.count) return;
  int64_t rest = j, from[3], to = g * p.result_group + i * p.result_row + columns.other_first;
#pragma unroll
  for (int d = 2; d >= 0; --d) {
    const int64_t c = rest % columns.size[d];
    rest /= columns.size[d];
    from[d] = columns.first[d] + along.first[d] + c * columns.scale[d];
    to += c * columns.other_scale[d];
  }
  to += rest * columns.other_outer;
  const T* left = p.left + g * p.left_group + i * p.left_row + along.other_first;
  const T* right = p.right + g * p.right_group + rest * columns.outer;
  T sum = T(0);
  const int64_t volume = along.size[0] * along.size[1] * along.size[2];
  for (int64_t outers = volume ? along.count / volume : 0; outers > 0; --outers) {
    for (int64_t c0 = 0; c0 < along.size[0]; ++c0)
      for (int64_t c1 = 0; c1 < along.size[1]; ++c1)
        for (int64_t c2 = 0; c2 < along.size[2]; ++c2) {
          const int64_t c[3] = {c0, c1, c2};
          int64_t at = 0, other = 0;
          bool inside = true;
#pragma unroll
          for (int d = 0; d < 3; ++d) {
            const int64_t x = from[d] + c[d] * along.scale[d];
            inside &= x >= 0 && x < p.bounds[d];
            at += x * p.steps[d];
            other += c[d] * along.other_scale[d];
          }
          sum += left[other] * (inside ? right[at] : T(0));
        }
    left += along.other_outer;
    right += along.outer;
  }
  if (p.bias) sum += p.bias[g * p.rows + i];
  p.result[to] = sum;
}

// The sums of pieces become the result, in the order of the pieces.
TW_KERNEL(convolution_join, Convolution, kBlockThreads) {
  const int64_t step = int64_t(gridDim.x) * kBlockThreads;
  for (int64_t e = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x; e < p.results; e += step) {
    T sum = p.partial[e];
    for (int64_t piece = 1; piece < p.pieces; ++piece) sum += p.partial[piece * p.results + e];
    if (p.bias) sum += p.bias[e / p.result_row % p.channels];
    p.result[e] = sum;
  }
}

#else
// ---- Rung 2, implicit: the tiles of a product in registers; the unfolded image never exists ----

constexpr int kDepth = kConvolutionDepth, kStages = kConvolutionStages, kGap = kConvolutionGap;
constexpr int kNowhere = -(1 << 30);  // a coordinate that no sum brings inside

using Place = ConvolutionPlace<TW_AXES>;
TW_DEVICE Place place_of(const Convolution& p, const Walk& walk, int32_t index) {
  Place place;
  place.other = int32_t(walk.other_first), place.offset = 0;
#pragma unroll
  for (int d = 2; d >= 3 - TW_AXES; --d) {
    const int32_t rest = divide(index, walk.by[d]), c = index - rest * int32_t(walk.size[d]);
    const int32_t at = int32_t(walk.first[d]) + c * int32_t(walk.scale[d]);
    place.at[d - (3 - TW_AXES)] = at;
    place.offset += at * int32_t(p.steps[d]);
    place.other += c * int32_t(walk.other_scale[d]);
    index = rest;
  }
  place.offset += index * int32_t(walk.outer);
  place.other += index * int32_t(walk.other_outer);
  return place;
}
TW_DEVICE bool is_inside(const Convolution& p, const Place& k, const Place& j) {
  bool inside = true;
#pragma unroll
  for (int d = 0; d < TW_AXES; ++d)
    inside &= uint32_t(k.at[d] + j.at[d]) < uint32_t(p.bounds[d + 3 - TW_AXES]);
  return inside;
}

struct Tiles {
  T a[kStages][kDepth][TW_HIGH + kGap], b[kStages][kDepth][TW_WIDE + kGap];
  Place along[kStages][kDepth], columns[TW_WIDE];
};
static_assert(sizeof(Tiles) == convolution_shared_bytes(TW_HIGH, TW_WIDE, TW_AXES, sizeof(T)));
struct alignas(16) Four {
  T at[4];
};

TW_KERNEL(convolution_implicit, Convolution, kBlockThreads) {
  TW_DYNAMIC_SHARED(Tiles, tiles);
  const int tall = int((p.rows + TW_HIGH - 1) / TW_HIGH);
  const int i0 = int(blockIdx.x) % tall * TW_HIGH, j0 = int(blockIdx.x) / tall * TW_WIDE;
  const int pieces = int(p.pieces), piece = int(blockIdx.y) % pieces;
  const Walk &columns = p.columns[blockIdx.y / pieces], &along = p.along[blockIdx.y / pieces];
  const int rows = int(p.rows), count = int(columns.count);
  if (j0 >= count) return;  // of a phase with fewer places than another
  const int first = piece * int(p.terms), rest = int(along.count) - first;
  const int last = first + (rest < int(p.terms) ? rest : int(p.terms));
  const int depths = rest > 0 ? (last - first + kDepth - 1) / kDepth : 0;

  const int thread = threadIdx.x;
  // Rows and columns beyond the end are computed as the last one, and not kept.
  if (thread < TW_WIDE) {
    const int j = j0 + thread;
    Place place = place_of(p, columns, j < count ? j : count - 1);
    place.offset += int32_t(blockIdx.z * p.right_group);
    tiles->columns[thread] = place;
  }
  const auto find_terms = [&](int depth, int n) {
    const int k = first + depth * kDepth + n;
    Place place = place_of(p, along, k < last ? k : 0);
    if (k >= last) place.at[0] = kNowhere;
    tiles->along[depth % kStages][n] = place;
  };
  if (thread < kStages * kDepth) find_terms(thread / kDepth, thread % kDepth);
  __syncthreads();

  // What a thread copies of `left`: term thread % kDepth of some rows.
  constexpr int kRowsApart = kBlockThreads / kDepth, kRows = (TW_HIGH + kRowsApart - 1) / kRowsApart;
  const int term = thread % kDepth, line = thread / kDepth;
  int32_t row_at[kRows];
#pragma unroll
  for (int n = 0; n < kRows; ++n) {
    const int i = i0 + line + n * kRowsApart;
    row_at[n] =
        int32_t(blockIdx.z * p.left_group) + (i < rows ? i : rows - 1) * int32_t(p.left_row);
  }
  // Of `right`: along k as of `left`, or some terms of one column.
  constexpr int kTermsApart = kBlockThreads / TW_WIDE, kColumns = TW_WIDE * kDepth / kBlockThreads;
  const Place mine = tiles->columns[thread % TW_WIDE];

  const int inner0 = TW_LINES ? term : thread / TW_WIDE;
  const int outer0 = TW_LINES ? line : thread % TW_WIDE;
  constexpr int kSize = sizeof(T), kBytesA = sizeof(tiles->a[0]), kBytesB = sizeof(tiles->b[0]);
  const SharedPlace to_a(&tiles->a[0][term][line]);
  const SharedPlace to_b(&tiles->b[0][inner0][outer0]);

  int copied = 0;
  // A group a tile, empty ones at the end: the number of groups to wait for is always the same.
  const auto copy_next = [&] {
    if (copied < depths) {
      const int stage = copied % kStages;
      const Place k = tiles->along[stage][term];
      // All places first: copies follow each other more cheaply.
      const T *left[kRows], *right[kColumns];
      int bytes[kColumns];
#pragma unroll
      for (int n = 0; n < kRows; ++n) left[n] = p.left + (k.other + row_at[n]);
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        const Place one = TW_LINES ? tiles->columns[outer0 + n * kRowsApart]
                                   : tiles->along[stage][inner0 + n * kTermsApart];
        const Place& other = TW_LINES ? k : mine;
        right[n] = p.right + (one.offset + other.offset);
        bytes[n] = is_inside(p, one, other) ? kSize : 0;
      }
      const int there = k.at[0] != kNowhere ? kSize : 0;
      if (TW_HIGH >= kRowsApart || line < TW_HIGH) {
#pragma unroll
        for (int n = 0; n < kRows; ++n)
          copy_async<kSize>(to_a + (stage * kBytesA + n * kRowsApart * kSize), left[n], there);
      }
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        constexpr int kApart = TW_LINES ? kRowsApart * kSize : kTermsApart * kBytesB / kDepth;
        copy_async<kSize>(to_b + (stage * kBytesB + n * kApart), right[n], bytes[n]);
      }
    }
    ++copied;
    commit_copies();
  };
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) copy_next();
  RegisterTile<T, TW_HIGH, TW_WIDE, TW_EACH, TW_EACH> tile;
  for (int t = 0; t < depths; ++t) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the tile is there for all, and all have left the one that is next replaced
    copy_next();
    // The places of the terms after those; warps take turns.
    if (thread / 32 == t % 8 && thread % 32 < kDepth) find_terms(t + kStages, thread % kDepth);
    tile.add_products(tiles->a[t % kStages], tiles->b[t % kStages]);
  }

  T* const result =
      (pieces > 1 ? p.partial + piece * p.results : p.result) + blockIdx.z * p.result_group;
#pragma unroll
  for (int c = 0; c < TW_EACH; c += 4) {
    const int column = tile.column_of(c), j = j0 + column;
    int32_t to[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) to[n] = tiles->columns[column + n].other;
    const bool together = j + 3 < count && to[3] - to[0] == 3;
#pragma unroll
    for (int r = 0; r < TW_EACH; ++r) {
      const int i = i0 + tile.row_of(r);
      if (i >= rows) continue;
      const T bias = p.bias && pieces == 1 ? p.bias[blockIdx.z * p.rows + i] : T(0);
      T* const at = result + i * p.result_row;
      Four four;
#pragma unroll
      for (int n = 0; n < 4; ++n) four.at[n] = tile.sums[r][c + n] + bias;
      if (together && uint64_t(at + to[0]) % sizeof(Four) == 0) {
        *reinterpret_cast<Four*>(at + to[0]) = four;
      } else {
#pragma unroll
        for (int n = 0; n < 4; ++n)
          if (j + n < count) at[to[n]] = four.at[n];
      }
    }
  }
}

#endif
