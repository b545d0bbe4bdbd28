// Reading nested lists once: shape, type and values.
#include "binding/tensor/nested_lists.h"

#include <algorithm>
#include <string>
#include <vector>

#include "binding/tensor/interchange.h"
#include "binding/tensor/tensor_type.h"
#include "core/autograd/capture.h"
#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/read.h"
#include "core/tensor/access.h"

namespace tw::binding {

namespace {

// One number, or what stands for a list.
struct Part {
  Scalar number;
  Tensor array;
};

// Elements may run Python code that changes the very lists: each object is held while it is read,
// and extents are asked for again.
class NestedLists {
 public:
  explicit NestedLists(const char* op) : op_(op) {}
  void read(const nb::object& object, int depth = 0);
  DType natural_dtype() const;
  Tensor tensor(DType dtype) const;

 private:
  void read_items(const nb::object& items, int depth);
  void read_part(PyObject* object, int depth);
  bool read_number(PyObject* object, Scalar& number);
  Tensor read_array(PyObject* object) const;
  void meet_extent(std::int64_t extent, int axis);
  void end_path(int depth);
  void note_dtype(DType dtype);
  void write_array(const Tensor& x, const Tensor& y, std::int64_t offset_bytes) const;

  const char* const op_;
  Shape shape_;
  bool shape_known_ = false;     // from the first path down to a number on
  std::vector<Part> parts_;      // in order
  std::optional<DType> strong_;  // of what has a type
  Scalar weak_{false};           // the highest kind and reach of Python's numbers
  bool any_weak_ = false;
  bool any_negative_ = false;  // of Python's whole numbers
};

// As NumPy has it where the table of promotion has nothing.
DType common_dtype(DType a, DType b) {
  const bool apart =
      (a == DType::uint64 && is_signed_int(b)) || (b == DType::uint64 && is_signed_int(a));
  return apart ? DType::float64 : promote(a, b);
}

void NestedLists::read(const nb::object& object, int depth) {
  PyObject* const given = object.ptr();
  if (PyList_Check(given) || PyTuple_Check(given)) return read_items(object, depth);
  if (PyRange_Check(given)) return read_items(nb::list(object), depth);
  read_part(given, depth);
}

void NestedLists::read_items(const nb::object& items, int depth) {
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
  meet_extent(count, depth);
  if (count == 0) end_path(depth + 1);
  if (!shape_known_) parts_.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (PySequence_Fast_GET_SIZE(items.ptr()) != count)
      fail(ErrorKind::value, op_, ": a list of ", count, " elements was changed to one of ",
           PySequence_Fast_GET_SIZE(items.ptr()), " by what reading its elements runs");
    read(nb::borrow(PySequence_Fast_GET_ITEM(items.ptr(), i)), depth + 1);
  }
}

void NestedLists::read_part(PyObject* object, int depth) {
  Part part;
  if (!read_number(object, part.number)) {
    const Tensor x = read_array(object);
    note_dtype(x.dtype());
    for (int axis = 0; axis < x.rank(); ++axis) meet_extent(x.size(axis), depth + axis);
    depth += x.rank();
    if (x.rank())
      part.array = x;
    else
      read_scalar(nb::steal(item_of(x)).ptr(), part.number);
  }
  end_path(depth);
  parts_.push_back(std::move(part));
}

// NumPy's numbers of 64 bits a part are Python's as well, with a buffer.
bool NestedLists::read_number(PyObject* object, Scalar& number) {
  if (!read_scalar(object, number)) return false;
  const bool exact = PyFloat_CheckExact(object) || PyLong_Check(object);
  if (!exact && PyObject_CheckBuffer(object)) {
    note_dtype(PyFloat_Check(object) ? DType::float64 : DType::complex128);
    return true;
  }
  any_weak_ = true;
  weak_.kind = std::max(weak_.kind, number.kind);
  weak_.reach = std::max(weak_.reach, number.reach);
  any_negative_ |= number.reach == Scalar::Reach::int64 && number.i < 0;
  return true;
}

Tensor NestedLists::read_array(PyObject* object) const {
  const Tensor x = is_tensor(object) ? raw_tensor(object) : tensor_of_array(object, op_);
  if (!x)
    fail(ErrorKind::type, op_, ": cannot make a tensor of ", Py_TYPE(object)->tp_name,
         PyBytes_Check(object) || PyByteArray_Check(object) ? "; use frombuffer(buffer, dtype)"
                                                            : "");
  return x;
}

void NestedLists::meet_extent(std::int64_t extent, int axis) {
  if (!shape_known_)
    shape_.push_back(extent);
  else if (axis >= shape_.rank())
    fail(ErrorKind::value, op_,
         ": nested lists of different depths do not make a tensor: ", axis + 1, " or more, and ",
         shape_.rank());
  else if (shape_[axis] != extent)
    fail(ErrorKind::value, op_,
         ": nested lists of different lengths do not make a tensor: ", shape_[axis], " and ",
         extent, " along axis ", axis);
}

void NestedLists::end_path(int depth) {
  shape_known_ = true;
  if (depth != shape_.rank())
    fail(ErrorKind::value, op_, ": nested lists of different depths do not make a tensor: ", depth,
         " and ", shape_.rank());
}

void NestedLists::note_dtype(DType dtype) {
  strong_ = strong_ ? common_dtype(*strong_, dtype) : dtype;
}

DType NestedLists::natural_dtype() const {
  if (!strong_) return parts_.empty() ? default_dtype() : weak_.natural_dtype();
  if (!any_weak_) return *strong_;
  const bool whole = weak_.kind <= Scalar::Kind::integer;
  const bool takes_all = is_floating(*strong_) || is_complex(*strong_) ||
                         (*strong_ == DType::uint64 && !any_negative_);
  return whole && takes_all ? *strong_ : common_dtype(*strong_, weak_.natural_dtype());
}

Tensor NestedLists::tensor(DType dtype) const {
  const Tensor y = Tensor::empty(shape_, dtype);
  Access at;
  char* const first = at(y);
  std::int64_t done = 0;
  for (const Part& part : parts_) {
    if (part.array) {
      write_array(part.array, y, done);
    } else {
      part.number.store(dtype, first + done, op_);
    }
    done += static_cast<std::int64_t>(y.item_bytes()) * (part.array ? part.array.count() : 1);
  }
  return y;
}

void NestedLists::write_array(const Tensor& x, const Tensor& y, std::int64_t offset_bytes) const {
  const HostValues values(astype(x.detached(), y.dtype()),
                          (std::string(op_) + " reads values").c_str());
  copy_into(
      Tensor::over(y->storage, offset_bytes, x.shape(), contiguous_strides(x.shape()), y.dtype()),
      values.tensor());
}

}  // namespace

Tensor tensor_of_list(PyObject* object, const char* op, std::optional<DType> dtype) {
  NestedLists lists(op);
  lists.read(nb::borrow(object));
  const Tensor y = lists.tensor(dtype ? *dtype : lists.natural_dtype());
  if (modes.capture) modes.capture->note_values(y);
  return y;
}

}  // namespace tw::binding
