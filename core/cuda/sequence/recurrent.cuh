// One step of a recurrent layer in one launch: the product of the states with the weights of all
// gates, and the cell on what a thread has in registers. Faster than product and cell apart because
// the gates' sums, 1 to 4 numbers a unit, never cross memory, and a step costs one launch. Steps
// follow each other in the stream: a later one reads what all blocks of an earlier one wrote.
// A block has kRows rows of the batch by kUnits units. Settings: TW_TYPE, TW_CELL.
#include "real_functions.cuh"
#include "recurrent_parameters.h"
using T = TW_TYPE;

constexpr int kGates = gates_of(tw::RecurrentCell(TW_CELL));
constexpr int kKept = kept_of(tw::RecurrentCell(TW_CELL));
constexpr int kRows = kStepRows, kUnits = kStepUnits;  // a thread has two rows of one unit
constexpr int kDepth = 32;                             // terms of products that are staged at once

TW_DEVICE T sigmoid(T x) {
  const T e = exponential(x < 0 ? x : -x);
  return (x < 0 ? e : T(1)) / (e + 1);
}

// Where a thread's unit stands; rows 16 apart.
struct Unit {
  int64_t row, unit, hidden;
  bool inside;
  TW_DEVICE int64_t place(int block, int blocks) const {
    return (row * blocks + block) * hidden + unit;
  }
  TW_DEVICE T load(const void* x, int block = 0, int blocks = 1) const {
    return static_cast<const T*>(x)[place(block, blocks)];
  }
  // 0 where there is no such gradient.
  TW_DEVICE T given(const void* x, int block = 0, int blocks = 1) const {
    return x ? load(x, block, blocks) : T(0);
  }
  TW_DEVICE void store(void* y, T value, int block = 0, int blocks = 1) const {
    static_cast<T*>(y)[place(block, blocks)] = value;
  }
};
TW_DEVICE Unit unit_of(const Recurrent& p, int which) {
  const int64_t row = int64_t(blockIdx.y) * kRows + threadIdx.x / 16 + 16 * which;
  const int64_t unit = int64_t(blockIdx.x) * kUnits + threadIdx.x % 16;
  return {row, unit, p.hidden, row < p.batch && unit < p.hidden};
}

// sums[i][g] += the row i of `rows` (batch, depth) times line (g * kUnits + unit) of weights, where
// weight(line's gate, unit, term) gives an element.
template <int gates, class Weight>
TW_DEVICE void multiply(const Recurrent& p, const T* rows, int64_t depth, Weight weight,
                        T (&sums)[2][gates]) {
  __shared__ T left[kDepth][kRows + 1], right[kDepth][gates * kUnits + 1];
  const int64_t row0 = int64_t(blockIdx.y) * kRows, unit0 = int64_t(blockIdx.x) * kUnits;
  const int down = threadIdx.x / 16, across = threadIdx.x % 16;
  for (int64_t first = 0; first < depth; first += kDepth) {
    __syncthreads();  // the last use of the stage is over
    for (int i = threadIdx.x; i < kRows * kDepth; i += kBlockThreads) {
      const int64_t row = row0 + i / kDepth, term = first + i % kDepth;
      const bool inside = row < p.batch && term < depth;
      left[i % kDepth][i / kDepth] = inside ? rows[row * depth + term] : T(0);
    }
    weight.template stage<gates>(p, first, depth, unit0, right);
    __syncthreads();
#pragma unroll 8
    for (int term = 0; term < kDepth; ++term)
#pragma unroll
      for (int g = 0; g < gates; ++g)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          sums[i][g] += left[term][down + 16 * i] * right[term][g * kUnits + across];
  }
}

// Weights (gates * hidden, hidden) by rows, each a unit's of one gate: neighbours are terms.
struct ByUnits {
  template <int gates>
  TW_DEVICE void stage(const Recurrent& p, int64_t first, int64_t depth, int64_t unit0,
                       T (&right)[kDepth][gates * kUnits + 1]) const {
    for (int i = threadIdx.x; i < gates * kUnits * kDepth; i += kBlockThreads) {
      const int line = i / kDepth;
      const int64_t unit = unit0 + line % kUnits, term = first + i % kDepth;
      right[i % kDepth][line] =
          unit < p.hidden && term < depth
              ? static_cast<const T*>(p.weight)[(line / kUnits * p.hidden + unit) * p.hidden + term]
              : T(0);
    }
  }
};
// And by columns: neighbours are units.
struct ByGates {
  template <int gates>
  TW_DEVICE void stage(const Recurrent& p, int64_t first, int64_t depth, int64_t unit0,
                       T (&right)[kDepth][gates * kUnits + 1]) const {
    for (int i = threadIdx.x; i < kUnits * kDepth; i += kBlockThreads) {
      const int64_t unit = unit0 + i % kUnits, term = first + i / kUnits;
      right[i / kUnits][i % kUnits] = unit < p.hidden && term < depth
                                          ? static_cast<const T*>(p.weight)[term * p.hidden + unit]
                                          : T(0);
    }
  }
};

