// Reductions of any strided array: axes sorted and merged, work cut into panels (one kept by one
// reduced axis) for the row and column loops, conversion and gathering of what those cannot read in
// place.
#include "core/cpu/reduce/reduce.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/reduce/positions.h"
#include "core/cpu/reduce/types.h"
#include "core/cpu/reduce/axes.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Elements of a piece of work, of narrower ones than four bytes more.
constexpr int64_t kChunk = thresholds::kLightGrain;
// Fewest pieces of large work.
constexpr int64_t kMinPieces = thresholds::kPieces;
// Most pieces that one result may be cut into, each with partial results of its own.
constexpr int64_t kMaxSegments = thresholds::kMostParts;
constexpr int64_t kPartialBytes = thresholds::kPartialBytes;
constexpr int64_t kStrip = thresholds::kReduceStrip;
// Elements converted at once, of 4 or 8 bytes.
constexpr int64_t kStage = thresholds::kLoneStageBytes / 4;
constexpr int64_t kStageRows = 8;
// Elements of the wide rows that rows of a few elements are taken as, and the fewest such rows: as
// many as the loops of columns take at once.
constexpr int64_t kWideRow = thresholds::kWideRow, kWideRows = 8;
// Panels of at most so many elements are gathered, some together, into one that the loops are
// worth.
constexpr int64_t kSmallPanel = thresholds::kSmallPanel;
// Shorter rows of bfloat16 are converted some at once, which takes less time than to widen each.
constexpr int64_t kBFloat16Row = thresholds::kBFloat16Row;
// Rows and columns of up to so many elements are gathered across.
constexpr int64_t kNarrow = thresholds::kNarrow;

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
  void join_few_rows(const ReduceProblem& p) const;
  int64_t longest_run(const ReduceProblem& p) const;
  void sort_axes(const ReduceProblem& p, int64_t run);
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
  int64_t first_bytes_ = 0;  // from x to the first term as the axes go
  const bool invariant_;     // no choice may ask how many points there are
  bool by_rows_;             // else by columns
  bool folds_ = false;       // narrow columns into wide ones
  bool turns_ = false;       // short rows that are staged into columns
  bool direct_;              // the loops can read x in place
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
      acc_bytes_(size_of(acc_)),
      invariant_(p.by_place) {
  const int64_t run = longest_run(p);
  sort_axes(p, run);
  const OrderedAxis &kept = kept_.last(), &reduced = reduced_.last();
  const int64_t width = width_of(reduced, run), kept_width = width_of(kept, run);
  if (invariant_)
    by_rows_ = width < kept_width;
  else
    by_rows_ = kept.count == 1 || (reduced.count > 1 && width <= kept_width);
  // Factors are read where they lie, so along the axis without gaps.
  if (!by_rows_ && reduced.count > 1 && !p.factors && !uses(Optimization::traversal_choice))
    by_rows_ = true;
  const OrderedAxis& inner = by_rows_ ? reduced : kept;
  const bool same = in_ == element_ || (is_bool(in_) && element_ == DType::uint8);
  const bool dense = inner.x_bytes == in_bytes_ || inner.count == 1;
  const bool short_bools = is_bool(element_) && by_rows_ && reduced.count <= kNarrow / 2;
  direct_ = same && dense && !short_bools;
  cut(kept_.count(), reduced_.count());
  folds_ = !invariant_ && !by_rows_ && 4 * kept.count <= kWideRow &&
           4 * kWideRows <= reduced.count && uses(Optimization::column_folding);
  turns_ = !invariant_ && !direct_ && inner.count <= kNarrow &&
           uses(Optimization::short_rows_as_columns);

  const ReduceTable& table = *active_kernels().reduce;
  const auto combine = static_cast<int>(op_);
  const int t = static_cast<int>(type);
  // Accumulators of sums and products are of 64 bits, and wrap alike whatever their sign.
  const int joined = static_cast<int>(!is_additive(op_)        ? type
                                      : acc_ == DType::float64 ? ReduceType::f64
                                                               : ReduceType::i64);
  row_loop_ = table.rows[combine][t];
  column_loop_ = table.columns[combine][t];
  loop_ = by_rows_ ? row_loop_ : column_loop_;
  join_ = table.columns[static_cast<int>(joining(op_))][joined];
  const bool widened =
      in_ == DType::bfloat16 && type == ReduceType::f32 && !is_arg(op_) && !p.centres;
  const ReduceFunction reads_bfloat16 =
      (by_rows_ ? table.bfloat16_rows : table.bfloat16_columns)[combine];
  const bool gapless = reduced.x_bytes == kept.count * in_bytes_;
  const bool long_row = reduced.count >= kBFloat16Row;
  const bool wide = kept.count >= table.bfloat16_width || gapless || invariant_;
  const bool long_enough = (by_rows_ ? long_row : wide) || p.factors;  // which no others read
  if (widened && dense && long_enough && reads_bfloat16 &&
      (p.factors || uses(Optimization::native_bfloat16))) {
    direct_ = true;
    loop_ = reads_bfloat16;
  }
  const bool of_pairs = !invariant_ && kept.count == 2 && kept.x_bytes == in_bytes_ &&
                        in_ == element_ && reduced.x_bytes == 2 * in_bytes_;
  if (of_pairs && !by_rows_ && op_ == ReduceOp::sum && acc_ == DType::float64 && !p.centres &&
      !p.factors && uses(Optimization::column_folding))
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
    if (gather_ != Gather::none && !uses(Optimization::small_panel_gather)) gather_ = Gather::none;
  }
  const int64_t terms = reduced.count;
  const bool is_product = op_ == ReduceOp::prod;
  const bool few = terms > 1 && terms <= (is_product ? kFewFactors : kFewRows);
  const bool of_singles = in_ == DType::float32 && p.out == DType::float32;
  // Results stand in y's order, in rows that are worth a call.
  const bool ordered =
      kept.y_step == 1 && (kept_.rank == 1 || (kept_.rank == 2 && kept.count >= kNarrow &&
                                               kept_.axis[0].y_step == kept.count));
  if ((op_ == ReduceOp::sum || is_product) && of_singles && few && ordered && direct_ &&
      !by_rows_ && reduced_.rank == 1 && !p.finish && !p.factors &&
      uses(Optimization::few_row_kernel))
    few_rows_ = table.few_rows[is_product];
  arg_loop_ = (by_rows_ ? table.arg_rows : table.arg_columns)[!takes_larger(op_)][t];
}

