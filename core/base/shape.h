// Shapes and strides: short vectors of extents, so that the headers of nearly all tensors need no
// heap.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>

namespace tw {

inline constexpr int kMaxRank = 32;

// Extents or strides, in elements: few of them in place, more on the heap. Ranks above kMaxRank
// raise ValueError.
class Dims {
 public:
  Dims() : values_(few_.at) {}
  Dims(std::initializer_list<std::int64_t> values) : Dims() {
    for (const std::int64_t value : values) push_back(value);
  }
  Dims(int rank, std::int64_t fill) : Dims(OfRank{rank}) {
    for (int i = 0; i < rank; ++i) values_[i] = fill;
  }
  // Of extents that are yet to be written.
  static Dims of_rank(int rank) { return Dims(OfRank{rank}); }
  explicit Dims(std::span<const std::int64_t> values)
      : Dims(OfRank{static_cast<int>(values.size())}) {
    for (int i = 0; i < rank_; ++i) values_[i] = values[static_cast<std::size_t>(i)];
  }
  Dims(const Dims& other) : rank_(other.rank_), values_(few_.at) {
    if (rank_ > kFew) [[unlikely]]
      values_ = many_of(other);
    else
      few_ = *reinterpret_cast<const Few*>(other.values_);
  }
  Dims& operator=(const Dims& other) {
    if (other.rank_ > kFew) [[unlikely]]
      return copy_many(other);
    // All of them, used or not, are fewer instructions than a loop.
    *reinterpret_cast<Few*>(values_) = *reinterpret_cast<const Few*>(other.values_);
    rank_ = other.rank_;
    return *this;
  }
  ~Dims() {
    if (values_ != few_.at) [[unlikely]]
      delete[] values_;
  }
  int rank() const { return rank_; }
  std::int64_t& operator[](int i) { return values_[i]; }
  std::int64_t operator[](int i) const { return values_[i]; }
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + rank_; }
  void push_back(std::int64_t value) {
    if (rank_ >= kFew) [[unlikely]]
      make_room(rank_ + 1);
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

 private:
  static constexpr int kFew = 6;
  struct Few {
    std::int64_t at[kFew];
  };
  struct OfRank {
    int rank;
  };
  explicit Dims(OfRank of) : Dims() {
    if (of.rank > kFew) [[unlikely]]
      make_room(of.rank);
    rank_ = of.rank;
  }
  void make_room(int rank);
  static std::int64_t* many_of(const Dims& other);
  Dims& copy_many(const Dims& other);
  int rank_ = 0;
  std::int64_t* values_;  // those of few_, or kMaxRank of them on the heap
  Few few_;
};
using Shape = Dims;
using Strides = Dims;

// The same in problems, which are copied as bytes. One axis more than a tensor has: the two parts
// of complex numbers.
class PlainDims {
 public:
  PlainDims() = default;
  PlainDims(std::initializer_list<std::int64_t> values) {
    for (const std::int64_t value : values) push_back(value);
  }
  PlainDims(const Dims& values) { assign(values); }
  void assign(const Dims& values) {
    rank_ = 0;
    for (const std::int64_t value : values) push_back(value);
  }
  int rank() const { return rank_; }
  std::int64_t& operator[](int i) { return values_[i]; }
  std::int64_t operator[](int i) const { return values_[i]; }
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + rank_; }
  void push_back(std::int64_t value) { values_[rank_++] = value; }
  std::int64_t product() const {
    std::int64_t product = 1;
    for (const std::int64_t value : *this) product *= value;
    return product;
  }

 private:
  int rank_ = 0;
  std::int64_t values_[kMaxRank + 1];
};

// Either, to be read.
using DimsView = std::span<const std::int64_t>;

// Number of elements; raises ValueError when the product does not fit 63 bits.
std::int64_t element_count(const Shape& shape);
// Row-major strides of a freshly allocated tensor.
inline Strides contiguous_strides(const Shape& shape) {
  Strides strides = Strides::of_rank(shape.rank());
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i] > 0 ? shape[i] : 1;
  }
  return strides;
}
// NumPy's broadcasting of two shapes; `op` names the caller in the error.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);
// Maps a possibly negative axis into [0, rank); raises IndexError.
int normalize_axis(std::int64_t axis, int rank, const char* op);
// Bits of all axes.
inline std::uint32_t all_axes(int rank) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << rank) - 1);
}

std::ostream& operator<<(std::ostream& out, const Dims& dims);  // (2, 3), (4,), ()
std::string to_string(const Dims& dims);

}  // namespace tw
