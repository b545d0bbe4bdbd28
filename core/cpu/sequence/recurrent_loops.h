// What a recurrent cell does with its sums, unit by unit; and the gradient of that.
#pragma once
#include "core/cpu/simd/rows.h"
#include "core/cpu/sequence/recurrent_tile_loops.h"
#include "core/cpu/math/functions.h"
#include "core/cpu/sequence/recurrent.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// ---- what gates are squashed by ----

// float64: the ops' own functions.
TW_INLINE Vec<double> gate_of(Vec<double> x) { return sigmoid(x); }
TW_INLINE Vec<double> squash(Vec<double> x) { return tanh(x); }
// float32: within 2.6 ulp, in half the time of the ops' functions, which keep to one; a cell of an
// LSTM has five. e^v = s (1 + q) with s a power of two.
struct ScaledExp {
  Vec<float> s, q;
};
TW_INLINE ScaledExp scaled_exp(Vec<float> v) {
  using Limits = ExpLimits<float>;
  const Vec<float> n = nearest_power(v, kLog2e).n;
  const Vec<float> r = fma(n, -Limits::ln2_lo, fma(n, -Limits::ln2_hi, v));
  return {two_to(n), fma(exp_short_tail(r) * r, r, r)};
}
// a / b for 1 <= b < 2^127.
TW_INLINE Vec<float> divided(Vec<float> a, Vec<float> b) {
#ifdef TW_HAS_MASKED_ACCESS
  const Vec<float> inverse = near_reciprocal(b), y = a * inverse;
  return fma(fma(-y, b, a), inverse, y);
#else
  return a / b;
#endif
}
// 1 / (1 + e^-x)
TW_INLINE Vec<float> gate_of(Vec<float> x) {
  const auto [s, q] = scaled_exp(clamp(-x, -87.f, 87.f));
  return divided(1, fma(s, q, s + 1));
}
// (e^2x - 1) / (e^2x + 1); beyond 10 it is 1.
TW_INLINE Vec<float> squash(Vec<float> x) {
  const auto [s, q] = scaled_exp(clamp(x, -10.f, 10.f) * 2);
  const Vec<float> m = fma(s, q, s - 1);
  return divided(m, m + 2);
}

// ---- steps ----

// A vector of units of one row: where they are in rows of one block, and of several.
template <class T> struct Units {
  const RecurrentStep& step;
  int64_t row, at;
  int count;
  int64_t place(int block, int blocks) const { return (row * blocks + block) * step.hidden + at; }
  Vec<T> load(const void* from, int block = 0, int blocks = 1) const {
    return load_some((const T*)from + place(block, blocks), count);
  }
  Vec<T> product(const RecurrentSums& sums, int gate) const {
    return load_some((const T*)sums.at + row * sums.row + gate * sums.gate + at - step.first,
                     count);
  }
  // What the inputs give to a gate, and what the states do.
  Vec<T> input(int gate) const {
    const Vec<T> sum = product(step.inputs, gate);
    if (!step.bias) return sum;
    return sum + load_some((const T*)step.bias + gate * step.hidden + at, count);
  }
  Vec<T> state(int gate) const { return product(step.states, gate); }
  Vec<T> sum(int gate) const { return step.inputs.at ? input(gate) + state(gate) : state(gate); }
  // Zero where there is no such gradient.
  Vec<T> gradient(const void* from, int block = 0, int blocks = 1) const {
    return from ? load(from, block, blocks) : Vec<T>((T)0);
  }
  void store(void* to, Vec<T> v, int block = 0, int blocks = 1) const {
    store_some((T*)to + place(block, blocks), v, count);
  }
  void store_gradient(void* to, Vec<T> v, int gate) const {
    store_some((T*)to + row * step.gradient_row + gate * step.hidden + at, v, count);
  }
  // What the gradient reads, where there will be one.
  template <class... V> void keep(V... values) const {
    int block = 0;
    if (step.kept) (store(step.kept, values, block++, sizeof...(values)), ...);
  }
};
template <class T, class F> TW_INLINE void each_unit(const RecurrentStep& step, F f) {
  for (int64_t row = 0; row < step.rows; ++row)
    each_vector<T>(step.units, [&](int64_t at, int count) TW_LAMBDA_INLINE {
      f(Units<T>{step, row, step.first + at, count});
    });
}

