// Where a largest or smallest element is: what reductions to positions share.
#pragma once
#include "core/cpu/reduce/reduce.h"

namespace tw {

template <class T> bool replaces(ReduceOp op, T later, T best) {
  if (later != later) return best == best;
  return takes_larger(op) ? later > best : later < best;
}
// Of argmax and argmin: the one position over axes that memory lies across. False where the general
// way takes it.
bool find_position_across(const ReduceProblem& p);

}  // namespace tw
