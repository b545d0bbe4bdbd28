// Tensors of nested lists: numbers, with arrays in the places of lists.
#pragma once
#include <Python.h>

#include <optional>

#include "core/tensor/tensor.h"

namespace tw::binding {

// A row-major tensor on the CPU of what the lists hold, an axis for each level of lists and of the
// arrays in them. Without a dtype the numbers of tensors, arrays and NumPy keep theirs, Python's
// have the natural one, and several are promoted. Raises in the name of `op`: TypeError for what is
// neither, ValueError for lists that do not make a tensor and for one that changes meanwhile.
Tensor tensor_of_list(PyObject* object, const char* op, std::optional<DType> dtype = {});

}  // namespace tw::binding
