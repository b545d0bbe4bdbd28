// What kernels of rung split share. An operand of float32 is two matrices of half: each row of A
// and column of B times a power of two that brings its largest element near half's largest,
// rounded, and 2048 times what is left: 22 bits. Rows whose elements differ too much for it, or are
// no numbers, are flagged; tiles of C that need one are left to rung registers.
#include "problem.cuh"
#include "split_parameters.h"

// Of what is left, so that it has half's range for itself.
TW_DEVICE float low_scale() { return 2048; }

using SplitOperand = SplitOperandOf<half>;
TW_DEVICE int64_t member_of(const SplitOperand& x, int64_t member) { return x.shared ? 0 : member; }

TW_DEVICE bool is_flagged(const SplitOperand& x, int64_t member, int64_t outer0) {
  const int32_t* flags = x.flags + member_of(x, member) * x.flag_groups;
  const int64_t first = outer0 / kFlaggedSide * (kFlaggedSide / kFlagRows);
  bool any = false;
  for (int g = 0; g < kFlaggedSide / kFlagRows; ++g)
    any |= first + g < x.flag_groups && flags[first + g] != 0;
  return any;
}
// Whether the tile around an element of C is left to rung registers.
TW_DEVICE bool is_flagged(const SplitOperand& a, const SplitOperand& b, int64_t member, int64_t i,
                          int64_t j) {
  return is_flagged(a, member, i) || is_flagged(b, member, j);
}

// 2^e, for -126 to 127.
TW_DEVICE float power_of_two(int e) { return __int_as_float((e + 127) << 23); }

// Sums of products of scaled rows and columns, as they are without the powers of two.
struct Unscale {
  const int32_t *rows, *columns;
  TW_DEVICE Unscale(const SplitOperand& a, const SplitOperand& b, int64_t member)
      : rows(a.exponents + member_of(a, member) * a.outers),
        columns(b.exponents + member_of(b, member) * b.outers) {}
  TW_DEVICE float row(int64_t i) const { return power_of_two(-rows[i]); }
  TW_DEVICE float column(int64_t j) const { return power_of_two(-columns[j]); }
};
