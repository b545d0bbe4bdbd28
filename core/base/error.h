// The one exception type of the core. The binding maps `Kind` to the Python exception users expect.
#pragma once
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace tw {

enum class ErrorKind { value, type, index, memory, runtime, overflow, not_implemented, buffer, os };

// What the system said about a file: frontends have types of their own for it.
struct SystemFault {
  int code;  // errno
  std::string fact, path;
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind(kind), message(std::move(message)) {}
  explicit Error(SystemFault fault)
      : kind(ErrorKind::os),
        message(fault.fact + ": '" + fault.path + "'"),
        fault(std::make_shared<const SystemFault>(std::move(fault))) {}
  const char* what() const noexcept override { return message.c_str(); }
  ErrorKind kind;
  std::string message;
  std::shared_ptr<const SystemFault> fault;  // null unless the system refused
};

// Joins its arguments as text and throws. Cold and out of line of every caller's fast path.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(kind, text.str());
}

}  // namespace tw
