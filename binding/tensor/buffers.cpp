// Tensors as consumers of the buffer protocol ask for them.
#include <algorithm>
#include <vector>

#include "binding/tensor/interchange.h"
#include "binding/tensor/tensor_type.h"
#include "core/autograd/capture.h"
#include "core/base/error.h"

namespace tw::binding {

namespace {

// struct-module letters, in the order of DType; bfloat16 has none. Where a C long has 64 bits NumPy
// and extensions take int64 for one: long long is another type to them.
constexpr bool kLongIsWide = sizeof(long) == 8;
constexpr const char* kInt64 = kLongIsWide ? "l" : "q";
constexpr const char* kUint64 = kLongIsWide ? "L" : "Q";
constexpr const char* kFormats[kDTypes] = {"?",     "b", "h",     "i", kInt64, "B",  "H", "I",
                                           kUint64, "e", nullptr, "f", "d",    "Zf", "Zd"};

// What a buffer's consumer holds: its shape and strides, and the bytes in their place.
struct BufferExport {
  explicit BufferExport(const Tensor& x)
      : lent(x->storage), dims(static_cast<std::size_t>(2 * x.rank() + 1)) {}
  Lent lent;
  std::vector<Py_ssize_t> dims;
};

// Strides of rows in either order, as consumers expect them of axes of one element too.
Strides column_strides(const Shape& shape) {
  Strides strides = Strides::of_rank(shape.rank());
  std::int64_t step = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    strides[i] = step;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}
bool is_column_major(const Tensor& x) {
  const Strides columns = column_strides(x.shape());
  for (int i = 0; i < x.rank(); ++i)
    if (x.size(i) > 1 && x.strides()[i] != columns[i]) return x.count() == 0;
  return true;
}

bool asks(int flags, int for_what) { return (flags & for_what) == for_what; }

// In elements, as the consumer asks for them; raises BufferError where the tensor has others.
Strides strides_to_show(const Tensor& x, int flags) {
  const bool rows = x.contiguous(), wants_columns = asks(flags, PyBUF_F_CONTIGUOUS);
  if (rows && !wants_columns) return contiguous_strides(x.shape());
  const bool columns = is_column_major(x);
  const bool wants_rows = asks(flags, PyBUF_C_CONTIGUOUS) || !asks(flags, PyBUF_STRIDES);
  const char* missing = nullptr;
  if (wants_rows && !rows) missing = "row-major";
  if (wants_columns && !columns) missing = "column-major";
  if (asks(flags, PyBUF_ANY_CONTIGUOUS) && !rows && !columns) missing = "contiguous";
  if (missing)
    fail(ErrorKind::buffer, "the consumer asks for ", missing, " memory, but strides are ",
         x.strides(), " for shape ", x.shape(), "; copy it first");
  return columns ? column_strides(x.shape()) : x.strides();
}

// The letter of its elements, which bfloat16 has none of. Raises BufferError where memory may not
// be shown so.
const char* checked_format(const Tensor& x, int flags) {
  refuse_graph(x, "buffer");
  const char* const format = kFormats[index_of(x.dtype())];
  if (!format && (flags & PyBUF_FORMAT))
    fail(ErrorKind::buffer, "bfloat16 has no buffer format; use astype(float32), or DLPack");
  if ((flags & PyBUF_WRITABLE) && (!x->storage->writable || shares_elements(x)))
    fail(ErrorKind::buffer, "the tensor's memory is read-only");
  refuse_in_capture("another library gets at the memory");
  check_on_cpu(x, "buffer");
  return format;
}

// Fields that are not asked for are null; without axes there are bytes alone, as in NumPy.
void show(const Tensor& x, int flags, Py_buffer& view) {
  const char* const format = checked_format(x, flags);
  const Strides strides = strides_to_show(x, flags);
  const auto item = static_cast<Py_ssize_t>(x.item_bytes());
  auto* exported = new BufferExport(x);
  Py_ssize_t* const dims = exported->dims.data();
  for (int i = 0; i < x.rank(); ++i) {
    dims[i] = x.size(i);
    dims[x.rank() + i] = strides[i] * item;
  }
  view.internal = exported;
  view.buf = x.pinned_bytes();
  view.len = x.count() * item;
  view.itemsize = item;
  view.readonly = !x->storage->writable || shares_elements(x);
  view.ndim = asks(flags, PyBUF_ND) ? x.rank() : 0;
  view.format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
  view.shape = view.ndim > 0 ? dims : nullptr;
  view.strides = view.ndim > 0 && asks(flags, PyBUF_STRIDES) ? dims + x.rank() : nullptr;
  view.suboffsets = nullptr;
}

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  try {
    show(raw_tensor(self), flags, *view);
    view->obj = Py_NewRef(self);
    return 0;
  } catch (const Error& error) {
    // A block that finds no room on its way back is no refusal to show it.
    if (error.kind == ErrorKind::memory || error.kind == ErrorKind::os)
      raise_current();
    else
      PyErr_SetString(PyExc_BufferError, error.what());
  } catch (...) {
    raise_current();
  }
  view->obj = nullptr;
  return -1;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<BufferExport*>(view->internal);
}

}  // namespace tw::binding
