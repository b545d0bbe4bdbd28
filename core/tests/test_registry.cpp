// The kernel registry: ladder order, choice by cost, refusals, forcing by call and by environment.
#include "core/runtime/registry.h"

#include <cmath>
#include <cstdlib>

#include "core/tests/check.h"

namespace tw {

namespace {

struct Problem {
  int size;
};

bool any(const void*, std::string*) { return true; }
bool never(const void*, std::string* reason) {
  if (reason) *reason = "never does";
  return false;
}
bool even_only(const void* problem, std::string* reason) {
  const int size = static_cast<const Problem*>(problem)->size;
  if (size % 2 == 0) return true;
  if (reason) *reason = "size " + std::to_string(size) + " is odd";
  return false;
}
int asked = 0;
double by_size(const void* problem) {
  ++asked;
  return static_cast<const Problem*>(problem)->size;
}
double ten(const void*) { return 10; }
void nothing(const void*) {}

constexpr Kernel kPlain{.op = "test_op",
                        .name = "plain",
                        .device = "cpu",
                        .precision = Precision::ieee,
                        .help = "",
                        .accepts = any,
                        .cost_ns = by_size,
                        .run = nothing};
constexpr Kernel kEven{.op = "test_op",
                       .name = "even",
                       .device = "cpu",
                       .precision = Precision::ieee,
                       .help = "",
                       .accepts = even_only,
                       .cost_ns = ten,
                       .run = nothing};
constexpr Kernel kLater{.op = "test_op",
                        .name = "later",
                        .device = "cpu",
                        .precision = Precision::ieee,
                        .help = "",
                        .accepts = any,
                        .run = nothing};
constexpr Kernel kNever{.op = "test_refusal",
                        .name = "never",
                        .device = "cpu",
                        .precision = Precision::ieee,
                        .help = "",
                        .accepts = never,
                        .cost_ns = ten,
                        .run = nothing};
constexpr Kernel kRung{.op = "matmul",
                       .name = "rung",
                       .device = "cpu",
                       .precision = Precision::ieee,
                       .help = "",
                       .accepts = never,
                       .cost_ns = ten,
                       .run = nothing};

const OpKernels* test_op() {
  static const OpKernels* const op = [] {
    for (const Kernel* kernel : {&kPlain, &kEven, &kLater, &kNever}) register_kernel(kernel);
    return find_op("test_op");
  }();
  return op;
}

std::string chosen(int size) {
  const Problem problem{size};
  return choose_kernel(test_op(), &problem).name;
}

}  // namespace

TW_TEST(registry_cache_asks_again_when_something_changed) {
  ChoiceCache<1> cache;
  const auto cached = [&](int size) {
    const Problem problem{size};
    return std::string(cache.choose(test_op(), &problem, {size}).name);
  };
  for (int size = 0; size < 100; ++size)  // more than it has room for
    CHECK_EQ(cached(size), chosen(size));
  CHECK_EQ(cached(12), "even");
  asked = 0;
  CHECK_EQ(cached(12), "even");
  CHECK_EQ(asked, 0);
  force_kernel("test_op", "plain");
  CHECK_EQ(cached(12), "plain");
  force_kernel("test_op", "even");
  CHECK_THROWS(ErrorKind::value, cached(13), "size 13 is odd");
  force_kernel("test_op", "");
  CHECK_EQ(cached(12), "even");
  CHECK_EQ(asked, 0);
  set_precision_limit(precision_limit());
  CHECK_EQ(cached(12), "even");
  CHECK_EQ(asked, 1);
}

TW_TEST(registry_keeps_ladder_order) {
  test_op();
  std::string names;
  for (const Kernel* kernel : kernels_of_op("test_op")) names += std::string(kernel->name) + " ";
  CHECK_EQ(names, "plain even later ");
  CHECK(kernels_of_op("no_such_op").empty());
  CHECK_THROWS(ErrorKind::value, register_kernel(&kPlain), "test_op has a kernel 'plain' already");
}

TW_TEST(registry_chooses_the_cheapest_that_accepts) {
  CHECK_EQ(chosen(4), "plain");
  CHECK_EQ(chosen(40), "even");
  CHECK_EQ(chosen(41), "plain");
  CHECK_EQ(chosen(10), "plain");  // equal estimates: the earlier rung
}

TW_TEST(registry_forces_by_call) {
  test_op();
  force_kernel("test_op", "later");
  CHECK_EQ(chosen(4), "later");
  CHECK_EQ(forced_kernel("test_op"), "later");
  force_kernel("test_op", "even");
  CHECK_THROWS(ErrorKind::value, chosen(3),
               "test_op: the forced kernel 'even' does not accept this problem: size 3 is odd");
  CHECK_THROWS(ErrorKind::value, force_kernel("test_op", "odd"),
               "test_op has no kernel 'odd'; choose from plain, even, later");
  CHECK_EQ(forced_kernel("test_op"), "even");
  force_kernel("test_op", "");
  CHECK_EQ(forced_kernel("test_op"), "");
  CHECK_EQ(chosen(4), "plain");
  CHECK_THROWS(ErrorKind::value, force_kernel("no_such_op", "x"), "no op 'no_such_op'");
}

TW_TEST(registry_forces_a_body_by_its_name) {
  static constexpr Kernel kOnly{.op = "test_body",
                                .name = "only",
                                .device = "cpu",
                                .precision = Precision::ieee,
                                .help = "",
                                .cost_ns = by_size,
                                .run = nothing};
  static constexpr Lowering kLowering{.op = "test_body", .problem_bytes = sizeof(Problem)};
  const Problem problem{4};
  register_body("test_body");
  CHECK_THROWS(ErrorKind::value, force_kernel("test_body", "body"), "no op 'test_body'");
  register_kernel(&kOnly);
  register_lowering(&kLowering);
  const OpKernels* const op = find_op("test_body");
  CHECK(!is_body_forced(op));
  force_kernel("test_body", "body");
  CHECK(is_body_forced(op));
  CHECK_EQ(forced_kernel("test_body"), "body");
  CHECK_THROWS(ErrorKind::value, choose_kernel(op, &problem), "one kernel or not at all");
  CHECK_THROWS(ErrorKind::value, force_kernel("test_body", "other"), "choose from only, body");
  force_kernel("test_body", "only");
  CHECK(!is_body_forced(op));
  force_kernel("test_body", "");
  CHECK_EQ(choose_kernel(op, &problem).name, "only");
  CHECK_EQ(kernels_of_op("test_body").size(), 1u);
}

TW_TEST(registry_heeds_the_precision_limit) {
  static constexpr Kernel kExact{.op = "test_limit",
                                 .name = "exact",
                                 .device = "cpu",
                                 .precision = Precision::fp32,
                                 .help = "",
                                 .accepts = any,
                                 .cost_ns = by_size,
                                 .run = nothing};
  static constexpr Kernel kHigh{.op = "test_limit",
                                .name = "high",
                                .device = "cpu",
                                .precision = Precision::high,
                                .help = "",
                                .accepts = any,
                                .cost_ns = [](const void*) { return 5.0; },
                                .run = nothing};
  static constexpr Kernel kMedium{
      .op = "test_limit",
      .name = "medium",
      .device = "cpu",
      .precision = Precision::medium,
      .help = "",
      .accepts = any,
      .cost_ns = [](const void*) { return 1.0; },
      .run = nothing,
      .keeps_all_bits =
          [](const void* problem) { return static_cast<const Problem*>(problem)->size == 8; }};
  for (const Kernel* kernel : {&kExact, &kHigh, &kMedium}) register_kernel(kernel);
  const auto chosen_within = [](MatmulPrecision limit, int size) {
    set_precision_limit(limit);
    const Problem problem{size};
    const std::string name = choose_kernel(find_op("test_limit"), &problem).name;
    set_precision_limit(MatmulPrecision::highest);
    return name;
  };
  CHECK_EQ(chosen_within(MatmulPrecision::highest, 9), "exact");
  CHECK_EQ(chosen_within(MatmulPrecision::high, 9), "high");
  CHECK_EQ(chosen_within(MatmulPrecision::medium, 9), "medium");
  CHECK_EQ(chosen_within(MatmulPrecision::highest, 8), "medium");  // which loses nothing there
  const Problem problem{9};
  CHECK_EQ(candidates(find_op("test_limit"), &problem)[1].reason,
           "less exact than the precision setting 'highest' allows");
}

TW_TEST(registry_says_why_nothing_accepts) {
  test_op();
  const Problem problem{1};
  CHECK_THROWS(ErrorKind::not_implemented, choose_kernel(find_op("test_refusal"), &problem),
               "test_refusal: no kernel accepts this problem (never: never does)");
  CHECK_THROWS(ErrorKind::not_implemented, choose_kernel(find_op("test_empty"), &problem),
               "test_empty: no kernel is registered");
}

TW_TEST(registry_lists_candidates_with_reasons) {
  const Problem problem{7};
  auto list = candidates(test_op(), &problem);
  CHECK_EQ(list.size(), 3u);
  CHECK(list[0].chosen && list[0].accepted && list[0].cost_ns == 7);
  CHECK(!list[1].accepted && list[1].reason == "size 7 is odd" && std::isinf(list[1].cost_ns));
  CHECK(list[2].accepted && !list[2].chosen && std::isinf(list[2].cost_ns));
  force_kernel("test_op", "later");
  list = candidates(test_op(), &problem);
  CHECK(list[2].chosen && !list[0].chosen);
  CHECK_EQ(list[0].reason, "'later' is forced");
  force_kernel("test_op", "");
}

TW_TEST(registry_reads_the_environment_once) {
  if (kernels_of_op("matmul").empty()) register_kernel(&kRung);
  const std::string last = kernels_of_op("matmul").back()->name;
  force_kernel("matmul", "");  // forgets what was read before
  setenv("TILEWRIGHT_MATMUL", "no_such_rung", 1);
  CHECK_THROWS(ErrorKind::value, forced_kernel("matmul"),
               "TILEWRIGHT_MATMUL: matmul has no kernel 'no_such_rung'; choose from ");
  setenv("TILEWRIGHT_MATMUL", last.c_str(), 1);
  CHECK_EQ(forced_kernel("matmul"), last);
  unsetenv("TILEWRIGHT_MATMUL");
  CHECK_EQ(forced_kernel("matmul"), last);
  force_kernel("matmul", "");
  CHECK_EQ(forced_kernel("matmul"), "");
}

}  // namespace tw
