// Python's garbage collector and the functions that tensors hold: hooks, checkpointed functions.
#pragma once
#include "binding/tensor/tensor_type.h"
#include "core/autograd/checkpoint.h"
#include "core/autograd/user_function.h"

namespace tw::binding {

// A Python function as a hook: None keeps the value.
struct PythonHook {
  nb::object function;
  Tensor operator()(const Tensor& x) const;
};

// The function of a checkpoint frame.
struct PythonRerun {
  nb::object function;
  void operator()(const std::vector<Tensor>& inputs) const;
};

// The gradient of a function that Python defines: what it needs is in its context.
struct PythonGradient {
  nb::object context;
  CustomGradients operator()(const std::vector<Tensor>& saved, std::vector<Tensor> g) const;
};

// Lets the collector look at an object from now on: called for every tensor that may be part of a
// cycle, which none is while `held_functions` is 0.
void watch(TensorObject* object);
void unwatch(TensorObject* object);
// The same for the tensors that a function's closure holds.
void watch_closure(PyObject* function);
// The same for those among the attributes of a context.
void watch_attributes(nb::handle context);
// Whether a collection runs, of any generation.
bool is_collecting();
int traverse_tensor(PyObject* self, visitproc visit, void* arg);

}  // namespace tw::binding
