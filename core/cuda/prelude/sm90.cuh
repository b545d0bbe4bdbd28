// What compute capability 9.0 brings: barriers in shared memory that count arrivals and bytes, the
// engine that copies boxes of a tensor, and products of a warpgroup (128 threads) whose operands
// lie in shared memory. The emulator's meaning of all is core/cuda/emulator/sm90.h.
#include "tensor_core.cuh"

// Counts arrivals and bytes of a phase; phases are told apart by their parity, the first is 0.
struct Barrier {
  uint64_t state;
};

// How wgmma finds an operand in shared memory, in rows of 128 bytes whose 16-byte chunks are turned
// by the row's number, as the copy engine leaves them. Rows along k (64 elements each): eight rows
// every `group` bytes, `block` is not used. Rows along the other axis: eight of them every `group`
// bytes, and the next 64 elements of the axis every `block` bytes.
TW_DEVICE uint64_t operand(uint32_t address, uint32_t block, uint32_t group) {
  return uint64_t(address >> 4) | uint64_t(block >> 4) << 16 | uint64_t(group >> 4) << 32 |
         uint64_t(1) << 62;
}

#ifndef TW_EMULATED
TW_DEVICE void init_barrier(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
// Barriers that this thread has made are there for the copy engine.
TW_DEVICE void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
TW_DEVICE void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// One arrival, and so many bytes that will come in this phase.
TW_DEVICE void arrive_and_expect(Barrier* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
// Until the phase of this parity is over.
TW_DEVICE void wait_for_phase(Barrier* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again_%=;\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// The box of a tensor of three axes that begins at an element; what is outside is zeros. Its bytes
// arrive at the barrier.
TW_DEVICE void copy_box(void* to, const TensorMap* map, Barrier* barrier, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// Registers go from the warpgroups that need few to those that need many.
template <int count> TW_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count> TW_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// Before a warpgroup's first product: what it wrote to its sums' registers is there.
TW_DEVICE void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// The products since the last call are a group.
TW_DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until all groups but the newest `left` are done: their sums are there, their operands free.
template <int left> TW_DEVICE void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

#define TW_SUMS4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define TW_SUMS16(d, i) TW_SUMS4(d, i), TW_SUMS4(d, i + 4), TW_SUMS4(d, i + 8), TW_SUMS4(d, i + 12)
#define TW_SUMS64(d, i) \
  TW_SUMS16(d, i), TW_SUMS16(d, i + 16), TW_SUMS16(d, i + 32), TW_SUMS16(d, i + 48)
#define TW_REGISTERS64                                                                   \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,"   \
  "%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43," \
  "%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define TW_REGISTERS128                                                                  \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,"   \
  "%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43," \
  "%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64," \
  "%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85," \
  "%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,"    \
  "%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,"     \
  "%121,%122,%123,%124,%125,%126,%127"
// shape and type; the sums' registers; the numbers of the operands that follow them.
#define TW_MULTIPLY(shape, registers, a, b, keep, turn_a, turn_b)                            \
  "{\n.reg .pred keep;\nsetp.ne.b32 keep, " keep ", 0;\nwgmma.mma_async.sync.aligned." shape \
  " {" registers "}, " a ", " b ", keep, 1, 1, " turn_a ", " turn_b ";\n}"
#define TW_OPERANDS "l"(a), "l"(b), "r"(keep), "n"(!a_along_k), "n"(!b_along_k)

// sums = a b, and what they were where `keep` is not 0: 64 rows by 2 columns for each sum that a
// thread has, 16 terms, of operands as `operand` says where they lie. A warp has 16 rows; of each
// eight columns a thread has what it has of multiply_16x8x16.
template <int is_half, bool a_along_k, bool b_along_k>
TW_DEVICE void multiply_group(float (&sums)[64], uint64_t a, uint64_t b, int keep) {
  if constexpr (is_half)
    asm volatile(
        TW_MULTIPLY("m64n128k16.f32.f16.f16", TW_REGISTERS64, "%64", "%65", "%66", "%67", "%68")
        : TW_SUMS64(sums, 0)
        : TW_OPERANDS);
  else
    asm volatile(
        TW_MULTIPLY("m64n128k16.f32.bf16.bf16", TW_REGISTERS64, "%64", "%65", "%66", "%67", "%68")
        : TW_SUMS64(sums, 0)
        : TW_OPERANDS);
}
template <int is_half, bool a_along_k, bool b_along_k>
TW_DEVICE void multiply_group(float (&sums)[128], uint64_t a, uint64_t b, int keep) {
  if constexpr (is_half)
    asm volatile(TW_MULTIPLY("m64n256k16.f32.f16.f16", TW_REGISTERS128, "%128", "%129", "%130",
                             "%131", "%132")
                 : TW_SUMS64(sums, 0), TW_SUMS64(sums, 64)
                 : TW_OPERANDS);
  else
    asm volatile(TW_MULTIPLY("m64n256k16.f32.bf16.bf16", TW_REGISTERS128, "%128", "%129", "%130",
                             "%131", "%132")
                 : TW_SUMS64(sums, 0), TW_SUMS64(sums, 64)
                 : TW_OPERANDS);
}
#endif
