// The ops and autograd floors from C++: values, gradients, errors, and that nothing is left behind.
#include <cmath>

#include "core/autograd/backward.h"
#include "core/autograd/planner.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/matmul/matmul.h"
#include "core/memory/pool.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/index.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/losses/loss_reduction.h"
#include "core/ops/normalization/softmax.h"
#include "core/ops/shape/view.h"
#include "core/tensor/access.h"
#include "core/tests/check.h"

using namespace tw;

namespace {

Tensor numbers(const Shape& shape, double first = 1, double step = 1) {
  Tensor x = Tensor::empty(shape, DType::float64);
  for (std::int64_t i = 0; i < x.count(); ++i)
    Access().as<double>(x)[i] = first + step * static_cast<double>(i);
  return x;
}

Tensor leaf(Tensor x) {
  x->requires_grad = true;
  return x;
}

double at(const Tensor& x, std::int64_t i) { return Access().as<double>(contiguous(x))[i]; }

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * (1 + std::abs(b)); }

}  // namespace

TW_TEST(every_instruction_set_computes_the_same) {
  const Isa before = active_isa();
  for (int i = 0; i < kIsas; ++i) {
    if (!kernels_of(static_cast<Isa>(i))) continue;
    set_isa(static_cast<Isa>(i));
    for (std::int64_t n = 0; n < 40; ++n) {
      const Tensor x = numbers({n}), y = exp(x * 0.1) + sqrt(x) / (x + 1);
      for (std::int64_t j = 0; j < n; ++j) {
        const double v = static_cast<double>(j + 1);
        CHECK(near(at(y, j), std::exp(v * 0.1) + std::sqrt(v) / (v + 1)));
      }
    }
  }
  set_isa(before);
}

// None of 32 axes can be merged. Without elements, as two of each would be 2^32.
TW_TEST(ops_of_32_axes) {
  Shape shape(kMaxRank, 2);
  shape[kMaxRank - 1] = 0;
  std::vector<std::int64_t> order, axes;
  for (int i = 0; i < kMaxRank; ++i) {
    order.push_back(i * 5 % kMaxRank);
    if (i % 2 == 0) axes.push_back(i);
  }
  const Tensor x = leaf(Tensor::empty(shape, DType::float32));
  const Tensor y = permute_dims(x, order);
  CHECK_EQ((y + y).shape(), y.shape());
  CHECK_EQ(copy(y).rank(), kMaxRank);
  CHECK_EQ(astype(y, DType::complex64).rank(), kMaxRank);
  CHECK_EQ(sum(astype(y, DType::complex64), {0, 3}, true).rank(), kMaxRank);
  backward({sum(y * y, {}, false)}, {}, {});
  CHECK(x.grad().shape() == shape);
  CHECK_THROWS(ErrorKind::value, expand_dims(x, 0), "at most 32 dimensions, got 33");
  CHECK_THROWS(ErrorKind::value, reshape(x, Shape(kMaxRank, 1)), "cannot view 0 elements");
}

// As many index arrays as axes, with their gradient.
TW_TEST(index_arrays_for_32_axes) {
  const Tensor x = leaf(numbers(Shape(kMaxRank, 1)));
  std::vector<IndexItem> items;
  for (int i = 0; i < kMaxRank; ++i)
    items.push_back({.kind = IndexItem::Kind::tensor,
                     .tensor = full({i % 2 ? 3 : 1}, Scalar(0), DType::int64)});
  const Tensor y = index(x, items);
  CHECK_EQ(y.shape(), Shape{3});
  backward({sum(y, {}, false)}, {}, {});
  CHECK(at(x.grad(), 0) == 3);
}

TW_TEST(gradient_of_a_product_and_a_sum) {
  const Tensor a = leaf(numbers({2, 3})), b = leaf(numbers({3}, 2, 0.5));
  backward({sum(a * b, {}, false)}, {}, {});
  for (int i = 0; i < 6; ++i) CHECK(near(at(a.grad(), i), 2 + 0.5 * (i % 3)));
  for (int j = 0; j < 3; ++j) CHECK(near(at(b.grad(), j), (1 + j) + (4 + j)));
}

TW_TEST(gradient_of_a_gradient) {
  const Tensor x = leaf(numbers({3}, 1, 1));
  const Tensor y = sum(x * x * x, {}, false);
  const Tensor first = gradients({y}, {}, {x}, {.create_graph = true})[0];
  const Tensor second = gradients({sum(first, {}, false)}, {}, {x}, {})[0];
  for (int i = 0; i < 3; ++i) {
    CHECK(near(at(first, i), 3 * (i + 1.0) * (i + 1.0)));
    CHECK(near(at(second, i), 6 * (i + 1.0)));
  }
}