TW_DEVICE void cell_forward(const Recurrent& p, const Unit& u, const T (&sums)[kGates]) {
#if TW_CELL <= TW_CELL_RELU
  const T a = u.load(p.x) + sums[0];
  u.store(p.y, TW_CELL == TW_CELL_TANH ? tangent(a) : a < 0 ? T(0) : a);  // NaN stays
#elif TW_CELL == TW_CELL_LSTM
  const T i = sigmoid(u.load(p.x, 0, 4) + sums[0]), f = sigmoid(u.load(p.x, 1, 4) + sums[1]);
  const T g = tangent(u.load(p.x, 2, 4) + sums[2]), o = sigmoid(u.load(p.x, 3, 4) + sums[3]);
  const T c = f * u.load(p.c_before) + i * g;
  u.store(p.kept, i, 0, kKept);
  u.store(p.kept, f, 1, kKept);
  u.store(p.kept, g, 2, kKept);
  u.store(p.kept, o, 3, kKept);
  u.store(p.c, c);
  u.store(p.y, o * tangent(c));
#else
  const T r = sigmoid(u.load(p.x, 0, 3) + sums[0]), z = sigmoid(u.load(p.x, 1, 3) + sums[1]);
  const T q = sums[2] + (p.bias ? static_cast<const T*>(p.bias)[u.unit] : T(0));
  const T n = tangent(u.load(p.x, 2, 3) + r * q);
  u.store(p.kept, r, 0, kKept);
  u.store(p.kept, z, 1, kKept);
  u.store(p.kept, n, 2, kKept);
  u.store(p.kept, q, 3, kKept);
  u.store(p.y, (1 - z) * n + z * u.load(p.h_before));
#endif
}

TW_KERNEL(recurrent_step, Recurrent, kBlockThreads) {
  T sums[2][kGates] = {};
  multiply<kGates>(p, static_cast<const T*>(p.h_before), p.hidden, ByUnits{}, sums);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const Unit u = unit_of(p, i);
    if (u.inside) cell_forward(p, u, sums[i]);
  }
}

// `dh`: of the states after the step, by all later steps. A thread reads and writes its own units
// of p.dh and p.dcell alone.
TW_DEVICE void cell_backward(const Recurrent& p, const Unit& u, T dh) {
  const T dy = u.given(p.dy) + dh;
#if TW_CELL <= TW_CELL_RELU
  const T y = u.load(p.y);
  u.store(p.dx, TW_CELL == TW_CELL_TANH ? dy * (1 - y * y) : y <= 0 ? T(0) : dy);
#elif TW_CELL == TW_CELL_LSTM
  const T i = u.load(p.kept, 0, kKept), f = u.load(p.kept, 1, kKept), g = u.load(p.kept, 2, kKept),
          o = u.load(p.kept, 3, kKept), t = tangent(u.load(p.c));
  const T dc = u.given(p.dc) + (p.later ? u.load(p.dcell) : T(0)) + dy * o * (1 - t * t);
  u.store(p.dx, (dc * g + u.given(p.dkept, 0, kKept)) * i * (1 - i), 0, 4);
  u.store(p.dx, (dc * u.load(p.c_before) + u.given(p.dkept, 1, kKept)) * f * (1 - f), 1, 4);
  u.store(p.dx, (dc * i + u.given(p.dkept, 2, kKept)) * (1 - g * g), 2, 4);
  u.store(p.dx, (dy * t + u.given(p.dkept, 3, kKept)) * o * (1 - o), 3, 4);
  u.store(p.dcell, dc * f);
#else
  const T r = u.load(p.kept, 0, kKept), z = u.load(p.kept, 1, kKept), n = u.load(p.kept, 2, kKept),
          q = u.load(p.kept, 3, kKept);
  const T dn = (dy * (1 - z) + u.given(p.dkept, 2, kKept)) * (1 - n * n);
  const T dz = (dy * (u.load(p.h_before) - n) + u.given(p.dkept, 1, kKept)) * z * (1 - z);
  const T dr = (dn * q + u.given(p.dkept, 0, kKept)) * r * (1 - r);
  u.store(p.dx, dr, 0, 3);
  u.store(p.dx, dz, 1, 3);
  u.store(p.dx, dn, 2, 3);
  u.store(p.dproducts, dr, 0, 3);
  u.store(p.dproducts, dz, 1, 3);
  u.store(p.dproducts, dn * r + u.given(p.dkept, 3, kKept), 2, 3);
  u.store(p.dh, dy * z);
#endif
}

// From the later step's products to the states, then the cell of this one. Of a GRU, dh holds what
// the later step's cell gave the states directly.
TW_KERNEL(recurrent_step_backward, Recurrent, kBlockThreads) {
  T sums[2][1] = {};
  if (p.later)
    multiply<1>(p, static_cast<const T*>(p.later), kGates * p.hidden, ByGates{}, sums);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const Unit u = unit_of(p, i);
    if (!u.inside) continue;
    T dh = sums[i][0];
    if (TW_CELL == TW_CELL_GRU && p.later) dh += u.load(p.dh);
    if (p.only_states)
      u.store(p.dh, dh);
    else
      cell_backward(p, u, dh);
  }
}
