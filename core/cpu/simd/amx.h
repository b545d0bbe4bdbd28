// AMX: eight tile registers of 16 rows by 64 bytes and a dot product of bfloat16 pairs between them
// (Intel SDM volume 2, TILELOADD, TDPBF16PS). With TW_EMULATE_TILES the same functions in plain
// C++, bit for bit: for tests on machines without the unit. Everything else is the same code for
// both.
#pragma once
#include <cstdint>
#ifdef TW_EMULATE_TILES
#define TW_ISA_NAME amx_emulated
#else
#define TW_ISA_NAME amx
#endif

namespace tw::TW_ISA_NAME {
namespace {

inline constexpr int kVectorBytes = 64;
inline constexpr int kRegisters = 32;
inline constexpr int kTileRegisterRows = 16, kTileRegisterBytes = 64;

#ifdef TW_EMULATE_TILES

struct TileRegister {
  std::uint32_t lanes[kTileRegisterRows][kTileRegisterBytes / 4];
};
thread_local TileRegister tile_registers[8];

inline void configure_tiles() {}
inline void release_tiles() {}

template <int tile> inline void tile_zero() { tile_registers[tile] = {}; }
template <int tile> inline void tile_load(const void* from, std::int64_t stride_bytes) {
  for (int r = 0; r < kTileRegisterRows; ++r)
    __builtin_memcpy(tile_registers[tile].lanes[r], (const char*)from + r * stride_bytes,
                     kTileRegisterBytes);
}
template <int tile> inline void tile_store(void* to, std::int64_t stride_bytes) {
  for (int r = 0; r < kTileRegisterRows; ++r)
    __builtin_memcpy((char*)to + r * stride_bytes, tile_registers[tile].lanes[r],
                     kTileRegisterBytes);
}

// Denormals are read and written as zero, whatever MXCSR says.
inline float flushed(float x) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
  return bits & 0x7f800000 ? x : __builtin_bit_cast(float, bits & 0x80000000);
}
inline float bfloat16_of(std::uint32_t upper_half) {
  return flushed(__builtin_bit_cast(float, upper_half & 0xffff0000));
}
// Even and odd terms are summed apart from zero, in order, and their sum is added to C.
template <int c, int a, int b> inline void tile_dot() {
  for (int r = 0; r < kTileRegisterRows; ++r)
    for (int j = 0; j < kTileRegisterBytes / 4; ++j) {
      float even = 0, odd = 0;
      for (int pair = 0; pair < kTileRegisterRows; ++pair) {
        const std::uint32_t x = tile_registers[a].lanes[r][pair];
        const std::uint32_t y = tile_registers[b].lanes[pair][j];
        even = flushed(__builtin_fmaf(bfloat16_of(x << 16), bfloat16_of(y << 16), even));
        odd = flushed(__builtin_fmaf(bfloat16_of(x), bfloat16_of(y), odd));
      }
      const float before = flushed(__builtin_bit_cast(float, tile_registers[c].lanes[r][j]));
      const float after = flushed(before + flushed(even + odd));
      tile_registers[c].lanes[r][j] = __builtin_bit_cast(std::uint32_t, after);
    }
}

#else

struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);
constexpr TileConfiguration kWholeTiles;

// On each thread, before its first tile; released soon, because the tiles' 8 KiB are saved at each
// switch between threads while they are in use.
inline void configure_tiles() { __asm__ volatile("ldtilecfg %0" ::"m"(kWholeTiles)); }
inline void release_tiles() { __asm__ volatile("tilerelease" ::: "memory"); }

// Assembly, because the compilers' intrinsics take register numbers as text, not as constants.
template <int tile> inline void tile_zero() { __asm__ volatile("tilezero %%tmm%c0" ::"i"(tile)); }
template <int tile> inline void tile_load(const void* from, std::int64_t stride_bytes) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride_bytes), "i"(tile)
                   : "memory");
}
template <int tile> inline void tile_store(void* to, std::int64_t stride_bytes) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride_bytes), "i"(tile)
                   : "memory");
}
template <int c, int a, int b> inline void tile_dot() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
}

#endif

}  // namespace
}  // namespace tw::TW_ISA_NAME