TW_TEST(matmul_and_its_gradient) {
  const Tensor a = leaf(numbers({2, 3})), b = leaf(numbers({3, 2}));
  const Tensor c = matmul(a, b);
  CHECK(near(at(c, 0), 22) && near(at(c, 3), 64));
  backward({sum(c, {}, false)}, {}, {});
  CHECK(near(at(a.grad(), 0), 3) && near(at(b.grad(), 0), 5));
  CHECK_THROWS(ErrorKind::value, matmul(a, a), "inner sizes differ");
}

TW_TEST(cross_entropy_is_minus_the_log_probability) {
  const Tensor logits = leaf(numbers({4, 5}, 0, 0.3));
  const Tensor targets = arange(0, 4, 1, DType::int64);
  const Tensor loss = cross_entropy(logits, targets, Reduction::sum, -100);
  const Tensor log_probabilities = log_softmax(logits, 1);
  double expected = 0;
  for (int i = 0; i < 4; ++i) expected -= at(log_probabilities, i * 5 + i);
  CHECK(near(at(loss, 0), expected));
}

TW_TEST(second_backward_is_refused) {
  const Tensor x = leaf(numbers({3}));
  const Tensor y = sum(exp(x), {}, false);
  backward({y}, {}, {.retain_graph = true});
  backward({y}, {}, {});
  CHECK_THROWS(ErrorKind::runtime, backward({y}, {}, {}),
               "exp: backward through this op a second time");
}

TW_TEST(change_of_a_saved_value_is_noticed) {
  const Tensor x = leaf(numbers({3}));
  Tensor y = exp(x);
  const Tensor z = sum(y * y, {}, false);
  {
    GradModeGuard off(false);
    assign(y, 0);
  }
  CHECK_THROWS(ErrorKind::runtime, backward({z}, {}, {}), "changed in place");
}

TW_TEST(indexing_writes_and_reads_back) {
  Tensor x = zeros({4, 5}, DType::float64);
  const IndexItem rows{.kind = IndexItem::Kind::tensor, .tensor = arange(0, 4, 2, DType::int64)};
  index_assign(x, {rows}, 7);
  CHECK(near(at(sum(x, {}, false), 0), 70));
  const IndexItem reversed{.kind = IndexItem::Kind::slice, .step = -1};
  CHECK(near(at(index(x, {reversed}), 5), 7));
  const IndexItem far{.kind = IndexItem::Kind::integer, .integer = 9};
  CHECK_THROWS(ErrorKind::index, index(x, {far}), "out of range for axis 0 with size 4");
}

TW_TEST(positions_of_what_is_not_zero) {
  Tensor x = zeros({3, 50000}, DType::float32);
  for (const std::int64_t i : {0, 49999, 50000, 65535, 65536, 149999}) {
    const IndexItem at{.kind = IndexItem::Kind::integer, .integer = i};
    Tensor flat = reshape(x, {-1});
    index_assign(flat, {at}, 2);
  }
  const std::vector<Tensor> found = nonzero(x);
  CHECK_EQ(found.size(), 2u);
  const std::int64_t rows[] = {0, 0, 1, 1, 1, 2}, columns[] = {0, 49999, 0, 15535, 15536, 49999};
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK_EQ(Access().as<std::int64_t>(found[0])[i], rows[i]);
    CHECK_EQ(Access().as<std::int64_t>(found[1])[i], columns[i]);
  }
  CHECK_EQ(nonzero(zeros({0, 3}, DType::float32))[1].count(), 0);
  const DryRun dry;  // where nothing is counted
  CHECK_EQ(nonzero(x)[0].count(), 0);
}

// Another thread may change a mask between the two ops.
TW_TEST(positions_keep_to_the_counts_they_are_given) {
  const Tensor counts = arange(0, 6, 5, DType::int64);  // 0 and 5
  for (const int value : {0, 1}) {
    const Tensor mask = full({2, 10}, value, DType::bool_);
    const Tensor y =
        apply(kNonzeroPositions, {mask, counts}, AttributeList(2).set(0, 20).set(1, 5));
    CHECK(y.shape() == (Shape{2, 5}));
    for (std::int64_t i = 0; i < 5; ++i) {
      CHECK_EQ(Access().as<std::int64_t>(y)[i], 0);
      CHECK_EQ(Access().as<std::int64_t>(y)[5 + i], value * i);
    }
  }
}

TW_TEST(a_long_chain_is_walked_and_freed_without_recursion) {
  const Tensor x = leaf(numbers({2}));
  Tensor y = x;
  for (int i = 0; i < 50000; ++i) y = y + 1;
  backward({sum(y, {}, false)}, {}, {});
  CHECK(near(at(x.grad(), 0), 1));
}

TW_TEST(nothing_is_left_behind) {
  const auto step = [] {
    const Tensor a = leaf(numbers({8, 8})), b = leaf(numbers({8, 8}, 0, 0.01));
    Tensor c = matmul(a, b) + a;
    c = c * c;
    backward({mean(softmax(c, -1), {}, false)}, {}, {});
  };
  step();
  const std::int64_t live = pool_stats().live_bytes;
  for (int i = 0; i < 20; ++i) step();
  CHECK_EQ(pool_stats().live_bytes, live);
}
