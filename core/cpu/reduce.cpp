// Reductions of any strided array: axes sorted and merged, work cut into panels (one kept by one
// reduced axis) for the row and column loops, conversion and gathering of what those cannot read in
// place.
#include "core/cpu/reduce.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>

#include "core/cpu/convert.h"
#include "core/cpu/isa.h"
#include "core/cpu/families.h"
#include "core/cpu/lowering.h"
#include "core/cpu/positions.h"
#include "core/cpu/reduced_axes.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Elements of a piece of work, of narrower ones than four bytes more: about 10 us, long against
// handing it to another thread.
constexpr int64_t kChunk = 64 << 10;
// Fewest pieces of large work, so that threads can share it evenly.
constexpr int64_t kMinPieces = 16;
// Most pieces that one result may be cut into, each with partial results of its own.
constexpr int64_t kMaxSegments = 64;
// Bound on the partial results, so that they stay in the second-level cache.
constexpr int64_t kPartialBytes = 1 << 20;
// Columns taken at once: their accumulators (16 KiB) stay in the first-level cache.
constexpr int64_t kStrip = 2048;
// Elements converted at once, 8 to 16 KiB: they stay in the first-level cache.
constexpr int64_t kStage = 2048;
constexpr int64_t kStageRows = 8;
// Elements of the wide rows that rows of a few elements are taken as, and the fewest such rows: as
// many as the loops of columns take at once.
constexpr int64_t kWideRow = 64, kWideRows = 8;
// Panels of at most so many elements are gathered, some together, into one that the loops are
// worth.
constexpr int64_t kSmallPanel = 32;
// Rows and columns of up to so many elements are gathered across.
constexpr int64_t kNarrow = 16;
// Longer than what any axis repeats.
constexpr int64_t kAnyRun = std::numeric_limits<int64_t>::max();

bool is_logic(ReduceOp op) { return op == ReduceOp::any || op == ReduceOp::all; }
bool is_additive(ReduceOp op) {
  return op == ReduceOp::sum || op == ReduceOp::prod || op >= ReduceOp::numbers;
}

Combine combine_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return Combine::sum;
    case ReduceOp::prod: return Combine::prod;
    case ReduceOp::numbers: return Combine::numbers;
    case ReduceOp::magnitudes: return Combine::magnitudes;
    case ReduceOp::squares: return Combine::squares;
    case ReduceOp::max:
    case ReduceOp::argmax:
    case ReduceOp::any: return Combine::max;
    default: return Combine::min;
  }
}

// What accumulators are joined by.
Combine joining(Combine combine) { return combine >= Combine::numbers ? Combine::sum : combine; }

ReduceType type_of(ReduceOp op, DType in, DType out) {
  if (is_logic(op) || (is_bool(in) && !is_additive(op))) return ReduceType::truth;
  if (is_additive(op) && (in == DType::float64 || out == DType::float64)) return ReduceType::f64;
  if (in == DType::float64) return ReduceType::f64;
  if (is_floating(in)) return ReduceType::f32;
  if (is_additive(op) && is_floating(out)) return ReduceType::f64;
  if (op == ReduceOp::prod) return is_unsigned_int(in) ? ReduceType::u64 : ReduceType::i64;
  switch (in) {
    case DType::int8: return ReduceType::i8;
    case DType::int16: return ReduceType::i16;
    case DType::int32: return ReduceType::i32;
    case DType::int64: return ReduceType::i64;
    case DType::uint16: return ReduceType::u16;
    case DType::uint32: return ReduceType::u32;
    case DType::uint64: return ReduceType::u64;
    default: return ReduceType::u8;
  }
}
// The dtype that the loops of a type read.
DType element_of(ReduceType type) {
  constexpr DType kElements[kReduceTypes] = {
      DType::float32, DType::float64, DType::int64, DType::uint64, DType::int32, DType::uint32,
      DType::int16,   DType::uint16,  DType::int8,  DType::uint8,  DType::bool_};
  return kElements[static_cast<int>(type)];
}
DType accumulator_of(ReduceOp op, ReduceType type) {
  const DType element = element_of(type);
  if (!is_additive(op)) return element;
  if (is_floating(element)) return DType::float64;
  return is_unsigned_int(element) ? DType::uint64 : DType::int64;
}

void fill(DType dtype, int64_t n, void* acc, double value) {
  convert_elements(DType::float64, dtype, 1, &value, 0, acc, 0);
  if (n > 1)
    convert_elements(dtype, dtype, n - 1, acc, 0, static_cast<char*>(acc) + size_of(dtype),
                     size_of(dtype));
}
// Extrema start from the end of the type's range; that of floating types is an infinity.
void fill_identity(ReduceOp op, DType dtype, int64_t n, void* acc) {
  const Combine combine = joining(combine_of(op));
  if (combine == Combine::sum) {
    std::memset(acc, 0, static_cast<std::size_t>(n) * size_of(dtype));
    return;
  }
  if (combine == Combine::prod) return fill(dtype, n, acc, 1);
  const bool largest = combine == Combine::max;
  if (is_floating(dtype)) return fill(dtype, n, acc, largest ? -__builtin_inf() : __builtin_inf());
  if (is_bool(dtype)) return fill(dtype, n, acc, largest ? 0 : 1);
  const int64_t top = int64_t{1} << (8 * size_of(dtype) - 2);  // the highest bit but the sign
  int64_t edge = largest ? -2 * top : top - 1 + top;
  if (is_unsigned_int(dtype)) edge = largest ? 0 : -1;
  convert_elements(dtype, dtype, n, &edge, 0, acc, size_of(dtype));
}

