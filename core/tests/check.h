// A test harness of one page: TW_TEST registers, CHECK records a failure and goes on.
#pragma once
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace tw::test {

struct Test {
  const char* name;
  void (*run)();
};
std::vector<Test>& tests();
// Counts a failure of the running test and prints it; safe on any thread.
void report_failure(const char* file, int line, const std::string& text);

struct Registration {
  Registration(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

template <class A, class B>
void check_equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (a == b) return;
  std::ostringstream out;
  out << text << ": " << a << " is not " << b;
  report_failure(file, line, out.str());
}

template <class F> void check_throws(ErrorKind kind, F&& f, const char* expected, const char* text,
                                     const char* file, int line) {
  try {
    f();
  } catch (const Error& error) {
    if (error.kind != kind) report_failure(file, line, std::string(text) + ": kind of error");
    if (error.message.find(expected) == std::string::npos)
      report_failure(file, line,
                     std::string(text) + ": no '" + expected + "' in: " + error.message);
    return;
  }
  report_failure(file, line, std::string(text) + ": no error");
}

}  // namespace tw::test

#define TW_TEST(name)                                                          \
  static void test_##name();                                                   \
  static const tw::test::Registration registration_##name(#name, test_##name); \
  static void test_##name()

#define CHECK(condition) \
  ((condition) ? void() : tw::test::report_failure(__FILE__, __LINE__, #condition))
#define CHECK_EQ(a, b) tw::test::check_equal(a, b, #a " == " #b, __FILE__, __LINE__)
// The expression raises tw::Error of this kind with `part` in its text.
#define CHECK_THROWS(kind, expression, part) \
  tw::test::check_throws(                    \
      kind, [&] { static_cast<void>(expression); }, part, #expression, __FILE__, __LINE__)
