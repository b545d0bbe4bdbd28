// Modes of threads side by side: each computes under its own, and blocks of them end in any order.
#include <cmath>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/autograd/backward.h"
#include "core/autograd/grad_mode.h"
#include "core/autograd/planner.h"
#include "core/cpu/isa/isa.h"
#include "core/memory/quota_pool.h"
#include "core/ops/copy/create.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/runtime/mode_changes.h"
#include "core/runtime/launch.h"
#include "core/runtime/thread_pool.h"
#include "core/tensor/access.h"
#include "core/tests/check.h"

namespace tw {

namespace {

// Stands for the frontend's lock: tensors are touched under it, kernels run without.
std::mutex frontend;
thread_local bool holds_frontend = false;
class Frontend {
 public:
  Frontend() {
    frontend.lock();
    holds_frontend = true;
  }
  ~Frontend() {
    holds_frontend = false;
    frontend.unlock();
  }
  static void* release() {
    if (!holds_frontend) return nullptr;
    holds_frontend = false;
    frontend.unlock();
    return &frontend;
  }
  static void acquire(void*) {
    frontend.lock();
    holds_frontend = true;
  }
};

template <class F> void on_threads(int count, F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

std::vector<Isa> isas() {
  std::vector<Isa> out;
  for (int i = 0; i < kIsas; ++i)
    if (kernels_of(static_cast<Isa>(i))) out.push_back(static_cast<Isa>(i));
  return out;
}

// The slowest set that this build has: arm64 builds have no scalar one.
Isa least_isa() { return isas().front(); }

constexpr const char* kRungs[] = {"naive", "tiled", "simd", "packed"};

void check_defaults() {
  CHECK(modes.grad && modes.plain && !modes.choice && !modes.device && !modes.observers);
}

// One thread's share: all that it sees is its own.
void compute_under_own_modes(int thread, int rounds) {
  const std::vector<Isa> available = isas();
  const Isa isa = available[static_cast<std::size_t>(thread) % available.size()];
  const char* const rung = kRungs[thread % 4];
  const Frontend lock;
  const Tensor a = full({128, 96}, 0.5, DType::float32), b = full({96, 128}, 2, DType::float32);
  const Tensor large = full({512, 600}, thread, DType::float32);  // the lock is given away for it
  for (int round = 0; round < rounds; ++round) {
    const auto observer = std::make_shared<Observer>(Observer::Options{});
    observe(observer);
    const int block = 0;
    enter_modes(
        &block,
        {.grad = thread % 2 == 0, .isa = find_isa(isa), .forced = {find_forced("matmul", rung)}});
    const Tensor c = matmul(a, b), s = sum(large + large, {}, false);
    CHECK_EQ(modes.grad, thread % 2 == 0);
    CHECK_EQ(forced_kernel("matmul"), rung);
    CHECK(leave_modes(&block));
    stop_observing(observer.get());
    const std::vector<Event> seen = observer->stop();
    CHECK_EQ(seen.size(), 3u);
    for (const Event& each : seen) CHECK_EQ(std::string(each.isa), name_of(isa));
    CHECK_EQ(std::string(seen[0].kernel), rung);
    Access at;
    CHECK_EQ(at.as<float>(c)[77], 96.0f);
    CHECK_EQ(*at.as<float>(s), static_cast<float>(2 * thread * 512 * 600));
    set_device("null");
    static_cast<void>(a + a);
    set_device("cpu");
    check_defaults();
  }
}

}  // namespace

TW_TEST(modes_of_four_threads_are_their_own) {
  frontend_lock = {Frontend::release, Frontend::acquire};
  set_num_threads(3);
  on_threads(4, [](int i) { compute_under_own_modes(i, 15); });
  frontend_lock = {nullptr, nullptr};
  check_defaults();
  on_threads(1, [](int) { check_defaults(); });
}

// A dry run of one thread, beside kernels of others that run without the frontend's lock.
TW_TEST(modes_dry_runs_are_a_threads_own) {
  frontend_lock = {Frontend::release, Frontend::acquire};
  on_threads(4, [](int thread) {
    const Frontend lock;
    const Tensor x = full({512, 600}, 1, DType::float32);
    if (thread % 2) {
      for (int round = 0; round < 8; ++round) {
        Access at;
        CHECK_EQ(*at.as<float>(sum(x + x, {}, false)), 2.0f * 512 * 600);
      }
      return;
    }
    x->requires_grad = true;
    for (int round = 0; round < 4; ++round) {
      x.extras().grad = Tensor();
      backward({sum(exp(x) * x, {}, false)}, {}, {.plan = true});
      Access at;
      CHECK(std::abs(at.as<float>(x.grad())[1000] - 5.436564f) < 1e-5f);
    }
  });
  frontend_lock = {nullptr, nullptr};
}

// Each reads and replaces the gradient of the shared leaf at one go.
TW_TEST(modes_passes_of_threads_add_up_in_one_leaf) {
  frontend_lock = {Frontend::release, Frontend::acquire};
  Tensor w;
  {
    const Frontend lock;
    w = full({512, 600}, 1, DType::float32);
    w->requires_grad = true;
  }
  on_threads(4, [&w](int thread) {
    for (int round = 0; round < 5; ++round) {
      const Frontend lock;
      backward({sum(w * static_cast<double>(thread + 1), {}, false)}, {}, {});
    }
  });
  frontend_lock = {nullptr, nullptr};
  Access at;
  const float* const g = at.as<float>(w.grad());
  bool same = true;
  for (std::int64_t i = 0; i < w.count(); ++i) same &= g[i] == 50.0f;
  CHECK(same);
}

TW_TEST(modes_workers_compute_under_the_callers) {
  set_num_threads(4);
  const std::vector<Isa> available = isas();
  on_threads(4, [&](int thread) {
    const Isa isa = available[static_cast<std::size_t>(thread) % available.size()];
    set_isa(isa);
    for (int round = 0; round < 50; ++round)
      parallel_chunks(64, [&](std::int64_t) { CHECK(active_isa() == isa); });
  });
}

TW_TEST(modes_blocks_end_in_any_order) {
  const int a = 0, b = 0, c = 0;
  enter_modes(&a, {.grad = false, .forced = {find_forced("matmul", "tiled")}});
  enter_modes(&b, {.grad = true, .forced = {find_forced("matmul", "simd")}});
  enter_modes(&c, {.isa = find_isa(least_isa())});
  CHECK(leave_modes(&a));
  CHECK(modes.grad);
  CHECK_EQ(forced_kernel("matmul"), "simd");
  CHECK(active_isa() == least_isa());
  CHECK(leave_modes(&b));
  CHECK_EQ(forced_kernel("matmul"), "");
  CHECK(active_isa() == least_isa());
  CHECK(!leave_modes(&b));
  CHECK(leave_modes(&c));
  check_defaults();
  // Entered again before it is left; guards of the engine in between keep what they found.
  enter_modes(&a, {.grad = false});
  {
    const GradModeGuard on(true);
    enter_modes(&a, {.grad = false});
    CHECK(!modes.grad);
    CHECK(leave_modes(&a));
    CHECK(modes.grad);
  }
  CHECK(!modes.grad);
  on_threads(1, [&](int) { CHECK(!leave_modes(&a)); });
  CHECK(!modes.grad);
  CHECK(leave_modes(&a));
  check_defaults();
}

TW_TEST(modes_observers_end_in_any_order_and_on_any_thread) {
  const auto first = std::make_shared<Observer>(Observer::Options{}),
             second = std::make_shared<Observer>(Observer::Options{});
  const auto own = std::make_shared<Observer>(Observer::Options{.alone = true});
  const Tensor x = full({8}, 1, DType::float32);
  const auto run = [&x] { static_cast<void>(x + x); };
  observe(first);
  run();
  observe(second);
  run();
  stop_observing(first.get());
  CHECK_EQ(first->stop().size(), 2u);
  observe(own);
  run();
  stop_observing(own.get());
  CHECK_EQ(own->stop().size(), 1u);
  run();
  on_threads(1, [&](int) {
    stop_observing(second.get());
    CHECK_EQ(second->stop().size(), 2u);
  });
  run();
  check_defaults();
}

// Observers get events from tasks on several threads while one of them stops listening.
TW_TEST(modes_are_inherited) {
  const auto observer = std::make_shared<Observer>(Observer::Options{});
  const int block = 0;
  observe(observer);
  enter_modes(&block, {.grad = false, .isa = find_isa(least_isa())});
  set_device("null");
  const auto inherited = inherited_modes();
  on_threads(4, [&](int thread) {
    for (int round = 0; round < 50; ++round) {
      const ModesGuard guard(inherited.get());
      CHECK(!modes.grad && active_isa() == least_isa() && active_device().name == null_device.name);
      run_prepared({1, 1}, [] { CHECK(false); }, [](Event& seen) { seen.op = "test"; });
      force_kernel("matmul", "naive");
      enter_modes(&guard, {.grad = true});
      if (thread == 0 && round == 40) static_cast<void>(observer->stop());
    }
    check_defaults();
  });
  set_device("cpu");
  leave_modes(&block);
  stop_observing(observer.get());
  check_defaults();
  CHECK(!inherited_modes());
}

TW_TEST(modes_choices_are_remembered_for_each_instruction_set) {
  const Choice none;
  CHECK(!interned(none));
  Choice least;
  least.isa = find_isa(least_isa());
  const Choice* const first = interned(least);
  on_threads(4, [&](int) {
    set_isa(least_isa());
    CHECK_EQ(modes.choice, first);
    force_kernel("matmul", "naive");
    CHECK(modes.choice != first);
    force_kernel("matmul", "");
    CHECK_EQ(modes.choice, first);
  });
}

}  // namespace tw