// Accumulators for some kept points: values, and positions where those are asked for; and their
// centres.
struct Results {
  char* values;
  int64_t* positions;
  const char* centres;
};

class Reduction {
 public:
  Reduction(const ReduceProblem& p, ReduceType type);
  void run(const ReduceProblem& p) const;

 private:
  void sum_few_rows(const ReduceProblem& p) const;
  int64_t longest_run(const ReduceProblem& p) const;
  void sort_axes(const ReduceProblem& p, int64_t run, int64_t kept_run);
  void cut(int64_t points, int64_t terms);
  void work(const char* x, int64_t begin, int64_t end, int64_t segment, int64_t point,
            Results results) const;
  void panel(const char* x, int64_t a, int64_t b, int64_t position, Results results) const;
  void gather(const char* x, int64_t n, int64_t step, int64_t n_out, int64_t a_out, int64_t b_out,
              char* stage) const;
  void work_along_kept(const char* x, int64_t begin, int64_t end, int64_t point,
                       Results results) const;
  void gather_along_reduced(const char* x, int64_t a, int64_t first, int64_t past, Results r) const;
  bool fold_columns(const char* x, int64_t a, int64_t b, Results results) const;
  void stage_rows(const char* x, int64_t a, int64_t b, int64_t position, Results results) const;
  void stage_columns(const char* x, int64_t a, int64_t b, int64_t position, Results results) const;
  void call(int64_t m, int64_t n, const void* x, int64_t row_bytes, int64_t position,
            Results results) const;
  void join_segments(int64_t points, Results results) const;
  void deliver(const ReduceProblem& p, int64_t first, int64_t points, Results results) const;
  int64_t first_point(int64_t strip) const {
    return strip / strips_ * kept_.last().count + strip % strips_ * strip_;
  }
  // The kept axes as they are worked through: extents, steps in y, steps in the accumulators.
  void kept_order(PlainDims& shape, PlainDims& in_y, PlainDims& in_results) const;
  Results at(Results r, int64_t i) const {
    return {r.values + i * acc_bytes_, r.positions ? r.positions + i : nullptr,
            r.centres ? r.centres + i * element_bytes_ : nullptr};
  }

  bool is_small_panel() const { return kept_.last().count * reduced_.last().count <= kSmallPanel; }

  ReduceOp op_;
  DType in_, element_, acc_;
  int64_t in_bytes_, element_bytes_, acc_bytes_;
  OrderedAxes kept_, reduced_;
  int64_t first_bytes_ = 0;                      // from x to the first term as the axes go
  const bool invariant_ = is_batch_invariant();  // no choice may ask how many points there are
  bool by_rows_;                                 // else by columns
  bool direct_;                                  // the loops can read x in place
  enum class Gather : std::uint8_t { none, along_kept, along_reduced } gather_ = Gather::none;
  int64_t strip_, strips_;      // of the last kept axis
  int64_t segment_, segments_;  // of the first reduced axis
  ReduceFunction loop_, join_;
  ReduceFunction row_loop_, column_loop_;  // of elements
  ReduceFunction few_rows_ = nullptr;      // of all rows at once, into y
  ReduceFunction pairs_ = nullptr;  // of the parts of complex numbers that lie one after the other
  ArgFunction arg_loop_;
  SecondFunction second_loop_ = nullptr;
  std::int64_t factors_bytes_ = 0;  // from x to the factors
};

