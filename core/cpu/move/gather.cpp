// Moving rows by index, on raw pointers.
#include "core/cpu/move/gather.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/error.h"
#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/move/problems.h"
#include "core/cpu/pointwise/pointwise.h"
#include "core/memory/scratch.h"
#include "core/problems/index_errors.h"
#include "core/runtime/choice.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

// Rows come from anywhere: the hardware sees a row's lines coming, but not the next row. So its
// first lines are prefetched some rows before they are copied.
constexpr std::int64_t kLineBytes = 64;

template <class T> void gather_items(std::int64_t begin, std::int64_t end, const void* x,
                                     const std::int64_t* offsets, void* y) {
  for (std::int64_t i = begin; i < end; ++i)
    static_cast<T*>(y)[i] = static_cast<const T*>(x)[offsets[i]];
}

// `lines`: so many of a row are prefetched.
void gather_range(std::size_t item, std::int64_t row_count, std::int64_t lines, std::int64_t begin,
                  std::int64_t end, const void* x, const std::int64_t* offsets, void* y) {
  if (row_count == 1 && item == 4) return gather_items<std::uint32_t>(begin, end, x, offsets, y);
  if (row_count == 1 && item == 8) return gather_items<std::uint64_t>(begin, end, x, offsets, y);
  const std::int64_t item_bytes = static_cast<std::int64_t>(item);
  const std::int64_t row_bytes = row_count * item_bytes;
  const std::int64_t ahead = std::min(row_bytes, lines * kLineBytes);
  const auto row = [&](std::int64_t i) {
    return static_cast<const char*>(x) + offsets[i] * item_bytes;
  };
  for (std::int64_t i = begin; i < end; ++i) {
    if (i + thresholds::kRowsAhead < end)
      for (std::int64_t b = 0; b < ahead; b += kLineBytes)
        __builtin_prefetch(row(i + thresholds::kRowsAhead) + b);
    std::memcpy(static_cast<char*>(y) + i * row_bytes, row(i), static_cast<std::size_t>(row_bytes));
  }
}

}  // namespace

void gather_rows(DType dtype, std::int64_t rows, std::int64_t row_count, const void* x,
                 const std::int64_t* offsets, void* y) {
  const std::size_t item = size_of(dtype);
  const std::int64_t row_bytes = row_count * static_cast<std::int64_t>(item);
  const std::int64_t grain = thresholds::kGrainBytes / (row_bytes + 1) + 1;
  const bool waits = row_count > 1 && rows > thresholds::kRowsAhead;
  const std::int64_t lines =
      waits && uses(Optimization::software_prefetch) ? thresholds::kLinesAhead : 0;
  parallel_ranges(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    gather_range(item, row_count, lines, begin, end, x, offsets, y);
  });
}

void scatter_rows(DType dtype, std::int64_t rows, std::int64_t row_count, const void* x,
                  const std::int64_t* offsets, void* y) {
  const std::int64_t item = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t row_bytes = row_count * item;
  for (std::int64_t i = 0; i < rows; ++i)
    std::memcpy(static_cast<char*>(y) + offsets[i] * item,
                static_cast<const char*>(x) + i * row_bytes, static_cast<std::size_t>(row_bytes));
}

