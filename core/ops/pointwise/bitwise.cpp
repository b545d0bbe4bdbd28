// The complement of bits.
#include <cstdint>

#include "core/base/error.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"

namespace tw {

namespace {

// All bits of an integer type set.
Scalar all_ones(DType dtype) {
  if (is_signed_int(dtype)) return -1;
  return Scalar::of_uint64(~std::uint64_t{0} >> (64 - 8 * size_of(dtype)));
}

}  // namespace

constexpr OpRecord kBitwiseInvert = {
    .name = "bitwise_invert",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "Each bit inverted, for integers and bool.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: bool, integer. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction | kInPlace | kConstant,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      if (!is_bool(x.dtype()) && !is_integer(x.dtype()))
        fail(ErrorKind::type, "bitwise_invert: no kernel for ", name_of(x.dtype()));
      out[0] = is_bool(x.dtype()) ? logical_not(x) : bitwise_xor(x, all_ones(x.dtype()));
    }};

}  // namespace tw
