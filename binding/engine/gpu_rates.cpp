// How fast GPUs are taken to be, for `tilewright tune`.
#include <nanobind/stl/map.h>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/cuda/gpu/gpu.h"
#include "core/cuda/matmul/rungs.h"
#include "core/cuda/gpu/rates.h"
#include "core/runtime/registry.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

nb::list rates_of(int number) {
  nb::list out;
  for (const cuda::RateRow& row : cuda::rate_rows(number)) {
    nb::dict rate;
    rate["name"] = row.name;
    rate["help"] = row.help;
    rate["value"] = row.value;
    rate["guess"] = row.guess;
    rate["least"] = row.least;
    rate["most"] = row.most;
    out.append(rate);
  }
  return out;
}

nb::dict estimates_of(int number, const Shape& sizes, DType dtype) {
  const DeviceGuard guard(&cuda::Gpu::at(number));
  nb::dict out;
  for (const auto& [name, ns] : cuda::product_estimates(sizes[0], sizes[1], sizes[2], dtype))
    out[name.c_str()] = ns;
  return out;
}

}  // namespace

void bind_gpu_rates(nb::module_& m) {
  m.def("_gpu_rates", rates_of, "number"_a,
        "Rates that a GPU's estimates stand on, each with its guess and limits.");
  m.def("_gpu_rates_key", cuda::rates_key, "number"_a,
        "Name and driver of a GPU, to which measured rates belong.");
  m.def(
      "_set_gpu_rates",
      [](const nb::dict& measured) {
        cuda::set_measured_rates(nb::cast<cuda::MeasuredRates>(measured));
      },
      "measured"_a, "Replaces all measured rates, by key and name; opens no GPU.");
  m.def("_gpu_estimates", estimates_of, "number"_a, "sizes"_a, "dtype"_a,
        "Nanoseconds that each rung which accepts a product m x k @ k x n is taken to need.");
}

}  // namespace tw::binding
