// Random numbers that take any number of tries, classes by their probabilities, and permutations,
// with the CPU's words. Everything is computed in double, as there.
#include "philox.cuh"
#include "draw_formulas.inc"
#include "rejection_parameters.h"

#define TW_FOR_EACH(i, n)                                            \
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x,   \
               tw_step = int64_t(gridDim.x) * blockDim.x; i < (n); i += tw_step)

// The bits of a number that is told of.
TW_DEVICE int64_t bits_of(double x) {
  union { double number; int64_t bits; } both = {x};
  return both.bits;
}

// The pair of words that belongs to an element.
TW_DEVICE uint64_t pair_of(const Draw& p, int64_t element) {
  const Words words = philox(p.key[0], p.key[1] / 4 + uint64_t(element / 2));
  const int at = int(element % 2) * 2;
  return uint64_t(words.at[at]) << 32 | words.at[at + 1];
}

// ---- by tries, from a stream for each element ----

// SplitMix64. Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014.
struct Stream {
  uint64_t state;
  TW_DEVICE uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  // In (0, 1).
  TW_DEVICE double unit() { return (double(int64_t(next() >> 11)) + 0.5) * 0x1p-53; }
  TW_DEVICE double normal() {
    const double distance = ::sqrt(-2 * ::log(unit()));
    return distance * ::cospi(2 * unit());
  }
};

TW_DEVICE double poisson_of(double rate, Stream stream) {
  if (rate < 10) {  // how many exponential waits fit
    double count = 0;
    for (double rest = ::exp(-rate), product = stream.unit(); product > rest; ++count)
      product *= stream.unit();
    return count;
  }
  if (rate == double(TW_INFINITY)) return rate;
  // PTRS: numbers of a curve that covers the distribution, by tries.
  const double root = ::sqrt(rate), log_rate = ::log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_most = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = stream.unit() - 0.5, v = stream.unit(), s = 0.5 - ::fabs(u);
    const double k = ::floor((2 * a / s + b) * u + rate + 0.43);
    if (s >= 0.07 && v <= v_most) return k;
    if (k < 0 || (s < 0.013 && v > s)) continue;
    if (::log(v) + ::log(inverse_alpha) - ::log(a / (s * s) + b) <=
        k * log_rate - rate - ::lgamma(k + 1))
      return k;
  }
}
TW_DEVICE double gamma_of(double shape, Stream stream) {
  if (shape == double(TW_INFINITY)) return shape;
  // Of a shape below 1: that of one more, times a power of a uniform number.
  const double factor = shape < 1 ? ::pow(stream.unit(), 1 / shape) : 1;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / ::sqrt(9 * d);
  while (true) {
    const double x = stream.normal(), t = 1 + c * x, v = t * t * t;
    if (v <= 0) continue;
    if (::log(stream.unit()) < 0.5 * x * x + d - d * v + d * ::log(v)) return d * v * factor;
  }
}
TW_KERNEL(poisson, Draw, kBlockThreads) {
  TW_FOR_EACH(i, p.count) {
    const double rate = p.x[0][i];
    if (!(rate >= 0)) return report(p.fault, p.code, kWrongRate, bits_of(rate), i, 0, 0);
    static_cast<double*>(p.y)[i] = poisson_of(rate, {pair_of(p, i)});
  }
}
TW_KERNEL(gamma_numbers, Draw, kBlockThreads) {
  TW_FOR_EACH(i, p.count) {
    const double shape = p.x[0][i];
    if (!(shape > 0)) return report(p.fault, p.code, kWrongShape, bits_of(shape), i, 0, 0);
    static_cast<double*>(p.y)[i] = gamma_of(shape, {pair_of(p, i)});
  }
}
TW_KERNEL(binomial, Draw, kBlockThreads) {
  TW_FOR_EACH(i, p.count) {
    const double n = p.x[0][i], chance = p.x[1][i];
    if (!(n >= 0 && n == ::floor(n) && n < double(TW_INFINITY)))
      return report(p.fault, p.code, kWrongCount, bits_of(n), i, 0, 0);
    if (!(chance >= 0 && chance <= 1))
      return report(p.fault, p.code, kWrongChance, bits_of(chance), i, 0, 0);
    Stream stream = {pair_of(p, i)};
    static_cast<double*>(p.y)[i] = successes_of(n, chance, stream);
  }
}
TW_KERNEL(gamma_slopes, Draw, kBlockThreads) {
  TW_FOR_EACH(i, p.count) static_cast<double*>(p.y)[i] = gamma_slope(p.x[0][i], p.x[1][i]);
}
TW_KERNEL(beta_slopes, Draw, kBlockThreads) {
  TW_FOR_EACH(i, p.count)
    static_cast<double*>(p.y)[i] = beta_slope(p.x[0][i], p.x[1][i], p.x[2][i]);
}
TW_KERNEL(checked_shares, Draw, kBlockThreads) {
  TW_FOR_EACH(i, p.count) {
    const double share = p.x[0][i];
    if (!(share >= 0 && share <= 1))
      return report(p.fault, p.code, kWrongShare, bits_of(share), i, 0, 0);
    static_cast<double*>(p.y)[i] = share;
  }
}

// ---- permutations ----

