// Functions around ops that are no ops themselves, or return other things than tensors.
#include <algorithm>
#include <cstring>
#include <string>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/calls/record.h"
#include "binding/tensor/tensor_type.h"
#include "core/autograd/capture.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/sequence/key_value_cache.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/random/random.h"
#include "core/ops/engine/records.h"
#include "core/runtime/device.h"
#include "core/runtime/signature.h"
#include "core/tensor/access.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

Tensor state_of(const Generator& g) {
  const DeviceGuard cpu(nullptr);
  const Tensor state = Tensor::empty({2}, DType::uint64);
  const std::uint64_t words[2] = {g.seed, g.position};
  Access at;
  std::memcpy(at(state), words, sizeof words);
  return state;
}
void set_state(Generator& g, const Tensor& state) {
  if (state.dtype() != DType::uint64 || !(state.shape() == Shape{2}))
    fail(ErrorKind::value, "set_state: state must be what get_state gave");
  refuse_in_capture("random numbers are seeded");
  std::uint64_t words[2];
  Access at;
  std::memcpy(words, at(contiguous(state)), sizeof words);
  g = {words[0], words[1]};
}

void bind_random(nb::module_& m) {
  nb::class_<Generator>(m, "Generator", "A stream of random numbers: seed and position.")
      .def(
          "__init__",
          [](Generator* self, std::uint64_t seed, const std::optional<std::string>& device) {
            if (device) find_device(*device);
            new (self) Generator{seed};
          },
          "seed"_a = 0, nb::kw_only(), "device"_a.none() = nb::none(),
          "`device` is taken for PyTorch's programs: a seed gives the same numbers on all.")
      .def(
          "manual_seed",
          [](nb::object self, std::uint64_t seed) {
            nb::cast<Generator&>(self) = {seed};
            return self;
          },
          "seed"_a, nb::sig("def manual_seed(self, seed: int) -> Generator"),
          "Starts the stream of another seed and returns the generator.")
      .def(
          "initial_seed", [](const Generator& g) { return g.seed; }, "The seed, as `seed`.")
      .def("get_state", state_of, "Seed and position, two numbers of uint64 for `set_state`.")
      .def("set_state", set_state, "state"_a,
           "Goes on from a state that `get_state` gave; raises ValueError for another tensor.")
      .def("__getstate__", [](const Generator& g) { return std::pair(g.seed, g.position); })
      .def("__setstate__",
           [](Generator& g, const std::pair<std::uint64_t, std::uint64_t>& state) {
             new (&g) Generator{state.first, state.second};
           })
      .def("__repr__",
           [](const Generator& g) {
             return "<Generator: seed " + std::to_string(g.seed) + ", position " +
                    std::to_string(g.position) + ">";
           })
      .def_prop_ro("seed", [](const Generator& g) { return g.seed; })
      .def_rw("position", &Generator::position, "32-bit words already used, a multiple of 4.");
  m.def(
      "manual_seed",
      [](std::uint64_t seed) -> Generator& {
        refuse_in_capture("random numbers are seeded");
        return default_generator() = {seed};
      },
      nb::rv_policy::reference, "seed"_a,
      "Seeds the default generator and returns it.\nRaises ValueError for a seed below 0 or above "
      "2 ** 64 - 1.");
  // Whose position a checkpoint of a training, and a summary, read and put back.
  m.def(
      "_default_generator", []() -> Generator& { return default_generator(); },
      nb::rv_policy::reference, "The generator of all draws that are given none.");
}

void bind_shapes(nb::module_& m) {
  m.def(
      "_broadcast_shapes",
      [](const std::vector<Shape>& shapes) {
        Shape out;
        for (const Shape& shape : shapes) {
          for (std::int64_t extent : shape)
            if (extent < 0)
              fail(ErrorKind::value, "broadcast_shapes: shape ", shape, " has a negative extent");
          out = broadcast_shapes(out, shape, "broadcast_shapes");
        }
        return out;
      },
      "shapes"_a, "The shape that all of `shapes` broadcast to.");
  m.def(
      "result_type",
      [](nb::args args) {
        std::optional<DType> type;
        std::vector<Scalar> scalars;
        for (nb::handle arg : args) {
          DType dtype;
          Scalar scalar(0);
          if (is_tensor(arg.ptr()))
            dtype = raw_tensor(arg.ptr()).dtype();
          else if (read_scalar(arg.ptr(), scalar)) {
            scalars.push_back(scalar);
            continue;
          } else if (!read_dtype(arg.ptr(), dtype))
            fail(ErrorKind::type, "result_type: expected tensors, dtypes or numbers");
          type = type ? promote(*type, dtype) : dtype;
        }
        for (const Scalar& s : scalars) type = type ? weak_promote(*type, s) : s.natural_dtype();
        if (!type) fail(ErrorKind::value, "result_type: no arguments");
        return *type;
      },
      nb::sig("def result_type(*args: Tensor | dtype | bool | int | float | complex) -> dtype"),
      "The common type of tensors, dtypes and (weak) numbers.\nShapes: any; they do not "
      "count.\nTypes: all. Result: a dtype.\nRaises ValueError without arguments.\nSource: Array "
      "API standard 2024.12.");
  m.def(
      "set_default_dtype",
      [](DType dtype) {
        if (dtype != DType::float32 && dtype != DType::float64)
          fail(ErrorKind::type, "set_default_dtype: dtype must be float32 or float64, got ",
               name_of(dtype));
        default_floating.store(dtype, std::memory_order_relaxed);
      },
      "dtype"_a,
      "The type of numbers with a fraction, of new tensors and of what integers become in floating "
      "functions, where nothing else decides: float32 or float64.\nOf the whole process.");
  m.def("get_default_dtype", default_dtype, "The type that set_default_dtype chose: float32.");
}