void scatter_add_rows(DType dtype, std::int64_t rows, std::int64_t row_count, const void* x,
                      const std::int64_t* offsets, void* y) {
  visit(dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      constexpr std::int64_t kVectorRow = 32;
      const ComputeType type = compute_type_of(dtype);
      if (row_count >= kVectorRow && dtype_of(type) == dtype &&
          uses(Optimization::vector_scatter_rows)) {
        const PointwiseFn add = pointwise_value(PointwiseOp::add, type);
        constexpr int kSteps[] = {1, 1};
        // Threads share the places, so that rows are added in order whatever their number.
        const bool few = rows * row_count * std::int64_t{sizeof(T)} < 2 * thresholds::kGrainBytes;
        const std::int64_t places = few ? 1 : *std::max_element(offsets, offsets + rows) + 1;
        const std::int64_t grain = (places + num_threads() - 1) / num_threads();
        return parallel_ranges(places, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = 0; i < rows; ++i) {
            if (!few && (offsets[i] < begin || offsets[i] >= end)) continue;
            T* const to = static_cast<T*>(y) + offsets[i];
            const void* const terms[] = {to, static_cast<const T*>(x) + i * row_count};
            add(row_count, to, terms, kSteps, Traffic::in_l1);
          }
        });
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        T* to = static_cast<T*>(y) + offsets[i];
        const T* from = static_cast<const T*>(x) + i * row_count;
        for (std::int64_t j = 0; j < row_count; ++j) to[j] = static_cast<T>(to[j] + from[j]);
      }
    } else if constexpr (is_complex_number<T>) {
      for (std::int64_t i = 0; i < rows; ++i) {
        T* to = static_cast<T*>(y) + offsets[i];
        const T* from = static_cast<const T*>(x) + i * row_count;
        for (std::int64_t j = 0; j < row_count; ++j)
          to[j] = {to[j].re + from[j].re, to[j].im + from[j].im};
      }
    } else {
      fail(ErrorKind::type, "scatter_add: no kernel for ", name_of(dtype));
    }
  });
}

// ---- the ops' kernels and lowerings ----