// Sizes follow from the problem alone, so that results do not depend on the number of threads.
void Reduction::cut(int64_t points, int64_t terms) {
  const int64_t chunk = in_bytes_ < 4 ? kChunk * 4 / in_bytes_ : kChunk;
  const int64_t width = kept_.last().count;
  if (invariant_) points = std::min<int64_t>(points, 1);
  const bool shared = points * terms >= 4 * chunk;  // between threads
  const bool whole = !by_rows_ || is_small_panel();
  int64_t wanted = whole ? kStrip : chunk / (terms + 1) + 1;
  if (whole && width > kStrip && terms > 1 && !uses(Optimization::strip_mining)) wanted = width;
  // Rows are cut into segments only where they are too few to be shared whole.
  if (!whole && shared) wanted = std::clamp<int64_t>(points / kMinPieces, 1, wanted);
  strip_ = wanted < width ? wanted : width;
  strips_ = strip_ == 0 ? 0 : (width + strip_ - 1) / strip_;
  const int64_t first = reduced_.axis[0].count;
  segments_ = 1;
  if (shared && points / strip_ < kMinPieces && uses(Optimization::parallel_segments)) {
    segments_ = points * terms / chunk;
    const int64_t fitting = kPartialBytes / (points * acc_bytes_) + 1;
    for (const int64_t bound : {kMaxSegments, fitting, first})
      segments_ = segments_ < bound ? segments_ : bound;
  }
  segment_ = (first + segments_ - 1) / segments_;
  if (segment_ > 64) segment_ = (segment_ + 63) / 64 * 64;  // whole groups of rows and vectors
  segments_ = segment_ == 0 ? 1 : (first + segment_ - 1) / segment_;
}