Reduction::Reduction(const ReduceProblem& p, ReduceType type)
    : op_(p.op),
      in_(p.in),
      element_(element_of(type)),
      acc_(accumulator_of(p.op, type)),
      in_bytes_(size_of(in_)),
      element_bytes_(size_of(element_)),
      acc_bytes_(size_of(acc_)) {
  const int64_t run = longest_run(p), kept_run = invariant_ ? kAnyRun : run;
  sort_axes(p, run, kept_run);
  const OrderedAxis &kept = kept_.last(), &reduced = reduced_.last();
  by_rows_ = (kept.count == 1 && !invariant_) ||
             (reduced.count > 1 && width_of(reduced, run) <= width_of(kept, kept_run));
  const OrderedAxis& inner = by_rows_ ? reduced : kept;
  const bool same = in_ == element_ || (is_bool(in_) && element_ == DType::uint8);
  const bool dense = inner.x_bytes == in_bytes_ || (inner.count == 1 && !invariant_);
  const bool short_truths = is_bool(element_) && by_rows_ && reduced.count <= kNarrow / 2;
  direct_ = same && dense && !short_truths;
  cut(kept_.count(), reduced_.count());

  const ReduceTable& table = *active_kernels().reduce;
  const auto combine = static_cast<int>(combine_of(op_));
  const int t = static_cast<int>(type);
  // Accumulators of sums and products are of 64 bits, and wrap alike whatever their sign.
  const int joined = static_cast<int>(!is_additive(op_)        ? type
                                      : acc_ == DType::float64 ? ReduceType::f64
                                                               : ReduceType::i64);
  row_loop_ = table.rows[combine][t];
  column_loop_ = table.columns[combine][t];
  loop_ = by_rows_ ? row_loop_ : column_loop_;
  join_ = table.columns[static_cast<int>(joining(combine_of(op_)))][joined];
  const bool widened =
      in_ == DType::bfloat16 && type == ReduceType::f32 && !is_arg(op_) && !p.centres;
  const ReduceFunction reads_bfloat16 =
      (by_rows_ ? table.bfloat16_rows : table.bfloat16_columns)[combine];
  if (widened && dense && reads_bfloat16) {
    direct_ = true;
    loop_ = reads_bfloat16;
  }
  const bool of_pairs = !invariant_ && kept.count == 2 && kept.x_bytes == in_bytes_ &&
                        in_ == element_ && reduced.x_bytes == 2 * in_bytes_;
  if (of_pairs && !by_rows_ && op_ == ReduceOp::sum && acc_ == DType::float64 && !p.centres &&
      !p.factors)
    pairs_ = table.pair_rows[t];
  if (p.centres) second_loop_ = (by_rows_ ? table.squares_rows : table.squares_columns)[t];
  if (p.factors) {
    second_loop_ = (by_rows_ ? table.product_rows : table.product_columns)[t];
    if (widened)
      second_loop_ = by_rows_ ? table.bfloat16_product_rows : table.bfloat16_product_columns;
    factors_bytes_ = static_cast<const char*>(p.factors) - static_cast<const char*>(p.x);
  }
  if (!invariant_ && !is_arg(op_) && !second_loop_ && !pairs_ && is_small_panel()) {
    const int64_t kept_outside = kept_.rank > 1 ? kept_.axis[kept_.rank - 2].count : 1;
    const int64_t reduced_outside = reduced_.rank > 1 ? reduced_.axis[reduced_.rank - 2].count : 1;
    if (kept_outside >= kNarrow && kept_outside >= reduced_outside && segments_ == 1)
      gather_ = Gather::along_kept;
    else if (reduced_outside >= kNarrow)
      gather_ = Gather::along_reduced;
  }
  const int64_t terms = reduced.count;
  if (op_ == ReduceOp::sum && in_ == DType::float32 && p.out == DType::float32 && !p.finish &&
      !p.factors && direct_ && !by_rows_ && reduced_.rank == 1 && terms > 1 && terms <= kFewRows &&
      kept_.rank == 1 && kept.y_step == 1)
    few_rows_ = table.few_rows;
  arg_loop_ = (by_rows_ ? table.arg_rows : table.arg_columns)[op_ == ReduceOp::argmin][t];
}

// Sizes follow from the problem alone, so that results do not depend on the number of threads.
void Reduction::cut(int64_t points, int64_t terms) {
  const int64_t chunk = in_bytes_ < 4 ? kChunk * 4 / in_bytes_ : kChunk;
  const int64_t width = kept_.last().count;
  if (invariant_) points = std::min<int64_t>(points, 1);
  const bool shared = points * terms >= 4 * chunk;  // between threads
  const bool whole = !by_rows_ || is_small_panel();
  int64_t wanted = whole ? kStrip : chunk / (terms + 1) + 1;
  // Rows are cut into segments only where they are too few to be shared whole.
  if (!whole && shared) wanted = std::clamp<int64_t>(points / kMinPieces, 1, wanted);
  strip_ = wanted < width ? wanted : width;
  strips_ = strip_ == 0 ? 0 : (width + strip_ - 1) / strip_;
  const int64_t first = reduced_.axis[0].count;
  segments_ = 1;
  if (shared && points / strip_ < kMinPieces) {
    segments_ = points * terms / chunk;
    const int64_t fitting = kPartialBytes / (points * acc_bytes_) + 1;
    for (const int64_t bound : {kMaxSegments, fitting, first})
      segments_ = segments_ < bound ? segments_ : bound;
  }
  segment_ = (first + segments_ - 1) / segments_;
  if (segment_ > 64) segment_ = (segment_ + 63) / 64 * 64;  // whole groups of rows and vectors
  segments_ = segment_ == 0 ? 1 : (first + segment_ - 1) / segment_;
}

// How many elements of x lie one behind the other, each once; of those that are combined where the
// others may not count.
int64_t Reduction::longest_run(const ReduceProblem& p) const {
  PlainDims counts, strides;
  if (!invariant_) {
    counts = p.kept;
    strides = p.kept_strides;
  }
  for (int i = 0; i < p.reduced.rank(); ++i) {
    counts.push_back(p.reduced[i]);
    strides.push_back(p.reduced_strides[i]);
  }
  int64_t run = 1;
  for (int i = 0; i < counts.rank(); ++i)  // the axis that goes on from there, each time
    for (int k = 0; k < counts.rank(); ++k)
      if (counts[k] > 1 && std::llabs(strides[k]) == run) {
        run *= counts[k];
        break;
      }
  return run;
}

