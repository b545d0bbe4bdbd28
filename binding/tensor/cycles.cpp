// CPython's collector needs to know which objects hold which. The functions below tensors belong to
// all objects whose graphs lead to them, which no count of theirs says: so before each full
// collection the graphs are searched (core/autograd/cycles.h), and each set of functions gets a
// Group, an object of which each owner then holds one reference until the collection is over.
#include "binding/tensor/casters.h"
#include "binding/tensor/cycles.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/autograd/cycles.h"

namespace tw::binding {

namespace {

struct Function {
  PyObject* object;  // the reference is the hook's or the frame's
  HeldFunction held;
};

struct GroupObject {
  PyObject_HEAD std::vector<Function>* functions;
};
PyTypeObject* group_type = nullptr;

// Tensors that may be part of a cycle; each knows its place, counted from 1.
std::vector<TensorObject*>& watched() {
  static auto& instance = *new std::vector<TensorObject*>;
  return instance;
}
// During a full collection: what each tensor holds of a group.
std::unordered_map<PyObject*, nb::object>& shares() {
  static auto& instance = *new std::unordered_map<PyObject*, nb::object>;
  return instance;
}

std::vector<Function>& functions_of(PyObject* group) {
  return *reinterpret_cast<GroupObject*>(group)->functions;
}

int traverse_group(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (const Function& function : functions_of(self)) Py_VISIT(function.object);
  return 0;
}

// Called where all owners are garbage: the functions go, which breaks every cycle through them.
int clear_group(PyObject* self) {
  for (const Function& function : std::exchange(functions_of(self), {})) function.held.forget();
  return 0;
}

void deallocate_group(PyObject* self) {
  PyObject_GC_UnTrack(self);
  delete reinterpret_cast<GroupObject*>(self)->functions;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

template <class F> void* slot(F* function) { return reinterpret_cast<void*>(function); }
PyType_Slot group_slots[] = {{Py_tp_dealloc, slot(deallocate_group)},
                             {Py_tp_traverse, slot(traverse_group)},
                             {Py_tp_clear, slot(clear_group)},
                             {0, nullptr}};
PyType_Spec group_spec = {
    "tilewright._core._Group", sizeof(GroupObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, group_slots};

// Null for functions of another frontend.
PyObject* object_of(const HeldFunction& held) {
  if (held.hook) {
    const auto* hook = held.hook->target<PythonHook>();
    return hook ? hook->function.ptr() : nullptr;
  }
  if (held.gradient) {
    const auto* gradient = held.gradient->target<PythonGradient>();
    return gradient ? gradient->context.ptr() : nullptr;
  }
  const auto* rerun = held.rerun->target<PythonRerun>();
  return rerun ? rerun->function.ptr() : nullptr;
}

nb::object make_group(const OwnedFunctions& owned) {
  auto functions = std::make_unique<std::vector<Function>>();
  for (const HeldFunction& held : owned.functions)
    if (PyObject* object = object_of(held)) functions->push_back({object, held});
  auto* group = PyObject_GC_New(GroupObject, group_type);
  if (!group) throw nb::python_error();
  group->functions = functions.release();
  PyObject_GC_Track(group);
  return nb::steal(reinterpret_cast<PyObject*>(group));
}

void hand_out_shares() {
  std::vector<TensorHeader*> owners;
  for (const TensorObject* object : watched()) owners.push_back(object->header);
  const std::vector<PyObject*> objects(
      reinterpret_cast<PyObject**>(watched().data()),
      reinterpret_cast<PyObject**>(watched().data() + owners.size()));
  for (const OwnedFunctions& owned : find_owned(owners)) {
    if (owned.owners.empty()) continue;
    const nb::object group = make_group(owned);
    for (const std::size_t owner : owned.owners) shares().emplace(objects[owner], group);
  }
}

bool collecting = false;

// One of gc.callbacks.
void on_collection(const char* phase, nb::dict info) {
  constexpr int kFull = 2;
  collecting = std::string_view(phase) == "start";
  const auto over = std::exchange(shares(), {});
  if (held_functions == 0 || std::string_view(phase) != "start") return;
  if (nb::cast<int>(info["generation"]) == kFull) hand_out_shares();
}

}  // namespace

Tensor PythonHook::operator()(const Tensor& x) const {
  const nb::object result = function(nb::steal(wrap(x)));
  if (result.is_none()) return Tensor();
  if (!is_tensor(result.ptr())) fail(ErrorKind::type, "a hook must return a tensor or None");
  return current_tensor(result.ptr());
}

bool is_collecting() { return collecting; }

void watch(TensorObject* object) {
  take_back(object);
  if (object->watched) return;
  watched().push_back(object);
  object->watched = watched().size();
  auto* self = reinterpret_cast<PyObject*>(object);
  if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
}

void unwatch(TensorObject* object) {
  const std::size_t place = std::exchange(object->watched, 0);
  if (!place) return;
  TensorObject* const last = watched().back();
  watched().pop_back();
  if (last == object) return;
  watched()[place - 1] = last;
  last->watched = place;
}

void watch_closure(PyObject* function) {
  PyObject* closure = PyFunction_Check(function) ? PyFunction_GET_CLOSURE(function) : nullptr;
  for (Py_ssize_t i = 0; closure && i < PyTuple_GET_SIZE(closure); ++i) {
    PyObject* value = PyCell_GET(PyTuple_GET_ITEM(closure, i));
    if (value && is_tensor(value)) watch(reinterpret_cast<TensorObject*>(value));
  }
}

void watch_attributes(nb::handle context) {
  for (nb::handle value : nb::borrow<nb::dict>(context.attr("__dict__")).values())
    if (is_tensor(value.ptr())) watch(reinterpret_cast<TensorObject*>(value.ptr()));
}

int traverse_tensor(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (shares().empty()) return 0;
  const auto share = shares().find(self);
  if (share != shares().end()) Py_VISIT(share->second.ptr());
  return 0;
}

void bind_cycles(nb::module_& m) {
  PyObject* type = PyType_FromSpec(&group_spec);
  if (!type) throw nb::python_error();
  group_type = reinterpret_cast<PyTypeObject*>(type);
  nb::module_::import_("gc")
      .attr("callbacks")
      .attr("append")(nb::cpp_function(on_collection, nb::scope(m), nb::name("_on_collection")));
}

}  // namespace tw::binding
