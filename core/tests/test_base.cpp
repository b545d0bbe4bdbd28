// Processor features, environment, shapes and promotion.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/base/cpu_info.h"
#include "core/base/dtype.h"
#include "core/base/env.h"
#include "core/base/shape.h"
#include "core/tests/check.h"

namespace tw {

namespace {

bool has(const char* feature) {
  const auto& features = cpu_info().features;
  return std::find(features.begin(), features.end(), feature) != features.end();
}

}  // namespace

TW_TEST(cpu_counts_are_sane) {
  const CpuInfo& info = cpu_info();
  CHECK(info.usable_processors >= 1);
  CHECK(info.usable_processors <= info.logical_processors);
  CHECK(info.l1d_bytes >= 0 && info.l1d_bytes < 1 << 30);
  CHECK(info.l2_bytes >= 0 && info.l2_bytes < 1 << 30);
}

TW_TEST(cpu_sets_build_on_each_other) {
  CHECK(cpu_supports(Isa::scalar));
  if (cpu_supports(Isa::avx512)) CHECK(cpu_supports(Isa::avx2));
  CHECK(!(cpu_supports(Isa::avx2) && cpu_supports(Isa::neon)));
  if (has("amx_bf16")) CHECK(has("amx_tile"));
  CHECK_EQ(std::string(name_of(Isa::avx512)), "avx512");
}

#if defined(__x86_64__) && defined(__GNUC__)
TW_TEST(cpu_features_agree_with_the_compiler) {
  CHECK_EQ(has("avx2"), __builtin_cpu_supports("avx2") != 0);
  CHECK_EQ(has("fma"), __builtin_cpu_supports("fma") != 0);
  CHECK_EQ(has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  CHECK_EQ(has("avx512bw"), __builtin_cpu_supports("avx512bw") != 0);
}
#endif

TW_TEST(env_reads_listed_variables_only) {
  CHECK_THROWS(ErrorKind::runtime, env_text("NO_SUCH"), "NO_SUCH is not in the list");
  setenv("TILEWRIGHT_ISA", "12x", 1);
  CHECK_EQ(env_text("ISA"), "12x");
  CHECK_THROWS(ErrorKind::value, env_integer("ISA", 1), "not a whole number: '12x'");
  unsetenv("TILEWRIGHT_ISA");
  CHECK_EQ(env_integer("ISA", 7), 7);
}

TW_TEST(shapes_broadcast_like_numpy) {
  CHECK_EQ(broadcast_shapes({3, 1}, {4}, "add"), (Shape{3, 4}));
  CHECK_EQ(broadcast_shapes({}, {0, 2}, "add"), (Shape{0, 2}));
  CHECK_THROWS(ErrorKind::value, broadcast_shapes({3}, {4}, "add"),
               "add: shapes do not broadcast: (3,) and (4,)");
}

TW_TEST(shapes_count_and_stride) {
  CHECK_EQ(element_count({2, 3, 4}), 24);
  CHECK_EQ(element_count({}), 1);
  CHECK_EQ(element_count({std::int64_t{1} << 62, 0}), 0);
  CHECK_THROWS(ErrorKind::value, element_count({std::int64_t{1} << 62, 4, 0}), "64 bits");
  CHECK_THROWS(ErrorKind::value, element_count({std::int64_t{1} << 62, 4}), "64 bits");
  CHECK_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  CHECK_EQ(to_string(Shape{5}), "(5,)");
}

Dims first_numbers(int rank) {
  Dims dims;
  for (int i = 0; i < rank; ++i) dims.push_back(i);
  return dims;
}
bool are_first_numbers(const Dims& dims, int rank) {
  bool same = dims.rank() == rank && dims.end() - dims.begin() == rank;
  for (int i = 0; same && i < rank; ++i) same = dims[i] == i;
  return same;
}

TW_TEST(dims_of_any_rank_copy) {
  for (int rank = 0; rank <= kMaxRank; ++rank) {
    const Dims dims = first_numbers(rank);
    CHECK(are_first_numbers(dims, rank));
    CHECK(are_first_numbers(Dims(dims), rank));
    CHECK(!(dims == Dims(rank + 1 > kMaxRank ? 0 : rank + 1, 0)));
    for (int before = 0; before <= kMaxRank; ++before) {
      Dims other(before, 7);
      other = dims;
      CHECK(are_first_numbers(other, rank) && other == dims);
      const Dims& itself = other;
      other = itself;
      CHECK(are_first_numbers(other, rank));
      if (rank > 0) other[0] = -1;  // their values are not shared
      CHECK(are_first_numbers(dims, rank));
    }
  }
}

TW_TEST(dims_grow_and_shrink) {
  Dims dims;
  for (int i = 0; i < kMaxRank; ++i) dims.insert(i / 2, i);  // 1 3 5 ... 4 2 0
  CHECK_EQ(dims.rank(), kMaxRank);
  for (int i = 0; i < kMaxRank / 2; ++i) {
    CHECK_EQ(dims[i], 2 * i + 1);
    CHECK_EQ(dims[kMaxRank - 1 - i], 2 * i);
  }
  for (int i = kMaxRank; i > 0; --i) {
    CHECK_EQ(dims[(i - 1) / 2], i - 1);
    dims.erase((i - 1) / 2);
    const Dims copied = dims;
    CHECK(copied == dims && copied.rank() == i - 1);
  }
  CHECK(dims == Dims());
}

TW_TEST(dims_know_their_limit) {
  constexpr char kText[] = "at most 32 dimensions, got 33";
  CHECK_THROWS(ErrorKind::value, Dims(33, 1), kText);
  Dims full(kMaxRank, 3);
  CHECK_THROWS(ErrorKind::value, full.push_back(1), kText);
  CHECK_THROWS(ErrorKind::value, full.insert(0, 1), kText);
  CHECK(full == Dims(kMaxRank, 3));
}

TW_TEST(plain_dims_survive_as_bytes) {
  for (int rank = 0; rank <= kMaxRank; ++rank) {
    const Dims dims = first_numbers(rank);
    const PlainDims plain = dims;
    alignas(PlainDims) char bytes[sizeof(PlainDims)];
    std::memcpy(bytes, &plain, sizeof plain);
    const auto& moved = *reinterpret_cast<const PlainDims*>(bytes);
    const DimsView view = moved;
    CHECK(std::equal(view.begin(), view.end(), dims.begin(), dims.end()));
    CHECK_EQ(moved.product(), rank > 0 ? 0 : 1);
  }
}

TW_TEST(all_axes_have_bits) {
  CHECK_EQ(all_axes(0), 0u);
  CHECK_EQ(all_axes(3), 7u);
  CHECK_EQ(all_axes(32), ~0u);
}

TW_TEST(axes_wrap_once) {
  CHECK_EQ(normalize_axis(-1, 3, "sum"), 2);
  CHECK_THROWS(ErrorKind::index, normalize_axis(3, 3, "sum"), "sum: axis 3 is out of range");
  CHECK_THROWS(ErrorKind::index, normalize_axis(-4, 3, "sum"), "axis -4");
}

TW_TEST(dtypes_promote_by_the_table) {
  CHECK(promote(DType::uint8, DType::int8) == DType::int16);
  CHECK(promote(DType::int64, DType::float32) == DType::float32);
  CHECK(promote(DType::float16, DType::bfloat16) == DType::float32);
  CHECK(promote(DType::bool_, DType::uint16) == DType::uint16);
  CHECK_THROWS(ErrorKind::type, promote(DType::uint64, DType::int8), "uint64 and int8");
}

}  // namespace tw