void Reduction::sort_axes(const ReduceProblem& p, int64_t run, int64_t kept_run) {
  int64_t y_step = 1;
  OrderedAxes given;
  for (int i = p.kept.rank() - 1; i >= 0; --i) {
    if (p.kept[i] != 1 || invariant_)
      given.append({p.kept[i], p.kept_strides[i] * in_bytes_, y_step});
    y_step *= p.kept[i];
  }
  for (int i = given.rank - 1; i >= 0; --i) kept_.insert_by_width(given.axis[i], kept_run);
  for (int i = 0; i < p.reduced.rank(); ++i) {
    OrderedAxis a = {p.reduced[i], p.reduced_strides[i] * in_bytes_, 0};
    if (a.count == 1) continue;
    if (a.x_bytes < 0 && a.count > 0 && !is_arg(op_)) {  // the same terms, forwards
      first_bytes_ += (a.count - 1) * a.x_bytes;
      a.x_bytes = -a.x_bytes;
    }
    is_arg(op_) ? reduced_.append(a) : reduced_.insert_by_width(a, run);
  }
  kept_.merge();
  reduced_.merge();
}

void Reduction::sum_few_rows(const ReduceProblem& p) const {
  const int64_t terms = reduced_.count();
  const char* x = static_cast<const char*>(p.x) + first_bytes_;
  parallel_ranges(kept_.count(), kChunk / terms, [&](int64_t begin, int64_t end) {
    few_rows_(terms, end - begin, x + begin * in_bytes_, reduced_.last().x_bytes,
              static_cast<char*>(p.y) + begin * in_bytes_);
  });
}

void Reduction::run(const ReduceProblem& p) const {
  const int64_t points = kept_.count(), terms = reduced_.count();
  if (points == 0) return;
  if (few_rows_) return sum_few_rows(p);
  const bool in_place =
      segments_ == 1 && acc_ == p.out && !p.finish && !is_arg(op_) && kept_.rank == 1;
  // Where the results stand in y's order, what a piece made goes on from the cache.
  const bool by_pieces =
      !in_place && segments_ == 1 && kept_.rank == 1 && kept_.axis[0].y_step == 1;
  const int64_t held = in_place || by_pieces ? 0 : segments_ * points;
  const Scratch values(held * acc_bytes_);
  const Scratch positions(is_arg(op_) ? held * sizeof(int64_t) : 0);
  const bool moves_centres = p.centres && kept_.rank > 1;
  const Scratch moved(moves_centres ? points * element_bytes_ : 0);
  if (moves_centres) {
    PlainDims shape, in_y, in_results;
    kept_order(shape, in_y, in_results);
    copy_strided(element_, element_, shape, p.centres, in_y, moved.as<void>(), in_results);
  }
  const Results all = {in_place ? static_cast<char*>(p.y) : values.as<char>(),
                       is_arg(op_) ? positions.as<int64_t>() : nullptr,
                       moves_centres ? moved.as<char>() : static_cast<const char*>(p.centres)};
  const int64_t strips = kept_.count(0, kept_.rank - 1) * strips_;
  const int64_t grain = kChunk / (strip_ * terms / segments_ + 1) + 1;
  const int64_t pieces = (strips + grain - 1) / grain;
  parallel_chunks(pieces * segments_, [&](int64_t chunk) {
    const int64_t begin = chunk % pieces * grain, segment = chunk / pieces;
    const int64_t end = begin + grain < strips ? begin + grain : strips;
    const int64_t first = first_point(begin);
    const int64_t count = (end == strips ? points : first_point(end)) - first;
    const Scratch own_values(by_pieces ? count * acc_bytes_ : 0);
    const Scratch own_positions(by_pieces && is_arg(op_) ? count * sizeof(int64_t) : 0);
    Results part = {own_values.as<char>(), is_arg(op_) ? own_positions.as<int64_t>() : nullptr, {}};
    if (!by_pieces) part = at(all, segment * points + first);
    part.centres = all.centres ? all.centres + first * element_bytes_ : nullptr;
    fill_identity(op_, acc_, count, part.values);
    if (part.positions) std::memset(part.positions, 0xff, count * sizeof(int64_t));
    if (terms > 0)
      work(static_cast<const char*>(p.x) + first_bytes_, begin, end, segment, first, part);
    if (by_pieces) deliver(p, first, count, part);
  });
  if (segments_ > 1) join_segments(points, all);
  if (held > 0) deliver(p, 0, points, all);
}

// Strips [begin, end) over one segment of the terms; the results are those from `point` on.
void Reduction::work(const char* x, int64_t begin, int64_t end, int64_t segment, int64_t point,
                     Results results) const {
  const OrderedAxis &kept = kept_.last(), &reduced = reduced_.last();
  const int64_t first = segment * segment_, count = reduced_.axis[0].count;
  const int64_t past = first + segment_ < count ? first + segment_ : count;
  const int64_t inner = reduced_.rank == 1 ? 1 : reduced_.count(1, reduced_.rank - 1);
  if (gather_ == Gather::along_kept) return work_along_kept(x, begin, end, point, results);
  for (int64_t strip = begin; strip < end; ++strip) {
    const int64_t row = strip / strips_, column = strip % strips_ * strip_;
    const int64_t a = kept.count - column < strip_ ? kept.count - column : strip_;
    const char* here = x + kept_.offset(row, kept_.rank - 1) + column * kept.x_bytes;
    const Results r = at(results, row * kept.count + column - point);
    if (gather_ == Gather::along_reduced) {
      gather_along_reduced(here, a, first * inner, past * inner, r);
    } else if (reduced_.rank == 1) {
      panel(here + first * reduced.x_bytes, a, past - first, first, r);
    } else {
      for (int64_t q = first * inner; q < past * inner; ++q)
        panel(here + reduced_.offset(q, reduced_.rank - 1), a, reduced.count, q * reduced.count, r);
    }
  }
}

