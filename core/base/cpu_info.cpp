// Reads CPUID and XGETBV on x86, sysfs for caches, and the scheduler's and cgroup's limits.
#include "core/base/cpu_info.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define TW_X86 1
#else
#define TW_X86 0
#endif
#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tw {

namespace {

#if TW_X86

// Register state the operating system must save for a feature to be usable (bits of XCR0).
enum State : std::uint64_t {
  kNone = 0,
  kYmm = 0x6,       // SSE and AVX
  kZmm = 0xe6,      // and opmask, upper halves, zmm16-31
  kTile = 0x60000,  // AMX tile configuration and data
};
enum Register { kEax, kEbx, kEcx, kEdx };

struct Feature {
  const char* name;  // as in /proc/cpuinfo
  unsigned leaf, subleaf;
  Register where;
  int bit;
  State needs;
};

// Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E.
constexpr Feature kFeatures[] = {
    {"sse4_2", 1, 0, kEcx, 20, kNone},
    {"movbe", 1, 0, kEcx, 22, kNone},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNone},
    {"bmi1", 7, 0, kEbx, 3, kNone},
    {"bmi2", 7, 0, kEbx, 8, kNone},
    {"avx", 1, 0, kEcx, 28, kYmm},
    {"f16c", 1, 0, kEcx, 29, kYmm},
    {"fma", 1, 0, kEcx, 12, kYmm},
    {"avx2", 7, 0, kEbx, 5, kYmm},
    {"avx_vnni", 7, 1, kEax, 4, kYmm},
    {"avx512f", 7, 0, kEbx, 16, kZmm},
    {"avx512dq", 7, 0, kEbx, 17, kZmm},
    {"avx512cd", 7, 0, kEbx, 28, kZmm},
    {"avx512bw", 7, 0, kEbx, 30, kZmm},
    {"avx512vl", 7, 0, kEbx, 31, kZmm},
    {"avx512_vnni", 7, 0, kEcx, 11, kZmm},
    {"avx512_bf16", 7, 1, kEax, 5, kZmm},
    {"avx512_fp16", 7, 0, kEdx, 23, kZmm},
    {"amx_tile", 7, 0, kEdx, 24, kTile},
    {"amx_int8", 7, 0, kEdx, 25, kTile},
    {"amx_bf16", 7, 0, kEdx, 22, kTile},
    {"amx_fp16", 7, 1, kEax, 21, kTile},
};

std::uint64_t saved_state() {
  unsigned a, b, c, d;
  constexpr unsigned kOsxsave = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kOsxsave)) return 0;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low | static_cast<std::uint64_t>(high) << 32;
}

bool present(const Feature& feature, std::uint64_t state) {
  unsigned r[4];
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &r[0], &r[1], &r[2], &r[3])) return false;
  return (r[feature.where] >> feature.bit & 1) && (state & feature.needs) == feature.needs;
}

std::vector<std::string> read_features() {
  std::vector<std::string> names;
  const std::uint64_t state = saved_state();
  for (const Feature& feature : kFeatures)
    if (present(feature, state)) names.push_back(feature.name);
  return names;
}

// AMD's performance optimization identifiers: wider vectors go through in two steps.
int read_vector_path() {
  unsigned r[4];
  if (!__get_cpuid(0x8000001a, &r[0], &r[1], &r[2], &r[3])) return 0;
  constexpr unsigned k128 = 1, k256 = 4, k512 = 8;
  return r[0] & k512 ? 512 : r[0] & k256 ? 256 : r[0] & k128 ? 128 : 0;
}

// Deterministic cache parameters: leaf 4 on Intel, the same layout at 0x8000001d on AMD.
void read_caches_from_cpuid(std::int64_t (&bytes)[4]) {
  for (unsigned leaf : {4u, 0x8000001du}) {
    unsigned a, b, c, d;
    for (unsigned i = 0; i < 16 && __get_cpuid_count(leaf, i, &a, &b, &c, &d) && (a & 31); ++i) {
      const unsigned type = a & 31, level = a >> 5 & 7;
      if (type == 2 || level > 3) continue;  // instructions only
      const std::int64_t ways = (b >> 22) + 1, partitions = (b >> 12 & 1023) + 1;
      if (level >= 1 && !bytes[level])
        bytes[level] = ways * partitions * ((b & 4095) + 1) * (static_cast<std::int64_t>(c) + 1);
    }
  }
}

#else

std::vector<std::string> read_features() {
#ifdef __aarch64__
  return {"neon"};  // part of the base architecture
#else
  return {};
#endif
}

int read_vector_path() { return 0; }
void read_caches_from_cpuid(std::int64_t (&)[4]) {}

#endif

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "48K", "2M" or plain bytes.
std::int64_t parse_size(const std::string& text) {
  char* unit = nullptr;
  const std::int64_t value = std::strtoll(text.c_str(), &unit, 10);
  return *unit == 'K' ? value << 10 : *unit == 'M' ? value << 20 : value;
}

