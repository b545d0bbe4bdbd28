// Connectionist temporal classification: a sequence of the batch a thread.
#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "core/base/error.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/sequence/ctc.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// ---- targets ----

void check_length(const char* name, int64_t length, int64_t most) {
  if (length < 0 || length > most)
    fail(ErrorKind::value, "ctc_loss: ", name, " has ", length, ", expected 0 to ", most);
}
void run_targets(const void* problem) {
  const auto& p = *static_cast<const TargetsProblem*>(problem);
  for (int64_t n = 0; n < p.batch; ++n) {
    check_length("input_lengths", p.input_lengths[n], p.steps);
    check_length("target_lengths", p.target_lengths[n], p.width);
    for (int64_t i = 0; i < p.width; ++i) {
      const bool counts = i < p.target_lengths[n];
      const int64_t label = counts ? p.targets[n * p.width + i] : p.blank;
      if (label < 0 || label >= p.classes)
        fail(ErrorKind::value, "ctc_loss: target ", label, " is no class of ", p.classes);
      p.y[n * p.width + i] = label;
    }
  }
}

// ---- paths ----

template <class T> constexpr T kNever = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b) + exp(c)).
template <class T> T log_sum(T a, T b, T c) {
  const T most = std::max(a, std::max(b, c));
  if (most == kNever<T>) return most;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

// One sequence: states are blanks and targets in turn.
template <class T> struct Sequence {
  const PathsProblem& p;
  int64_t n;
  const int64_t* targets = p.targets + n * p.width;
  int64_t steps = p.input_lengths[n];
  int64_t states = 2 * p.target_lengths[n] + 1;
  int64_t room = 2 * p.width + 1;
  T* beginnings = static_cast<T*>(p.beginnings) + n * p.steps * room;

  int64_t label(int64_t s) const { return s & 1 ? targets[s >> 1] : p.blank; }
  bool skips(int64_t s) const { return s > 1 && (s & 1) && label(s) != label(s - 2); }
  const T* at(int64_t t) const {
    return static_cast<const T*>(p.log_probs) + (t * p.batch + n) * p.classes;
  }

  T loss() const {
    std::fill_n(beginnings, p.steps * room, kNever<T>);
    if (steps == 0) return states == 1 ? T(0) : -kNever<T>;
    for (int64_t s = 0; s < std::min<int64_t>(states, 2); ++s) beginnings[s] = at(0)[label(s)];
    for (int64_t t = 1; t < steps; ++t) {
      const T *const x = at(t), *const before = beginnings + (t - 1) * room;
      T* const y = beginnings + t * room;
      // States that no step so far can be in, or from which the rest cannot be reached.
      const int64_t first = std::max<int64_t>(0, states - 2 * (steps - t));
      const int64_t past = std::min(states, 2 * t + 2);
      for (int64_t s = first; s < past; ++s)
        y[s] = x[label(s)] + log_sum(before[s], s > 0 ? before[s - 1] : kNever<T>,
                                     skips(s) ? before[s - 2] : kNever<T>);
    }
    const T* const y = beginnings + (steps - 1) * room;
    return -log_sum(y[states - 1], states > 1 ? y[states - 2] : kNever<T>, kNever<T>);
  }

  // `ends`: two rows of states.
  void gradient(T g, T loss, T* ends) const {
    T* const dx = static_cast<T*>(p.dx);
    for (int64_t t = 0; t < p.steps; ++t)
      std::fill_n(dx + (t * p.batch + n) * p.classes, p.classes, T(0));
    if (std::isinf(loss)) return;
    T *behind = ends, *here = ends + room;
    for (int64_t t = steps - 1; t >= 0; --t, std::swap(behind, here)) {
      const T *const x = at(t), *const before = beginnings + t * room;
      T* const d = dx + (t * p.batch + n) * p.classes;
      for (int64_t s = 0; s < states; ++s) {
        T rest = t == steps - 1 && s + 2 >= states ? T(0) : kNever<T>;
        if (t < steps - 1)
          rest = log_sum(behind[s], s + 1 < states ? behind[s + 1] : kNever<T>,
                         s + 2 < states && skips(s + 2) ? behind[s + 2] : kNever<T>);
        const int64_t own = label(s);
        here[s] = rest + x[own];
        if (before[s] != kNever<T> && rest != kNever<T>)
          d[own] -= g * std::exp(before[s] + rest + loss);
      }
    }
  }
};

template <class T> void losses_of(const PathsProblem& p) {
  parallel_ranges(p.batch, 1, [&](int64_t first, int64_t past) {
    for (int64_t n = first; n < past; ++n) static_cast<T*>(p.losses)[n] = Sequence<T>{p, n}.loss();
  });
}
template <class T> void gradients_of(const PathsProblem& p) {
  parallel_ranges(p.batch, 1, [&](int64_t first, int64_t past) {
    const Scratch memory(static_cast<std::size_t>(2 * (2 * p.width + 1)) * sizeof(T));
    for (int64_t n = first; n < past; ++n)
      Sequence<T>{p, n}.gradient(static_cast<const T*>(p.g)[n], static_cast<T*>(p.losses)[n],
                                 memory.as<T>());
  });
}
template <void (*single)(const PathsProblem&), void (*wide)(const PathsProblem&)>
void run_paths(const void* problem) {
  const auto& p = *static_cast<const PathsProblem*>(problem);
  p.dtype == DType::float64 ? wide(p) : single(p);
}

template <int first> const char* refuses(const Call& call) {
  const DType dtype = call.in[first].dtype;
  return dtype == DType::float32 || dtype == DType::float64 ? nullptr : kTooNarrow;
}
template <int first> void set_up(const Call& call, void* problem) {
  const Meta &x = call.in[first], &targets = call.in[first + 1];
  PathsProblem& p = *new (problem) PathsProblem{};
  p.dtype = x.dtype;
  p.steps = x.size(0);
  p.batch = x.size(1);
  p.classes = x.size(2);
  p.width = targets.size(1);
  p.blank = call.attributes[0];
}
void bind_inputs(PathsProblem& p, void* const* at) {
  p.log_probs = at[0];
  p.targets = static_cast<const int64_t*>(at[1]);
  p.input_lengths = static_cast<const int64_t*>(at[2]);
  p.target_lengths = static_cast<const int64_t*>(at[3]);
  p.losses = at[4];
  p.beginnings = at[5];
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const PathsProblem*>(problem);
  return 300 + 30.0 * double(p.batch) * double(p.steps) * double(2 * p.width + 1);
}

constexpr char kHelp[] = "logarithms of sums of paths, a sequence a thread";

}  // namespace

