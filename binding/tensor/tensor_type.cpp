// The type object, its number and sequence slots, and conversions between Python objects and
// operands.
#include "binding/tensor/tensor_type.h"

#include <structmember.h>

#include <cstring>

#include "binding/tensor/casters.h"
#include "binding/tensor/cycles.h"
#include "binding/tensor/interchange.h"
#include "binding/tensor/text.h"
#include "core/autograd/backward.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/runtime/launch.h"

namespace tw::binding {

PyTypeObject* tensor_type = nullptr;

namespace {

IndexItem read_index_item(PyObject* object);

// Objects of the exact type are recycled: creating one is a pointer swap. They are unknown to the
// garbage collector until they are watched.
constexpr int kKept = 256;
TensorObject* kept[kKept];
int kept_count = 0;

TensorObject* allocate_object() {
  if (kept_count > 0) {
    TensorObject* object = kept[--kept_count];
    PyObject_Init(reinterpret_cast<PyObject*>(object), tensor_type);
    return object;
  }
  TensorObject* object = PyObject_GC_New(TensorObject, tensor_type);
  if (object) {
    object->watched = 0;
    object->kept = false;
  }
  return object;
}

TensorObject* as_object(PyObject* object) { return reinterpret_cast<TensorObject*>(object); }

void drop_header(TensorObject* object) {
  TensorHeader* header = std::exchange(object->header, nullptr);
  if (!header) return;
  if (header->wrapper == object) {
    header->wrapper = nullptr;
    if (header->extras) [[unlikely]]
      drop_recorded_grad(*header);
  }
  Ref<TensorHeader>::adopt(header);
}

// Whether more than this object holds a leaf's header: the graph. A recorded grad, which leads back
// to the leaf, does not count and ends.
bool is_needed(TensorObject* object) {
  TensorHeader* const header = object->header;
  if (!header || header->references == 1 || header->grad_fn || !header->requires_grad) return false;
  if (header->extras) drop_recorded_grad(*header);
  return header->references > 1 && header->wrapper == object;
}

// Leaves an object that has one reference to its header.
void leave_to_header(TensorObject* object) {
  unwatch(object);
  object->kept = true;
  Ref<TensorHeader>::adopt(object->header);
}

// Of subclasses, whose objects CPython takes apart itself: it asks here first. What a collection
// has found to be garbage is not kept, as the graph may be part of that.
void finalize(PyObject* self) {
  TensorObject* const object = as_object(self);
  if (Py_TYPE(self) == tensor_type || is_collecting() || !is_needed(object)) return;
  leave_to_header(object);
  Py_INCREF(self);
}

[[gnu::hot]] void drop_object(PyObject* self) {
  TensorObject* object = as_object(self);
  if (object->watched || Py_TYPE(self) != tensor_type) [[unlikely]] {
    PyObject_GC_UnTrack(self);
    unwatch(object);
  }
  if (object->weak_references) PyObject_ClearWeakRefs(self);
  drop_header(object);
  PyTypeObject* type = Py_TYPE(self);
  if (type == tensor_type && kept_count < kKept) {
    kept[kept_count++] = object;
  } else {
    type->tp_free(self);
  }
  Py_DECREF(type);
}

[[gnu::noinline, gnu::cold]] void drop_or_leave(PyObject* self) {
  TensorObject* const object = as_object(self);
  if (!is_needed(object)) return drop_object(self);
  if (object->watched) PyObject_GC_UnTrack(self);
  Py_SET_REFCNT(self, 1);
  leave_to_header(object);
}

[[gnu::hot]] void deallocate(PyObject* self) {
  const TensorHeader* const header = as_object(self)->header;
  // Of results no graph holds, and of a leaf that it holds: there is more to ask.
  if (header && header->requires_grad && header->references != 1 && Py_TYPE(self) == tensor_type)
      [[unlikely]]
    return drop_or_leave(self);
  drop_object(self);
}

// Tensor(x): another object over the header of x; what Python subclasses such as Parameter build
// on.
PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  try {
    // Keywords are for the __init__ of a subclass.
    const bool named = type == tensor_type && keywords && PyDict_Size(keywords) > 0;
    if (PyTuple_GET_SIZE(args) != 1 || named)
      fail(ErrorKind::type, "Tensor: takes 1 argument (x), got ",
           PyTuple_GET_SIZE(args) + (named ? PyDict_Size(keywords) : 0),
           "; dtype and requires_grad are arguments of tilewright.tensor");
    PyObject* const source = PyTuple_GET_ITEM(args, 0);
    Tensor x = is_tensor(source) ? raw_tensor(source).detached() : as_tensor(source, "Tensor");
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    if (type == tensor_type) PyObject_GC_UnTrack(self);
    x->wrapper = self;
    as_object(self)->header = Ref<TensorHeader>(x.get()).leak();
    return self;
  } catch (...) {
    return raise_current();
  }
}

bool read_beside(PyObject* object, Operand& out);

// f(operands) of what an operator stands between, wrapped.
template <class F> PyObject* between(PyObject* a, PyObject* b, F f) {
  try {
    if (is_tensor(a) && is_tensor(b)) {
      const Operand operands[] = {unwrap(a), unwrap(b)};
      return wrap(f(operands));
    }
    Operand operands[] = {0, 0};
    if (!read_beside(a, operands[0]) || !read_beside(b, operands[1])) Py_RETURN_NOTIMPLEMENTED;
    return wrap(f(operands));
  } catch (...) {
    return raise_current();
  }
}

template <PointwiseOp op> [[gnu::hot]] PyObject* unary_slot(PyObject* self) {
  try {
    const Operand x = unwrap(self);
    return wrap(pointwise(op, &x));
  } catch (...) {
    return raise_current();
  }
}

template <PointwiseOp op> [[gnu::hot]] PyObject* binary_slot(PyObject* a, PyObject* b) {
  return between(a, b, [](const Operand* operands) { return pointwise(op, operands); });
}

PyObject* divmod_slot(PyObject* a, PyObject* b) {
  try {
    Operand operands[] = {0, 0};
    if (!read_beside(a, operands[0]) || !read_beside(b, operands[1])) Py_RETURN_NOTIMPLEMENTED;
    const nb::object quotient = nb::steal(wrap(pointwise(PointwiseOp::floor_divide, operands)));
    const nb::object rest = nb::steal(wrap(pointwise(PointwiseOp::remainder, operands)));
    return PyTuple_Pack(2, quotient.ptr(), rest.ptr());
  } catch (...) {
    return raise_current();
  }
}

template <PointwiseOp op> PyObject* power_slot(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow: tensors take no modulus; use (a ** b) % modulus");
    return nullptr;
  }
  return binary_slot<op>(a, b);
}

