// The definitions of copies and of what fills new tensors: one element after the other, as another
// type where the result has one.
#include <cmath>
#include <cstring>

#include "core/cpu/copy/plain.h"
#include "core/cpu/copy/problems.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"

namespace tw {
namespace {

using std::int64_t;

void copy(const CopyProblem& p) {
  const auto x_bytes = int64_t(size_of(p.from)), y_bytes = int64_t(size_of(p.to));
  for (int64_t i = 0; i < p.shape.product(); ++i)
    convert_plainly(p.from,
                    static_cast<const char*>(p.x) + offset_of(i, p.shape, p.x_strides) * x_bytes,
                    p.to, static_cast<char*>(p.y) + offset_of(i, p.shape, p.y_strides) * y_bytes);
}
// Without a value: zeros.
void fill(const FillProblem& p) {
  const auto bytes = static_cast<std::size_t>(size_of(p.dtype));
  for (int64_t i = 0; i < p.count; ++i) {
    char* const y = static_cast<char*>(p.y) + i * int64_t(bytes);
    for (std::size_t byte = 0; byte < bytes; ++byte)
      y[byte] = p.value ? static_cast<const char*>(p.value)[byte] : char(0);
  }
}
void unslice(const UnsliceProblem& p) {
  fill(p.all);
  copy(p.window);
}
void sequence(const SequenceProblem& p) {
  for (int64_t i = 0; i < p.count; ++i) {
    char* const y = static_cast<char*>(p.y) + i * int64_t(size_of(p.dtype));
    if (p.whole) {
      const auto value = std::uint64_t(p.start) + std::uint64_t(i) * std::uint64_t(p.step);
      const auto whole = static_cast<int64_t>(value);
      convert_plainly(DType::int64, &whole, p.dtype, y);
    } else {
      const bool is_end = p.ends && i == p.count - 1 && i > 0;
      double value = is_end ? p.real_stop : p.real_start + double(i) * p.real_step;
      if (p.floors) value = std::floor(value);
      convert_plainly(DType::float64, &value, p.dtype, y);
    }
  }
}
template <bool lower> void triangle(const TriangleProblem& p) {
  const auto bytes = int64_t(size_of(p.dtype));
  for (int64_t i = 0; i < p.shape.product(); ++i) {
    const int64_t row = i / p.columns % p.rows, column = i % p.columns;
    const bool is_kept = lower ? column - row <= p.diagonal : column - row >= p.diagonal;
    char* const y = p.y + i * bytes;
    if (is_kept)
      convert_plainly(p.dtype, p.x + offset_of(i, p.shape, p.strides) * bytes, p.dtype, y);
    else
      std::memset(y, 0, static_cast<std::size_t>(bytes));
  }
}

template <class Problem, void (*op)(const Problem&)> void run(const void* problem) {
  op(*static_cast<const Problem*>(problem));
}

}  // namespace

void register_naive_copy_kernels() {
  for (const char* op : {"copy", "astype", "assign"}) add_definition(op, run<CopyProblem, copy>);
  for (const char* op : {"zeros", "full"}) add_definition(op, run<FillProblem, fill>);
  add_definition("unslice", run<UnsliceProblem, unslice>);
  add_definition("sequence", run<SequenceProblem, sequence>);
  add_definition("tril", run<TriangleProblem, triangle<true>>);
  add_definition("triu", run<TriangleProblem, triangle<false>>);
}

}  // namespace tw
