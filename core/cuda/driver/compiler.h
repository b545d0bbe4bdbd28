// Kernels are CUDA C++ text in this library, compiled by NVRTC for the GPU at hand when they are
// first needed; what came out is kept in a folder.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tw::cuda {

// A file of CUDA kernels, or one that they include, by its path from the project's root.
struct Text {
  const char* name;
  const char* text;
};
const std::vector<Text>& kernel_texts();
// The text of one, with the texts that it names by `#include "..."` in their places.
std::string expanded_text(std::string_view name);

// What NVRTC makes of `settings`, lines in front of the text of a file, for GPUs of a compute
// capability (90: 9.0), and what it says, the registers of each kernel among it where that is asked
// for. Raises RuntimeError with its messages.
struct Compiled {
  std::string cubin, log;
};
Compiled compile(std::string_view file, const std::string& settings, int capability,
                 bool with_figures = false);
// The same, from the folder of compiled kernels where it was compiled before.
std::string compiled(std::string_view file, const std::string& settings, int capability);

}  // namespace tw::cuda
