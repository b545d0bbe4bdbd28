// Steps of recurrent layers by rows of the batch.
#include "core/cpu/sequence/recurrent_steps.h"

#include <algorithm>

#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

}  // namespace

const RecurrentTable::Cells& cells_of(const RecurrentProblem& p) {
  const RecurrentTable& table = *active_kernels().recurrent;
  return p.dtype == DType::float64 ? table.float64 : table.float32;
}

void move_rows(const RecurrentProblem& p, int64_t rows, RecurrentStep* s) {
  const int64_t bytes = static_cast<int64_t>(size_of(p.dtype)), kept = kept_of(p) * p.hidden;
  const auto move = [=](auto& array, int64_t row) {
    using Byte =
        std::conditional_t<std::is_same_v<decltype(array), const void*&>, const char, char>;
    if (array) array = static_cast<Byte*>(array) + rows * row * bytes;
  };
  for (RecurrentSums* sums : {&s->inputs, &s->states}) move(sums->at, sums->row);
  for (const void** array : {&s->before, &s->dy, &s->dc}) move(*array, p.hidden);
  for (void** array : {&s->y, &s->c, &s->dh, &s->dcell}) move(*array, p.hidden);
  move(s->kept, kept), move(s->dkept, kept);
  move(s->dx, s->gradient_row), move(s->dproducts, s->gradient_row);
}

void run_step(const RecurrentProblem& p, RecurrentTable::Step run, const RecurrentStep& all) {
  parallel_ranges(p.batch, std::max<int64_t>(thresholds::kCellGrain / (p.hidden + 1), 1),
                  [&](int64_t begin, int64_t end) {
                    RecurrentStep s = all;
                    s.rows = end - begin;
                    move_rows(p, begin, &s);
                    run(s);
                  });
}

}  // namespace tw