// n panels that are `step` bytes apart, as elements. In the stage their neighbours lie n_out
// elements apart, neighbouring points a_out and neighbouring terms b_out.
void Reduction::gather(const char* x, int64_t n, int64_t step, int64_t n_out, int64_t a_out,
                       int64_t b_out, char* stage) const {
  const OrderedAxis &kept = kept_.last(), &reduced = reduced_.last();
  for (int64_t i = 0; i < reduced.count; ++i)
    for (int64_t j = 0; j < kept.count; ++j)
      convert_elements(in_, element_, n, x + i * reduced.x_bytes + j * kept.x_bytes, step,
                       stage + (i * b_out + j * a_out) * element_bytes_, n_out * element_bytes_);
}

// Small panels side by side: rows of all their points, one for each of their terms.
void Reduction::work_along_kept(const char* x, int64_t begin, int64_t end, int64_t point,
                                Results results) const {
  alignas(64) char stage[kStage * 8];
  const int64_t a = kept_.last().count, b = reduced_.last().count;
  const OrderedAxis& outside = kept_.axis[kept_.rank - 2];
  const int64_t inner = reduced_.count(0, reduced_.rank - 1);
  for (int64_t row = begin, n; row < end; row += n) {
    n = std::min({kStage / (a * b), outside.count - row % outside.count, end - row});
    const char* here = x + kept_.offset(row, kept_.rank - 1);
    for (int64_t q = 0; q < inner; ++q) {
      gather(here + reduced_.offset(q, reduced_.rank - 1), n, outside.x_bytes, a, 1, n * a, stage);
      column_loop_(b, n * a, stage, n * a * element_bytes_, at(results, row * a - point).values);
    }
  }
}

// Small panels one behind the other, [first, past) of them: a row of all their terms for each
// point.
void Reduction::gather_along_reduced(const char* x, int64_t a, int64_t first, int64_t past,
                                     Results r) const {
  alignas(64) char stage[kStage * 8];
  const int64_t b = reduced_.last().count;
  const OrderedAxis& outside = reduced_.axis[reduced_.rank - 2];
  for (int64_t q = first, n; q < past; q += n) {
    n = std::min({kStage / (a * b), outside.count - q % outside.count, past - q});
    gather(x + reduced_.offset(q, reduced_.rank - 1), n, outside.x_bytes, b, n * b, 1, stage);
    row_loop_(a, n * b, stage, n * b * element_bytes_, r.values);
  }
}

// a kept points by b terms, from x; `position` is that of the first term.
void Reduction::panel(const char* x, int64_t a, int64_t b, int64_t position, Results r) const {
  if (!direct_)
    return by_rows_ ? stage_rows(x, a, b, position, r) : stage_columns(x, a, b, position, r);
  if (by_rows_)
    call(a, b, x, kept_.last().x_bytes, position, r);
  else if (pairs_)
    pairs_(1, 2 * b, x, 0, r.values);
  else if (reduced_.last().x_bytes != a * in_bytes_ || !fold_columns(x, a, b, r))
    call(b, a, x, reduced_.last().x_bytes, position, r);
}

// Rows of a few elements without gaps, as the parts of complex numbers: some together are one wide
// row, whose accumulators are then joined by halves. Whether they were.
bool Reduction::fold_columns(const char* x, int64_t a, int64_t b, Results r) const {
  if (r.positions || second_loop_ || invariant_) return false;
  int64_t together = 1;
  while (2 * together * a <= kWideRow && 2 * together * kWideRows <= b) together *= 2;
  if (together < 4) return false;
  alignas(64) char wide[kWideRow * sizeof(double)];
  fill_identity(op_, acc_, together * a, wide);
  const int64_t rows = b / together,
                wide_bytes = together * a * (direct_ ? in_bytes_ : element_bytes_);
  loop_(rows, together * a, x, wide_bytes, wide);
  if (const int64_t rest = b % together) loop_(1, rest * a, x + rows * wide_bytes, 0, wide);
  for (int64_t half = together / 2; half > 0; half /= 2)
    join_(1, half * a, wide + half * a * acc_bytes_, 0, wide);
  join_(1, a, wide, 0, r.values);
  return true;
}

void Reduction::call(int64_t m, int64_t n, const void* x, int64_t row_bytes, int64_t position,
                     Results r) const {
  if (r.positions)
    arg_loop_(m, n, x, row_bytes, position, r.values, r.positions);
  else if (second_loop_)
    second_loop_(m, n, x, row_bytes,
                 r.centres ? r.centres : static_cast<const char*>(x) + factors_bytes_, r.values);
  else
    loop_(m, n, x, row_bytes, r.values);
}

