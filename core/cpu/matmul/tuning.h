// The numbers of the matmul ladder that depend on the machine, which tuning.inc lists: defaults
// from the caches' sizes, replaced by what `tilewright tune` has measured.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tw {

// The packed rung's default rate, of a core with two multiply-add units of 512 bits at 3.8 GHz.
inline constexpr double kPackedNsPerFlop = 0.0047;

// A number that one thread may set while others read it.
template <class T> class Tunable {
 public:
  Tunable(T value) : value_(value) {}
  operator T() const { return value_.load(std::memory_order_relaxed); }
  void set(T value) { value_.store(value, std::memory_order_relaxed); }

 private:
  std::atomic<T> value_;
};

struct MatmulTuning {
  using int64 = std::int64_t;
  using float64 = double;
#define TW_TUNABLE(type, name, fallback, least, most, help) Tunable<type> name;
#include "core/cpu/matmul/tuning.inc"
#undef TW_TUNABLE
};
extern MatmulTuning matmul_tuning_in_force;
inline const MatmulTuning& matmul_tuning() { return matmul_tuning_in_force; }

// Raises ValueError for an unknown name, a value outside the limits, and a fraction where a whole
// number must be. A product that is in flight may see some old and some new values.
void set_matmul_tuning(const std::string& name, double value);

struct TunableRow {
  const char* name;
  const char* help;
  bool whole;
  double value, fallback, least, most;  // fallback: this machine's default
};
std::vector<TunableRow> matmul_tunables();

// What the defaults are for caches of these sizes, 0 where unknown: names and values in the order
// of tuning.inc.
std::vector<std::pair<std::string, double>> matmul_defaults(std::int64_t l1d_bytes,
                                                            std::int64_t l2_bytes);

}  // namespace tw
