// Shapes and strides: a fixed-capacity vector of extents, so that a tensor header needs no heap.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

namespace tw {

inline constexpr int kMaxRank = 8;

// Extents or strides, in elements. Ranks above kMaxRank raise ValueError.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) {
    for (const std::int64_t value : values) push_back(value);
  }
  Dims(int rank, std::int64_t fill);
  int rank() const { return rank_; }
  std::int64_t& operator[](int i) { return values_[i]; }
  std::int64_t operator[](int i) const { return values_[i]; }
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + rank_; }
  void push_back(std::int64_t value) {
    if (rank_ == kMaxRank) [[unlikely]]
      fail_rank(rank_ + 1);
    values_[rank_++] = value;
  }
  void insert(int at, std::int64_t value);
  void erase(int at);
  bool operator==(const Dims& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if (values_[i] != other.values_[i]) return false;
    return true;
  }
  Dims(const Dims& other) : rank_(other.rank_) { copy(other); }
  Dims& operator=(const Dims& other) {
    rank_ = other.rank_;
    copy(other);
    return *this;
  }

 private:
  [[noreturn]] static void fail_rank(int rank);
  void copy(const Dims& other) {
    for (int i = 0; i < rank_; ++i) values_[i] = other.values_[i];
  }
  int rank_ = 0;
  std::int64_t values_[kMaxRank];
};
using Shape = Dims;
using Strides = Dims;

// Number of elements; raises ValueError when the product does not fit 63 bits.
std::int64_t element_count(const Shape& shape);
// Row-major strides of a freshly allocated tensor.
Strides contiguous_strides(const Shape& shape);
// NumPy's broadcasting of two shapes; `op` names the caller in the error.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);
// Maps a possibly negative axis into [0, rank); raises IndexError.
int normalize_axis(std::int64_t axis, int rank, const char* op);
// Sets marks[i] for each axis of the list; raises IndexError for axes out of range and ValueError
// for repeated ones.
void mark_axes(const std::vector<std::int64_t>& axes, int rank, const char* op,
               bool (&marks)[kMaxRank]);

std::ostream& operator<<(std::ostream& out, const Dims& dims);  // (2, 3), (4,), ()
std::string to_string(const Dims& dims);

}  // namespace tw