namespace {

using std::int64_t;

template <int first> std::uint32_t bytes_of_rows(const Call& call) {
  int rank = 0;
  for (int i = first; i < call.inputs; ++i) rank = std::max(rank, call.in[i].rank());
  return static_cast<std::uint32_t>(sizeof(RowsProblem) +
                                    sizeof(int64_t) * (call.inputs - first) * rank);
}

// `indexed`: the tensor whose leading axes the arrays index, as row-major strides or its own.
void set_up_rows(const Call& call, int first, const Shape& indexed, const Strides& strides,
                 RowsProblem& p) {
  p.dtype = call.in[0].dtype;
  p.arrays = call.inputs - first;
  Shape index;
  for (int i = first; i < call.inputs; ++i)
    index = broadcast_shapes(index, *call.in[i].shape, "index");
  p.index.assign(index);
  p.rows = element_count(index);
  p.row_count = 1;
  for (int i = p.arrays; i < indexed.rank(); ++i) p.row_count *= indexed[i];
  p.count = call.out[0].count;
  for (int k = 0; k < p.arrays; ++k) {
    const Meta& array = call.in[first + k];
    p.row_step[k] = strides[k];
    const int lead = p.index.rank() - array.rank();
    for (int i = 0; i < p.index.rank(); ++i)
      p.steps(k)[i] = i < lead || array.size(i - lead) == 1 ? 0 : (*array.strides)[i - lead];
  }
}

// Adds what an array's indices along the last axis, or one index for all of it, are worth.
void add_offsets(const int64_t* from, int64_t step, int64_t row_step, int64_t count,
                 int64_t* offsets) {
  if (step == 0) {
    for (int64_t j = 0; j < count; ++j) offsets[j] += *from * row_step;
  } else if (step == 1) {
    for (int64_t j = 0; j < count; ++j) offsets[j] += from[j] * row_step;
  } else {
    for (int64_t j = 0; j < count; ++j) offsets[j] += from[j * step] * row_step;
  }
}

// Element offsets of every index tuple.
void write_offsets(const RowsProblem& p, int64_t* offsets) {
  const int last = p.index.rank() - 1;
  const int64_t inner = last < 0 ? 1 : p.index[last];
  int64_t place[kMaxRank] = {}, at[kMaxRank] = {};
  for (int64_t i = 0; i < p.rows; i += inner) {
    std::fill_n(offsets + i, inner, 0);
    for (int k = 0; k < p.arrays; ++k)
      add_offsets(p.at[k] + at[k], last < 0 ? 0 : p.steps(k)[last], p.row_step[k], inner,
                  offsets + i);
    for (int axis = last - 1; axis >= 0; --axis) {
      const bool wraps = ++place[axis] == p.index[axis];
      for (int k = 0; k < p.arrays; ++k)
        at[k] += wraps ? -(p.index[axis] - 1) * p.steps(k)[axis] : p.steps(k)[axis];
      if (!wraps) break;
      place[axis] = 0;
    }
  }
}
struct Offsets {
  explicit Offsets(const RowsProblem& p)
      : scratch(static_cast<std::size_t>(p.rows) * sizeof(int64_t)) {
    write_offsets(p, at());
  }
  int64_t* at() const { return scratch.as<int64_t>(); }
  const Scratch scratch;
};

void set_up_gather(const Call& call, void* problem) {
  RowsProblem& p = *new (problem) RowsProblem;
  set_up_rows(call, 1, *call.in[0].shape, *call.in[0].strides, p);
}
void set_up_scatter_add(const Call& call, void* problem) {
  RowsProblem& p = *new (problem) RowsProblem;
  set_up_rows(call, 1, *call.out[0].shape, contiguous_strides(*call.out[0].shape), p);
}
void set_up_scatter(const Call& call, void* problem) {
  RowsProblem& p = *new (problem) RowsProblem;
  set_up_rows(call, 2, *call.in[0].shape, *call.in[0].strides, p);
}
void bind_rows(void* problem, void* const* at) {
  RowsProblem& p = *static_cast<RowsProblem*>(problem);
  p.x = at[0];
  for (int k = 0; k < p.arrays; ++k) p.at[k] = static_cast<const int64_t*>(at[1 + k]);
  p.y = at[1 + p.arrays];
}
void bind_scatter(void* problem, void* const* at) {
  RowsProblem& p = *static_cast<RowsProblem*>(problem);
  p.x = at[1];
  for (int k = 0; k < p.arrays; ++k) p.at[k] = static_cast<const int64_t*>(at[2 + k]);
  p.y = at[2 + p.arrays];
}

void run_gather(const void* problem) {
  const auto& p = *static_cast<const RowsProblem*>(problem);
  gather_rows(p.dtype, p.rows, p.row_count, p.x, Offsets(p).at(), p.y);
}
void run_scatter_add(const void* problem) {
  const auto& p = *static_cast<const RowsProblem*>(problem);
  std::memset(p.y, 0, static_cast<std::size_t>(p.count) * size_of(p.dtype));
  scatter_add_rows(p.dtype, p.rows, p.row_count, p.x, Offsets(p).at(), p.y);
}
void run_scatter(const void* problem) {
  const auto& p = *static_cast<const RowsProblem*>(problem);
  scatter_rows(p.dtype, p.rows, p.row_count, p.x, Offsets(p).at(), p.y);
}

// ---- along one axis, the axes before it as they are ----

int take_axis(const Call& call) { return static_cast<int>(call.attributes[0]); }
void set_up_take(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  const int axis = take_axis(call);
  const auto size = static_cast<int64_t>(size_of(x.dtype));
  TakeProblem& p = *new (problem) TakeProblem;
  p.dtype = x.dtype;
  p.rows = 1;
  p.count = call.in[1].count;
  p.step = (*x.strides)[axis] * size;
  p.run = size;
  for (int i = 0; i < axis; ++i) {
    p.rows *= x.size(i);
    if (x.size(i) == 1) continue;
    const int64_t stride = (*x.strides)[i] * size;
    const int last = p.lead.rank() - 1;
    if (last >= 0 && p.strides[last] == x.size(i) * stride) {  // goes on where that axis does
      p.lead[last] *= x.size(i);
      p.strides[last] = stride;
    } else {
      p.lead.push_back(x.size(i));
      p.strides.push_back(stride);
    }
  }
  for (int i = axis + 1; i < x.rank(); ++i) p.run *= x.size(i);
}
void bind_take(void* problem, void* const* at) {
  TakeProblem& p = *static_cast<TakeProblem*>(problem);
  p.x = static_cast<const char*>(at[0]);
  p.index = static_cast<const int64_t*>(at[1]);
  p.y = static_cast<char*>(at[2]);
}

// Rows of one to two W, which start at row(i): two moves, which may overlap; of one alone where it
// is all.
template <class W, bool all = false, class Row>
void take_ends(int64_t bytes, int64_t begin, int64_t end, char* y, Row row) {
  const int64_t run = all ? static_cast<int64_t>(sizeof(W)) : bytes;
  for (int64_t i = begin; i < end; ++i, y += run) {
    const char* const from = row(i);
    W first, last;
    std::memcpy(&first, from, sizeof first);
    if (!all) std::memcpy(&last, from + run - sizeof last, sizeof last);
    std::memcpy(y, &first, sizeof first);
    if (!all) std::memcpy(y + run - sizeof last, &last, sizeof last);
  }
}
struct Bytes16 {
  std::uint64_t at[2];
};
struct Bytes32 {
  Bytes16 at[2];
};
template <class Row> void take_runs(int64_t run, int64_t begin, int64_t end, char* y, Row row) {
  switch (run) {
    case 1: return take_ends<std::uint8_t, true>(run, begin, end, y, row);
    case 2: return take_ends<std::uint16_t, true>(run, begin, end, y, row);
    case 4: return take_ends<std::uint32_t, true>(run, begin, end, y, row);
    case 8: return take_ends<std::uint64_t, true>(run, begin, end, y, row);
    case 16: return take_ends<Bytes16, true>(run, begin, end, y, row);
  }
  if (run < 4) return take_ends<std::uint16_t>(run, begin, end, y, row);
  if (run < 8) return take_ends<std::uint32_t>(run, begin, end, y, row);
  if (run < 16) return take_ends<std::uint64_t>(run, begin, end, y, row);
  if (run <= 32) return take_ends<Bytes16>(run, begin, end, y, row);
  if (run <= thresholds::kShortRunBytes) return take_ends<Bytes32>(run, begin, end, y, row);
  for (int64_t i = begin; i < end; ++i, y += run)
    std::memcpy(y, row(i), static_cast<std::size_t>(run));
}
int64_t byte_of_row(const TakeProblem& p, int64_t row, int axes) {
  int64_t bytes = 0;
  for (int i = axes - 1; i >= 0 && row > 0; row /= p.lead[i], --i)
    bytes += row % p.lead[i] * p.strides[i];
  return bytes;
}
void take_along(const TakeProblem& p) {
  parallel_ranges(
      p.rows * p.count, thresholds::kGrainBytes / p.run + 1, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end;) {
          const int64_t first = at % p.count, stop = std::min(p.count, first + end - at);
          const char* const x = p.x + byte_of_row(p, at / p.count, p.lead.rank());
          take_runs(p.run, first, stop, p.y + at * p.run,
                    [&](int64_t i) { return x + p.index[i] * p.step; });
          at += stop - first;
        }
      });
}

