#include "core/base/shape.h"

#include <sstream>

#include "core/base/error.h"

namespace tw {

namespace {

void check_rank(int rank) {
  if (rank > kMaxRank)
    fail(ErrorKind::value, "a tensor has at most ", kMaxRank, " dimensions, got ", rank);
}

}  // namespace

void Dims::make_room(int rank) {
  check_rank(rank);
  if (values_ != few_.at) return;
  auto* many = new std::int64_t[kMaxRank];
  for (int i = 0; i < kFew; ++i) many[i] = few_.at[i];
  values_ = many;
}

std::int64_t* Dims::many_of(const Dims& other) {
  auto* many = new std::int64_t[kMaxRank];
  for (int i = 0; i < other.rank_; ++i) many[i] = other.values_[i];
  return many;
}

Dims& Dims::copy_many(const Dims& other) {
  make_room(other.rank_);
  rank_ = other.rank_;
  for (int i = 0; i < rank_; ++i) values_[i] = other.values_[i];
  return *this;
}

void Dims::insert(int at, std::int64_t value) {
  push_back(value);
  for (int i = rank_ - 1; i > at; --i) values_[i] = values_[i - 1];
  values_[at] = value;
}

void Dims::erase(int at) {
  --rank_;
  for (int i = at; i < rank_; ++i) values_[i] = values_[i + 1];
}

// Extents of 0 are left out of the product, so that no run of axes and no stride overflows.
std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  bool overflow = false, empty = false;
  for (std::int64_t extent : shape) {
    empty |= extent == 0;
    overflow |= __builtin_mul_overflow(count, extent == 0 ? 1 : extent, &count);
  }
  if (overflow)
    fail(ErrorKind::value, "shape ", shape, " has more elements than 64 bits can count");
  return empty ? 0 : count;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  const int rank = a.rank() > b.rank() ? a.rank() : b.rank();
  Shape out(rank, 1);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const std::int64_t ea = ia < 0 ? 1 : a[ia], eb = ib < 0 ? 1 : b[ib];
    if (ea != eb && ea != 1 && eb != 1)
      fail(ErrorKind::value, op, ": shapes do not broadcast: ", a, " and ", b);
    out[i] = ea == 1 ? eb : ea;
  }
  return out;
}

int normalize_axis(std::int64_t axis, int rank, const char* op) {
  const std::int64_t mapped = axis < 0 ? axis + rank : axis;
  if (mapped < 0 || mapped >= rank)
    fail(ErrorKind::index, op, ": axis ", axis, " is out of range for ", rank, " dimension",
         rank == 1 ? "" : "s");
  return static_cast<int>(mapped);
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) {
  out << '(';
  for (int i = 0; i < dims.rank(); ++i) out << (i ? ", " : "") << dims[i];
  return out << (dims.rank() == 1 ? ",)" : ")");
}

std::string to_string(const Dims& dims) {
  std::ostringstream out;
  out << dims;
  return out.str();
}

}  // namespace tw
