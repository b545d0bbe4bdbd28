// Processor features, environment, shapes and promotion.
#include <algorithm>
#include <cstdlib>

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
  CHECK_EQ(element_count({std::int64_t{1} << 62, 4, 0}), 0);
  CHECK_THROWS(ErrorKind::value, element_count({std::int64_t{1} << 62, 4}), "64 bits");
  CHECK_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  CHECK_EQ(to_string(Shape{5}), "(5,)");
  CHECK_THROWS(ErrorKind::value, Dims(9, 1), "at most 8 dimensions, got 9");
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
