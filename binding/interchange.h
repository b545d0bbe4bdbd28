// Exchange of memory with the rest of Python: buffer protocol, DLPack, nested lists, numbers.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>

#include "core/tensor/tensor.h"

namespace nb = nanobind;

namespace tw::binding {

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void release_buffer(PyObject* self, Py_buffer* view) noexcept;

// Whether `object` offers its memory: buffer protocol (bytes excepted) or DLPack.
bool is_array(PyObject* object);
// Shares memory where the object offers it; nested lists of numbers and single numbers are copied.
// Raises TypeError for anything else, ValueError for ragged lists.
Tensor as_tensor(PyObject* object);
// Shares the object's memory through the buffer protocol, flat bytes seen as `dtype`.
Tensor from_buffer(nb::handle buffer, DType dtype, std::optional<Shape> shape,
                   std::int64_t offset_bytes);
// Shares memory through DLPack. Raises BufferError for devices or types the engine does not have.
Tensor from_dlpack(nb::handle object, nb::handle device, nb::handle copy);

PyObject* item_of(const Tensor& x);  // Python number from a single element; new reference
PyObject* list_of(const Tensor& x);  // nested lists; new reference

void bind_interchange(nb::module_& module);

}  // namespace tw::binding