void Reduction::stage_rows(const char* x, int64_t a, int64_t b, int64_t position, Results r) const {
  alignas(64) char stage[kStage * 8];
  const int64_t kept = kept_.last().x_bytes, step = reduced_.last().x_bytes;
  const bool lies_together = kept == b * step && b <= kStage;
  // Of short rows the terms are taken as rows: where there are gaps, and of truths, whose rows are
  // read one by one.
  if (!invariant_ && b <= kNarrow && b < a && !r.positions && !second_loop_ &&
      (!lies_together || element_ == DType::bool_)) {
    for (int64_t i = 0, m; i < a; i += m) {
      m = std::min(a - i, kStage / b);
      for (int64_t j = 0; j < b; ++j)
        convert_elements(in_, element_, m, x + i * kept + j * step, kept,
                         stage + j * m * element_bytes_, element_bytes_);
      column_loop_(b, m, stage, m * element_bytes_, at(r, i).values);
    }
    return;
  }
  if (lies_together) {  // several rows at once
    const int64_t together = kStage / b;
    for (int64_t i = 0; i < a; i += together) {
      const int64_t m = a - i < together ? a - i : together;
      convert_elements(in_, element_, m * b, x + i * kept, step, stage, element_bytes_);
      call(m, b, stage, b * element_bytes_, position, at(r, i));
    }
    return;
  }
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t j = 0; j < b; j += kStage) {
      const int64_t n = b - j < kStage ? b - j : kStage;
      convert_elements(in_, element_, n, x + i * kept + j * step, step, stage, element_bytes_);
      call(1, n, stage, 0, position + j, at(r, i));
    }
  }
}

void Reduction::stage_columns(const char* x, int64_t a, int64_t b, int64_t position,
                              Results r) const {
  alignas(64) char stage[kStage * 8];
  const int64_t kept = kept_.last().x_bytes, step = reduced_.last().x_bytes;
  if (!invariant_ && a <= kNarrow && a < b &&
      step != a * kept) {  // rows with gaps, column by column of many
    for (int64_t i = 0, m; i < b; i += m) {
      m = std::min(b - i, kStage / a);
      for (int64_t j = 0; j < a; ++j)
        convert_elements(in_, element_, m, x + i * step + j * kept, step,
                         stage + j * element_bytes_, a * element_bytes_);
      if (!fold_columns(stage, a, m, r)) call(m, a, stage, a * element_bytes_, position + i, r);
    }
    return;
  }
  // Rows that follow each other are converted whole, which reads memory straight through. Parts of
  // longer rows go on together, a little at a time: eight streams for the prefetcher. (Zen 4,
  // float32 from memory: 2.9 and 4.1 ms for 64 MB; each the other way 4.0 and 5.9.)
  const int64_t row_bytes = sizeof stage / kStageRows;
  const int64_t columns = step == a * kept ? row_bytes / element_bytes_ : 256;
  for (int64_t i = 0; i < b; i += kStageRows) {
    const int64_t m = b - i < kStageRows ? b - i : kStageRows;
    for (int64_t j = 0; j < a; j += columns) {
      const int64_t n = a - j < columns ? a - j : columns;
      for (int64_t k = 0; k < m; ++k)
        convert_elements(in_, element_, n, x + (i + k) * step + j * kept, kept,
                         stage + k * row_bytes, element_bytes_);
      call(m, n, stage, row_bytes, position + i, at(r, j));
    }
  }
}

template <class T> void join_positions(ReduceOp op, int64_t points, int64_t segments, Results r) {
  T* values = reinterpret_cast<T*>(r.values);
  for (int64_t i = points; i < segments * points; ++i) {
    const int64_t to = i % points;
    if (!replaces(op, values[i], values[to])) continue;
    values[to] = values[i];
    r.positions[to] = r.positions[i];
  }
}
void Reduction::join_segments(int64_t points, Results r) const {
  if (!r.positions)
    return join_(segments_ - 1, points, at(r, points).values, points * acc_bytes_, r.values);
  visit(element_, [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T>) join_positions<T>(op_, points, segments_, r);
  });
}

void Reduction::kept_order(PlainDims& shape, PlainDims& in_y, PlainDims& in_results) const {
  for (int i = 0; i < kept_.rank; ++i) {
    shape.push_back(kept_.axis[i].count);
    in_y.push_back(kept_.axis[i].y_step);
    in_results.push_back(kept_.count(i + 1, kept_.rank));
  }
}

// Brings the results of all points, or of some where they stand in y's order, into y's dtype and
// order.
void Reduction::deliver(const ReduceProblem& p, int64_t first, int64_t points, Results r) const {
  PlainDims shape, strides, from;
  kept_order(shape, strides, from);
  if (points < kept_.count()) shape[0] = points;
  char* const y = static_cast<char*>(p.y) + first * static_cast<int64_t>(size_of(p.out));
  if (r.positions) return copy_strided(DType::int64, p.out, shape, r.positions, from, y, strides);
  if (!p.finish) return copy_strided(acc_, p.out, shape, r.values, from, y, strides);
  const ReducedCount count(reduced_.count(), p.out);
  if (acc_ == DType::float64) {
    double* const values = reinterpret_cast<double*>(r.values);
    p.finish(points, count, values);
    return copy_strided(acc_, p.out, shape, values, from, y, strides);
  }
  const Scratch finished(points * sizeof(double));
  double* const values = finished.as<double>();
  convert_elements(acc_, DType::float64, points, r.values, acc_bytes_, values, sizeof(double));
  p.finish(points, count, values);
  copy_strided(DType::float64, p.out, shape, values, from, y, strides);
}

