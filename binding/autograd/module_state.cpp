// What calls of a module depend on besides their arguments, as it was at one moment: recordings of
// calls are good only while it holds. Dictionaries can be written to by anybody, so nothing counts
// changes; what was seen is compared entry by entry, by identity, about a nanosecond each.
#include <unordered_set>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/tensor/tensor.h"

namespace tw::binding {

namespace {

// Lists and dictionaries of a module's own data (a vocabulary) are compared up to this length.
constexpr Py_ssize_t kMostItems = 256;
// How deep objects that are neither modules nor tensors are looked into, from a module on.
constexpr int kMostLevels = 3;

PyObject* module_type = nullptr;  // _ModuleCall

bool is_module(PyObject* object) {
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(module_type));
}

PyObject* dictionary_of_type(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
  return PyType_GetDict(type);
#else
  return Py_XNewRef(type->tp_dict);
#endif
}

class ModuleState {
 public:
  explicit ModuleState(nb::handle module) {
    std::unordered_set<PyObject*> seen;
    look_at(module.ptr(), 0, seen);
  }
  ModuleState(const ModuleState&) = delete;
  ~ModuleState() { clear(); }

  bool holds_for(nb::handle module) const {
    if (held_.empty() || held_[0] != module.ptr()) return false;
    for (const Seen& seen : seen_)
      if (!is_as_seen(seen)) return false;
    for (const Place& place : places_)
      if (!place.holds()) return false;
    return true;
  }
  int traverse(visitproc visit, void* arg) const {
    for (PyObject* object : held_) Py_VISIT(object);
    return 0;
  }
  void clear() {
    seen_.clear();
    places_.clear();
    for (PyObject* object : std::exchange(held_, {})) Py_DECREF(object);
  }

 private:
  enum class Kind : std::uint8_t { dictionary, list, instance };
  // held_[at] is the object; behind it are its entries, or the type of an instance.
  struct Seen {
    Kind kind;
    std::size_t at, entries;
    Py_ssize_t length;
  };
  // Where a tensor's elements are, and what a graph would do with it.
  struct Place {
    PyObject* tensor;  // in held_
    Ref<Storage> storage;
    std::int64_t offset;
    Shape shape;
    Strides strides;
    DType dtype;
    bool requires_grad;
    std::vector<std::uint64_t> hooks;

    explicit Place(PyObject* object) : tensor(object) {
      const Tensor x = raw_tensor(object);
      storage = x->storage;
      offset = x->offset_bytes;
      shape = x.shape();
      strides = x.strides();
      dtype = x.dtype();
      requires_grad = x.requires_grad();
      hooks = hooks_of(x);
    }
    bool holds() const {
      const Tensor x = raw_tensor(tensor);
      return x->storage == storage && x->offset_bytes == offset && x.shape() == shape &&
             x.strides() == strides && x.dtype() == dtype && x.requires_grad() == requires_grad &&
             (hooks.empty() && !x->extras ? true : hooks_of(x) == hooks);
    }
    static std::vector<std::uint64_t> hooks_of(const Tensor& x) {
      std::vector<std::uint64_t> ids;
      if (!x->extras) return ids;
      for (const HookList* list :
           {&x->extras->forward_hooks, &x->extras->backward_hooks, &x->extras->grad_hooks})
        for (const HookEntry& hook : list->entries()) ids.push_back(hook.id);
      return ids;
    }
  };
  using Visited = std::unordered_set<PyObject*>;

  std::size_t hold(PyObject* object) {
    held_.push_back(Py_NewRef(object));
    return held_.size() - 1;
  }

  void look_at(PyObject* object, int level, Visited& visited) {
    if (is_module(object)) level = 0;
    if (level > kMostLevels || !visited.insert(object).second) return;
    if (is_tensor(object)) {
      hold(object);
      places_.emplace_back(object);
    } else if (PyDict_Check(object)) {
      look_at_dictionary(object, level, visited);
    } else if (PyList_Check(object) || PyTuple_Check(object)) {
      look_at_list(object, level, visited);
    } else if (PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) && !PyType_Check(object)) {
      look_at_instance(object, level, visited);
    }
  }

  void look_at_dictionary(PyObject* object, int level, Visited& visited) {
    Seen seen = {Kind::dictionary, hold(object), 0, PyDict_GET_SIZE(object)};
    PyObject *key, *value;
    Py_ssize_t place = 0;
    std::vector<PyObject*> values;
    while (PyDict_Next(object, &place, &key, &value) &&
           (seen.entries < 2 * kMostItems || holds_parts(values))) {
      hold(key);
      values.push_back(held_[hold(value)]);
      seen.entries += 2;
    }
    seen_.push_back(seen);
    for (PyObject* each : values) look_at(each, level + 1, visited);
  }

