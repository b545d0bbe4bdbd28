// What cuda/prelude/sm90.cuh means on the emulator. Boxes are copied, and products done, when no
// thread can go on otherwise; memory on its way holds garbage; a product whose operands change
// between its start and its end gives NaN, as does one without a fence before it.
#pragma once
#include "tensor_map.h"

struct Barrier;
namespace tw::cuda {
struct TensorMap;
}
using tw::cuda::TensorMap;

// ---- barriers ----

struct TwBarrier {
  std::uint16_t arrivals : 15, parity : 1;
  std::uint16_t missing;
  std::int32_t bytes;
};
static inline TwBarrier& tw_barrier(Barrier* barrier) {
  tw_demand(std::uintptr_t(barrier) % 8 == 0);
  return *reinterpret_cast<TwBarrier*>(barrier);
}
static inline void tw_changed(TwBarrier& b) {
  ++tw_module.changes;
  if (b.missing || b.bytes) return;
  b.parity ^= 1;
  b.missing = b.arrivals;
}
static inline void init_barrier(Barrier* barrier, int arrivals) {
  tw_barrier(barrier) = {std::uint16_t(arrivals), 0, std::uint16_t(arrivals), 0};
}
static inline void publish_barriers() {}
static inline void arrive(Barrier* barrier) {
  TwBarrier& b = tw_barrier(barrier);
  tw_demand(b.missing > 0 && b.missing <= b.arrivals);  // one too many, or no barrier
  --b.missing;
  tw_changed(b);
}
static inline void arrive_and_expect(Barrier* barrier, int bytes) {
  tw_barrier(barrier).bytes += bytes;
  arrive(barrier);
}
static inline void wait_for_phase(Barrier* barrier, std::uint32_t parity) {
  while (tw_barrier(barrier).parity == parity) tw_module.calls->pause();
  ++tw_module.changes;
}

// ---- boxes ----

struct TwBox {
  char* to;
  const TwTensorMap* map;
  Barrier* barrier;
  int at[3];
};
constexpr int kTwMostBoxes = 256;
static TwBox tw_boxes[kTwMostBoxes];
static int tw_box_count;
static bool tw_newest_box;

static inline std::uint32_t tw_shared_offset(const void* at) {
  return std::uint32_t(static_cast<const char*>(at) - tw_module.dynamic);
}
static inline std::uint32_t shared_address(const void* at) { return tw_shared_offset(at); }
// Where a byte lies whose row has 128 of them: the 16-byte chunk is turned by the row.
static inline std::uint32_t tw_turned(std::uint32_t offset) {
  return offset ^ (offset >> 7 & 7) << 4;
}
static inline std::uint32_t tw_box_bytes(const TwTensorMap& map) {
  return map.box[0] * map.box[1] * map.box[2] * map.element_bytes;
}
static inline void tw_deliver(const TwBox& box) {
  const TwTensorMap& map = *box.map;
  const int size = map.element_bytes;
  char* to = box.to;
  for (int z = box.at[2]; z < box.at[2] + int(map.box[2]); ++z)
    for (int y = box.at[1]; y < box.at[1] + int(map.box[1]); ++y)
      for (int x = box.at[0]; x < box.at[0] + int(map.box[0]); ++x, to += size) {
        char* const place = tw_module.dynamic + tw_turned(tw_shared_offset(to));
        const bool inside = x >= 0 && y >= 0 && z >= 0 && unsigned(x) < map.extent[0] &&
                            unsigned(y) < map.extent[1] && unsigned(z) < map.extent[2];
        if (inside)
          std::memcpy(place,
                      reinterpret_cast<const char*>(map.address) + x * size + y * map.stride[0] +
                          z * map.stride[1],
                      size);
        else
          std::memset(place, 0, size);
      }
  TwBarrier& b = tw_barrier(box.barrier);
  b.bytes -= int(tw_box_bytes(map));
  tw_changed(b);
}

// ---- products ----

