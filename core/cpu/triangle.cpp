// The triangles of matrices: what is left of a diagonal, or right of it, a row at a time.
#include <algorithm>
#include <cstring>

#include "core/cpu/families.h"
#include "core/cpu/lowering.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

using std::int64_t;

// Bytes that a thread takes at a time: long against the hand-over.
constexpr int64_t kGrain = 256 << 10;

struct Problem {
  int64_t batches, rows, columns, diagonal, bytes;  // of an element
  const char* x;
  char* y;
};
void set_up(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  const int64_t rows = x.size(x.rank() - 2), columns = x.size(x.rank() - 1);
  *static_cast<Problem*>(problem) = {
      rows * columns ? x.count / (rows * columns) : 0, rows,    columns, call.words[0],
      static_cast<int64_t>(size_of(x.dtype)),          nullptr, nullptr};
}
void bind(void* problem, void* const* at) {
  auto& p = *static_cast<Problem*>(problem);
  p.x = static_cast<const char*>(at[0]);
  p.y = static_cast<char*>(at[1]);
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  constexpr double bytes_per_ns = 16;
  return 100 + static_cast<double>(p.batches * p.rows * p.columns * p.bytes) / bytes_per_ns;
}
// y may be x.
template <bool lower> void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  const int64_t row_bytes = p.columns * p.bytes;
  // Diagonals beyond the matrix are all alike, and so do not overflow.
  const int64_t diagonal = std::clamp(p.diagonal, -p.rows - 1, p.columns + 1);
  parallel_ranges(
      p.batches * p.rows, kGrain / (row_bytes + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t left = std::clamp<int64_t>(row % p.rows + diagonal + lower, 0, p.columns);
          const auto part = static_cast<std::size_t>(left * p.bytes);
          const auto rest = static_cast<std::size_t>(row_bytes) - part;
          const char* const x = p.x + row * row_bytes;
          char* const y = p.y + row * row_bytes;
          std::memset(lower ? y + part : y, 0, lower ? rest : part);
          if (x == y) continue;
          if (lower)
            std::memcpy(y, x, part);
          else
            std::memcpy(y + part, x + part, rest);
        }
      });
}

constexpr char kHelp[] = "rows, a part copied and a part zeros";

}  // namespace

void register_triangle_kernels() {
  add_kernel<Problem>("tril", kHelp, nullptr, set_up, bind, cost_ns, run<true>, 1, "triangle");
  add_kernel<Problem>("triu", kHelp, nullptr, set_up, bind, cost_ns, run<false>, 1, "triangle");
}

}  // namespace tw