// ---- RNN: y = tanh(x + W h) or relu ----

template <class T, bool relu> void rnn_forward(const RecurrentStep& s) {
  each_unit<T>(s, [&](const Units<T>& u) TW_LAMBDA_INLINE {
    const Vec<T> a = u.sum(0);
    if constexpr (relu)
      u.store(s.y, a.v < 0 ? Vec<T>((T)0).v : a.v);  // NaN stays
    else
      u.store(s.y, squash(a));
  });
}
template <class T, bool relu> void rnn_backward(const RecurrentStep& s) {
  each_unit<T>(s, [&](const Units<T>& u) TW_LAMBDA_INLINE {
    const Vec<T> dy = u.gradient(s.dy) + u.load(s.dh), y = u.load(s.y);
    if constexpr (relu)
      u.store_gradient(s.dx, y.v <= 0 ? Vec<T>((T)0).v : dy.v, 0);
    else
      u.store_gradient(s.dx, dy * fma(-y, y, 1), 0);
  });
}

// ---- LSTM: c = f c + i g, y = o tanh(c) ----

// The result of a vector is computed beside the gates of the next: one after the other they would
// be a chain longer than what the processor looks ahead.
template <class T> void lstm_forward(const RecurrentStep& s) {
  Vec<T> last_c((T)0), last_o((T)0);
  T* last_y = nullptr;
  int last_count = 0;
  const auto finish = [&]() TW_LAMBDA_INLINE {
    if (last_y) store_some(last_y, last_o * squash(last_c), last_count);
  };
  each_unit<T>(s, [&](const Units<T>& u) TW_LAMBDA_INLINE {
    finish();
    const Vec<T> i = gate_of(u.sum(0)), f = gate_of(u.sum(1)), g = squash(u.sum(2)),
                 o = gate_of(u.sum(3));
    const Vec<T> c = fma(f, u.load(s.before), i * g);
    u.keep(i, f, g, o);
    u.store(s.c, c);
    last_c = c, last_o = o, last_count = u.count;
    last_y = (T*)s.y + u.place(0, 1);
  });
  finish();
}
template <class T> void lstm_backward(const RecurrentStep& s) {
  each_unit<T>(s, [&](const Units<T>& u) TW_LAMBDA_INLINE {
    const Vec<T> i = u.load(s.kept, 0, 4), f = u.load(s.kept, 1, 4), g = u.load(s.kept, 2, 4),
                 o = u.load(s.kept, 3, 4), t = squash(u.load(s.c));
    const auto given = [&](int gate) TW_LAMBDA_INLINE { return u.gradient(s.dkept, gate, 4); };
    const Vec<T> dy = u.gradient(s.dy) + u.load(s.dh);
    const Vec<T> dc = fma(dy * o, fma(-t, t, 1), u.gradient(s.dc) + u.load(s.dcell));
    u.store_gradient(s.dx, fma(dc, g, given(0)) * i * ((T)1 - i), 0);
    u.store_gradient(s.dx, fma(dc, u.load(s.before), given(1)) * f * ((T)1 - f), 1);
    u.store_gradient(s.dx, fma(dc, i, given(2)) * fma(-g, g, 1), 2);
    u.store_gradient(s.dx, fma(dy, t, given(3)) * o * ((T)1 - o), 3);
    u.store(s.dcell, dc * f);
  });
}

// ---- GRU: y = (1 - z) n + z h, n = tanh(x + r q), q = W h + bias ----