  void look_at_list(PyObject* object, int level, Visited& visited) {
    Seen seen = {Kind::list, hold(object), 0, PySequence_Fast_GET_SIZE(object)};
    std::vector<PyObject*> items;
    for (Py_ssize_t i = 0; i < seen.length && (i < kMostItems || holds_parts(items)); ++i) {
      items.push_back(held_[hold(PySequence_Fast_GET_ITEM(object, i))]);
      ++seen.entries;
    }
    seen_.push_back(seen);
    for (PyObject* each : items) look_at(each, level + 1, visited);
  }

  static bool holds_parts(const std::vector<PyObject*>& objects) {
    return is_module(objects.back()) || is_tensor(objects.back());
  }

  void look_at_instance(PyObject* object, int level, Visited& visited) {
    seen_.push_back({Kind::instance, hold(object), 1, 0});
    hold(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    for (nb::handle type : nb::borrow<nb::tuple>(Py_TYPE(object)->tp_mro))
      look_at_class(type.ptr(), visited);
    const nb::object attributes = nb::steal(PyObject_GenericGetDict(object, nullptr));
    if (!attributes.is_valid()) return PyErr_Clear();  // of slots alone
    look_at(attributes.ptr(), level, visited);
  }

  // Values of classes are functions, for the most part: which they are is all that is asked.
  void look_at_class(PyObject* object, Visited& visited) {
    auto* const type = reinterpret_cast<PyTypeObject*>(object);
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || !visited.insert(object).second) return;
    const nb::object attributes = nb::steal(dictionary_of_type(type));
    if (attributes.is_valid()) look_at_dictionary(attributes.ptr(), kMostLevels, visited);
  }

  bool is_as_seen(const Seen& seen) const {
    PyObject* const object = held_[seen.at];
    const auto entries = held_.begin() + static_cast<std::ptrdiff_t>(seen.at) + 1;
    const auto end = entries + static_cast<std::ptrdiff_t>(seen.entries);
    if (seen.kind == Kind::instance)
      return reinterpret_cast<PyObject*>(Py_TYPE(object)) == *entries;
    if (seen.kind == Kind::list) {
      if (PySequence_Fast_GET_SIZE(object) != seen.length) return false;
      return std::equal(entries, end, PySequence_Fast_ITEMS(object));
    }
    if (PyDict_GET_SIZE(object) != seen.length) return false;
    PyObject *key, *value;
    Py_ssize_t place = 0;
    for (auto entry = entries; entry != end; entry += 2)
      if (!PyDict_Next(object, &place, &key, &value) || key != entry[0] || value != entry[1])
        return false;
    return true;
  }

  std::vector<PyObject*> held_;
  std::vector<Seen> seen_;
  std::vector<Place> places_;
};

int traverse(PyObject* self, visitproc visit, void* arg) {
#if PY_VERSION_HEX >= 0x03090000
  Py_VISIT(Py_TYPE(self));
#endif
  return nb::inst_ready(self) ? nb::inst_ptr<ModuleState>(self)->traverse(visit, arg) : 0;
}
int clear(PyObject* self) {
  nb::inst_ptr<ModuleState>(self)->clear();
  return 0;
}

}  // namespace

void bind_module_state(nb::module_& m) {
  using namespace nb::literals;
  module_type = nb::object(m.attr("_ModuleCall")).release().ptr();
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                {0, nullptr}};
  nb::class_<ModuleState>(
      m, "_ModuleState", nb::type_slots(slots),
      "What calls of a module depend on besides their arguments, as it is now.\nThat is: "
      "attributes of it "
      "and of all modules below (submodules, parameters, hooks, a `forward` of their own, training "
      "or not, settings), those of their classes, the contents of lists, dictionaries and objects "
      "that they hold, and of each tensor where its memory lies, what it records and its hooks. "
      "Values of tensors, which change in place, are no part of it; neither are lists and "
      "dictionaries beyond 256 entries, of which the length counts, objects more than three levels "
      "away from a module, sets, and what functions find by themselves (globals, closures).")
      .def(nb::init<nb::handle>(), "module"_a)
      .def("holds_for", &ModuleState::holds_for, "module"_a,
           "Whether `module` is the one that was looked at, and all is as it was.\nAn "
           "attribute that was set to an equal value, but another object, counts as changed.");
}

}  // namespace tw::binding