void register_ctc_kernels() {
  add_kernel<TargetsProblem>("ctc_targets", "one after the other",
                             {.set_up =
                                  [](const Call& call, void* problem) {
                                    *static_cast<TargetsProblem*>(problem) = {call.in[0].size(0),
                                                                              call.in[0].size(1),
                                                                              call.attributes[0],
                                                                              call.attributes[1],
                                                                              call.attributes[2],
                                                                              nullptr,
                                                                              nullptr,
                                                                              nullptr,
                                                                              nullptr};
                                  },
                              .bind =
                                  [](void* problem, void* const* at) {
                                    auto& p = *static_cast<TargetsProblem*>(problem);
                                    p.targets = static_cast<const int64_t*>(at[0]);
                                    p.input_lengths = static_cast<const int64_t*>(at[1]);
                                    p.target_lengths = static_cast<const int64_t*>(at[2]);
                                    p.y = static_cast<int64_t*>(at[3]);
                                  },
                              .run = run_targets,
                              .contiguous = 7});
  add_definition("ctc_targets", run_targets);  // whose loops are the definition
  add_kernel<PathsProblem>(
      "ctc_terms", kHelp,
      {.refuses = refuses<0>,
       .set_up = set_up<0>,
       .bind = [](void* problem,
                  void* const* at) { bind_inputs(*static_cast<PathsProblem*>(problem), at); },
       .cost_ns = cost_ns,
       .run = run_paths<losses_of<float>, losses_of<double>>,
       .contiguous = 15,
       .name = "trellis"});
  add_kernel<PathsProblem>("ctc_terms_backward", kHelp,
                           {.refuses = refuses<1>,
                            .set_up = set_up<1>,
                            .bind =
                                [](void* problem, void* const* at) {
                                  auto& p = *static_cast<PathsProblem*>(problem);
                                  p.g = at[0];
                                  bind_inputs(p, at + 1);
                                  p.dx = at[7];
                                },
                            .cost_ns = cost_ns,
                            .run = run_paths<gradients_of<float>, gradients_of<double>>,
                            .contiguous = 127,
                            .name = "trellis"});
}

}  // namespace tw