template <class T> void gru_forward(const RecurrentStep& s) {
  each_unit<T>(s, [&](const Units<T>& u) TW_LAMBDA_INLINE {
    const Vec<T> r = gate_of(u.sum(0)), z = gate_of(u.sum(1));
    Vec<T> q = u.state(2);
    if (s.state_bias) q += load_some((const T*)s.state_bias + u.at, u.count);
    const Vec<T> n = squash(fma(r, q, u.input(2)));
    u.keep(r, z, n, q);
    u.store(s.y, fma((T)1 - z, n, z * u.load(s.before)));
  });
}
template <class T> void gru_backward(const RecurrentStep& s) {
  each_unit<T>(s, [&](const Units<T>& u) TW_LAMBDA_INLINE {
    const Vec<T> r = u.load(s.kept, 0, 4), z = u.load(s.kept, 1, 4), n = u.load(s.kept, 2, 4),
                 q = u.load(s.kept, 3, 4);
    const auto given = [&](int gate) TW_LAMBDA_INLINE { return u.gradient(s.dkept, gate, 4); };
    const Vec<T> dy = u.gradient(s.dy) + u.load(s.dh);
    const Vec<T> dn = fma(dy, (T)1 - z, given(2)) * fma(-n, n, 1);
    const Vec<T> dz = fma(dy, u.load(s.before) - n, given(1)) * z * ((T)1 - z);
    const Vec<T> dr = fma(dn, q, given(0)) * r * ((T)1 - r);
    u.store_gradient(s.dx, dr, 0);
    u.store_gradient(s.dx, dz, 1);
    u.store_gradient(s.dx, dn, 2);
    u.store_gradient(s.dproducts, dr, 0);
    u.store_gradient(s.dproducts, dz, 1);
    u.store_gradient(s.dproducts, fma(dn, r, given(3)), 2);
    u.store(s.dh, dy * z);
  });
}

// ---- weights ----

// `columns` rows of a weight, at most a vector, as columns of a panel; those behind them are zero.
template <class T> void pack_columns(const T* from, int64_t k, int columns, T* to, int64_t width) {
  constexpr int L = kLanes<T>;
  int64_t l = 0;
  for (; columns == L && l + L <= k; l += L) {
    typename Vec<T>::Raw rows[L];
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) rows[i] = Vec<T>::load(from + i * k + l).v;
    transpose_lanes<1, L>(rows);
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) Vec<T>(rows[i]).store(to + (l + i) * width);
  }
  for (; l < k; ++l)
    for (int i = 0; i < L; ++i) to[l * width + i] = i < columns ? from[i * k + l] : T(0);
}
template <class T, int vectors> void pack_panel(const RecurrentPanel& p) {
  constexpr int L = kLanes<T>, width = vectors * L;
  const int64_t units = width / p.gates;
  for (int v = 0; v < vectors; ++v) {
    const int64_t gate = v * L / units, unit = p.first + v * L % units, left = p.hidden - unit;
    const int columns = left < L ? (left < 0 ? 0 : (int)left) : L;
    pack_columns((const T*)p.weight + (gate * p.hidden + unit) * p.k, p.k, columns,
                 (T*)p.to + v * L, width);
  }
}

// Vectors of a panel: those of three gates, or as many as fill a tile.
template <class T, int gates> constexpr RecurrentTable::Products products() {
  constexpr int vectors = gates == 3 ? 3 : 4;
  return {vectors * kLanes<T> / gates, pack_panel<T, vectors>, recurrent_product<T, vectors>};
}
template <class T> constexpr RecurrentTable::Cells cells() {
  return {{products<T, 1>(), products<T, 1>(), products<T, 4>(), products<T, 3>()},
          {rnn_forward<T, false>, rnn_forward<T, true>, lstm_forward<T>, gru_forward<T>},
          {rnn_backward<T, false>, rnn_backward<T, true>, lstm_backward<T>, gru_backward<T>}};
}

}  // namespace

extern const RecurrentTable recurrent_table;
const RecurrentTable recurrent_table = {cells<float>(), cells<double>()};

}  // namespace tw::TW_ISA_NAME