// A complex sum is that of its two parts: one more kept axis.
ReduceProblem in_parts(ReduceProblem p) {
  for (int i = 0; i < p.kept.rank(); ++i) p.kept_strides[i] *= 2;
  for (int i = 0; i < p.reduced.rank(); ++i) p.reduced_strides[i] *= 2;
  p.kept.push_back(2);
  p.kept_strides.push_back(1);
  p.in = p.out = part_dtype(p.in);
  return p;
}

// One factor after the other.
template <class Part> Complex<Part> product_of(const char* x, const OrderedAxes& reduced) {
  double re = 1, im = 0;
  for (int64_t j = 0; j < reduced.count(); ++j) {
    const auto& z = *reinterpret_cast<const Complex<Part>*>(x + reduced.offset(j, reduced.rank));
    const double real = re * z.re - im * z.im;
    im = re * z.im + im * z.re;
    re = real;
  }
  return {static_cast<Part>(re), static_cast<Part>(im)};
}
template <class Part> Complex<Part> narrow(const double* z) {
  return {static_cast<Part>(z[0]), static_cast<Part>(z[1])};
}
template <class Part> bool is_finite(Complex<Part> z) {
  return std::isfinite(z.re) && std::isfinite(z.im);
}

template <class Part> void complex_product(const ReduceProblem& p) {
  constexpr auto size = int64_t(sizeof(Complex<Part>));
  // So many columns are multiplied together.
  constexpr int64_t most = 128;
  OrderedAxes kept, reduced;
  for (int i = 0; i < p.kept.rank(); ++i) kept.append({p.kept[i], p.kept_strides[i] * size, 0});
  for (int i = 0; i < p.reduced.rank(); ++i)
    if (p.reduced[i] != 1)
      reduced.insert_by_width({p.reduced[i], p.reduced_strides[i] * size, 0}, 0);
  reduced.merge();
  const ReduceTable& table = *active_kernels().reduce;
  constexpr int type = sizeof(Part) == sizeof(double);
  const auto row =
      reduced.rank == 1 && reduced.last().x_bytes == size ? table.complex_row[type] : nullptr;
  const bool has_columns =
      !row && reduced.rank == 1 && kept.rank > 0 && kept.last().x_bytes == size;
  const auto columns = has_columns ? table.complex_columns[type] : nullptr;
  auto* const y = static_cast<Complex<Part>*>(p.y);
  const int64_t count = kept.count();
  for (int64_t i = 0, together; i < count; i += together) {
    const auto at = [&](int64_t k) {
      return static_cast<const char*>(p.x) + kept.offset(i + k, kept.rank);
    };
    const int64_t beside = columns ? kept.last().count - i % kept.last().count : 1;
    together = std::min(beside, most);
    double products[2 * most];
    const auto multiply = [&](int64_t k, int64_t points) {
      if (row) return row(reduced.count(), at(k), products);
      return columns && columns(points, reduced.count(), at(k),
                                reduced.last().x_bytes / int64_t(sizeof(Part)), products + 2 * k);
    };
    const bool all_found = multiply(0, together);
    for (int64_t k = 0; k < together; ++k) {
      const bool found = all_found || (together > 1 && multiply(k, 1));
      // What is infinite or NaN follows from the order of factors.
      if (found) y[i + k] = narrow<Part>(products + 2 * k);
      if (!found || !is_finite(y[i + k])) y[i + k] = product_of<Part>(at(k), reduced);
    }
  }
}

template <ReduceOp op, ReduceFinish finish> void set_up(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  ReduceProblem& p = *new (problem) ReduceProblem;
  p.op = op == ReduceOp::numbers && !is_floating(x.dtype) ? ReduceOp::sum : op;  // none is NaN
  p.finish = finish;
  p.in = x.dtype;
  p.out = call.out[0].dtype;
  if (x.contiguous && call.out[0].count == 1 && x.count > 0) {  // one run, whatever its axes
    p.reduced.push_back(x.count);
    p.reduced_strides.push_back(1);
    return;
  }
  const std::uint32_t reduced = is_arg(op) ? call.words.axis(0, x.rank(), call.op->name)
                                           : call.words.axes(0, x.rank(), call.op->name);
  for (int i = 0; i < x.rank(); ++i) {
    const bool is_reduced = reduced >> i & 1;
    (is_reduced ? p.reduced : p.kept).push_back(x.size(i));
    (is_reduced ? p.reduced_strides : p.kept_strides).push_back((*x.strides)[i]);
  }
}
void bind(void* problem, void* const* at) {
  ReduceProblem& p = *static_cast<ReduceProblem*>(problem);
  p.x = at[0];
  p.y = at[1];
}
void bind_squares(void* problem, void* const* at) {
  ReduceProblem& p = *static_cast<ReduceProblem*>(problem);
  p.x = at[0];
  p.centres = at[1];
  p.y = at[2];
}
void bind_products(void* problem, void* const* at) {
  ReduceProblem& p = *static_cast<ReduceProblem*>(problem);
  p.x = at[0];
  p.factors = at[1];
  p.y = at[2];
}
void run_reduce(const void* problem) { reduce(*static_cast<const ReduceProblem*>(problem)); }
double reduce_cost_ns(const void* problem) {
  const auto& p = *static_cast<const ReduceProblem*>(problem);
  constexpr double bytes_per_ns = 16;  // one core reading memory
  return 100 +
         double(p.kept.product()) * double(p.reduced.product()) * size_of(p.in) / bytes_per_ns;
}
const char* refuses_squares(const Call& call) {
  const DType terms = call.in[0].dtype, centres = call.in[1].dtype;
  const bool of_wide = terms == DType::float64 && centres == DType::float64;
  const bool of_single = is_floating(terms) && size_of(terms) <= 4 && centres == DType::float32;
  return of_wide || of_single ? nullptr : "numbers of other types";
}
const char* refuses_products(const Call& call) {
  const Meta &x = call.in[0], &y = call.in[1];
  if (is_batch_invariant())
    return "in a batch-invariant mode operands that broadcast go the same way";
  if (!(*x.shape == *y.shape)) return "operands broadcast";
  if (x.dtype != y.dtype || x.dtype == DType::float16) return "numbers of other types";
  bool without_gaps = x.count <= 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (x.size(i) == 1) continue;
    const int64_t step = (*x.strides)[i];
    if (step != (*y.strides)[i]) return "factors lie otherwise";
    if (step == 0 || step == -1) return "elements repeat or lie backwards";
    without_gaps |= step == 1;
  }
  return without_gaps ? nullptr : "elements lie apart";
}
// Of a row with terms, whose third attribute is the type that they are converted to: loops widen
// floating ones.
const char* refuses(const Call& call) {
  const DType terms = call.in[0].dtype, type = call.words.none(2) ? terms : call.words.dtype(2);
  const bool widens = is_floating(terms) && is_floating(type) && size_of(type) > size_of(terms);
  return type == terms || widens ? nullptr : kOtherType;
}
constexpr char kHelp[] = "rows and columns, fixed blocks added pairwise";

