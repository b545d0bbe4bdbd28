// What a warp does on tensor cores from compute capability 8.0 on: copies into shared memory that
// go on beside its arithmetic, reads of squares of 8 x 8, products of tf32; and what goes with them:
// pairs of 16 bits, powers of two. Products of 16 bits are in prelude.cuh; the emulator's meaning of
// all is core/cuda/emulator/tensor_core.h.
#include "prelude.cuh"

#ifndef TW_EMULATED
TW_DEVICE uint32_t shared_address(const void* at) {
  uint64_t address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(at));
  return uint32_t(address);
}

// A place in shared memory. Unlike a pointer it has 32 bits, so that a constant distance from it is
// part of the instruction that uses it.
struct SharedPlace {
  uint32_t at;
  TW_DEVICE explicit SharedPlace(const void* at) : at(shared_address(at)) {}
  TW_DEVICE SharedPlace operator+(int bytes) const {
    SharedPlace there = *this;
    there.at += bytes;
    return there;
  }
};

// `bytes` (4, 8 or 16) of shared memory from the GPU's; those from `valid` on become zeros and are
// not read. Both addresses are multiples of `bytes`. There once the thread has waited for its
// group.
template <int bytes> TW_DEVICE void copy_async(SharedPlace to, const void* from, int valid) {
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to.at),
                 "l"(from), "r"(valid)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to.at),
                 "l"(from), "n"(bytes), "r"(valid)
                 : "memory");
}
template <int bytes> TW_DEVICE void copy_async(void* to, const void* from, int valid) {
  copy_async<bytes>(SharedPlace(to), from, valid);
}
// The thread's copies since the last call are a group.
TW_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until all the thread's groups but the newest `left` are there.
template <int left> TW_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

// Four squares of 8 rows of 16 bytes: lane i names row i % 8 of square i / 8, and gets of each
// square the four bytes lane % 4 of row lane / 4.
TW_DEVICE void load_squares(uint32_t (&r)[4], SharedPlace row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row.at)
               : "memory");
}
TW_DEVICE void load_squares(uint32_t (&r)[4], const void* row) { load_squares(r, SharedPlace(row)); }
// The same of squares of 16-bit elements, transposed.
TW_DEVICE void load_squares_transposed(uint32_t (&r)[4], SharedPlace row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row.at)
               : "memory");
}
TW_DEVICE void load_squares_transposed(uint32_t (&r)[4], const void* row) {
  load_squares_transposed(r, SharedPlace(row));
}

// c += a b for 16 x 8 and 8 x 8 numbers in tf32: of a, a thread has rows lane / 4 and 8 below,
// columns lane % 4 and 4 behind; of b row lane % 4 and 4 below, column lane / 4; of c as
// multiply_16x8x16.
TW_DEVICE void multiply_16x8x8(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Two floats rounded to 16 bits: the first in the lower half.
template <int is_half> TW_DEVICE uint32_t pair_of(float first, float second) {
  uint32_t y;
  if constexpr (is_half)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(second), "f"(first));
  return y;
}
// By one instruction, to 22 bits; results below 2^-126 are 0.
TW_DEVICE float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Eleven bits of a float, rounded to nearest.
TW_DEVICE uint32_t to_tf32(uint32_t bits) {
  uint32_t y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(bits)));
  return y;
}
#endif
