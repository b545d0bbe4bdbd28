// Attributes as shapes, and the limit of their number.
#include "core/runtime/op.h"

#include "core/base/error.h"

namespace tw {

Dims Attributes::dims(int i) const {
  const List extents = list(i);
  return Dims({extents.begin(), extents.end()});
}

std::uint32_t Attributes::axes(int i, int rank, const char* op) const {
  if (none(i)) return all_axes(rank);
  std::uint32_t bits = 0;
  for (const Attribute axis : list(i)) {
    const std::uint32_t bit = 1u << normalize_axis(axis, rank, op);
    if (bits & bit) fail(ErrorKind::value, op, ": axis ", axis, " is repeated");
    bits |= bit;
  }
  return bits;
}

void AttributeList::fail_full() {
  fail(ErrorKind::value, "an op takes at most ", kCapacity, " numbers in its lists");
}

}  // namespace tw
