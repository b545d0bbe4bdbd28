// What cuda/prelude/tensor_core.cuh and products of prelude.cuh mean on the emulator: copies end as
// late as they may, what they go to holds garbage until then, and sums are cut off as an H100's
// are.
#pragma once

struct SharedPlace {
  const char* at;
  explicit SharedPlace(const void* at) : at(static_cast<const char*>(at)) {}
  SharedPlace operator+(int bytes) const { return SharedPlace(at + bytes); }
};

// ---- copies ----

struct TwCopy {
  void* to;
  const void* from;
  int bytes, valid;
};
constexpr int kTwMostThreads = 1024, kTwMostCopies = 1024, kTwMostGroups = 16;
struct TwCopies {
  TwCopy copies[kTwMostCopies];
  int ends[kTwMostGroups];  // of groups
  int count, groups, waits;
};
static TwCopies* tw_copies[kTwMostThreads];

static inline TwCopies& tw_copies_here() {
  TwCopies*& mine = tw_copies[threadIdx.x];
  if (!mine) mine = static_cast<TwCopies*>(__builtin_calloc(1, sizeof(TwCopies)));
  return *mine;
}
// What a GPU demands; where it does not hold, the thread goes no further and the launch fails.
static inline void tw_demand(bool holds) {
  while (!holds) tw_module.calls->pause();
}
template <int bytes> static inline void copy_async(void* to, const void* from, int valid) {
  TwCopies& mine = tw_copies_here();
  tw_demand(std::uintptr_t(to) % bytes == 0 && (valid == 0 || std::uintptr_t(from) % bytes == 0));
  tw_demand(valid >= 0 && valid <= bytes && mine.count < kTwMostCopies);
  std::memset(to, 0xCB, bytes);
  mine.copies[mine.count++] = {to, from, bytes, valid};
}
template <int bytes> static inline void copy_async(SharedPlace to, const void* from, int valid) {
  copy_async<bytes>(const_cast<char*>(to.at), from, valid);
}
static inline void commit_copies() {
  TwCopies& mine = tw_copies_here();
  tw_demand(mine.groups < kTwMostGroups);
  mine.ends[mine.groups++] = mine.count;
}
template <int left> static inline void wait_for_copies() {
  TwCopies& mine = tw_copies_here();
  const int done = mine.groups - left;
  if (done <= 0) return;
  // Others go on while the copies are in flight, or none does.
  if ((mine.waits++ + threadIdx.x / 32) % 2) tw_module.calls->pause();
  const int end = mine.ends[done - 1];
  for (int i = 0; i < end; ++i) {
    const TwCopy& copy = mine.copies[i];
    std::memset(copy.to, 0, copy.bytes);
    std::memcpy(copy.to, copy.from, copy.valid);
  }
  std::memmove(mine.copies, mine.copies + end, (mine.count - end) * sizeof(TwCopy));
  mine.count -= end;
  for (int i = 0; i < left; ++i) mine.ends[i] = mine.ends[i + done] - end;
  mine.groups = left;
}

// ---- what the lanes of a warp do together ----

// Two places a thread, used in turn: a lane that is ahead writes beside what others still read.
template <class T> struct TwTogether {
  T given[kTwMostThreads][2];
  unsigned char turn[kTwMostThreads];
  // Gives a value, and waits for those of the warp: the first of its 32, two apart.
  const T* gather(const T& value) {
    const unsigned here = threadIdx.x, which = turn[here]++ & 1;
    given[here][which] = value;
    __syncwarp();
    return &given[here / 32 * 32][which];
  }
};

static TwTogether<const char*> tw_rows;
static inline void tw_load_squares(std::uint32_t (&r)[4], const void* row, bool transposed) {
  tw_demand(std::uintptr_t(row) % 16 == 0);
  const char* const* rows = tw_rows.gather(static_cast<const char*>(row));
  const int lane = tw_lane(), line = lane / 4, pair = lane % 4;
  for (int square = 0; square < 4; ++square) {
    char* to = reinterpret_cast<char*>(&r[square]);
    if (!transposed) {
      std::memcpy(to, rows[(square * 8 + line) * 2] + pair * 4, 4);
    } else {
      for (int k = 0; k < 2; ++k)
        std::memcpy(to + 2 * k, rows[(square * 8 + pair * 2 + k) * 2] + line * 2, 2);
    }
  }
}
static inline void load_squares(std::uint32_t (&r)[4], const void* row) {
  tw_load_squares(r, row, false);
}
static inline void load_squares_transposed(std::uint32_t (&r)[4], const void* row) {
  tw_load_squares(r, row, true);
}

static inline void load_squares(std::uint32_t (&r)[4], SharedPlace row) { load_squares(r, row.at); }
static inline void load_squares_transposed(std::uint32_t (&r)[4], SharedPlace row) {
  load_squares_transposed(r, row.at);
}

