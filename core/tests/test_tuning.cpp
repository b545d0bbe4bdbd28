// The numbers of the matmul ladder: defaults from caches, limits, and blocks that follow them.
#include "core/cpu/matmul/tuning.h"

#include <cmath>
#include <limits>

#include "core/cpu/matmul/blocking.h"
#include "core/tests/check.h"

namespace tw {
namespace {

double default_of(const char* name, std::int64_t l1d_bytes, std::int64_t l2_bytes) {
  for (const auto& [row, value] : matmul_defaults(l1d_bytes, l2_bytes))
    if (row == name) return value;
  fail(ErrorKind::value, "no number ", name);
}

// Puts the defaults back, whatever happens.
struct Restored {
  ~Restored() {
    for (const TunableRow& row : matmul_tunables()) set_matmul_tuning(row.name, row.fallback);
  }
};

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * 1024;

}  // namespace

TW_TEST(tuning_defaults_where_they_were_measured) {
  for (std::int64_t l1 : {std::int64_t{0}, 48 * kKiB})
    for (std::int64_t l2 : {std::int64_t{0}, 2 * kMiB}) {
      CHECK_EQ(default_of("block_bytes", l1, l2), 1048576);
      CHECK_EQ(default_of("small_bytes_of_a", l1, l2), 524288);
      CHECK_EQ(default_of("run_bytes", l1, l2), 4096);
      CHECK_EQ(default_of("dot_bytes", l1, l2), 24576);
      CHECK_EQ(default_of("cold_bytes", l1, l2), 1200000);
    }
}

TW_TEST(tuning_defaults_follow_the_caches) {
  CHECK_EQ(default_of("block_bytes", 0, kMiB), 524288);
  CHECK_EQ(default_of("block_bytes", 0, 512 * kKiB), 262144);
  CHECK_EQ(default_of("block_bytes", 0, 64 * kMiB), default_of("block_bytes", 0, 4 * kMiB));
  CHECK_EQ(default_of("block_bytes", 0, 1), default_of("block_bytes", 0, 256 * kKiB));
  CHECK(default_of("run_bytes", 32 * kKiB, 0) < 4096);
  CHECK(default_of("run_bytes", 64 * kKiB, 0) > 4096);
}

TW_TEST(tuning_defaults_lie_within_their_limits) {
  for (std::int64_t l1 : {std::int64_t{1}, 32 * kKiB, 192 * kKiB, 64 * kMiB})
    for (std::int64_t l2 : {std::int64_t{1}, kMiB, 16 * kMiB, 1024 * kMiB}) {
      const auto defaults = matmul_defaults(l1, l2);
      const auto rows = matmul_tunables();
      CHECK_EQ(defaults.size(), rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        CHECK_EQ(defaults[i].first, std::string(rows[i].name));
        CHECK(defaults[i].second >= rows[i].least && defaults[i].second <= rows[i].most);
      }
    }
}

TW_TEST(tuning_takes_every_number_at_its_limits) {
  const Restored restored;
  for (const TunableRow& row : matmul_tunables())
    for (double value : {row.least, row.most}) {
      set_matmul_tuning(row.name, value);
      for (const TunableRow& now : matmul_tunables())
        if (now.name == row.name) CHECK_EQ(now.value, value);
    }
}

TW_TEST(tuning_refuses_what_its_limits_do_not_allow) {
  const Restored restored;
  for (const TunableRow& row : matmul_tunables()) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (double value : {row.least - 1, row.most * 2, nan, HUGE_VAL, -HUGE_VAL})
      CHECK_THROWS(ErrorKind::value, set_matmul_tuning(row.name, value), " must be in [");
    if (row.whole)
      CHECK_THROWS(ErrorKind::value, set_matmul_tuning(row.name, row.least + 0.5), "whole number");
  }
  CHECK_THROWS(ErrorKind::value, set_matmul_tuning("block", 1), "no number 'block'; choose from");
  for (const TunableRow& row : matmul_tunables()) CHECK_EQ(row.value, row.fallback);
}

TW_TEST(tuning_run_lengths_cover_k) {
  const Restored restored;
  for (double bytes : {64.0, 100.0, 4096.0, 65536.0}) {
    set_matmul_tuning("run_bytes", bytes);
    for (std::int64_t k : {0, 1, 7, 16, 17, 1024, 2048, 2049, 10000})
      for (std::int64_t element : {4, 8}) {
        const std::int64_t kc = run_of(k, element);
        CHECK(kc >= 1 && (kc <= k || k == 0));
      }
  }
}

}  // namespace tw
