// Nodes of a frontend's own functions: gradients, saved values, several results, errors.
#include "core/autograd/backward.h"
#include "core/autograd/user_function.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/access.h"
#include "core/tests/check.h"

using namespace tw;

namespace {

Tensor leaf(double value) {
  const Tensor x = full({2}, value, DType::float64);
  set_requires_grad(x, true);
  return x;
}

Tensor unrecorded(const Tensor& x) {
  const GradModeGuard off(false);
  return x * x;
}

// x squared, and whether each result is differentiable.
std::vector<Tensor> square(const Tensor& x, CustomGradient gradient, std::vector<bool> smooth) {
  const std::vector<Tensor> results(smooth.size(), unrecorded(x));
  const std::vector<bool> changed(smooth.size(), false);
  return CustomNode::record({"square", std::move(gradient), {x}, {x}, results, smooth, changed});
}

std::vector<Tensor> twice(const std::vector<Tensor>& saved, std::vector<Tensor> g) {
  return {saved[0] * g[0] * 2.0};
}

}  // namespace

TW_TEST(custom_gradients_of_both_orders) {
  const Tensor x = leaf(3);
  const Tensor y = sum(square(x, twice, {true})[0], {}, false);
  const Tensor first = gradients({y}, {}, {x}, {.create_graph = true})[0];
  const Tensor second = gradients({sum(first, {}, false)}, {}, {x}, {})[0];
  CHECK_EQ(*Access().as<double>(first), 6.0);
  CHECK_EQ(*Access().as<double>(second), 2.0);
}

TW_TEST(custom_results_are_apart) {
  const Tensor x = leaf(3);
  const std::vector<Tensor> y = square(x, twice, {true, false, true});
  CHECK(!y[0].is(y[1]));
  CHECK(!y[1].requires_grad());
  CHECK_EQ(static_cast<int>(y[2]->result), 2);
  // The third result's gradient arrives alone.
  const auto third = [](const std::vector<Tensor>&, std::vector<Tensor> g) {
    return std::vector<Tensor>{g[0] ? Tensor() : g[2]};
  };
  const Tensor z = sum(square(x, third, {true, true, true})[2], {}, false);
  CHECK_EQ(*Access().as<double>(gradients({z}, {}, {x}, {})[0]), 1.0);
}

TW_TEST(custom_many_results) {
  const Tensor x = leaf(3);
  const auto last = [](const std::vector<Tensor>&, std::vector<Tensor> g) {
    return std::vector<Tensor>{g.back()};
  };
  const std::vector<Tensor> y = square(x, last, std::vector<bool>(200, true));
  CHECK_EQ(*Access().as<double>(gradients({sum(y[199], {}, false)}, {}, {x}, {})[0]), 1.0);
  CHECK_THROWS(ErrorKind::value, square(x, last, std::vector<bool>(256, true)), "256 results");
}

TW_TEST(custom_errors_and_ends) {
  const Tensor x = leaf(3);
  const std::size_t before = held_functions;
  {
    const auto wrong = [](const std::vector<Tensor>&, std::vector<Tensor>) {
      return std::vector<Tensor>{full({3}, 1, DType::float64)};
    };
    const Tensor y = sum(square(x, wrong, {true})[0], {}, false);
    CHECK_THROWS(ErrorKind::value, backward({y}, {}, {}), "square: backward returned gradient 0");
    const Tensor z = sum(square(x, twice, {true})[0], {}, false);
    CHECK_EQ(held_functions, before + 2);
    backward({z}, {}, {});
    CHECK_THROWS(ErrorKind::runtime, backward({z}, {}, {}), "square: backward through this op");
  }
  CHECK_EQ(held_functions, before);
}