struct TwProduct {
  std::uint64_t a, b;
  int wide;
  bool is_half, a_along_k, b_along_k, keep, sound;
  float* sums[32];                             // of each lane
  std::uint16_t left[16][16], right[256][16];  // when it was started
};
constexpr int kTwMostProducts = 64;
struct TwProducts {
  TwProduct products[kTwMostProducts];
  int count, issued[32], committed[kTwMostGroups], groups;
  bool fenced[32];
};
static TwProducts* tw_products[kTwMostThreads / 32];
static unsigned tw_waiting, tw_grace;

static inline TwProducts& tw_products_here() {
  TwProducts*& mine = tw_products[threadIdx.x / 32];
  if (!mine) mine = static_cast<TwProducts*>(__builtin_calloc(1, sizeof(TwProducts)));
  return *mine;
}
// Nothing else can happen: the next copy ends, or if there is none, products do.
static inline bool tw_settle() {
  ++tw_module.changes;
  if (tw_box_count > 0) {
    tw_newest_box = !tw_newest_box;
    const int which = tw_newest_box ? tw_box_count - 1 : 0;
    const TwBox box = tw_boxes[which];
    --tw_box_count;
    std::memmove(tw_boxes + which, tw_boxes + which + 1, (tw_box_count - which) * sizeof(TwBox));
    tw_deliver(box);
    return true;
  }
  ++tw_grace;
  return tw_waiting > 0;
}
static inline void copy_box(void* to, const TensorMap* map, Barrier* barrier, int x, int y, int z) {
  const auto* known = reinterpret_cast<const TwTensorMap*>(map);
  tw_demand(known->magic == TwTensorMap::kMagic && tw_shared_offset(to) % 1024 == 0 &&
            tw_box_count < kTwMostBoxes);
  tw_module.settle = tw_settle;
  std::memset(to, 0xCB, tw_box_bytes(*known));
  tw_boxes[tw_box_count++] = {static_cast<char*>(to), known, barrier, {x, y, z}};
  ++tw_module.changes;
}

// An element of an operand (along its other axis, and k), which is described as for the GPU.
static inline std::uint16_t tw_operand_at(std::uint64_t operand, bool along_k, int other, int k) {
  const auto field = [operand](int from) { return std::uint32_t(operand >> from & 0x3fff) << 4; };
  tw_demand(operand >> 62 == 1);
  const std::uint32_t address = field(0), block = field(16), group = field(32);
  const std::uint32_t offset =
      along_k ? other / 8 * group + other % 8 * 128 + k * 2
              : other / 64 * block + k / 8 * group + k % 8 * 128 + other % 64 * 2;
  std::uint16_t bits;
  std::memcpy(&bits, tw_module.dynamic + tw_turned(address + offset), sizeof bits);
  return bits;
}
static inline void tw_read_operands(const TwProduct& p, std::uint16_t (&left)[16][16],
                                    std::uint16_t (&right)[256][16]) {
  const int row0 = threadIdx.x / 32 % 4 * 16;
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k) left[i][k] = tw_operand_at(p.a, p.a_along_k, row0 + i, k);
  for (int j = 0; j < p.wide; ++j)
    for (int k = 0; k < 16; ++k) right[j][k] = tw_operand_at(p.b, p.b_along_k, j, k);
}
// Of a warp's sixteen rows, by one lane for all.
__attribute__((optimize("O3"))) static inline void tw_finish(TwProduct& p) {
  static std::uint16_t left[16][16], right[256][16];
  static double columns[16][256];
  tw_read_operands(p, left, right);
  const bool sound = p.sound && !std::memcmp(left, p.left, sizeof left) &&
                     !std::memcmp(right, p.right, p.wide * sizeof right[0]);
  for (int j = 0; j < p.wide; ++j)
    for (int k = 0; k < 16; ++k) columns[k][j] = tw_value_of(right[j][k], p.is_half);
  for (int i = 0; i < 16; ++i) {
    double before[256], largest[256], by[256], row[256];
    const auto sum_at = [&](int j) -> float& {
      return p.sums[i % 8 * 4 + j % 8 / 2][j / 8 * 4 + i / 8 * 2 + j % 2];
    };
    for (int j = 0; j < p.wide; ++j) {
      before[j] = p.keep ? double(sum_at(j)) : 0.0;
      largest[j] = __builtin_fabs(before[j]);
    }
    for (int k = 0; k < 16; ++k) {
      const double x = tw_value_of(left[i][k], p.is_half);
      for (int j = 0; j < p.wide; ++j) {
        const double magnitude = __builtin_fabs(x * columns[k][j]);
        largest[j] = magnitude > largest[j] || magnitude != magnitude ? magnitude : largest[j];
      }
    }
    for (int j = 0; j < p.wide; ++j) {
      by[j] = tw_lined_up(largest[j]);
      row[j] = tw_kept_of(before[j], by[j]);
    }
    for (int k = 0; k < 16; ++k) {
      const double x = tw_value_of(left[i][k], p.is_half);
      for (int j = 0; j < p.wide; ++j) row[j] += tw_kept_of(x * columns[k][j], by[j]);
    }
    for (int j = 0; j < p.wide; ++j) sum_at(j) = sound ? tw_sum_of(row[j], by[j]) : TW_NAN;
  }
}

