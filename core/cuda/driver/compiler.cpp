#include "core/cuda/driver/compiler.h"

#include <algorithm>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/cuda/driver/driver.h"
#include "core/cuda/driver/kernel_folder.h"

namespace tw::cuda {

namespace {

// By path, or by the last parts of one.
std::string_view text_of(std::string_view name) {
  for (const Text& text : kernel_texts()) {
    const std::string_view path = text.name;
    if (path == name || path.ends_with("/" + std::string(name))) return text.text;
  }
  fail(ErrorKind::runtime, "no kernel text '", std::string(name), "'");
}

// Each text once, as `#pragma once` says of headers, which is left out: there is one file.
void append_expanded(std::string_view name, std::vector<const char*>& seen, std::string& out) {
  std::string_view rest = text_of(name);
  if (std::find(seen.begin(), seen.end(), rest.data()) != seen.end()) return;
  seen.push_back(rest.data());
  constexpr std::string_view kInclude = "#include \"", kOnce = "#pragma once";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    if (line.starts_with(kInclude)) {
      const std::string_view path = line.substr(kInclude.size());
      append_expanded(path.substr(0, path.find('"')), seen, out);
    } else if (!line.starts_with(kOnce)) {
      out += line;
    }
  }
}

// Instructions of one generation alone are in the variants named with an a, from 9.0 on.
std::string architecture(int capability) {
  return "sm_" + std::to_string(capability) + (capability >= 90 ? "a" : "");
}

struct OwnProgram {
  Program program = nullptr;
  ~OwnProgram() {
    if (program) compiler().destroy(&program);
  }
};

}  // namespace

std::string expanded_text(std::string_view name) {
  std::vector<const char*> seen;
  std::string text;
  append_expanded(name, seen, text);
  return text;
}

Compiled compile(std::string_view file, const std::string& settings, int capability,
                 bool with_figures) {
  const Compiler& nvrtc = compiler();
  const std::string text = settings + expanded_text(file);
  const std::string target = "-arch=" + architecture(capability), name(file);
  const char* const options[] = {target.c_str(), "-std=c++17", "-default-device",
                                 "--ptxas-options=-v"};
  OwnProgram made;
  int result = nvrtc.create(&made.program, text.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (!result) result = nvrtc.compile(made.program, with_figures ? 4 : 3, options);
  std::size_t length = 0;
  if (made.program) nvrtc.log_size(made.program, &length);
  std::string log(length, '\0');
  if (length) nvrtc.log(made.program, log.data());
  while (!log.empty() && log.back() == '\0') log.pop_back();
  if (result)
    fail(ErrorKind::runtime, "device 'cuda': ", name, " does not compile for ", target, ": ",
         nvrtc.error_text(result), "\n", log);
  std::size_t size = 0;
  nvrtc.cubin_size(made.program, &size);
  std::string cubin(size, '\0');
  nvrtc.cubin(made.program, cubin.data());
  return {cubin, log};
}

std::string compiled(std::string_view file, const std::string& settings, int capability) {
  int version[2] = {};
  compiler().version(&version[0], &version[1]);
  const std::string key = sha256(std::to_string(version[0]) + "." + std::to_string(version[1]) +
                                 " " + architecture(capability) + " " + env_text("NVRTC") + "\n" +
                                 settings + expanded_text(file));
  if (std::string kept = kept_kernel(key); !kept.empty()) return kept;
  std::string cubin = compile(file, settings, capability).cubin;
  keep_kernel(key, cubin);
  return cubin;
}

}  // namespace tw::cuda
