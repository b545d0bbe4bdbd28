// Counters by which a kernel's blocks find out which of them is done last, so that it may finish
// what all have begun, in the same launch.
#pragma once

namespace tw::cuda {

class Gpu;

// In the GPU's memory, 0 before the launch; the last block has to set it back to 0. Null while
// launches are recorded: the same launch would run again beside others with this counter then.
unsigned* counter_of_blocks(Gpu& gpu);

}  // namespace tw::cuda
