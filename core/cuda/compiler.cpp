#include "core/cuda/compiler.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/cuda/driver.h"
#include "core/runtime/warning.h"

namespace tw::cuda {

namespace fs = std::filesystem;

namespace {

// By path, or by the last parts of one.
std::string_view text_of(std::string_view name) {
  for (const Text& text : kernel_texts()) {
    const std::string_view path = text.name;
    if (path == name || path.ends_with("/" + std::string(name))) return text.text;
  }
  fail(ErrorKind::runtime, "no kernel text '", std::string(name), "'");
}

void append_expanded(std::string_view name, std::vector<std::string_view>& seen, std::string& out) {
  if (std::find(seen.begin(), seen.end(), name) != seen.end()) return;
  seen.push_back(name);
  constexpr std::string_view kInclude = "#include \"";
  std::string_view rest = text_of(name);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    if (line.starts_with(kInclude)) {
      const std::string_view path = line.substr(kInclude.size());
      append_expanded(path.substr(0, path.find('"')), seen, out);
    } else {
      out += line;
    }
  }
}

// FNV-1a, twice with other seeds: 128 bits.
std::string hash_of(std::string_view bytes) {
  std::string name;
  for (std::uint64_t hash : {0xcbf29ce484222325u, 0x84222325cbf29ce4u}) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    name += text;
  }
  return name;
}

// Empty where there is none.
fs::path kernel_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (const std::string named = env_text("CACHE_DIR"); !named.empty())
    return fs::path(named) / "kernels";
  if (const fs::path base = variable("XDG_CACHE_HOME"); !base.empty())
    return base / "tilewright" / "kernels";
  const fs::path home = variable("HOME");
  return home.empty() ? home : home / ".cache" / "tilewright" / "kernels";
}

// A file holds the hash of what follows.
constexpr std::size_t kHashBytes = 32;

std::string read_kept(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  std::ostringstream bytes;
  bytes << file.rdbuf();
  const std::string kept = bytes.str();
  if (kept.size() > kHashBytes && hash_of(kept.substr(kHashBytes)) == kept.substr(0, kHashBytes))
    return kept.substr(kHashBytes);
  warn_once("damaged kernel",
            "a compiled kernel is damaged and is compiled anew: " + path.string());
  return "";
}

constexpr std::uintmax_t kMostBytes = 256 << 20;

// The oldest go first.
void bound_folder(const fs::path& folder) {
  std::error_code ignored;
  std::uintmax_t total = 0;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    total += entry.file_size(ignored);
    files.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  if (total <= kMostBytes) return;
  std::sort(files.begin(), files.end());
  for (const auto& [time, path] : files) {
    if (total <= kMostBytes / 2) return;
    total -= fs::file_size(path, ignored);
    fs::remove(path, ignored);
  }
}

// Whole or not at all; a folder that cannot be written to costs time alone.
void keep(const fs::path& path, const std::string& cubin) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  const fs::path unfinished = path.string() + "." + std::to_string(::getpid());
  std::ofstream file(unfinished, std::ios::binary);
  file << hash_of(cubin) << cubin;
  file.close();
  if (file)
    fs::rename(unfinished, path, ignored);
  else
    fs::remove(unfinished, ignored);
  bound_folder(path.parent_path());
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
  std::vector<std::string_view> seen;
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
  const fs::path folder = kernel_folder();
  const std::string key = hash_of(std::to_string(version[0]) + "." + std::to_string(version[1]) +
                                  " " + architecture(capability) + " " + env_text("NVRTC") + "\n" +
                                  settings + expanded_text(file));
  const fs::path path = folder / (key + ".cubin");
  if (!folder.empty())
    if (std::string kept = read_kept(path); !kept.empty()) return kept;
  std::string cubin = compile(file, settings, capability).cubin;
  if (!folder.empty()) keep(path, cubin);
  return cubin;
}

}  // namespace tw::cuda
