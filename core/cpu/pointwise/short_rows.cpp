// Pointwise ops whose innermost axis is short: many rows go through the kernel as one run.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/pointwise/staging.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using Problem = PointwiseProblem;

// Bytes from item to item, from row to row of an item, and from element to element.
struct Steps {
  std::int64_t at[3];
};
constexpr int kItem = 0, kRow = 1, kElement = 2;

// Axes of the innermost items: rows, or planes of rows where these are so small that several fit
// into a buffer.
int axes_of_item(const Problem& p) {
  if (p.rank < 3) return 1;
  std::size_t widest = size_of(dtype_of(p.type));
  for (int k = 0; k < p.operands; ++k) widest = std::max(widest, size_of(p.dtype[k]));
  const std::int64_t plane = p.extent[p.rank - 1] * p.extent[p.rank - 2];
  return 2 * plane * static_cast<std::int64_t>(widest) <= thresholds::kStageBytes ? 2 : 1;
}

// y[i] = x[i] over three axes.
void copy_box(DType dtype, const std::int64_t (&extent)[3], const char* x, const Steps& from,
              char* y, const Steps& to) {
  const auto size = static_cast<std::int64_t>(size_of(dtype)), n = extent[kElement];
  const int down = extent[kItem] >= extent[kRow] ? kItem : kRow, outer = kItem + kRow - down;
  const auto copy_rows =
      active_kernels().convert->copy_rows[std::countr_zero(static_cast<unsigned>(size))];
  const CopiedRows rows = {extent[down],    n,          n * size, from.at[kElement], from.at[down],
                           to.at[kElement], to.at[down]};
  for (std::int64_t i = 0; i < extent[outer]; ++i)
    copy_rows(rows, x + i * from.at[outer], y + i * to.at[outer]);
}

// Runs the kernel over many items at once: what does not lie one after the other is laid out so in
// a buffer, where an item that all of them share stays from run to run.
class ShortRows {
 public:
  explicit ShortRows(const Problem& p)
      : p_(p),
        axes_(axes_of_item(p)),
        inner_(p.extent[p.rank - 1]),
        rows_(axes_ == 2 ? p.extent[p.rank - 2] : 1),
        length_(rows_ * inner_),
        compute_(dtype_of(p.type)),
        size_(static_cast<std::int64_t>(size_of(compute_))),
        result_(result_type(p)),
        traffic_(p.traffic) {
    std::int64_t widest = size_;
    for (int k = 0; k < p.operands; ++k) {
      const std::int64_t step = bytes(k);
      const std::int64_t* stride = p.stride[k] + p.rank - 1;
      steps_[k] = {{stride[-axes_] * step, axes_ == 2 ? stride[-1] * step : 0, stride[0] * step}};
      kinds_[k] = kind_of(k);
      if (k > 0) advance_[k - 1] = kinds_[k] != Kind::number;
      widest = std::max(widest, step);
    }
    most_ = std::max<std::int64_t>(thresholds::kStageBytes / (widest * length_), 1);
  }

  // Items from `first` on of their axis, at addresses of item 0.
  void run(char* const* base, std::int64_t first, std::int64_t items) {
    for (int k = 1; k < p_.operands; ++k) {
      if (kinds_[k] == Kind::shared) repeat(k, base[k], std::min(most_, items));
      if (kinds_[k] == Kind::number) spread(k, base[k], 1, 64 / size_);
    }
    for (const std::int64_t end = first + items; first < end; first += most_)
      run_some(base, first, std::min(most_, end - first));
  }

