// Chunks run in the engine's floating-point environment, whatever a thread comes with.
#include "core/base/float_environment.h"

#include <atomic>
#include <cfenv>
#include <thread>

#include "core/runtime/thread_pool.h"
#include "core/tests/check.h"

namespace tw {
namespace {

void check_chunks() {
  const FloatControl before = float_control();
  std::atomic<int> wrong{0};
  parallel_chunks(64, [&](std::int64_t) {
    if (!is_engines_own(float_control())) ++wrong;
  });
  CHECK_EQ(wrong.load(), 0);
  CHECK((before & ~kFloatRecord) == (float_control() & ~kFloatRecord));
}

}  // namespace

TW_TEST(float_environment_of_chunks_is_the_engines) {
  for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::thread([mode] {
      std::fesetround(mode);
      set_num_threads(1);
      set_num_threads(4);  // new threads inherit this one's
      check_chunks();
      CHECK_EQ(std::fegetround(), mode);
    }).join();
  }
}

#if defined(__x86_64__)
// Flush-to-zero, denormals-are-zero, and a trap for division by zero.
TW_TEST(float_environment_of_vectors_is_the_engines) {
  for (const FloatControl changed : {0x9f80u, 0x1fc0u, 0x9fc0u, 0x1d80u}) {
    const FloatControl before = float_control();
    set_num_threads(4);
    set_float_control(changed);
    check_chunks();
    CHECK_EQ(float_control() & ~kFloatRecord, changed);
    set_float_control(before);
  }
}
#endif

}  // namespace tw
