// Counters by which a kernel's blocks find out which of them is done last, so that it may finish
// what all have begun, in the same launch.
#pragma once
#include <cstdint>

namespace tw::cuda {

class Gpu;

// So many in the GPU's memory, 0 before the launch; the last blocks have to set them back to 0.
// They are those of this thread's stream, whose launches run one after the other. Null for more
// than 1024, and while launches are recorded: the same launch would run again beside others with
// them then.
unsigned* counters_of_blocks(Gpu& gpu, std::int64_t count = 1);

}  // namespace tw::cuda
