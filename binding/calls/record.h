// From a record's signature to a Python function: what it shows, and how its arguments are read.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "core/base/modes.h"
#include "core/runtime/signature.h"

namespace nb = nanobind;

namespace tw::binding {

// The Python face of a record, as a function of the module or as a method of Tensor, whose first
// parameter is `self` then.
class RecordFunction {
 public:
  // `in_place`: the form `name_`, a method that returns the tensor that it changes.
  RecordFunction(const OpRecord& op, bool method, bool in_place = false);
  const OpRecord& op() const { return op_; }
  bool in_place() const { return in_place_; }
  // What nanobind keeps of its own functions: text with places for defaults, help, defaults.
  nb::tuple native_signature() const;
  std::string documentation() const;

  enum class Outcome { done, unknown_keyword, refused };
  // Calls the op. `refused`: the arguments do not fit the parameters. Raises what reading arguments
  // and the op raise.
  Outcome call(PyObject* const* args, std::size_t count, PyObject* keywords,
               PyObject** result) const;

 private:
  // Arguments by parameter, the last ones missing; null: left out.
  struct Given {
    PyObject* const* at;
    std::size_t count;
  };
  static constexpr int kMaxParameters = 16, kMaxOperands = 8;
  // What reading needs of a parameter, in a few bytes.
  struct Slot {
    ParameterKind kind;
    std::uint8_t at;  // among operands, or among attributes
    bool is_number;   // an operand whose default is a number
    bool is_list;     // extents or axes
  };
  template <class Shown> std::string text(Shown shown) const;
  std::string help() const;
  int place_of(PyObject* keyword) const;
  // What frontends see to.
  struct Wishes {
    bool requires_grad = false, moves = false, in_place = false;
    const Device* device = nullptr;  // where it `moves`
  };
  // Reads all parameters but sequences of tensors.
  Outcome read(const Given& given, AttributeList& attributes, Operand* in, Wishes& wishes) const;
  PyObject* run(const Operand* in, int inputs, Attributes attributes, const Wishes& wishes) const;
  template <int operands>
  Outcome call_few(const Given& given, AttributeList& attributes, PyObject** result) const;
  Outcome call_unary(PyObject* x, PyObject** result) const;
  Outcome call_in_place(const Given& given, AttributeList& attributes, PyObject** result) const;
  PyObject* change(PyObject* target, Operand* in, Attributes attributes) const;
  Outcome call_many(const Given& given, AttributeList& attributes, PyObject** result) const;
  Outcome bind(PyObject* const* args, std::size_t count, PyObject* keywords,
               PyObject** given) const;

  const OpRecord& op_;
  const Signature& signature_;
  const bool method_, in_place_;
  bool is_unary_;             // one operand and one tensor as the result
  bool makes_shape_;          // one tensor, of a shape that comes first
  const bool returns_tuple_;  // of several results, or of the rows of one
  const bool returns_rows_;
  const bool returns_pair_;
  std::size_t positional_;           // parameters that may be given by place
  std::size_t required_ = 0;         // the first ones, which have no default
  bool numbers_default_ = false;     // an operand has a number as its default
  std::vector<Slot> slots_;          // by parameter, as
  std::vector<PyObject*> names_;     // interned
  std::vector<Attribute> defaults_;  // of the attributes
};

bool takes_tensor_first(const OpRecord& op);
// Whether Tensor has a record as a method: those of a tensor first, but for names that PyTorch's
// tensors give another meaning.
bool is_method(const OpRecord& op);

}  // namespace tw::binding