// self = change(self, other), in self's memory. The core lets the object stand for the tensor's new
// place in the graph, where it gets one.
template <class Change> PyObject* change_slot(PyObject* self, PyObject* other, Change change) {
  try {
    Operand operands[] = {raw_tensor(self), 0};
    if (!read_beside(other, operands[1])) Py_RETURN_NOTIMPLEMENTED;
    change(operands);
    return Py_NewRef(self);
  } catch (...) {
    return raise_current();
  }
}

template <PointwiseOp op> PyObject* in_place_slot(PyObject* self, PyObject* other) {
  return change_slot(self, other, [](Operand* operands) { pointwise_in_place(op, operands); });
}

template <PointwiseOp op>
PyObject* in_place_power_slot(PyObject* self, PyObject* other, PyObject*) {
  return in_place_slot<op>(self, other);
}

// & | ^ are logical on bool and bitwise on integers.
PointwiseOp logical_or_bitwise(PointwiseOp logical, PointwiseOp bitwise, const Operand* operands) {
  const auto is_truth = [](const Operand& x) {
    return x.is_tensor() ? is_bool(x.tensor.dtype()) : x.scalar.kind == Scalar::Kind::boolean;
  };
  return is_truth(operands[0]) && is_truth(operands[1]) ? logical : bitwise;
}

template <PointwiseOp logical, PointwiseOp bitwise> PyObject* bits_slot(PyObject* a, PyObject* b) {
  return between(a, b, [](const Operand* operands) {
    return pointwise(logical_or_bitwise(logical, bitwise, operands), operands);
  });
}

