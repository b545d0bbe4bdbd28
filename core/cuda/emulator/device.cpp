// The stand-in driver's GPUs: how many, what they are, their contexts, what its results mean.
// The environment: TW_EMULATED_GPUS (how many, 1), TW_EMULATED_CAPABILITY (90: 9.0),
// TW_EMULATED_MEMORY (bytes of each, 4 GiB), TW_EMULATED_BESIDE (1: copies of other streams go on
// while kernels run, each for as long as two kernels unless it is waited for) and TW_EMULATED_FAULT
// (a kernel's name, and after a colon which run of it, from 1 on, touches an address that is not
// there).
#include <cstdio>
#include <cstdlib>
#include <map>

#include "state.h"

namespace emulated {

std::mutex mutex;
std::string last_fault;
Result lost = kSuccess;

std::int64_t setting(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

namespace {
thread_local int gpu = 0;
}  // namespace

int current_gpu() { return gpu; }

}  // namespace emulated

using namespace emulated;

extern "C" {

Result cuInit(unsigned) { return kSuccess; }
Result cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }
Result cuDeviceGetCount(int* count) {
  *count = static_cast<int>(setting("TW_EMULATED_GPUS", 1));
  return kSuccess;
}
Result cuDeviceGet(int* device, int number) {
  if (number < 0 || number >= setting("TW_EMULATED_GPUS", 1)) return kNoDevice;
  return *device = number, kSuccess;
}
Result cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "emulated GPU");
  return kSuccess;
}
Result cuDeviceGetAttribute(int* value, int what, int) {
  const std::map<int, int> values = {
      {75, static_cast<int>(setting("TW_EMULATED_CAPABILITY", 90)) / 10},
      {76, static_cast<int>(setting("TW_EMULATED_CAPABILITY", 90)) % 10},
      {16, 4},
      {97, 227 << 10},
      {38, 1 << 20}};
  const auto found = values.find(what);
  *value = found == values.end() ? 0 : found->second;
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1);
  return kSuccess;
}
Result cuCtxSetCurrent(void* context) {
  gpu = static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1;
  return kSuccess;
}
Result cuGetErrorName(Result result, const char** name) {
  *name = result == kNoMemory         ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == kNotReady       ? "CUDA_ERROR_NOT_READY"
          : result == kLaunchFailed   ? "CUDA_ERROR_LAUNCH_FAILED"
          : result == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                      : "CUDA_ERROR_UNKNOWN";
  return kSuccess;
}
Result cuGetErrorString(Result result, const char** text) {
  *text = result == kNoMemory         ? "out of memory"
          : result == kLaunchFailed   ? last_fault.c_str()
          : result == kIllegalAddress ? "an illegal memory access was encountered"
                                      : "emulated failure";
  return kSuccess;
}

}  // extern "C"
