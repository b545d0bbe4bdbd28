// The stand-in driver's tensor maps: three axes, rows of 128 bytes whose chunks are turned, as
// core/cuda asks for; whatever the driver refuses is refused.
#include "tensor_map.h"

#include <cstring>

extern "C" int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* address,
                                      const unsigned long long* extents,
                                      const unsigned long long* strides, const unsigned* box,
                                      const unsigned* steps, int interleave, int swizzle, int,
                                      int fill) {
  constexpr int kInvalid = 1, kHalf = 6, kBfloat16 = 9, kRowsOf128 = 3;
  if (rank != 3 || (type != kHalf && type != kBfloat16) || interleave || fill ||
      swizzle != kRowsOf128 || reinterpret_cast<std::uintptr_t>(map) % 64 ||
      reinterpret_cast<std::uintptr_t>(address) % 16)
    return kInvalid;
  TwTensorMap made = {
      TwTensorMap::kMagic, reinterpret_cast<std::uintptr_t>(address), {}, {}, {}, 2};
  for (int axis = 0; axis < 3; ++axis) {
    if (extents[axis] == 0 || extents[axis] > std::uint64_t{1} << 32 || box[axis] == 0 ||
        box[axis] > 256 || steps[axis] != 1)
      return kInvalid;
    made.extent[axis] = static_cast<std::uint32_t>(extents[axis]);
    made.box[axis] = box[axis];
  }
  for (int axis = 0; axis < 2; ++axis) {
    if (strides[axis] % 16 || strides[axis] >= std::uint64_t{1} << 40) return kInvalid;
    made.stride[axis] = strides[axis];
  }
  if (box[0] * made.element_bytes != 128) return kInvalid;
  std::memset(map, 0, 128);
  std::memcpy(map, &made, sizeof made);
  return 0;
}
