// Pointwise ops whose innermost axis is short: many rows go through the kernel as one run.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/cpu/convert.h"
#include "core/cpu/isa.h"
#include "core/cpu/staging.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using Problem = PointwiseProblem;

// Runs the kernel over many rows at once: what does not lie as the result does is laid out so in a
// buffer, where a row that all of them share stays from run to run.
class ShortRows {
 public:
  explicit ShortRows(const Problem& p)
      : p_(p),
        inner_(p.extent[p.rank - 1]),
        compute_(dtype_of(p.type)),
        size_(static_cast<std::int64_t>(size_of(compute_))),
        result_(p.dtype[0] == DType::bool_ && p.type != ComputeType::u8 ? DType::bool_ : compute_),
        most_(std::max<std::int64_t>(kStageBytes / (size_ * inner_), 1)),
        traffic_(traffic_of(p)) {}

  // Rows from `first` on of the axis before the innermost, at addresses of row 0.
  void run(char* const* base, std::int64_t first, std::int64_t rows) {
    for (int k = 1; k < p_.operands; ++k)
      if (kind(k) == Kind::shared) repeat(k, base[k], std::min(most_, rows));
    for (const std::int64_t end = first + rows; first < end; first += most_)
      run_some(base, first, std::min(most_, end - first));
  }

 private:
  enum class Kind { run, shared, spread, apart };
  std::int64_t row_stride(int k) const { return p_.stride[k][p_.rank - 2]; }
  std::int64_t stride(int k) const { return p_.stride[k][p_.rank - 1]; }
  std::int64_t bytes(int k) const { return static_cast<std::int64_t>(size_of(p_.dtype[k])); }
  Kind kind(int k) const {
    if (row_stride(k) == 0) return Kind::shared;
    if (stride(k) == 0) return Kind::spread;
    return stride(k) == 1 && row_stride(k) == inner_ ? Kind::run : Kind::apart;
  }
  char* buffer(int k) { return buffers_[k].bytes; }
  void convert_row(int k, const char* x, char* out) const {
    convert_elements(p_.dtype[k], compute_, inner_, x, stride(k) * bytes(k), out, size_);
  }
  void repeat(int k, const char* row, std::int64_t rows) {
    convert_row(k, row, buffer(k));
    const auto whole = static_cast<std::size_t>(rows * inner_ * size_);
    for (auto filled = static_cast<std::size_t>(inner_ * size_); filled < whole; filled *= 2)
      std::memcpy(buffer(k) + filled, buffer(k), std::min(filled, whole - filled));
  }
  // Each row's one value, as often as it is long.
  void spread(int k, const char* x, std::int64_t rows) {
    char* const values = spare_.bytes;
    convert_elements(p_.dtype[k], compute_, rows, x, row_stride(k) * bytes(k), values, size_);
    active_kernels().convert->spread[std::countr_zero(static_cast<unsigned>(size_))](
        rows, inner_, values, buffer(k));
  }
  const void* laid_out(int k, const char* x, std::int64_t rows) {
    switch (kind(k)) {
      case Kind::shared: break;
      case Kind::spread: spread(k, x, rows); break;
      case Kind::run:
        if (same_representation(p_.dtype[k], compute_)) return x;
        convert_elements(p_.dtype[k], compute_, rows * inner_, x, bytes(k), buffer(k), size_);
        break;
      case Kind::apart:
        for (std::int64_t i = 0; i < rows; ++i)
          convert_row(k, x + i * row_stride(k) * bytes(k), buffer(k) + i * inner_ * size_);
    }
    return buffer(k);
  }
  void run_some(char* const* base, std::int64_t first, std::int64_t rows) {
    constexpr int kSteps[kMaxPointwiseInputs] = {1, 1, 1, 1, 1};
    const void* inputs[kMaxPointwiseInputs];
    for (int k = 1; k < p_.operands; ++k)
      inputs[k - 1] = laid_out(k, base[k] + first * row_stride(k) * bytes(k), rows);
    char* const out = base[0] + first * inner_ * bytes(0);
    if (same_representation(p_.dtype[0], result_))
      return p_.fn(rows * inner_, out, inputs, kSteps, traffic_at(traffic_, out));
    p_.fn(rows * inner_, buffer(0), inputs, kSteps, Traffic::near);
    convert_elements(result_, p_.dtype[0], rows * inner_, buffer(0),
                     static_cast<std::int64_t>(size_of(result_)), out, bytes(0));
  }

  const Problem& p_;
  const std::int64_t inner_;
  const DType compute_;
  const std::int64_t size_;
  const DType result_;
  const std::int64_t most_;  // rows of a run
  const Traffic traffic_;
  struct alignas(64) Buffer {
    char bytes[kStageBytes + 64];
  };
  Buffer buffers_[kMaxOperands], spare_;
};

}  // namespace

// Blocks of rows are the units of work.
void run_short_rows(const Problem& p) {
  const std::int64_t rows = p.extent[p.rank - 2];
  const std::int64_t piece =
      std::min(rows, std::max<std::int64_t>(kGrain / p.extent[p.rank - 1], 1));
  const std::int64_t pieces = (rows + piece - 1) / piece;
  const std::int64_t units = p.count / (p.extent[p.rank - 1] * rows) * pieces;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / (piece * p.extent[p.rank - 1]));
  parallel_ranges(units, grain, [&](std::int64_t begin, std::int64_t end) {
    ShortRows runs(p);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      char* base[kMaxOperands];
      for (int k = 0; k < p.operands; ++k) {
        std::int64_t offset = 0, outer = unit / pieces;
        for (int axis = p.rank - 3; axis >= 0; --axis) {
          offset += outer % p.extent[axis] * p.stride[k][axis];
          outer /= p.extent[axis];
        }
        base[k] =
            static_cast<char*>(p.data[k]) + offset * static_cast<std::int64_t>(size_of(p.dtype[k]));
      }
      const std::int64_t first = unit % pieces * piece;
      runs.run(base, first, std::min(piece, rows - first));
    }
  });
}

}  // namespace tw
