// Reductions of strided tensors: y[kept] = op over reduced of x[kept, reduced]. Settings:
//   TW_IN, TW_OUT   types in memory              TW_TYPE  what is combined in
//   TW_TERM         what of an element x is joined
//   TW_IS_EXTREMUM  1: one state stays; TW_REPLACES: where b replaces a. Of others TW_NEUTRAL, and
//                   TW_JOINED: a and b joined
//   TW_IS_ARG       1: where the extremum is     TW_IS_LOGIC  1: whether elements are not 0
//   TW_WIDTH        threads that share a row: 32 or 256
//   TW_FINISH       the result from y, the combination in double, and count, how many elements
//                   it is of; not defined: what they are combined to
#include "prelude.cuh"
#include "reduce_parameters.h"

using T = TW_TYPE;

struct State {
  T value;
#if TW_IS_ARG
  int64_t index;  // negative: of nothing yet
#endif
};
static_assert(sizeof(State) <= kMostStateBytes);

TW_DEVICE State nothing() {
#if TW_IS_ARG
  return {T(0), -1};
#elif TW_IS_EXTREMUM
  return {T(0)};  // not asked: see start_of
#else
  return {T(TW_NEUTRAL)};
#endif
}
#if TW_IS_EXTREMUM
// NaN is beyond every number.
TW_DEVICE bool replaces(T b, T a) {
  if (b != b) return a == a;
  return TW_REPLACES;
}
#else
TW_DEVICE T joined(T a, T b) { return T(TW_JOINED); }
#endif
TW_DEVICE State combine(State a, State b) {
#if TW_IS_ARG
  if (b.index < 0) return a;
  if (a.index < 0) return b;
  const bool equal = a.value == b.value || (a.value != a.value && b.value != b.value);
  if (equal) return a.index < b.index ? a : b;
#endif
#if TW_IS_EXTREMUM
  return replaces(b.value, a.value) ? b : a;
#else
  return {joined(a.value, b.value)};
#endif
}

// What terms are made of, under the names that they have on the CPU.
namespace terms {
template <class V> struct Same { using type = V; };
template <class V> TW_DEVICE V where(bool c, V a, typename Same<V>::type b) { return c ? a : b; }
template <class V> TW_DEVICE V abs(V x) { return x < 0 ? -x : x; }
template <class V> TW_DEVICE V product_term(V a, V b) { return a * b; }
TW_DEVICE T term_of(T x) { return T(TW_TERM); }
}  // namespace terms

TW_DEVICE State state_of(TW_IN x, int64_t index) {
#if TW_IS_ARG
  return {terms::term_of(convert<T>(x)), index};
#elif TW_IS_LOGIC
  return {T(is_true(x))};
#else
  return {terms::term_of(convert<T>(x))};
#endif
}
#ifdef TW_FINISH
TW_DEVICE double finished(double y, double count) { TW_FINISH }
TW_DEVICE complex128 finished(complex128 y, double count) {
  return {finished(y.re, count), finished(y.im, count)};
}
#endif
TW_DEVICE TW_OUT result_of(const Reduce& p, State s) {
#if TW_IS_ARG
  return s.index;
#elif defined(TW_FINISH)
  return convert<TW_OUT>(finished(s.value, double(p.reduced)));
#else
  return convert<TW_OUT>(s.value);
#endif
}

template <class V> TW_DEVICE V from_lane(V value, int bits) {
  return __shfl_xor_sync(TW_ALL_LANES, value, bits);
}
template <class Part> TW_DEVICE Complex<Part> from_lane(Complex<Part> value, int bits) {
  return {from_lane(value.re, bits), from_lane(value.im, bits)};
}
TW_DEVICE State of_neighbour(State s, int bits) {
#if TW_IS_ARG
  return {from_lane(s.value, bits), from_lane(s.index, bits)};
#else
  return {from_lane(s.value, bits)};
#endif
}

// max and min have no neutral element: a row's first one stands for nothing.
TW_DEVICE State start_of(const TW_IN* row, const Reduce& p) {
#if TW_IS_EXTREMUM && !TW_IS_ARG
  return state_of(row[0], 0);
#else
  return nothing();
#endif
}

// Elements that a thread of a row takes one after another: 16 bytes, which one load brings where
// they lie so. Which thread has which does not depend on that, so neither do the bits.
constexpr int kTogether = sizeof(TW_IN) < 16 ? 16 / sizeof(TW_IN) : 1;
struct alignas(16) Chunk {
  TW_IN at[kTogether];
};
// How many chunks are on their way at a time.
constexpr int kAhead = 4;

// Threads side by side, a chunk each, and again behind all of them.
TW_DEVICE State walk_row(const Reduce& p, const TW_IN* row, int64_t begin, int64_t end, int lane) {
  State s = start_of(row, p);
  const int64_t stride = p.reduced_strides.stride[0], step = int64_t(TW_WIDTH) * kTogether;
  const bool whole = stride == 1 && uint64_t(row + begin) % sizeof(Chunk) == 0;
  int64_t k = begin + int64_t(lane) * kTogether;
  if (whole)
    for (; k + (kAhead - 1) * step + kTogether <= end; k += kAhead * step) {
      Chunk x[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) x[i] = *reinterpret_cast<const Chunk*>(row + k + i * step);
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
#pragma unroll
        for (int e = 0; e < kTogether; ++e) s = combine(s, state_of(x[i].at[e], k + i * step + e));
    }
  for (; k < end; k += step)
#pragma unroll
    for (int e = 0; e < kTogether; ++e)
      if (k + e < end) s = combine(s, state_of(row[(k + e) * stride], k + e));
  return s;
}