template <PointwiseOp logical, PointwiseOp bitwise>
PyObject* in_place_bits_slot(PyObject* self, PyObject* other) {
  return change_slot(self, other, [](Operand* operands) {
    pointwise_in_place(logical_or_bitwise(logical, bitwise, operands), operands);
  });
}

PyObject* invert_slot(PyObject* self) {
  try {
    return wrap(apply(kBitwiseInvert, {unwrap(self)}));
  } catch (...) {
    return raise_current();
  }
}

[[gnu::hot]] PyObject* matmul_slot(PyObject* a, PyObject* b) {
  try {
    if (is_tensor(a) && is_tensor(b)) {
      const Tensor x = unwrap(a), y = unwrap(b);
      return wrap(matmul(x, y));
    }
    Operand x = 0, y = 0;
    if (!read_beside(a, x) || !read_beside(b, y) || !x.is_tensor() || !y.is_tensor())
      Py_RETURN_NOTIMPLEMENTED;
    return wrap(matmul(x.tensor, y.tensor));
  } catch (...) {
    return raise_current();
  }
}

PyObject* in_place_matmul_slot(PyObject* self, PyObject* other) {
  try {
    Tensor x = raw_tensor(self);
    Operand operand = 0;
    if (!read_beside(other, operand) || !operand.is_tensor()) Py_RETURN_NOTIMPLEMENTED;
    matmul_in_place(x, operand.tensor);
    return Py_NewRef(self);
  } catch (...) {
    return raise_current();
  }
}

[[gnu::hot]] PyObject* compare_slot(PyObject* a, PyObject* b, int comparison) {
  constexpr PointwiseOp kOps[] = {PointwiseOp::less,    PointwiseOp::less_equal,
                                  PointwiseOp::equal,   PointwiseOp::not_equal,
                                  PointwiseOp::greater, PointwiseOp::greater_equal};
  return between(a, b,
                 [&](const Operand* operands) { return pointwise(kOps[comparison], operands); });
}

const Tensor& check_single(const Tensor& x, const char* what) {
  if (x.count() != 1)
    fail(
        is_bool(x.dtype()) || std::string_view(what) == "bool" ? ErrorKind::value : ErrorKind::type,
        what, ": a tensor of shape ", x.shape(), " is not a single number",
        std::string_view(what) == "bool" ? "; use any() or all()" : "");
  return x;
}

int truth_slot(PyObject* self) {
  try {
    const Tensor x = check_single(raw_tensor(self), "bool");
    return PyObject_IsTrue(nb::steal(item_of(x)).ptr());
  } catch (...) {
    raise_current();
    return -1;
  }
}

template <PyObject* (*convert)(PyObject*)> PyObject* number_slot(PyObject* self) {
  try {
    const nb::object item = nb::steal(item_of(check_single(raw_tensor(self), "number")));
    return convert(item.ptr());
  } catch (...) {
    return raise_current();
  }
}

PyObject* index_slot(PyObject* self) {
  try {
    const Tensor x = raw_tensor(self);
    if (x.count() != 1 || !is_integer(x.dtype()))
      fail(ErrorKind::type, "only a single integer can be used as an index, got ", describe(x));
    return item_of(x);
  } catch (...) {
    return raise_current();
  }
}

Py_ssize_t length_slot(PyObject* self) {
  const TensorHeader* header = as_object(self)->header;
  if (header->shape.rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return header->shape[0];
}

[[gnu::hot]] PyObject* subscript_slot(PyObject* self, PyObject* key) {
  try {
    if (!PyTuple_Check(key)) return wrap(index(unwrap(self), read_index_item(key)));
    return wrap(index(unwrap(self), read_index(key)));
  } catch (...) {
    return raise_current();
  }
}

int assign_subscript_slot(PyObject* self, PyObject* key, PyObject* value) {
  try {
    if (!value) fail(ErrorKind::type, "elements of a tensor cannot be deleted");
    Operand operand = 0;
    if (!read_operand(value, operand)) operand = as_tensor(value, "index assignment");
    Tensor x = raw_tensor(self);
    index_assign(x, read_index(key), operand);
    return 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}

PyObject* iterate_slot(PyObject* self) {
  if (length_slot(self) < 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
    return nullptr;
  }
  return PySeqIter_New(self);
}

// Of iteration, which ends where this says that there is no such item.
PyObject* item_slot(PyObject* self, Py_ssize_t i) {
  try {
    if (i >= length_slot(self)) {
      PyErr_Format(PyExc_IndexError, "index %zd is out of range", i);
      return nullptr;
    }
    IndexItem item{.kind = IndexItem::Kind::integer, .integer = i};
    return wrap(index(unwrap(self), item));
  } catch (...) {
    return raise_current();
  }
}

PyObject* display_slot(PyObject* self) {
  try {
    const nb::object display = nb::module_::import_("tilewright._report.display").attr("display");
    return display(nb::handle(self)).release().ptr();
  } catch (...) {
    return raise_current();
  }
}

Py_hash_t identity_hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<std::uintptr_t>(self) >> 4);
}

