// Functions and methods that give several tensors, in tuples.
#include "core/ops/shape/split.h"

#include "binding/tensor/attach.h"
#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"

namespace tw::binding {

namespace {

// One int, or a list or tuple of any number of ints.
bool read_parts(PyObject* object, Parts& out) {
  out = Parts();
  std::int64_t number;
  if (read_integer(object, number)) {
    out.numbers.push_back(number);
    return true;
  }
  out.one = false;
  if (!PyList_Check(object) && !PyTuple_Check(object)) return false;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    if (!read_integer(PySequence_Fast_GET_ITEM(object, i), number)) return false;
    out.numbers.push_back(number);
  }
  return PySequence_Fast_GET_SIZE(object) == count;  // reading may have changed it
}

}  // namespace

}  // namespace tw::binding

namespace nanobind::detail {

template <> struct type_caster<tw::Parts> {
  NB_TYPE_CASTER(tw::Parts, const_name("int | collections.abc.Sequence[int]"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    return tw::binding::read_parts(source.ptr(), value);
  }
};

}  // namespace nanobind::detail

namespace tw::binding {

using namespace nb::literals;

namespace {

using Several = nb::typed<nb::tuple, Tensor, nb::ellipsis>;

Several as_tuple(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const Tensor& x : tensors) list.append(nb::steal(wrap(x)));
  return Several(nb::tuple(list));
}

// The same as a function of the module and as a method.
template <class F, class... Extra>
void both(nb::module_& m, const char* name, F function, const Extra&... extra) {
  m.def(name, function, "x"_a, extra...);
  method(name, function, extra...);
}

}  // namespace

#define TW_PARTS                                                                     \
  "\nShapes: x (..., n, ...); the results have its shape but for the axis.\nTypes: " \
  "all. Result: the same type.\n"

void bind_split(nb::module_& m) {
  both(
      m, "split",
      [](const Tensor& x, const Parts& parts, std::int64_t axis) {
        return as_tuple(split(x, parts, axis));
      },
      "split_size_or_sections"_a, "axis"_a = 0,
      "Parts along an axis, as views: of one extent, the last one smaller where it must be, or of "
      "an extent each, which add up to the axis.\nNumPy's split takes a number of parts: here "
      "that is tensor_split." TW_PARTS
      "Raises ValueError for an extent below 1 and for extents that do not add up, IndexError for "
      "an axis out of range.\nSource: PyTorch's torch.split.");
  both(
      m, "chunk",
      [](const Tensor& x, std::int64_t chunks, std::int64_t axis) {
        return as_tuple(chunk(x, chunks, axis));
      },
      "chunks"_a, "axis"_a = 0,
      "At most so many parts along an axis, as views, of one extent but for the last." TW_PARTS
      "Raises ValueError for fewer than 1 chunk, IndexError for an axis out of range.\nSource: "
      "PyTorch's torch.chunk.");
  both(
      m, "tensor_split",
      [](const Tensor& x, const Parts& parts, std::int64_t axis) {
        return as_tuple(tensor_split(x, parts, axis));
      },
      "indices_or_sections"_a, "axis"_a = 0,
      "So many parts along an axis, as views, the first ones an element longer where they must "
      "be, or the parts between indices." TW_PARTS
      "Raises ValueError for fewer than 1 part, IndexError for an axis out of range.\nSource: "
      "PyTorch's torch.tensor_split.");
  constexpr char kHelp[] =
      "So many parts of one extent, as views, or the parts between indices: along axis ";
  constexpr char kFacts[] = TW_PARTS
      "Raises ValueError for fewer dimensions and for parts that do not divide the axis.\nSource: "
      "PyTorch's torch.";
  const std::tuple<const char*, std::vector<Tensor> (*)(const Tensor&, const Parts&), const char*>
      kByAxis[] = {{"hsplit", hsplit, "1, of vectors 0."},
                   {"vsplit", vsplit, "0, of at least 2 dimensions."},
                   {"dsplit", dsplit, "2."}};
  for (const auto& [name, function, axis] : kByAxis) {
    const std::string help = std::string(kHelp) + axis + kFacts + name + ".";
    both(
        m, name,
        [function = function](const Tensor& x, const Parts& parts) {
          return as_tuple(function(x, parts));
        },
        "indices_or_sections"_a, help.c_str());
  }
}
#undef TW_PARTS

}  // namespace tw::binding
