// Connectionist temporal classification: a block a sequence, its states (blanks and targets in
// turn) shared between threads, a step after the other. Setting: TW_TYPE.
#include "real_functions.cuh"
#include "ctc_parameters.h"
using T = TW_TYPE;
using Paths = PathsOf<T>;

TW_DEVICE T never() { return -T(TW_INFINITY); }

// Targets with blanks behind their lengths.
TW_KERNEL(ctc_targets, Paths, kBlockThreads) {
  const int64_t all = p.batch * (p.width > 0 ? p.width : 1), step = int64_t(gridDim.x) * kBlockThreads;
  for (int64_t at = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x; at < all; at += step) {
    const int64_t n = p.width > 0 ? at / p.width : at, i = at - n * p.width;
    const int64_t steps = p.input_lengths[n], length = p.target_lengths[n];
    if (steps < 0 || steps > p.steps)
      report(p.fault, p.code, kWrongInputLength, steps, n, p.steps, 0);
    if (length < 0 || length > p.width)
      report(p.fault, p.code, kWrongTargetLength, length, n, p.width, 0);
    if (p.width == 0) continue;
    // What is wrong counts as a blank: work behind this one in the stream reads it all the same.
    const int64_t label = i < length ? p.targets[at] : p.blank;
    const bool is_class = label >= 0 && label < p.classes;
    if (!is_class) report(p.fault, p.code, kWrongLabel, label, n, p.classes, 0);
    p.checked[at] = is_class ? label : p.blank;
  }
}

// log(exp(a) + exp(b) + exp(c)).
TW_DEVICE T log_sum(T a, T b, T c) {
  T most = a > b ? a : b;
  most = most > c ? most : c;
  if (most == never()) return most;
  return most + logarithm(exponential(a - most) + exponential(b - most) + exponential(c - most));
}

// The sequence of this block. Lengths out of range, which ctc_targets tells of, count as none.
struct Sequence {
  int64_t number, steps, states, room, blank;
  const int64_t* targets;
  T* beginnings;
  TW_DEVICE explicit Sequence(const Paths& p)
      : number(blockIdx.x),
        steps(within(p.input_lengths[number], p.steps)),
        states(2 * within(p.target_lengths[number], p.width) + 1),
        room(2 * p.width + 1),
        blank(p.blank),
        targets(p.targets + number * p.width),
        beginnings(p.beginnings + number * p.steps * room) {}
  static TW_DEVICE int64_t within(int64_t length, int64_t most) {
    return length < 0 || length > most ? 0 : length;
  }
  TW_DEVICE int64_t label(int64_t s) const { return s & 1 ? targets[s >> 1] : blank; }
  TW_DEVICE bool skips(int64_t s) const { return s > 1 && (s & 1) && label(s) != label(s - 2); }
};
TW_DEVICE const T* log_probs_of(const Paths& p, int64_t t, int64_t n) {
  return p.log_probs + (t * p.batch + n) * p.classes;
}

TW_KERNEL(ctc_terms, Paths, kBlockThreads) {
  const Sequence q(p);
  for (int64_t t = 0; t < p.steps; ++t) {
    const T* const x = log_probs_of(p, t, q.number);
    const T* const before = q.beginnings + (t - 1) * q.room;
    T* const y = q.beginnings + t * q.room;
    // States that no step so far can be in, or from which the rest cannot be reached, are never.
    const int64_t first = q.states - 2 * (q.steps - t);
    const int64_t past = q.states < 2 * t + 2 ? q.states : 2 * t + 2;
    for (int64_t s = threadIdx.x; s < q.room; s += kBlockThreads) {
      T sum = never();
      if (t < q.steps && s < past && (t == 0 || s >= first))
        sum = x[q.label(s)] + (t == 0 ? T(0)
                                      : log_sum(before[s], s > 0 ? before[s - 1] : never(),
                                                q.skips(s) ? before[s - 2] : never()));
      y[s] = sum;
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  T loss = q.states == 1 ? T(0) : T(TW_INFINITY);  // of no steps
  if (q.steps > 0) {
    const T* const y = q.beginnings + (q.steps - 1) * q.room;
    loss = -log_sum(y[q.states - 1], q.states > 1 ? y[q.states - 2] : never(), never());
  }
  p.losses[q.number] = loss;
}

// States of one label share an element of the gradient: the first of them adds up all, in order.
TW_KERNEL(ctc_terms_backward, Paths, kBlockThreads) {
  const Sequence q(p);
  const T g = p.g[q.number], loss = p.losses[q.number];
  T *behind = p.scratch + q.number * kScratchRows * q.room, *here = behind + q.room;
  T* const shares = here + q.room;
  for (int64_t t = 0; t < p.steps; ++t)
    for (int64_t c = threadIdx.x; c < p.classes; c += kBlockThreads)
      p.dx[(t * p.batch + q.number) * p.classes + c] = 0;
  if (loss == T(TW_INFINITY) || loss == never()) return;
  for (int64_t t = q.steps - 1; t >= 0; --t) {
    const T *const x = log_probs_of(p, t, q.number), *const before = q.beginnings + t * q.room;
    const bool is_last = t == q.steps - 1;
    for (int64_t s = threadIdx.x; s < q.states; s += kBlockThreads) {
      T rest = s + 2 >= q.states ? T(0) : never();
      if (!is_last)
        rest = log_sum(behind[s], s + 1 < q.states ? behind[s + 1] : never(),
                       s + 2 < q.states && q.skips(s + 2) ? behind[s + 2] : never());
      here[s] = rest + x[q.label(s)];
      const bool counts = before[s] != never() && rest != never();
      shares[s] = counts ? exponential(before[s] + rest + loss) : T(0);
    }
    __syncthreads();
    for (int64_t s = threadIdx.x; s < q.states; s += kBlockThreads) {
      const int64_t own = q.label(s);
      bool is_first = true;
      for (int64_t k = 0; k < s && is_first; ++k) is_first = q.label(k) != own;
      if (!is_first) continue;
      T sum = 0;
      for (int64_t k = s; k < q.states; ++k)
        if (q.label(k) == own) sum -= g * shares[k];
      p.dx[(t * p.batch + q.number) * p.classes + own] = sum;
    }
    __syncthreads();
    T* const swapped = behind;
    behind = here;
    here = swapped;
  }
}