// How many elements of x lie one behind the other, each once.
int64_t Reduction::longest_run(const ReduceProblem& p) const {
  PlainDims counts = p.kept, strides = p.kept_strides;
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

void Reduction::sort_axes(const ReduceProblem& p, int64_t run) {
  int64_t y_step = 1;
  OrderedAxes given;
  for (int i = p.kept.rank() - 1; i >= 0; --i) {
    if (p.kept[i] != 1 || invariant_)
      given.append({p.kept[i], p.kept_strides[i] * in_bytes_, y_step});
    y_step *= p.kept[i];
  }
  for (int i = given.rank - 1; i >= 0; --i) kept_.insert_by_width(given.axis[i], run);
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
  // By place they are merged already, but for those with a kept axis between them, even of one.
  if (!invariant_ || reduced_.rank == 0) reduced_.merge();
}

void Reduction::join_few_rows(const ReduceProblem& p) const {
  const int64_t terms = reduced_.count(), width = kept_.last().count;
  const char* x = static_cast<const char*>(p.x) + first_bytes_;
  parallel_ranges(kept_.count(), kChunk / terms, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin, count; at < end; at += count) {
      const int64_t column = at % width;
      count = std::min(width - column, end - at);
      few_rows_(terms, count, x + kept_.offset(at, kept_.rank), reduced_.last().x_bytes,
                static_cast<char*>(p.y) + at * in_bytes_);
    }
  });
}

void Reduction::run(const ReduceProblem& p) const {
  const int64_t points = kept_.count(), terms = reduced_.count();
  if (points == 0) return;
  if (few_rows_) return join_few_rows(p);
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
  if (r.positions || second_loop_ || !folds_) return false;
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
  // Of short rows the terms are taken as rows: where there are gaps, and of bools, whose rows are
  // read one by one.
  if (turns_ && b <= kNarrow && b < a && !r.positions && !second_loop_ &&
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
  // Of narrow rows many at once, those with gaps column by column.
  if (turns_ && a <= kNarrow && a < b) {
    for (int64_t i = 0, m; i < b; i += m) {
      m = std::min(b - i, kStage / a);
      if (step == a * kept)
        convert_elements(in_, element_, m * a, x + i * step, kept, stage, element_bytes_);
      else
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

// Small reductions of one run of floating numbers: one call of a loop, with the bits that the
// general way gives.
template <class T> bool reduce_run(const ReduceProblem& p, ReduceType type) {
  const bool one_run = p.kept.rank() == 0 && p.reduced.rank() == 1 && p.reduced_strides[0] == 1 &&
                       p.reduced[0] > 0 && p.reduced[0] <= kChunk;
  if (!one_run || is_arg(p.op) || is_logic(p.op) || p.centres || p.factors) return false;
  if (!uses(Optimization::single_run_reduction)) return false;
  const ReduceFunction loop =
      active_kernels().reduce->rows[static_cast<int>(p.op)][static_cast<int>(type)];
  T* const y = static_cast<T*>(p.y);
  const auto finish = [&](double total) {
    if (p.finish) p.finish(1, ReducedCount(p.reduced[0], p.out), &total);
    *y = static_cast<T>(total);
    return true;
  };
  if (!is_additive(p.op)) {
    *y = takes_larger(p.op) ? -__builtin_inf() : __builtin_inf();
    loop(1, p.reduced[0], p.x, 0, y);
    return finish(*y);
  }
  double total = join_of(p.op) == ReduceJoin::product;
  loop(1, p.reduced[0], p.x, 0, &total);
  return finish(total);
}

}  // namespace

static void reduce_in_range(const ReduceProblem& p) {
  if (is_arg(p.op) && find_position_across(p)) return;
  if (p.in == p.out && p.in == DType::float32 && reduce_run<float>(p, ReduceType::f32)) return;
  if (p.in == p.out && p.in == DType::float64 && reduce_run<double>(p, ReduceType::f64)) return;
  if (is_complex(p.in) && p.op == ReduceOp::prod) return complex_product(p);
  const auto run = [](const ReduceProblem& real) {
    const DType terms = real.centres ? real.in : real.out;  // squares widen as they are added
    Reduction(real, type_of(real.op, real.in, terms)).run(real);
  };
  if (is_complex(p.in) && is_additive(p.op)) return run(in_parts(p));
  run(p);
}

void reduce(const ReduceProblem& p) {
  reduce_in_range(p);
  if (p.op == ReduceOp::squares && p.finish && p.in == DType::float64 && p.out == p.in)
    find_lost_norms(p);
}

}  // namespace tw