template <int count> static inline void give_registers() {}
template <int count> static inline void take_registers() {}
static inline void fence_products() { tw_products_here().fenced[tw_lane()] = true; }
template <int is_half, bool a_along_k, bool b_along_k, int n>
static inline void multiply_group(float (&sums)[n], std::uint64_t a, std::uint64_t b, int keep) {
  TwProducts& mine = tw_products_here();
  const int lane = tw_lane(), number = mine.issued[lane]++;
  tw_demand(number < kTwMostProducts);
  TwProduct& p = mine.products[number];
  if (number == mine.count) {
    ++mine.count;
    p.a = a, p.b = b, p.wide = 2 * n, p.keep = keep != 0, p.sound = true;
    p.is_half = is_half, p.a_along_k = a_along_k, p.b_along_k = b_along_k;
    tw_read_operands(p, p.left, p.right);
  }
  p.sound &= mine.fenced[lane] && p.a == a && p.b == b;
  p.sums[lane] = sums;
}
static inline void commit_products() {
  TwProducts& mine = tw_products_here();
  if (tw_lane() != 31) return;  // one says it for all: the wait brings lanes together
  tw_demand(mine.groups < kTwMostGroups);
  mine.committed[mine.groups++] = mine.issued[31];
}
template <int left> static inline void wait_for_products() {
  const unsigned grace = tw_grace;
  tw_module.settle = tw_settle;
  ++tw_waiting;
  while (tw_grace == grace) tw_module.calls->pause();
  --tw_waiting;
  __syncwarp();
  TwProducts& mine = tw_products_here();
  const int done = mine.groups - left;
  if (tw_lane() == 0 && done > 0) {
    const int end = mine.committed[done - 1];
    for (int i = 0; i < end; ++i) tw_finish(mine.products[i]);
    std::memmove(mine.products, mine.products + end, (mine.count - end) * sizeof(TwProduct));
    mine.count -= end;
    for (int& issued : mine.issued) issued -= end;
    for (int i = 0; i < left; ++i) mine.committed[i] = mine.committed[i + done] - end;
    mine.groups = left;
  }
  __syncwarp();
  if (left == 0) mine.fenced[tw_lane()] = false;
}

// Before a thread's first instruction: nothing is in flight.
static inline void tw_begin_hopper_state() {
  if (tw_module.changes == 0) tw_box_count = 0;
  ++tw_module.changes;
  TwProducts* const mine = tw_products[threadIdx.x / 32];
  if (!mine) return;
  mine->count = mine->groups = mine->issued[tw_lane()] = 0;
  mine->fenced[tw_lane()] = false;
}