 private:
  enum class Kind { run, number, shared, spread, apart };
  std::int64_t bytes(int k) const { return static_cast<std::int64_t>(size_of(p_.dtype[k])); }
  Steps close_together(std::int64_t size) const { return {{length_ * size, inner_ * size, size}}; }
  Kind kind_of(int k) const {
    const auto& [item, row, element] = steps_[k].at;
    if (element == 0 && row == 0) return item == 0 ? Kind::number : Kind::spread;
    if (item == 0) return Kind::shared;
    const bool is_run = element == bytes(k) && item == length_ * bytes(k) &&
                        (rows_ == 1 || row == inner_ * bytes(k));
    return is_run ? Kind::run : Kind::apart;
  }
  char* buffer(int k) { return buffers_[k].bytes; }
  void gather(int k, const char* x, std::int64_t items) {
    const bool as_it_is = same_representation(p_.dtype[k], compute_);
    char* const own = as_it_is ? buffer(k) : spare_.bytes;
    copy_box(p_.dtype[k], {items, rows_, inner_}, x, steps_[k], own, close_together(bytes(k)));
    if (!as_it_is)
      convert_elements(p_.dtype[k], compute_, items * length_, own, bytes(k), buffer(k), size_);
  }
  void repeat(int k, const char* item, std::int64_t items) {
    gather(k, item, 1);
    const auto whole = static_cast<std::size_t>(items * length_ * size_);
    for (auto filled = static_cast<std::size_t>(length_ * size_); filled < whole; filled *= 2)
      std::memcpy(buffer(k) + filled, buffer(k), std::min(filled, whole - filled));
  }
  // Each item's one value, that often.
  void spread(int k, const char* x, std::int64_t items, std::int64_t times) {
    char* const values = spare_.bytes;
    convert_elements(p_.dtype[k], compute_, items, x, steps_[k].at[kItem], values, size_);
    active_kernels().convert->spread[std::countr_zero(static_cast<unsigned>(size_))](
        items, times, values, buffer(k));
  }
  const void* laid_out(int k, const char* x, std::int64_t items) {
    switch (kinds_[k]) {
      case Kind::number:
      case Kind::shared: break;
      case Kind::spread: spread(k, x, items, length_); break;
      case Kind::apart: gather(k, x, items); break;
      case Kind::run:
        if (same_representation(p_.dtype[k], compute_)) return x;
        convert_elements(p_.dtype[k], compute_, items * length_, x, bytes(k), buffer(k), size_);
    }
    return buffer(k);
  }
  void run_some(char* const* base, std::int64_t first, std::int64_t items) {
    const void* inputs[kMaxPointwiseInputs];
    for (int k = 1; k < p_.operands; ++k)
      inputs[k - 1] = laid_out(k, base[k] + first * steps_[k].at[kItem], items);
    char* const out = base[0] + first * steps_[0].at[kItem];
    const std::int64_t n = items * length_;
    const bool as_it_is = same_representation(p_.dtype[0], result_);
    const bool is_run = kinds_[0] == Kind::run;
    if (as_it_is && is_run) return p_.fn(n, out, inputs, advance_, traffic_at(traffic_, out));
    p_.fn(n, buffer(0), inputs, advance_, Traffic::in_l1);
    char* const own = as_it_is ? buffer(0) : is_run ? out : spare_.bytes;
    if (!as_it_is)
      convert_elements(result_, p_.dtype[0], n, buffer(0),
                       static_cast<std::int64_t>(size_of(result_)), own, bytes(0));
    if (!is_run)
      copy_box(p_.dtype[0], {items, rows_, inner_}, own, close_together(bytes(0)), out, steps_[0]);
  }

  const Problem& p_;
  const int axes_;
  const std::int64_t inner_, rows_, length_;  // of a row; of an item: rows and elements
  const DType compute_;
  const std::int64_t size_;
  const DType result_;
  std::int64_t most_;  // items of a run
  const Traffic traffic_;
  Steps steps_[kMaxOperands];
  Kind kinds_[kMaxOperands];
  int advance_[kMaxPointwiseInputs];
  struct alignas(64) Buffer {
    char bytes[thresholds::kStageBytes + 64];
  };
  Buffer buffers_[kMaxOperands], spare_;
};

}  // namespace

bool has_short_rows(const Problem& p) {
  if (p.rank < 2) return false;
  const std::int64_t inner = p.extent[p.rank - 1];
  const std::int64_t bytes = inner * static_cast<std::int64_t>(size_of(p.dtype[0]));
  for (int k = 1; k < p.operands; ++k) {
    const bool spreads = p.stride[k][p.rank - 1] == 0 && p.stride[k][p.rank - 2] != 0;
    if (spreads && bytes > thresholds::kSpreadBytes) return false;
  }
  const bool together = p.stride[0][p.rank - 1] == 1 && p.stride[0][p.rank - 2] == inner;
  return together ? inner <= thresholds::kShortRow : bytes <= thresholds::kShortBytesApart;
}

// Blocks of items are the units of work.
void run_short_rows(const Problem& p) {
  const int item_axis = p.rank - 1 - axes_of_item(p);
  std::int64_t length = 1;
  for (int axis = item_axis + 1; axis < p.rank; ++axis) length *= p.extent[axis];
  const std::int64_t items = p.extent[item_axis];
  const std::int64_t piece =
      std::min(items, std::max<std::int64_t>(thresholds::kGrain / length, 1));
  const std::int64_t pieces = (items + piece - 1) / piece;
  const std::int64_t units = p.count / (length * items) * pieces;
  const std::int64_t grain = std::max<std::int64_t>(1, thresholds::kGrain / (piece * length));
  parallel_ranges(units, grain, [&](std::int64_t begin, std::int64_t end) {
    ShortRows runs(p);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      char* base[kMaxOperands];
      for (int k = 0; k < p.operands; ++k) {
        std::int64_t offset = 0, outer = unit / pieces;
        for (int axis = item_axis - 1; axis >= 0; --axis) {
          offset += outer % p.extent[axis] * p.stride[k][axis];
          outer /= p.extent[axis];
        }
        base[k] =
            static_cast<char*>(p.data[k]) + offset * static_cast<std::int64_t>(size_of(p.dtype[k]));
      }
      const std::int64_t first = unit % pieces * piece;
      runs.run(base, first, std::min(piece, items - first));
    }
  });
}

}  // namespace tw
