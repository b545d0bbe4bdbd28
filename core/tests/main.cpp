// Runs the core's tests: all, or those whose name contains one of the arguments. An argument -PART
// leaves out those whose name contains PART.
#include <atomic>
#include <cstdio>
#include <cstring>

#include "core/base/modes.h"
#include "core/cpu/isa/families.h"
#include "core/tests/check.h"

namespace tw::test {

namespace {
std::atomic<int> failures{0};
}

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

void report_failure(const char* file, int line, const std::string& text) {
  ++failures;
  std::printf("%s:%d: %s\n", file, line, text.c_str());
}

// Whether the test passed.
static bool run(const Test& test) {
  failures = 0;
  register_cpu_kernels();
  const Choice* const before = modes.choice;
  try {
    test.run();
  } catch (const std::exception& error) {
    report_failure(test.name, 0, std::string("unexpected error: ") + error.what());
  }
  modes.choice = before;  // kernels and instruction set that it chose end with it
  std::printf("%s %s\n", failures ? "FAILED" : "passed", test.name);
  std::fflush(stdout);
  return !failures;
}

static bool is_wanted(const char* name, char** first, char** last) {
  bool named = false, any = false;
  for (; first != last; ++first) {
    const bool leaves_out = **first == '-';
    const bool found = std::strstr(name, *first + leaves_out);
    if (leaves_out && found) return false;
    any |= !leaves_out;
    named |= !leaves_out && found;
  }
  return named || !any;
}

}  // namespace tw::test

int main(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (const tw::test::Test& test : tw::test::tests()) {
    if (!tw::test::is_wanted(test.name, argv + 1, argv + argc)) continue;
    ++(tw::test::run(test) ? passed : failed);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}