// What a record says of itself, for tests and tools that walk the list.
nb::dict describe_record(const OpRecord& op) {
  nb::dict out;
  out["name"] = op.name;
  out["signature"] = op.signature;
  out["help"] = op.help;
  out["function"] = (op.flags & kFunction) != 0;
  out["method"] = is_method(op);
  out["in_place"] = (op.flags & kInPlace) != 0;
  out["results"] = op.results;
  out["infers"] = op.infer != nullptr;
  out["body"] = op.body != nullptr;
  out["gradient"] = op.vjp && !(op.flags & kConstant);
  return out;
}

// A row of updates.inc as optimizers read it: its states' names, its settings with their defaults,
// None where a call must give them.
nb::dict describe_update(const std::string& name) {
  const auto& records = op_records();
  const auto op = std::find_if(records.begin(), records.end(),
                               [&](const OpRecord* each) { return name == each->name; });
  if (op == records.end()) fail(ErrorKind::value, "no step '", name, "'");
  nb::list states;
  nb::dict settings;
  for (const Parameter& parameter : signature_of(**op).parameters) {
    const char* own = parameter.name.c_str();
    if (parameter.kind == ParameterKind::tensors && parameter.slot >= 2) states.append(own);
    if (!parameter.is_attribute()) continue;
    if (!parameter.has_default)
      settings[own] = nb::none();
    else if (parameter.kind == ParameterKind::flag)
      settings[own] = parameter.default_text == "True";
    else
      settings[own] = std::stod(parameter.default_text);
  }
  nb::dict row;
  row["states"] = states;
  row["settings"] = settings;
  return row;
}

void bind_key_value_cache(nb::module_& m) {
  m.def(
      "_append_rows",
      [](const Tensor& keys, const Tensor& values, std::int64_t filled, const Tensor& key,
         const Tensor& value) { append_rows({keys, values, Scalar(filled)}, key, value); },
      "keys"_a, "values"_a, "filled"_a, "key"_a, "value"_a,
      "Writes rows of keys and values behind those that are filled.");
  m.def(
      "_attend_with_cache",
      [](const Tensor& keys, const Tensor& values, const Operand& filled, const Tensor& query,
         const Tensor& key, const Tensor& value, std::optional<double> scale) {
        return attend_with_cache({keys, values, filled}, query, key, value, scale);
      },
      "keys"_a, "values"_a, "filled"_a, "query"_a, "key"_a, "value"_a, "scale"_a = nb::none(),
      "Appends rows, and attends causally to all.");
}

void bind_draws(nb::module_& m) {
  m.def(
      "_beta_slope",
      [](const Tensor& a, const Tensor& b, const Tensor& log_odds) {
        return apply(kBetaSlope, {a, b, log_odds});
      },
      "a"_a, "b"_a, "log_odds"_a,
      "How log-odds of beta distributions move with a; all float64, of one shape.");
}

}  // namespace

void bind_ops(nb::module_& m) {
  bind_random(m);
  bind_key_value_cache(m);
  bind_draws(m);
  m.def(
      "_op_records",
      [] {
        nb::list records;
        for (const OpRecord* op : op_records()) records.append(describe_record(*op));
        return records;
      },
      "All ops: name, signature, help, where they are shown, and which parts they have.");
  m.def("_update_row", describe_update, "name"_a,
        "Names of an optimizer step's states, and its settings by name.");
  m.def("_vdot", vdot, "x1"_a, "x2"_a);
  bind_shapes(m);
}

}  // namespace tw::binding