void read_caches_from_sysfs(std::int64_t (&bytes)[4]) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const int level = std::atoi(first_word(folder + "level").c_str());
    if (level < 1 || level > 3 || first_word(folder + "type") == "Instruction") continue;
    bytes[level] = parse_size(first_word(folder + "size"));
  }
}

int affinity_processors(int machine) {
#ifdef __linux__
  // The kernel refuses a mask smaller than its own, so grow it until it fits.
  for (int bits = std::max(machine, 1024); bits <= 1 << 20; bits *= 2) {
    cpu_set_t* mask = CPU_ALLOC(bits);
    const std::size_t size = CPU_ALLOC_SIZE(bits);
    const int count = sched_getaffinity(0, size, mask) == 0 ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return count;
  }
#endif
  return machine;
}

// Processors that quota microseconds in each period pay for, rounded up; 0 where there is no
// limit.
int processors_of(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<std::int64_t>((quota + period - 1) / period, 1 << 20));
}

int quota_in(const std::string& folder, bool v2) {
  std::string quota = first_word(folder + (v2 ? "/cpu.max" : "/cpu.cfs_quota_us"));
  std::int64_t period = 0;
  if (v2) {
    std::ifstream(folder + "/cpu.max") >> quota >> period;
  } else {
    period = parse_size(first_word(folder + "/cpu.cfs_period_us"));
  }
  return processors_of(std::strtoll(quota.c_str(), nullptr, 10), period);  // "max" reads as 0
}

// The tightest quota from the group of this process up to the root: each level limits those below.
// In a container the path may belong to the host; then only the root, the container's own, exists.
int tightest_quota(const std::string& mount, std::string path, bool v2) {
  int tightest = 0;
  for (;;) {
    const int here = quota_in(mount + path, v2);
    if (here && (!tightest || here < tightest)) tightest = here;
    if (path.empty()) return tightest;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool lists_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

int cgroup_processors() {
  std::ifstream groups("/proc/self/cgroup");  // lines of id:controllers:path
  std::string id, controllers, path;
  int tightest = 0;
  while (std::getline(groups, id, ':') && std::getline(groups, controllers, ':') &&
         std::getline(groups, path)) {
    if (path == "/") path.clear();
    const bool v2 = controllers.empty();
    if (!v2 && !lists_cpu(controllers)) continue;
    const char* const mounts[] = {v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu",
                                  v2 ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup/cpu,cpuacct"};
    for (const char* mount : mounts) {
      const int here = tightest_quota(mount, path, v2);
      if (here && (!tightest || here < tightest)) tightest = here;
    }
  }
  return tightest;
}

CpuInfo read_cpu_info() {
  CpuInfo info;
  info.features = read_features();
  std::int64_t caches[4] = {};
  read_caches_from_sysfs(caches);
  read_caches_from_cpuid(caches);  // fills what sysfs did not tell
  info.l1d_bytes = caches[1];
  info.l2_bytes = caches[2];
  info.l3_bytes = caches[3];
  info.vector_path_bits = read_vector_path();
  info.logical_processors = std::max(1u, std::thread::hardware_concurrency());
#ifdef __linux__
  info.logical_processors = std::max<int>(info.logical_processors, sysconf(_SC_NPROCESSORS_ONLN));
#endif
  info.usable_processors = affinity_processors(info.logical_processors);
  if (const int quota = cgroup_processors())
    info.usable_processors = std::min(info.usable_processors, quota);
  return info;
}

}  // namespace

const char* name_of(Isa isa) {
  static constexpr const char* kNames[] = {
#define TW_ISA(name, help) #name,
#include "core/base/instruction_sets.inc"
#undef TW_ISA
  };
  return kNames[static_cast<int>(isa)];
}

const CpuInfo& cpu_info() {
  static const CpuInfo info = read_cpu_info();
  return info;
}

bool has_features(std::initializer_list<const char*> names) {
  const std::vector<std::string>& features = cpu_info().features;
  return std::all_of(names.begin(), names.end(), [&](const char* name) {
    return std::find(features.begin(), features.end(), name) != features.end();
  });
}

bool may_use_tiles() {
#if defined(__linux__) && defined(__x86_64__)
  static const bool allowed = [] {
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return has_features({"amx_tile"}) &&
           syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return allowed;
#else
  return false;
#endif
}

bool cpu_supports(Isa isa) {
  switch (isa) {
    case Isa::scalar: return true;
    case Isa::neon: return has_features({"neon"});
    // All that a compiler may use for x86-64-v3 and -v4, not only what the kernels ask for.
    case Isa::avx2: return has_features({"avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "movbe"});
    case Isa::avx512:
      return cpu_supports(Isa::avx2) &&
             has_features({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  }
  return false;
}

}  // namespace tw
