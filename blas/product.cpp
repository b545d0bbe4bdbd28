// Which rung computes a call, and what happens where that fails: no exception may reach a caller
// that is written in C or Fortran.
#include "blas/product.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "blas/tally.h"
#include "core/base/cpu_info.h"
#include "core/base/error.h"
#include "core/base/float_environment.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"

namespace tw::blas {

namespace {

void say(const char* fact, const char* remedy) {
  std::fprintf(stderr, "tilewright blas: %s; %s\n", fact, remedy);
}

struct Ladder {
  const OpKernels* op;
  const std::vector<const Kernel*>& kernels;
  bool free;  // no rung is forced, whatever the environment says
};

// Settings that are wrong are told once and left aside: a program goes on.
template <class Ask, class Mend> bool mended(Ask ask, const char* remedy, Mend mend) {
  try {
    ask();
    return false;
  } catch (const Error& error) {
    say(error.what(), remedy);
    mend();
    return true;
  }
}

Isa best_isa() {
  Isa best = Isa::scalar;
  for (int i = 0; i < kIsas; ++i)
    if (kernels_of(static_cast<Isa>(i))) best = static_cast<Isa>(i);
  return best;
}

const Ladder& ladder() {
  static const Ladder prepared = [] {
    if (kernels_of_op("matmul").empty()) register_matmul_kernels();
    mended([] { active_isa(); }, "the best one is used", [] { set_default_isa(best_isa()); });
    mended([] { num_threads(); }, "one thread for each processor computes",
           [] { set_num_threads(std::min(cpu_info().usable_processors, 1024)); });
    const bool wrong_rung =
        mended([] { forced_kernel("matmul"); }, "rungs are chosen freely", [] {});
    return Ladder{find_op("matmul"), kernels_of_op("matmul"), wrong_rung};
  }();
  return prepared;
}

const Kernel& choose(const MatmulProblem& p) {
  const auto& [op, kernels, free] = ladder();
  if (free) return choose_freely(op, &p);
  if (forced_kernel_accepts(op, &p)) return choose_kernel(op, &p);
  static std::atomic<bool> told{false};
  if (!told.exchange(true))
    mended([&] { choose_kernel(op, &p); }, "others compute what it does not accept", [] {});
  return choose_freely(op, &p);
}

void run(const Kernel& kernel, const MatmulProblem& p) {
  kernel.run(&p);
  const auto& kernels = ladder().kernels;
  count_kernel(std::find(kernels.begin(), kernels.end(), &kernel) - kernels.begin());
}

// Without memory for packing. Some threads may have finished their part of C, so what C held is
// lost where beta would need it.
void run_without_scratch(const MatmulProblem& p, const char* fact) {
  static std::atomic<bool> told{false};
  const auto& kernels = ladder().kernels;
  const auto slower = std::find_if(kernels.rbegin(), kernels.rend(),
                                   [](const Kernel* kernel) { return !kernel->takes_memory; });
  if (p.beta == 0 && slower != kernels.rend()) {
    if (!told.exchange(true)) say(fact, "a slower rung that needs none computes");
    return run(**slower, p);
  }
  say(fact, "the product is half done: the program must end");
  std::abort();
}

template <class T> void scale(const MatmulProblem& p) {
  for (std::int64_t j = 0; j < p.n; ++j) {
    T* const column = static_cast<T*>(p.c) + j * p.c_col;
    if (p.beta == 0) {
      std::fill(column, column + p.m, T(0));
    } else {
      for (std::int64_t i = 0; i < p.m; ++i) column[i] *= T(p.beta);
    }
  }
}

}  // namespace

void solve(const MatmulProblem& p) noexcept {
  const FloatEnvironment environment;
  if (p.alpha == 0 || p.k == 0)
    return p.dtype == DType::float32 ? scale<float>(p) : scale<double>(p);
  try {
    return run(choose(p), p);
  } catch (const std::exception& error) {
    run_without_scratch(p, error.what());
  }
}

}  // namespace tw::blas
