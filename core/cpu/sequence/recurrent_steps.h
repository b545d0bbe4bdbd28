// The arrays of one step of a recurrent layer, and its cells on all threads.
#pragma once
#include <cstdint>
#include <type_traits>

#include "core/cpu/sequence/recurrent.h"

namespace tw {

inline int gates_of(const RecurrentProblem& p) { return gates_of(p.cell); }
inline int kept_of(const RecurrentProblem& p) { return kept_of(p.cell); }
// The place of the step that is `index`-th to run.
inline std::int64_t step_at(const RecurrentProblem& p, std::int64_t index) {
  return p.reverse ? p.steps - 1 - index : index;
}
// Whether copying a weight pays.
inline bool has_many_rows(const RecurrentProblem& p) {
  return p.steps > 1 && p.steps * p.batch >= 64;
}

// Arrays are (steps, batch, blocks * hidden).
struct Places {
  const RecurrentProblem& p;
  std::int64_t states = p.batch * p.hidden * static_cast<std::int64_t>(size_of(p.dtype));  // bytes
  std::int64_t at(std::int64_t index) const { return step_at(p, index); }
  template <class V> V* in(V* array, std::int64_t step, int blocks = 1) const {
    using Byte = std::conditional_t<std::is_const_v<V>, const char, char>;
    return array ? static_cast<Byte*>(array) + step * blocks * states : nullptr;
  }
  // The states before the step that is `index`-th.
  const void* before(const void* array, const void* first, std::int64_t index) const {
    return index == 0 ? first : in(array, at(index - 1));
  }
};

const RecurrentTable::Cells& cells_of(const RecurrentProblem& p);
// The same step for the rows from `rows` on.
void move_rows(const RecurrentProblem& p, std::int64_t rows, RecurrentStep* step);
void run_step(const RecurrentProblem& p, RecurrentTable::Step run, const RecurrentStep& all);

}  // namespace tw
