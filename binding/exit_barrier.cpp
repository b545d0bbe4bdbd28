// What becomes of a thread that is inside the engine when the interpreter ends.
//
// Before 3.14, CPython ends such a daemon thread by pthread_exit when it next wants the
// interpreter's lock. That unwinds its stack like an exception which nobody may catch: through
// destructors, where it means std::terminate, and through frames that turn exceptions into
// Python's, where it means abort; meanwhile the main thread takes the interpreter apart. So the
// unwinding is stopped below the first frame of ours, and the thread sleeps until the process has
// ended, as it does from 3.14 on. What it was asked to compute is given up.
//
// The linker sends every call of a function in the table here first (--wrap), nanobind's as well.
#include <Python.h>

#ifdef __linux__

#include <unistd.h>

namespace {

[[noreturn, gnu::cold]] void sleep_until_the_process_ends() {
  for (;;) pause();
}

}  // namespace

#define TW_VECTORCALL (PyObject * a, PyObject* const* b, size_t c, PyObject* d)
// Nothing but that unwinding comes out of a C function.
#define TW_BARRIER(result, name, parameters, arguments)                      \
  extern "C" result __real_##name parameters;                                \
  extern "C" [[gnu::visibility("hidden")]] result __wrap_##name parameters { \
    try {                                                                    \
      return __real_##name arguments;                                        \
    } catch (...) {                                                          \
      sleep_until_the_process_ends();                                        \
    }                                                                        \
  }
#include "binding/exit_barrier.inc"
#undef TW_BARRIER
#undef TW_VECTORCALL

#endif
