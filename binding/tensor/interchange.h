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
// Raises TypeError for anything else, ValueError for ragged lists, in the name of `op`.
// Truth values whose bytes are not all 0 or 1 are copied too; ValueError where `copy_allowed` is
// false.
Tensor as_tensor(PyObject* object, const char* op = "asarray", bool copy_allowed = true);
// The same of what offers its memory; an empty one of anything else.
Tensor tensor_of_array(PyObject* object, const char* op, bool copy_allowed = true);
// Shares the object's memory through the buffer protocol, flat bytes seen as `dtype`.
Tensor from_buffer(nb::handle buffer, DType dtype, std::optional<Shape> shape,
                   std::int64_t offset_bytes);
// Shares memory through DLPack. Raises BufferError for devices or types the engine does not have.
Tensor from_dlpack(nb::handle object, nb::handle device, std::optional<bool> copy);

// What another library says of its memory, in elements of a dtype.
struct ForeignView {
  const void* data;
  std::uint64_t offset_bytes;
  Shape shape;
  Strides strides;
  DType dtype;
};
// Raises BufferError, in the name of the producer's type, for what cannot be: negative extents, and
// elements without memory or outside of what addresses reach.
void check_claims(const ForeignView& view, PyObject* producer, const char* op);

// Raises RuntimeError where the graph would not learn of what NumPy does with the memory.
void refuse_graph(const Tensor& x, const char* what);

// Raises BufferError for memory of other devices.
// Foreign memory under the engine's promise that truth values are bytes 0 or 1.
Tensor adopted(const Tensor& x, bool copy_allowed);
// Says where the memory lies that an importing tensor shows: others may show it as well.
Tensor sharing(const Tensor& x);
void check_on_cpu(const Tensor& x, const char* what);
PyObject* item_of(const Tensor& x);  // Python number from a single element; new reference
PyObject* list_of(const Tensor& x);  // nested lists; new reference

void bind_interchange(nb::module_& module);
void bind_dlpack(nb::module_& module);

}  // namespace tw::binding
