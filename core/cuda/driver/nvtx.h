// Ranges that NVIDIA's tools (Nsight Systems, Nsight Compute) show above kernels. A tool names its
// library in NVTX_INJECTION64_PATH, which is opened at the first range; without one, nothing
// happens. Source: NVTX 3's headers, which every program carries for itself: the protocol between
// them and a tool is all that is here.
#pragma once

namespace tw::cuda::nvtx {

// Whether a tool listens.
bool is_attached();
// Opens a range of this thread, and ends its latest one. The tool's number of the level.
int push(const char* name);
int pop();
void mark(const char* name);

// Whether ops of this thread open a range each; returns what was before.
bool set_emitting(bool emits);

}  // namespace tw::cuda::nvtx