// The rows' ways to finish; null where nothing is left to do.
#define TW_REDUCTION(name, parameters, kinds, outcome, of_none, combination, ending, gradient, \
                     help)                                                                     \
  constexpr ReduceFinish finish_##name =                                                       \
      std::string_view(#ending) == "y"                                                         \
          ? nullptr                                                                            \
          : +[](std::int64_t n, [[maybe_unused]] ReducedCount count, double* results) {        \
              for (std::int64_t i = 0; i < n; ++i) {                                           \
                const double y = results[i];                                                   \
                results[i] = ending;                                                           \
              }                                                                                \
            };
#include "core/ops/reductions.inc"
#undef TW_REDUCTION

}  // namespace

void register_reduce_kernels() {
#define TW_REDUCTION(name, parameters, kinds, outcome, of_none, combination, ending, gradient, \
                     help)                                                                     \
  add_kernel<ReduceProblem>(                                                                   \
      #name, kHelp, std::string_view(#parameters) == "terms" ? refuses : nullptr,              \
      set_up<ReduceOp::combination, finish_##name>, bind, reduce_cost_ns, run_reduce);
#include "core/ops/reductions.inc"
#undef TW_REDUCTION
  add_kernel<ReduceProblem>("squares_about", kHelp, refuses_squares, set_up<ReduceOp::sum, nullptr>,
                            bind_squares, reduce_cost_ns, run_reduce, 2);
  add_kernel<ReduceProblem>("sum_of_products", kHelp, refuses_products,
                            set_up<ReduceOp::sum, nullptr>, bind_products, reduce_cost_ns,
                            run_reduce);
}

namespace {

// Small reductions of one run of floating numbers: one call of a loop, with the bits that the
// general way gives.
template <class T> bool reduce_run(const ReduceProblem& p, ReduceType type) {
  const bool one_run = p.kept.rank() == 0 && p.reduced.rank() == 1 && p.reduced_strides[0] == 1 &&
                       p.reduced[0] > 0 && p.reduced[0] <= kChunk;
  if (!one_run || is_arg(p.op) || is_logic(p.op) || p.centres || p.factors) return false;
  const ReduceFunction loop =
      active_kernels().reduce->rows[static_cast<int>(combine_of(p.op))][static_cast<int>(type)];
  T* const y = static_cast<T*>(p.y);
  const auto finish = [&](double total) {
    if (p.finish) p.finish(1, ReducedCount(p.reduced[0], p.out), &total);
    *y = static_cast<T>(total);
    return true;
  };
  if (!is_additive(p.op)) {
    *y = p.op == ReduceOp::max ? -__builtin_inf() : __builtin_inf();
    loop(1, p.reduced[0], p.x, 0, y);
    return finish(*y);
  }
  double total = p.op == ReduceOp::prod;
  loop(1, p.reduced[0], p.x, 0, &total);
  return finish(total);
}

}  // namespace

void reduce(const ReduceProblem& p) {
  if (find_position_across(p)) return;
  if (p.in == p.out && p.in == DType::float32 && reduce_run<float>(p, ReduceType::f32)) return;
  if (p.in == p.out && p.in == DType::float64 && reduce_run<double>(p, ReduceType::f64)) return;
  if (is_complex(p.in) && p.op == ReduceOp::prod)
    return p.in == DType::complex64 ? complex_product<float>(p) : complex_product<double>(p);
  const auto run = [](const ReduceProblem& real) {
    const DType terms = real.centres ? real.in : real.out;  // squares widen as they are added
    Reduction(real, type_of(real.op, real.in, terms)).run(real);
  };
  if (is_complex(p.in) && is_additive(p.op)) return run(in_parts(p));
  run(p);
}

}  // namespace tw