template <class F> void* slot(F* function) { return reinterpret_cast<void*>(function); }

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

#define TW_BINARY_SLOTS(nb_slot, op)                              \
  {Py_nb_##nb_slot, slot(binary_slot<PointwiseOp::op>)}, {        \
    Py_nb_inplace_##nb_slot, slot(in_place_slot<PointwiseOp::op>) \
  }

#define TW_BITS_SLOTS(name)                                                                    \
  {Py_nb_##name, slot(bits_slot<PointwiseOp::logical_##name, PointwiseOp::bitwise_##name>)}, { \
    Py_nb_inplace_##name,                                                                      \
        slot(in_place_bits_slot<PointwiseOp::logical_##name, PointwiseOp::bitwise_##name>)     \
  }

PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>("Tensor(x)\n--\n\nAn n-dimensional array that takes part in autograd.")},
    {Py_tp_new, slot(construct)},
    {Py_tp_dealloc, slot(deallocate)},
    {Py_tp_finalize, slot(finalize)},
    {Py_tp_traverse, slot(traverse_tensor)},
    {Py_tp_members, members},
    {Py_tp_repr, slot(display_slot)},
    {Py_tp_hash, slot(identity_hash)},
    {Py_tp_richcompare, slot(compare_slot)},
    {Py_tp_iter, slot(iterate_slot)},
    {Py_nb_negative, slot(unary_slot<PointwiseOp::negative>)},
    {Py_nb_positive, slot(unary_slot<PointwiseOp::positive>)},
    {Py_nb_absolute, slot(unary_slot<PointwiseOp::abs>)},
    {Py_nb_invert, slot(invert_slot)},
    TW_BINARY_SLOTS(add, add),
    TW_BINARY_SLOTS(subtract, subtract),
    TW_BINARY_SLOTS(multiply, multiply),
    TW_BINARY_SLOTS(true_divide, divide),
    TW_BINARY_SLOTS(floor_divide, floor_divide),
    TW_BINARY_SLOTS(remainder, remainder),
    TW_BINARY_SLOTS(lshift, bitwise_left_shift),
    TW_BINARY_SLOTS(rshift, bitwise_right_shift),
    {Py_nb_divmod, slot(divmod_slot)},
    {Py_nb_power, slot(power_slot<PointwiseOp::pow>)},
    {Py_nb_inplace_power, slot(in_place_power_slot<PointwiseOp::pow>)},
    TW_BITS_SLOTS(and),
    TW_BITS_SLOTS(or),
    TW_BITS_SLOTS(xor),
    {Py_nb_matrix_multiply, slot(matmul_slot)},
    {Py_nb_inplace_matrix_multiply, slot(in_place_matmul_slot)},
    {Py_nb_bool, slot(truth_slot)},
    {Py_nb_float, slot(number_slot<PyNumber_Float>)},
    {Py_nb_int, slot(number_slot<PyNumber_Long>)},
    {Py_nb_index, slot(index_slot)},
    {Py_mp_length, slot(length_slot)},
    {Py_mp_subscript, slot(subscript_slot)},
    {Py_mp_ass_subscript, slot(assign_subscript_slot)},
    {Py_sq_item, slot(item_slot)},
    {Py_bf_getbuffer, slot(get_buffer)},
    {Py_bf_releasebuffer, slot(release_buffer)},
    {0, nullptr}};