// A sum leaves the unit cut off to float's 24 bits.
static inline float tw_cut_off(double sum) {
  float rounded = float(sum);
  if (rounded - rounded != 0) return rounded;
  if ((sum > 0 && rounded > sum) || (sum < 0 && rounded < sum))
    rounded = __uint_as_float(__float_as_uint(rounded) - 1);
  return rounded;
}
// An instruction's products and the sum that they are added to are lined up by the largest of them;
// what one has below 2^-25 of that one's power of two is dropped. An H100 keeps 15 products of
// 2^-25 beside 1 and none of 15 of 2^-26.
constexpr int tw_kept_bits = 25;
// What numbers are multiplied by for their whole parts to be what is kept, by the largest of them.
static inline double tw_lined_up(double largest) {
  std::uint64_t bits;
  std::memcpy(&bits, &largest, sizeof bits);
  const std::int64_t exponent = std::int64_t(bits >> 52 & 0x7ff) - 1023;
  if (largest == 0 || exponent > 1000) return 0;  // nothing; an infinity or NaN: as they are
  bits = std::uint64_t(1023 + tw_kept_bits - exponent) << 52;
  double by;
  std::memcpy(&by, &bits, sizeof by);
  return by;
}
static inline double tw_kept_of(double x, double by) { return by ? __builtin_trunc(x * by) : x; }
static inline float tw_sum_of(double kept, double by) { return tw_cut_off(by ? kept / by : kept); }

static inline float tw_value_of(std::uint16_t bits, bool is_half) {
  return is_half ? float(tw_bits<_Float16>(bits)) : __uint_as_float(std::uint32_t(bits) << 16);
}

static inline std::uint16_t tw_rounded(float x, bool is_half) {
  if (is_half) return tw_bits<std::uint16_t>(_Float16(x));
  const std::uint32_t bits = __float_as_uint(x);
  return std::uint16_t((x != x ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
template <int is_half> static inline std::uint32_t pair_of(float first, float second) {
  return tw_rounded(first, is_half) | std::uint32_t(tw_rounded(second, is_half)) << 16;
}
static inline float power_of_two(float x) {
  const float y = exp2(x);
  return y < 0x1p-126f ? 0 : y;
}

// Products: a lane's share of the operands as numbers, along k.
struct TwShare {
  float a[2][8], b[8];
};
static TwTogether<TwShare> tw_shares;
// Of `each` terms a lane, in the order in which all its operands' pieces follow each other.
static inline void tw_multiply(float (&c)[4], const TwShare& mine, int each) {
  const TwShare* shares = tw_shares.gather(mine);
  const int lane = tw_lane(), row = lane / 4, pair = lane % 4;
  for (int i = 0; i < 4; ++i) {
    double products[32], largest = __builtin_fabs(double(c[i]));
    int count = 0;
    for (int q = 0; q < 4; ++q) {
      const TwShare &left = shares[(row * 4 + q) * 2],
                    &right = shares[((pair * 2 + i % 2) * 4 + q) * 2];
      for (int k = 0; k < each; ++k) {
        const double product = double(left.a[i / 2][k]) * double(right.b[k]);
        largest = __builtin_fmax(largest, __builtin_fabs(product));
        products[count++] = product;
      }
    }
    const double by = tw_lined_up(largest);
    double sum = tw_kept_of(c[i], by);
    for (int n = 0; n < count; ++n) sum += tw_kept_of(products[n], by);
    c[i] = tw_sum_of(sum, by);
  }
}
template <int is_half> static inline void multiply_16x8x16(float (&c)[4],
                                                           const std::uint32_t (&a)[4],
                                                           const std::uint32_t (&b)[2]) {
  TwShare mine;
  for (int k = 0; k < 4; ++k) {
    const int shift = k % 2 * 16;
    for (int below = 0; below < 2; ++below)
      mine.a[below][k] = tw_value_of(std::uint16_t(a[below + k / 2 * 2] >> shift), is_half);
    mine.b[k] = tw_value_of(std::uint16_t(b[k / 2] >> shift), is_half);
  }
  tw_multiply(c, mine, 4);
}
static inline std::uint32_t to_tf32(std::uint32_t bits) {
  if ((bits & 0x7f800000) == 0x7f800000) return bits;
  return (bits + 0x1000) & 0xffffe000;
}
static inline void multiply_16x8x8(float (&c)[4], const std::uint32_t (&a)[4],
                                   const std::uint32_t (&b)[2]) {
  TwShare mine;
  // Bits below tf32's are not looked at.
  const auto value = [](std::uint32_t bits) { return __uint_as_float(bits & 0xffffe000); };
  for (int k = 0; k < 2; ++k) {
    for (int below = 0; below < 2; ++below) mine.a[below][k] = value(a[below + k * 2]);
    mine.b[k] = value(b[k]);
  }
  tw_multiply(c, mine, 2);
}

// Before a thread's first instruction: nothing is on its way.
static inline void tw_begin_warp_state() {
  const unsigned here = threadIdx.x;
  if (TwCopies* mine = tw_copies[here]) mine->count = mine->groups = mine->waits = 0;
  tw_rows.turn[here] = tw_shares.turn[here] = 0;
}
