// The one exception type of the core. The binding maps `Kind` to the Python exception users expect.
#pragma once
#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace tw {

enum class ErrorKind { value, type, index, memory, runtime, overflow, not_implemented, buffer, os };

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind(kind), message(std::move(message)) {}
  const char* what() const noexcept override { return message.c_str(); }
  ErrorKind kind;
  std::string message;
};

// Joins its arguments as text and throws. Cold and out of line of every caller's fast path.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(kind, text.str());
}

}  // namespace tw