PyType_Spec spec = {"tilewright.Tensor", sizeof(TensorObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

Tensor raw_tensor(PyObject* object) { return Tensor(Ref<TensorHeader>(as_object(object)->header)); }

[[gnu::hot]] Tensor unwrap(PyObject* object) {
  Tensor x = raw_tensor(object);
  if (x->extras && !x->extras->forward_hooks.empty()) return apply_forward_hooks(x);
  return x;
}

[[gnu::hot]] PyObject* wrap(const Tensor& tensor) {
  if (!tensor) Py_RETURN_NONE;
  if (tensor->wrapper) return Py_NewRef(static_cast<PyObject*>(tensor->wrapper));
  TensorObject* object = allocate_object();
  if (!object) return nullptr;
  object->weak_references = nullptr;
  object->header = Ref<TensorHeader>(tensor.get()).leak();
  tensor->wrapper = object;
  if (held_functions && (tensor->grad_fn || tensor->extras)) [[unlikely]]
    watch(object);
  return reinterpret_cast<PyObject*>(object);
}

void take_back(TensorObject* object) {
  if (!std::exchange(object->kept, false)) return;
  Ref<TensorHeader>(object->header).leak();
  Py_DECREF(object);
}

bool is_held_by_program(const TensorHeader& header) {
  const auto* object = static_cast<TensorObject*>(header.wrapper);
  return object && !(object->kept && Py_REFCNT(object) == 1);
}

static bool release_object(TensorHeader& header) {
  TensorObject* const object = static_cast<TensorObject*>(header.wrapper);
  if (Py_IsInitialized() && Py_REFCNT(object) > 1) {
    take_back(object);
    return false;
  }
  header.wrapper = nullptr;
  object->header = nullptr;
  object->kept = false;
  if (Py_IsInitialized()) Py_DECREF(object);
  return true;
}

static void rebind(void* wrapper, const Tensor& tensor) {
  TensorObject* object = static_cast<TensorObject*>(wrapper);
  const nb::object holds = nb::borrow(reinterpret_cast<PyObject*>(object));
  take_back(object);
  drop_header(object);
  object->header = Ref<TensorHeader>(tensor.get()).leak();
  tensor->wrapper = object;
}

Tensor current_tensor(PyObject* object) {
  const Tensor x = raw_tensor(object);
  // One that cannot be renewed may still be read; what walks its graph refuses it.
  if (x->family && is_stale(x) && !x->behind_function) renew(x);
  return x;
}

static Scalar beyond_int64(PyObject* object) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    const double wide = PyLong_AsDouble(object);
    if (!PyErr_Occurred()) return Scalar::of_wider_integer(wide);
    PyErr_Clear();
    fail(ErrorKind::overflow, "the integer is too large, even for float64");
  }
  return Scalar::of_uint64(value);
}

bool read_scalar(PyObject* object, Scalar& out) {
  if (PyFloat_Check(object)) {
    out = Scalar(PyFloat_AS_DOUBLE(object));
  } else if (PyBool_Check(object)) {
    out = Scalar(object == Py_True);
  } else if (PyLong_Check(object)) {
    const long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      out = beyond_int64(object);
    } else {
      out = Scalar(static_cast<std::int64_t>(value));
    }
  } else if (PyComplex_Check(object)) {
    out = Scalar(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  } else {
    return false;
  }
  return true;
}

// Of another library's array of no dimensions, as its item() gives it. One with a mask, or with a
// gradient, would lose that; texts and times are no numbers.
static bool read_number_of_array(PyObject* object, Scalar& out) {
  const nb::handle array = object;
  if (!is_array(object) || !nb::hasattr(array, "item") || nb::hasattr(array, "mask")) return false;
  const nb::object recorded = nb::getattr(array, "requires_grad", nb::bool_(false));
  if (nb::len(nb::object(array.attr("shape"))) > 0 || PyObject_IsTrue(recorded.ptr())) return false;
  const nb::object kind = nb::getattr(array.attr("dtype"), "kind", nb::none());
  if (nb::isinstance<nb::str>(kind) &&
      std::string_view("biufc").find(utf8_of(kind.ptr())) == std::string_view::npos)
    return false;
  return read_scalar(nb::object(array.attr("item")()).ptr(), out);
}

