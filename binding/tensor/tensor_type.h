// The Python type `Tensor`: a pooled object with one pointer to the core's header. Its number slots
// go straight to the ops; everything that is not on a hot path is attached through nanobind.
#pragma once
#include <nanobind/nanobind.h>

#include "core/base/error.h"
#include "core/ops/move/index.h"
#include "core/tensor/operand.h"

namespace nb = nanobind;

namespace tw::binding {

struct TensorObject {
  PyObject_HEAD TensorHeader* header;  // owns one reference, unless `kept`
  PyObject* weak_references;
  std::size_t watched;  // the garbage collector looks at it; see cycles.h
  // Of a leaf that the program has dropped and the graph has not: the header holds the object, with
  // what refers weakly to it and what was attached to it.
  bool kept;
};

extern PyTypeObject* tensor_type;
void create_tensor_type(nb::module_& module);

inline bool is_tensor(PyObject* object) { return PyObject_TypeCheck(object, tensor_type); }
// Borrowed handle of a Tensor object; the object must be one. Its forward hooks are not applied.
Tensor raw_tensor(PyObject* object);
// The same where its place in the graph is asked for: that of a view takes in what happened to its
// base since.
Tensor current_tensor(PyObject* object);
// Borrowed handle with its forward hooks applied: what ops use.
Tensor unwrap(PyObject* object);
// New reference; the same object for the same header. Empty tensors become None.
PyObject* wrap(const Tensor& tensor);

// Whether the program has an object of the header, beyond what the header itself keeps.
bool is_held_by_program(const TensorHeader& header);
// Lets an object that its header kept hold the header again; the caller holds the object.
void take_back(TensorObject* object);
// After a pass from `roots` whose gradients are part of a graph.
void end_recorded_pass(const std::vector<Tensor>& roots);

// Reads a tensor or anything convertible (numbers stay weak; arrays with the buffer protocol or
// DLPack become tensors). False, without an error set, where `object` is none of these.
bool read_operand(PyObject* object, Operand& out);
// Python's numbers alone.
bool read_scalar(PyObject* object, Scalar& out);
// And what a tensor or an array of no dimensions holds, as NumPy's own numbers are. A tensor that
// requires grad is none: it would lose that silently.
bool read_number(PyObject* object, Scalar& out);
std::vector<IndexItem> read_index(PyObject* key);

// Turns the C++ exception in flight into a Python one; returns null for use in `return`.
PyObject* raise_current() noexcept;
void set_error(const Error& error);
// Whether an exception type is one that set_error raises.
bool is_own_error(PyObject* type);
void create_error_types(nb::module_& module);

}  // namespace tw::binding
