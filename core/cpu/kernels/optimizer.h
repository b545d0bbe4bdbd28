// One step of SGD, Adam and Adagrad over a slice of a parameter: each array is read and written
// once.
#pragma once
#include "core/cpu/math.h"
#include "core/cpu/optimizer.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// The arrays of a slice at one vector: f loads and stores through it, `count` lanes of them.
template <class T> struct At {
  int64_t at;
  int count;
  TW_INLINE Vec<T> load(const void* p) const {
    auto* from = (const T*)p + at;
    return count == kLanes<T> ? Vec<T>::load(from) : Vec<T>::load(from, count);
  }
  TW_INLINE void store(void* p, Vec<T> v) const {
    auto* to = (T*)p + at;
    count == kLanes<T> ? v.store(to) : v.store(to, count);
  }
};
template <class T, class F> TW_INLINE void each_vector(int64_t n, F f) {
  constexpr int L = kLanes<T>;
  int64_t at = 0;
  for (; at + L <= n; at += L) f(At<T>{at, L});
  if (at < n) f(At<T>{at, (int)(n - at)});
}

template <class T> void sgd_plain(const SgdArgs& args, const ParameterSlice& s) {
  const Vec<T> lr = (T)args.lr, decay = (T)args.weight_decay;
  each_vector<T>(s.n, [=](At<T> here) TW_LAMBDA_INLINE {
    const Vec<T> p = here.load(s.param);
    here.store(s.param, p - lr * (here.load(s.grad) + decay * p));
  });
}
template <class T, bool nesterov> void sgd_momentum(const SgdArgs& args, const ParameterSlice& s) {
  const Vec<T> lr = (T)args.lr, decay = (T)args.weight_decay, momentum = (T)args.momentum;
  const Vec<T> take = (T)(1 - args.dampening);
  const bool fresh = args.first_step;
  each_vector<T>(s.n, [=](At<T> here) TW_LAMBDA_INLINE {
    const Vec<T> p = here.load(s.param), g = here.load(s.grad) + decay * p;
    const Vec<T> old = here.load(s.state1), v = fresh ? g : momentum * old + take * g;
    here.store(s.state1, v);
    here.store(s.param, p - lr * (nesterov ? g + momentum * v : v));
  });
}
template <class T> void sgd(const SgdArgs& args, const ParameterSlice& s) {
  if (args.momentum == 0)
    sgd_plain<T>(args, s);
  else if (args.nesterov)
    sgd_momentum<T, true>(args, s);
  else
    sgd_momentum<T, false>(args, s);
}

template <class T> void adam(const AdamFactors& f, const ParameterSlice& s) {
  const Vec<T> decay = (T)f.decay, grad_decay = (T)f.grad_decay;
  const Vec<T> beta2 = (T)f.beta2, rest1 = (T)(1 - f.beta1), rest2 = (T)(1 - f.beta2);
  const Vec<T> eps = (T)f.eps, step_size = (T)f.step_size;
  const Vec<T> correction = (T)(1 / f.root_correction);
  each_vector<T>(s.n, [=](At<T> here) TW_LAMBDA_INLINE {
    const Vec<T> p0 = here.load(s.param), g = here.load(s.grad) + grad_decay * p0, p = p0 * decay;
    const Vec<T> m0 = here.load(s.state1), m = m0 + rest1 * (g - m0);
    const Vec<T> v = beta2 * here.load(s.state2) + rest2 * g * g;
    here.store(s.state1, m);
    here.store(s.state2, v);
    here.store(s.param, p - step_size * m / (sqrt(v) * correction + eps));
  });
}

template <class T> void adagrad(const AdagradFactors& f, const ParameterSlice& s) {
  const Vec<T> lr = (T)f.lr, decay = (T)f.grad_decay, eps = (T)f.eps;
  each_vector<T>(s.n, [=](At<T> here) TW_LAMBDA_INLINE {
    const Vec<T> p = here.load(s.param), g = here.load(s.grad) + decay * p;
    const Vec<T> sum = here.load(s.state1) + g * g;
    here.store(s.state1, sum);
    here.store(s.param, p - lr * g / (sqrt(sum) + eps));
  });
}

}  // namespace

extern const OptimizerTable optimizer_table;
const OptimizerTable optimizer_table = {{sgd<float>, adam<float>, adagrad<float>},
                                        {sgd<double>, adam<double>, adagrad<double>}};

}  // namespace tw::TW_ISA_NAME
