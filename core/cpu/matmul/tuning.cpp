#include "core/cpu/matmul/tuning.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/cpu_info.h"
#include "core/base/error.h"
#include "core/cpu/matmul/split.h"
#include "core/runtime/registry.h"

namespace tw {

namespace {

using int64 = std::int64_t;
using float64 = double;

// Where the defaults of tuning.inc were measured; also taken for caches of unknown size.
constexpr int64 kL1Bytes = 48 << 10, kL2Bytes = 2 << 20;
constexpr int64 kLineBytes = 64;

// An L2 beyond 4 MiB is shared by several cores, or was misread: blocks then grow no more. The
// lower limits are below any processor's with vectors.
struct Caches {
  int64 l1, l2;
  Caches(int64 l1d_bytes, int64 l2_bytes)
      : l1(l1d_bytes > 0 ? std::clamp<int64>(l1d_bytes, 16 << 10, 128 << 10) : kL1Bytes),
        l2(l2_bytes > 0 ? std::clamp<int64>(l2_bytes, 256 << 10, 4 << 20) : kL2Bytes) {}
};

// One row of tuning.inc, its default for these caches.
struct Row {
  const char* name;
  bool whole;
  double fallback, least, most;
  const char* help;
};
std::vector<Row> rows_for(Caches caches) {
  const auto of_l1 = [=](int64 bytes) { return bytes * caches.l1 / kL1Bytes & -kLineBytes; };
  const auto of_l2 = [=](int64 bytes) { return bytes * caches.l2 / kL2Bytes & -kLineBytes; };
  const auto of_split = [](double tiles, double vectors) {
    return splits_on_tiles() ? tiles : vectors;
  };
  return {
#define TW_TUNABLE(type, name, fallback, least, most, help) \
  {#name, std::is_same_v<type, int64>, double(fallback), double(least), double(most), help},
#include "core/cpu/matmul/tuning.inc"
#undef TW_TUNABLE
  };
}
const std::vector<Row>& rows() {
  static const auto* const all =
      new std::vector<Row>(rows_for({cpu_info().l1d_bytes, cpu_info().l2_bytes}));
  return *all;
}

MatmulTuning defaults() {
  int next = 0;
  const auto fallback = [&next] { return rows()[next++].fallback; };
  return {
#define TW_TUNABLE(type, name, fallback_text, least, most, help) type(fallback()),
#include "core/cpu/matmul/tuning.inc"
#undef TW_TUNABLE
  };
}

void check(const Row& row, double value) {
  if (!(value >= row.least && value <= row.most))
    fail(ErrorKind::value, "tune: ", row.name, " must be in [", row.least, ", ", row.most,
         "], got ", value);
  if (row.whole && value != std::floor(value))
    fail(ErrorKind::value, "tune: ", row.name, " must be a whole number, got ", value);
}

std::string known_names() {
  std::string names;
  for (const Row& row : rows()) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

}  // namespace

MatmulTuning matmul_tuning_in_force = defaults();

void set_matmul_tuning(const std::string& name, double value) {
  const Row* row = rows().data();
#define TW_TUNABLE(type, field, fallback, least, most, help) \
  if (name == #field) {                                      \
    check(*row, value);                                      \
    matmul_tuning_in_force.field.set(type(value));           \
    return forget_choices();                                 \
  }                                                          \
  ++row;
#include "core/cpu/matmul/tuning.inc"
#undef TW_TUNABLE
  fail(ErrorKind::value, "tune: no number '", name, "'; choose from ", known_names());
}

std::vector<TunableRow> matmul_tunables() {
  const double values[] = {
#define TW_TUNABLE(type, name, fallback, least, most, help) double(matmul_tuning().name),
#include "core/cpu/matmul/tuning.inc"
#undef TW_TUNABLE
  };
  std::vector<TunableRow> list;
  for (const Row& row : rows())
    list.push_back(
        {row.name, row.help, row.whole, values[list.size()], row.fallback, row.least, row.most});
  return list;
}

std::vector<std::pair<std::string, double>> matmul_defaults(int64 l1d_bytes, int64 l2_bytes) {
  std::vector<std::pair<std::string, double>> list;
  for (const Row& row : rows_for({l1d_bytes, l2_bytes})) list.emplace_back(row.name, row.fallback);
  return list;
}

}  // namespace tw