// Of few short runs some rows go together: where what they take lies is written down once, for all
// rows of the last axes of the lead, or for a part of those of the last.
bool is_short(const TakeProblem& p) {
  return p.count <= thresholds::kTakenTogether / 4 && p.run <= thresholds::kShortRunBytes &&
         p.rows > 1 && uses(Optimization::short_run_copies);
}
void take_some_rows(const TakeProblem& p) {
  int axes = p.lead.rank();  // those before the rows that go together
  int64_t rows = 1;
  while (axes > 0 && rows * p.lead[axes - 1] * p.count <= thresholds::kTakenTogether)
    rows *= p.lead[--axes];
  const bool is_part = rows == 1;
  if (is_part) rows = p.lead[--axes];
  const int64_t together = std::min(rows, thresholds::kTakenTogether / p.count);
  int64_t offsets[thresholds::kTakenTogether];
  for (int64_t i = 0; i < together; ++i) {
    const int64_t row = byte_of_row(p, i, p.lead.rank());
    for (int64_t j = 0; j < p.count; ++j) offsets[i * p.count + j] = row + p.index[j] * p.step;
  }
  const int64_t groups = (rows + together - 1) / together, row_bytes = p.count * p.run;
  const int64_t grain = thresholds::kGrainBytes / (together * row_bytes) + 1;
  parallel_ranges(p.rows / rows * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t outer = i / groups, first = i % groups * together;
      const char* const x =
          p.x + byte_of_row(p, outer, axes) + (is_part ? first * p.strides[axes] : 0);
      take_runs(p.run, 0, std::min(together, rows - first) * p.count,
                p.y + (outer * rows + first) * row_bytes,
                [&](int64_t k) { return x + offsets[k]; });
    }
  });
}
void run_take(const void* problem) {
  const auto& p = *static_cast<const TakeProblem*>(problem);
  if (p.rows * p.count * p.run == 0) return;
  is_short(p) ? take_some_rows(p) : take_along(p);
}
// Rows must have no gaps behind the axis, and neither the indices.
std::uint32_t copies_of_take(const Call& call) {
  const Meta& x = call.in[0];
  std::uint32_t copies = call.in[1].contiguous ? 0 : 2;
  int64_t step = 1;
  for (int i = x.rank() - 1; i > take_axis(call); --i) {
    if (x.size(i) != 1 && (*x.strides)[i] != step) copies |= 1;
    step *= x.size(i);
  }
  return copies;
}

