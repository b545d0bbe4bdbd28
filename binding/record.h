// From a record's signature to a Python function: what it shows, and how its arguments are read.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "core/runtime/signature.h"

namespace nb = nanobind;

namespace tw::binding {

// The Python face of a record, as a function of the module or as a method of Tensor, whose first
// parameter is `self` then.
class RecordFunction {
 public:
  RecordFunction(const OpRecord& op, bool method);
  const OpRecord& op() const { return op_; }
  // What nanobind keeps of its own functions: text with places for defaults, help, defaults.
  nb::tuple native_signature() const;
  std::string documentation() const;

  enum class Outcome { done, unknown_keyword, refused };
  // Calls the op. `refused`: the arguments do not fit the parameters. Raises what reading arguments
  // and the op raise.
  Outcome call(PyObject* const* args, std::size_t count, PyObject* keywords,
               PyObject** result) const;

 private:
  static constexpr int kMaxParameters = 12, kMaxOperands = 4;
  int place_of(PyObject* keyword) const;
  Outcome bind(PyObject* const* args, std::size_t count, PyObject* keywords,
               PyObject** given) const;

  const OpRecord& op_;
  const Signature& signature_;
  const bool method_;
  bool variadic_ = false;  // takes a sequence of tensors
  std::size_t positional_;         // parameters that may be given by place
  std::vector<PyObject*> names_;   // interned, by parameter
  std::vector<Word> defaults_;     // of the words
};

}  // namespace tw::binding