bool read_number(PyObject* object, Scalar& out) {
  if (read_scalar(object, out)) return true;
  if (!is_tensor(object)) return read_number_of_array(object, out);
  const Tensor x = unwrap(object);
  return x.rank() == 0 && !x.requires_grad() && read_scalar(nb::steal(item_of(x)).ptr(), out);
}

static bool read_tensor_or_scalar(PyObject* object, Operand& out) {
  if (!is_tensor(object)) return read_scalar(object, out.scalar);
  out.tensor = unwrap(object);
  return true;
}

bool read_operand(PyObject* object, Operand& out) {
  if (read_tensor_or_scalar(object, out)) return true;
  if (!is_array(object)) return false;
  out.tensor = as_tensor(object);
  return true;
}

namespace {

// NumPy's arrays, whose operators ask ours; those in a file are no others.
bool is_plain_ndarray(PyTypeObject* type) {
  constexpr const char* kName = "numpy.ndarray";
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return !std::strcmp(type->tp_name, kName);
  if (std::strcmp(type->tp_name, "memmap") || std::strcmp(type->tp_base->tp_name, kName))
    return false;
  const nb::object module = nb::handle(reinterpret_cast<PyObject*>(type)).attr("__module__");
  return nb::isinstance<nb::str>(module) && utf8_of(module.ptr()) == "numpy";
}

// What an operator stands beside a tensor for. Arrays that have operators of their own keep them:
// a tensor would lose their units or their mask.
bool read_beside(PyObject* object, Operand& out) {
  if (read_tensor_or_scalar(object, out)) return true;
  if (!is_array(object)) return false;
  PyTypeObject* const type = Py_TYPE(object);
  if (!is_plain_ndarray(type) &&
      PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "__array_ufunc__"))
    return false;
  out.tensor = as_tensor(object, "operator");
  return true;
}

std::optional<std::int64_t> read_bound(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  const Py_ssize_t value = PyNumber_AsSsize_t(object, nullptr);  // clamps
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

IndexItem read_index_item(PyObject* object) {
  using Kind = IndexItem::Kind;
  if (object == Py_None) return {.kind = Kind::new_axis};
  if (object == Py_Ellipsis) return {.kind = Kind::ellipsis};
  if (PySlice_Check(object)) {
    const auto* s = reinterpret_cast<PySliceObject*>(object);
    return {.kind = Kind::slice,
            .start = read_bound(s->start),
            .stop = read_bound(s->stop),
            .step = read_bound(s->step)};
  }
  if (PyBool_Check(object)) return {.kind = Kind::truth, .integer = object == Py_True};
  if (PyLong_Check(object)) return {.kind = Kind::integer, .integer = read_bound(object).value()};
  if (is_tensor(object)) {
    const Tensor x = raw_tensor(object);
    if (x.rank() == 0 && is_integer(x.dtype()))
      return {.kind = Kind::integer, .integer = nb::cast<std::int64_t>(nb::steal(item_of(x)))};
    return {.kind = Kind::tensor, .tensor = x};
  }
  const bool is_list = PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object);
  if (is_array(object) || is_list) {
    Tensor x = as_tensor(object, "index");
    // A list without numbers has no type of its own.
    if (is_list && x.count() == 0) x = astype(x, DType::int64);
    return {.kind = Kind::tensor, .tensor = x};
  }
  if (PyIndex_Check(object)) return {.kind = Kind::integer, .integer = read_bound(object).value()};
  fail(ErrorKind::index,
       "index: only integers, slices, ellipsis, None, and integer or bool arrays are allowed, got ",
       Py_TYPE(object)->tp_name);
}

}  // namespace

std::vector<IndexItem> read_index(PyObject* key) {
  if (!PyTuple_Check(key)) return {read_index_item(key)};
  std::vector<IndexItem> items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    items.push_back(read_index_item(PyTuple_GET_ITEM(key, i)));
  return items;
}

void create_tensor_type(nb::module_& module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  tensor_type = reinterpret_cast<PyTypeObject*>(type);
  rebind_wrapper = rebind;
  release_wrapper = release_object;
  module.attr("Tensor") = nb::borrow(type);
}

}  // namespace tw::binding
