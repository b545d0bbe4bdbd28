// A tensor as the emulated copy engine knows it: what the stand-in driver writes into a tensor
// map's 128 bytes, and kernels read.
#pragma once
#include <cstdint>

struct TwTensorMap {
  static constexpr std::uint64_t kMagic = 0x70616d726f736e74;
  std::uint64_t magic, address;
  std::uint32_t extent[3], box[3];  // elements; the first axis lies together
  std::uint64_t stride[2];          // bytes, of the second and third axis
  std::uint32_t element_bytes;
};
static_assert(sizeof(TwTensorMap) <= 128);
