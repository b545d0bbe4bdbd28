// Pointwise rows that apply a function to one operand alone (the logarithm in xlogy): where that
// operand repeats, the function is computed once for each of its elements.
#include "core/cpu/pointwise/pointwise.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"

namespace tw {
namespace {

using Problem = PointwiseProblem;

// The part over the axes along which the operand does not repeat, into an array without gaps.
Problem part_of(const Problem& p) {
  const int k = p.repeated.operand;
  Problem part = p;
  part.fn = p.repeated.part;
  part.repeated = {};
  part.operands = 2;
  part.rank = 0;
  part.count = 1;
  part.dtype[0] = dtype_of(p.type);
  part.dtype[1] = p.dtype[k];
  part.data[1] = p.data[k];
  for (int axis = 0; axis < p.rank; ++axis) {
    if (p.stride[k][axis] == 0) continue;
    part.extent[part.rank] = p.extent[axis];
    part.stride[1][part.rank++] = p.stride[k][axis];
    part.count *= p.extent[axis];
  }
  if (part.rank == 0) part.extent[0] = part.stride[1][0] = part.rank = 1;
  std::int64_t step = 1;
  for (int axis = part.rank - 1; axis >= 0; --axis) {
    part.stride[0][axis] = step;
    step *= part.extent[axis];
  }
  return part;
}

// The row with the part as its last operand.
Problem rest_of(const Problem& p, const Problem& part) {
  const int k = p.repeated.operand, last = p.operands;
  Problem rest = p;
  rest.fn = p.repeated.rest;
  rest.repeated = {};
  rest.operands = static_cast<std::int8_t>(last + 1);
  rest.dtype[last] = part.dtype[0];
  rest.data[last] = part.data[0];
  for (int axis = 0, own = 0; axis < p.rank; ++axis)
    rest.stride[last][axis] = p.stride[k][axis] == 0 ? 0 : part.stride[0][own++];
  return rest;
}

}  // namespace

bool run_repeated_part(const PointwiseProblem& p) {
  constexpr std::int64_t kRepeats = 4;  // fewer do not pay for another pass
  Problem part = part_of(p);
  if (part.count * kRepeats > p.count || !uses(Optimization::broadcast_hoisting)) return false;
  const Scratch values(static_cast<std::size_t>(part.count) * size_of(part.dtype[0]));
  part.data[0] = values.as<void>();
  run_pointwise(part);
  run_pointwise(rest_of(p, part));
  return true;
}

}  // namespace tw
