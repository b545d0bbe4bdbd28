// Several short arrays into one, in one pass: a copy of each as an op of its own takes longer than
// the copying.
#include <cstring>
#include <type_traits>

#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/move/problems.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

using std::int64_t;

using Part = JoinedPart;
using Problem = JoinProblem;

std::uint32_t problem_bytes(const Call& call) {
  return static_cast<std::uint32_t>(sizeof(Problem) + sizeof(Part) * call.inputs);
}

int64_t bytes_of(const Meta& x) { return x.count * static_cast<int64_t>(size_of(x.dtype)); }

const char* refuses(const Call& call) {
  for (int i = 0; i < call.inputs; ++i) {
    if (call.in[i].dtype != call.out[0].dtype) return "operands of several types";
    if (!call.in[i].contiguous) return "operands with gaps";
  }
  return bytes_of(call.out[0]) > call.inputs * thresholds::kShortJoinBytes ? "long operands"
                                                                           : nullptr;
}

void set_up(const Call& call, void* memory) {
  const Meta& y = call.out[0];
  const int axis = normalize_axis(call.attributes[0], y.rank(), call.op->name);
  Problem& p = *new (memory) Problem{.count = call.inputs, .rows = 1, .row_bytes = 0};
  for (int i = 0; i < axis; ++i) p.rows *= y.size(i);
  for (int i = 0; i < p.count; ++i) {
    const int64_t bytes = p.rows ? bytes_of(call.in[i]) / p.rows : 0;
    new (p.parts() + i) Part{.at = p.row_bytes, .bytes = bytes};
    p.row_bytes += bytes;
  }
}
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  for (int i = 0; i < p.count; ++i) p.parts()[i].x = static_cast<const char*>(*at++);
  p.y = static_cast<char*>(*at);
}
double cost_ns(const void* problem) {
  constexpr double kBytesPerNs = 8;  // one core, from and to the caches
  const auto& p = *static_cast<const Problem*>(problem);
  return 100 + 5 * p.count + double(p.rows) * double(p.row_bytes) / kBytesPerNs;
}

// Rows of `bytes`, known as one that is compiled for or not: what is copied by a call of memcpy
// takes as long for 4 bytes as for 64.
template <class Bytes>
void copy_rows(int64_t rows, Bytes bytes, const char* x, char* y, int64_t step) {
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(y + row * step, x + row * bytes, static_cast<std::size_t>(bytes));
}
template <int64_t bytes> using Known = std::integral_constant<int64_t, bytes>;

void copy_part(const Problem& p, const Part& part) {
  char* const y = p.y + part.at;
  switch (part.bytes) {
    case 0: return;
    case 1: return copy_rows(p.rows, Known<1>(), part.x, y, p.row_bytes);
    case 2: return copy_rows(p.rows, Known<2>(), part.x, y, p.row_bytes);
    case 4: return copy_rows(p.rows, Known<4>(), part.x, y, p.row_bytes);
    case 8: return copy_rows(p.rows, Known<8>(), part.x, y, p.row_bytes);
    case 16: return copy_rows(p.rows, Known<16>(), part.x, y, p.row_bytes);
    case 32: return copy_rows(p.rows, Known<32>(), part.x, y, p.row_bytes);
    default: return copy_rows(p.rows, part.bytes, part.x, y, p.row_bytes);
  }
}

void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  if (p.rows * p.row_bytes == 0) return;
  const int64_t grain = thresholds::kGrainBytes * p.count / (p.rows * p.row_bytes) + 1;
  parallel_ranges(p.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) copy_part(p, p.parts()[i]);
  });
}
std::string describe(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  return std::to_string(p.count) + " tensors, " + std::to_string(p.rows * p.row_bytes) + " bytes";
}

}  // namespace

void register_join_kernels() {
  for (const char* op : {"concat", "stack"}) {
    Lowering& lowering = add_kernel<Problem>(op, "short operands, one after the other",
                                             {.refuses = refuses,
                                              .set_up = set_up,
                                              .bind = bind,
                                              .cost_ns = cost_ns,
                                              .run = run,
                                              .name = "short_parts"});
    lowering.bytes = problem_bytes;
    lowering.describe = describe;
  }
}

}  // namespace tw
