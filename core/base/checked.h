// Arithmetic of extents, places and counts that cannot wrap around.
#pragma once
#include <cstdint>

#include "core/base/error.h"

namespace tw {

// A whole number of an op. What leaves 64 bits on the way raises ValueError, with the op and both
// numbers.
class Checked {
 public:
  Checked(const char* op, std::int64_t value) : op_(op), value_(value) {}
  std::int64_t get() const { return value_; }

  friend Checked operator+(Checked a, std::int64_t b) {
    std::int64_t sum;
    if (__builtin_add_overflow(a.value_, b, &sum)) a.fail_beyond(" + ", b);
    return {a.op_, sum};
  }
  friend Checked operator-(Checked a, std::int64_t b) {
    std::int64_t difference;
    if (__builtin_sub_overflow(a.value_, b, &difference)) a.fail_beyond(" - ", b);
    return {a.op_, difference};
  }
  friend Checked operator*(Checked a, std::int64_t b) {
    std::int64_t product;
    if (__builtin_mul_overflow(a.value_, b, &product)) a.fail_beyond(" * ", b);
    return {a.op_, product};
  }

 private:
  [[noreturn, gnu::cold]] void fail_beyond(const char* sign, std::int64_t b) const {
    fail(ErrorKind::value, op_, ": sizes of the result do not fit 64 bits: ", value_, sign, b);
  }
  const char* op_;
  std::int64_t value_;
};

}  // namespace tw