TW_DEVICE State walk(const Reduce& p, const TW_IN* row, int64_t begin, int64_t end, int64_t step) {
  State s = start_of(row, p);
  if (p.reduced_extents.rank == 1) {
    const int64_t stride = p.reduced_strides.stride[0];
    int64_t k = begin;
    for (; k + 7 * step < end; k += 8 * step) {
      TW_IN x[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) x[i] = row[(k + i * step) * stride];
#pragma unroll
      for (int i = 0; i < 8; ++i) s = combine(s, state_of(x[i], k + i * step));
    }
    for (; k < end; k += step) s = combine(s, state_of(row[k * stride], k));
  } else {
    for (int64_t k = begin; k < end; k += step)
      s = combine(s, state_of(row[place(p.reduced_extents, p.reduced_strides, k)], k));
  }
  return s;
}

TW_DEVICE void give(const Reduce& p, int64_t row, State s) {
  if (p.segments == 1)
    static_cast<TW_OUT*>(p.y)[row] = result_of(p, s);
  else
    static_cast<State*>(p.partial)[row * p.segments + blockIdx.y] = s;
}

TW_DEVICE int64_t segment_end(const Reduce& p) {
  const int64_t end = (int64_t(blockIdx.y) + 1) * p.segment;
  return end < p.reduced ? end : p.reduced;
}

// The state of all threads that share a row, in each of the first 32.
TW_DEVICE State combine_group(State s) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) s = combine(s, of_neighbour(s, bits));
#if TW_WIDTH > 32
  __shared__ State warps[8];
  __syncthreads();  // the last use of them is over
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = s;
  __syncthreads();
  s = warps[threadIdx.x % 8];
#pragma unroll
  for (int bits = 4; bits > 0; bits /= 2) s = combine(s, of_neighbour(s, bits));
#endif
  return s;
}

// Whether this block is the last one of its rows' segments; what the others gave is there then.
TW_DEVICE bool is_last(const Reduce& p) {
  __shared__ int last;
  if (p.segments == 1 || !p.done) return false;
  __threadfence();  // what this block gave is there before it counts as done
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(p.done + blockIdx.x, 1u) == gridDim.y - 1;
  __syncthreads();
  if (!last) return false;
  __threadfence();
  if (threadIdx.x == 0) p.done[blockIdx.x] = 0;
  return true;
}
// A row's result, of the states of its segments: threads that share a row take them in turns.
TW_DEVICE void join(const Reduce& p, int64_t row) {
  const int lane = threadIdx.x % TW_WIDTH;
  const State* states =
      static_cast<const State*>(p.partial) + (row < p.kept ? row : p.kept - 1) * p.segments;
#if TW_IS_EXTREMUM
  State s = states[lane < p.segments ? lane : 0];  // once more does not matter
#else
  State s = lane < p.segments ? states[lane] : nothing();
#endif
  for (int64_t i = lane + TW_WIDTH; i < p.segments; i += TW_WIDTH) s = combine(s, states[i]);
  s = combine_group(s);
  if (lane == 0 && row < p.kept) static_cast<TW_OUT*>(p.y)[row] = result_of(p, s);
}

// Threads side by side along a row, where its elements lie one after another.
TW_KERNEL(reduce_rows, Reduce, kBlockThreads) {
  const int lane = threadIdx.x % TW_WIDTH;
  const int64_t row = int64_t(blockIdx.x) * (kBlockThreads / TW_WIDTH) + threadIdx.x / TW_WIDTH;
  const int64_t inside = row < p.kept ? row : p.kept - 1;  // all lanes take part in exchanges
  const TW_IN* x = static_cast<const TW_IN*>(p.x) + place(p.kept_extents, p.kept_strides, inside);
  const int64_t begin = int64_t(blockIdx.y) * p.segment, end = segment_end(p);
  const State s =
      combine_group(p.reduced_extents.rank == 1 ? walk_row(p, x, begin, end, lane)
                                                : walk(p, x, begin + lane, end, TW_WIDTH));
  if (lane == 0 && row < p.kept) give(p, row, s);
  if (is_last(p)) join(p, row);
}

// Threads side by side along the kept axes, some lines of them.
TW_KERNEL(reduce_columns, Reduce, kBlockThreads) {
  constexpr int kColumns = kReducedColumns, kLines = kBlockThreads / kColumns;
  __shared__ State lines[kLines][kColumns];
  const int lane = threadIdx.x % kColumns, line = threadIdx.x / kColumns;
  const int64_t row = int64_t(blockIdx.x) * kColumns + lane;
  const int64_t inside = row < p.kept ? row : p.kept - 1;
  const TW_IN* x = static_cast<const TW_IN*>(p.x) + place(p.kept_extents, p.kept_strides, inside);
  lines[line][lane] = walk(p, x, int64_t(blockIdx.y) * p.segment + line, segment_end(p), kLines);
  __syncthreads();
  if (line == 0 && row < p.kept) {
    State s = lines[0][lane];
    for (int i = 1; i < kLines; ++i) s = combine(s, lines[i][lane]);
    give(p, row, s);
  }
  if (!is_last(p)) return;
  constexpr int kEach = kColumns / kLines;  // rows that threads of a line join, one after another
  for (int i = 0; i < kEach; ++i)
    join(p, int64_t(blockIdx.x) * kColumns + line * kEach + i);
}

TW_KERNEL(reduce_segments, Reduce, kBlockThreads) {
  join(p, int64_t(blockIdx.x) * (kBlockThreads / TW_WIDTH) + threadIdx.x / TW_WIDTH);
}
