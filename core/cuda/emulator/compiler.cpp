// A stand-in for NVRTC: the text of kernels is compiled by g++.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "image.h"

using emulated::kMagic;

namespace {

struct Program {
  std::string name, text, log, code;
};

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
int nvrtcCreateProgram(void** program, const char* text, const char* name, int, const char* const*,
                       const char* const*) {
  *program = new Program{name ? name : "kernel", text, "", ""};
  return 0;
}
int nvrtcCompileProgram(void* program, int, const char* const*) {
  Program& p = *static_cast<Program*>(program);
  char folder[] = "/tmp/tilewright-emulated-XXXXXX";
  if (!mkdtemp(folder)) return 1;
  const std::string base = folder, source = base + "/kernel.cpp", library = base + "/kernel.so",
                    log = base + "/log";
  std::ofstream(source) << p.text;
  const char* compiler = std::getenv("CXX");
  // C's library is this process's own, and to look through C++'s takes the linker a third of a
  // small kernel's time.
  const std::string command = std::string(compiler ? compiler : "g++") +
                              " " TW_EMULATION_FLAGS " -include " TW_EMULATION_HEADER
                              " -shared -nostdlib -o " +
                              library + " " + source + " -lgcc 2> " + log;
  const int status = std::system(command.c_str());
  p.log = read_all(log);
  p.code = status ? "" : read_all(library);
  std::error_code failed;
  std::filesystem::remove_all(base, failed);
  return failed ? 1 : status ? 6 : 0;
}
int nvrtcGetProgramLogSize(void* program, std::size_t* size) {
  return *size = static_cast<Program*>(program)->log.size() + 1, 0;
}
int nvrtcGetProgramLog(void* program, char* log) {
  return std::strcpy(log, static_cast<Program*>(program)->log.c_str()), 0;
}
int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  return *size = sizeof kMagic + 8 + static_cast<Program*>(program)->code.size(), 0;
}
int nvrtcGetCUBIN(void* program, char* code) {
  const Program& p = *static_cast<Program*>(program);
  const std::uint64_t size = p.code.size();
  std::memcpy(code, kMagic, sizeof kMagic);
  std::memcpy(code + sizeof kMagic, &size, sizeof size);
  std::memcpy(code + sizeof kMagic + 8, p.code.data(), p.code.size());
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  return delete static_cast<Program*>(*program), *program = nullptr, 0;
}
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }

}  // extern "C"