// Fisher and Yates: the swaps of the last elements first, each with an element before it. A block
// does 256 swaps at a time: each reserves its two places, and those that hold both as the first of
// all that want them are done (Shun et al., "Sequential random permutation, list contraction and
// tree contraction are highly parallel", SODA 2015), so that the order is that of one by one.
TW_KERNEL(permutation, Draw, kBlockThreads) {
  __shared__ int waiting;
  int64_t* const y = static_cast<int64_t*>(p.y);
  for (int64_t i = threadIdx.x; i < p.count; i += kBlockThreads) {
    y[i] = i;
    p.reserved[i] = 0;
  }
  __syncthreads();
  for (int64_t last = p.count - 1; last > 0; last -= kBlockThreads) {
    const int64_t i = last - threadIdx.x;
    bool waits = i > 0;
    const int64_t with = waits ? int64_t(high_half(pair_of(p, i), uint64_t(i) + 1)) : 0;
    for (bool any = true; any;) {
      if (threadIdx.x == 0) waiting = 0;
      if (waits) {
        atomicMax(p.reserved + i, int32_t(i));
        atomicMax(p.reserved + with, int32_t(i));
      }
      __syncthreads();
      const bool first = waits && p.reserved[i] == i && p.reserved[with] == i;
      __syncthreads();
      if (waits) p.reserved[i] = p.reserved[with] = 0;
      if (first) {
        const int64_t other = y[with];
        y[with] = y[i];
        y[i] = other;
        waits = false;
      }
      if (waits) waiting = 1;
      __syncthreads();
      any = waiting;
      __syncthreads();
    }
  }
}

// ---- classes of rows of probabilities ----

TW_DEVICE double sum_of_block(double x) {
  __shared__ double warps[8];
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) x += __shfl_xor_sync(TW_ALL_LANES, x, bits);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
  __syncthreads();
  x = 0;
  for (int i = 0; i < 8; ++i) x += warps[i];
  return x;
}

// A block a row.
TW_KERNEL(checked_probabilities, Classes, kBlockThreads) {
  const int64_t row = blockIdx.x;
  const double* const x = p.p + row * p.classes;
  double possible = 0, total = 0, worst = 0;
  for (int64_t i = threadIdx.x; i < p.classes; i += kBlockThreads) {
    if (!(x[i] >= 0) || x[i] == double(TW_INFINITY)) {
      report(p.fault, p.code, kWrongProbability, bits_of(x[i]), row, i, 0);
      worst = 1;
      continue;
    }
    possible += x[i] > 0;
    total += x[i];
    static_cast<double*>(p.y)[row * p.classes + i] = x[i];
  }
  possible = sum_of_block(possible);
  total = sum_of_block(total);
  worst = sum_of_block(worst);
  if (threadIdx.x != 0 || worst > 0) return;
  if (possible == 0)
    report(p.fault, p.code, kNoProbability, 0, row, 0, 0);
  else if (total == double(TW_INFINITY))
    report(p.fault, p.code, kInfiniteSum, 0, row, 0, 0);
  else if (!p.replacement && possible < double(p.samples))
    report(p.fault, p.code, kTooFewClasses, int64_t(possible), row, p.samples, 0);
}

// One after the other, as the CPU adds: the same samples come of the same numbers.
TW_KERNEL(sum_classes, Classes, kBlockThreads) {
  TW_FOR_EACH(row, p.rows) {
    double total = 0;
    int64_t last = 0;
    for (int64_t i = row * p.classes; i < (row + 1) * p.classes; ++i) {
      p.sums[i] = total += p.p[i];
      if (p.p[i] > 0) last = i - row * p.classes;
    }
    p.last[row] = last;
  }
}
// The class in whose share of the sum a uniform number falls.
TW_KERNEL(search_classes, Classes, kBlockThreads) {
  TW_FOR_EACH(at, p.rows * p.samples) {
    const int64_t row = at / p.samples;
    const double* const sums = p.sums + row * p.classes;
    const double wanted = p.u[at] * sums[p.classes - 1];
    int64_t low = 0, high = p.classes;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (sums[middle] <= wanted) low = middle + 1;
      else high = middle;
    }
    static_cast<int64_t*>(p.y)[at] = low < p.last[row] ? low : p.last[row];
  }
}

// Each class arrives after an exponential time of its rate, and the first to arrive are taken
// (Efraimidis, Spirakis, "Weighted random sampling with a reservoir", 2006).
TW_KERNEL(arrivals, Classes, kBlockThreads) {
  TW_FOR_EACH(i, p.rows * p.classes)
    p.sums[i] = p.p[i] > 0 ? -::log1p(-p.u[i]) / p.p[i] : double(TW_INFINITY);
}
// A class's place is the number of those that come before it. Of equal times the first class is.
TW_KERNEL(first_arrivals, Classes, kBlockThreads) {
  __shared__ double times[kBlockThreads];
  const int64_t row = blockIdx.y, mine = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x;
  const double* const all = p.sums + row * p.classes;
  const double time = all[mine < p.classes ? mine : 0];
  int64_t before = 0;
  for (int64_t first = 0; first < p.classes; first += kBlockThreads) {
    __syncthreads();
    if (first + threadIdx.x < p.classes) times[threadIdx.x] = all[first + threadIdx.x];
    __syncthreads();
    const int some = p.classes - first < kBlockThreads ? int(p.classes - first) : kBlockThreads;
    for (int i = 0; i < some; ++i)
      before += times[i] < time || (times[i] == time && first + i < mine);
  }
  if (mine < p.classes && before < p.samples)
    static_cast<int64_t*>(p.y)[row * p.samples + before] = mine;
}