void set_up_indices(const Call& call, void* problem) {
  const Attributes& w = call.attributes;
  *static_cast<IndexProblem*>(problem) = {call.in[0].count, w[0],   w[1], w.flag(2), w[3],
                                          nullptr,          nullptr};
}
void bind_indices(void* problem, void* const* at) {
  IndexProblem& p = *static_cast<IndexProblem*>(problem);
  p.x = static_cast<const int64_t*>(at[0]);
  p.y = static_cast<int64_t*>(at[1]);
}
[[noreturn]] void fail_index(const IndexProblem& p, int64_t index) {
  const std::string shown =
      p.is_uint64 ? std::to_string(static_cast<std::uint64_t>(index)) : std::to_string(index);
  fail_index(static_cast<Indexing>(p.user), shown, p.axis, p.extent);
}
void run_indices(const void* problem) {
  const auto& p = *static_cast<const IndexProblem*>(problem);
  const int64_t low = p.is_uint64 || p.axis == kNone ? 0 : -p.extent;
  const auto is_bad = [&](int64_t index) {
    const auto unsigned_low = static_cast<std::uint64_t>(low);
    return static_cast<std::uint64_t>(index) - unsigned_low >=
           static_cast<std::uint64_t>(p.extent) - unsigned_low;
  };
  bool any_bad = false;
  for (int64_t i = 0; i < p.count; ++i) {
    const int64_t index = p.x[i];
    any_bad |= is_bad(index);
    p.y[i] = index + (index < 0 ? p.extent : 0);
  }
  if (any_bad) fail_index(p, *std::find_if(p.x, p.x + p.count, is_bad));
}

// Rows must be contiguous behind the indexed axes.
std::uint32_t copies_of_gather(const Call& call) {
  const Meta& x = call.in[0];
  if (x.contiguous) return 0;
  int64_t step = 1;
  for (int i = x.rank() - 1; i >= call.inputs - 1; --i) {
    if (x.size(i) != 1 && (*x.strides)[i] != step) return 1;
    step *= x.size(i);
  }
  return 0;
}
const char* refuses_half(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return is_floating(dtype) && size_of(dtype) == 2 ? kTooNarrow : nullptr;
}

}  // namespace

void register_gather_kernels() {
  add_kernel<IndexProblem>(
      "checked_indices", "one after the other",
      {.set_up = set_up_indices, .bind = bind_indices, .run = run_indices, .contiguous = 1});
  add_definition("checked_indices", run_indices);  // whose loop is the definition
  Lowering& gather = add_kernel<RowsProblem>(
      "gather_rows", "whole rows, shared between threads",
      {.set_up = set_up_gather, .bind = bind_rows, .run = run_gather, .name = "rows"});
  gather.copies = copies_of_gather;
  gather.bytes = bytes_of_rows<1>;
  add_kernel<TakeProblem>(
      "take_rows", "whole rows, shared between threads",
      {.set_up = set_up_take, .bind = bind_take, .run = run_take, .name = "rows"})
      .copies = copies_of_take;
  add_kernel<RowsProblem>("scatter_add_rows", "whole rows in order",
                          {.refuses = refuses_half,
                           .set_up = set_up_scatter_add,
                           .bind = bind_rows,
                           .run = run_scatter_add,
                           .contiguous = 1,
                           .name = "rows"})
      .bytes = bytes_of_rows<1>;
  add_kernel<RowsProblem>("scatter_rows", "whole rows in order",
                          {.set_up = set_up_scatter,
                           .bind = bind_scatter,
                           .run = run_scatter,
                           .contiguous = 2,
                           .name = "rows"})
      .bytes = bytes_of_rows<2>;
}

}  // namespace tw
