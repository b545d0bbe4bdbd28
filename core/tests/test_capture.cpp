// Recorded calls run again on other inputs.
#include "core/autograd/backward.h"
#include "core/autograd/capture.h"
#include "core/base/error.h"
#include "core/ops/copy/create.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"
#include "core/tests/check.h"

namespace tw {
namespace {

Tensor filled(const Shape& shape, double value) { return full(shape, value, DType::float32); }
float first_of(const Tensor& x) { return *reinterpret_cast<const float*>(x.pinned_bytes()); }

template <class F> std::unique_ptr<Captured> captured(std::vector<Tensor> inputs, F f) {
  Capture recording(inputs);
  const std::vector<Tensor> outputs = f(inputs);
  return recording.finish(outputs);
}

}  // namespace

TW_TEST(capture_replays_on_other_inputs) {
  const auto recorded = captured({filled({4, 4}, 1)}, [](const std::vector<Tensor>& in) {
    const Tensor y = in[0] * 2 + 1;
    return std::vector<Tensor>{matmul(y, permute_dims(y, {1, 0})), y};
  });
  std::vector<Tensor> kept;
  for (int i = 1; i <= 3; ++i) {
    const auto out = recorded->replay({filled({4, 4}, i)});
    const float y = 2.f * static_cast<float>(i) + 1;
    CHECK_EQ(first_of(out[0]), 4 * y * y);
    CHECK_EQ(first_of(out[1]), y);
    kept.push_back(out[1]);
  }
  CHECK_EQ(first_of(kept[0]), 3.f);
  CHECK(recorded->figures().calls >= 3);
}

TW_TEST(capture_outlives_what_it_recorded) {
  std::vector<Tensor> out;
  {
    std::unique_ptr<Captured> recorded;
    {
      const Tensor w = filled({3}, 2);
      recorded = captured({filled({3}, 1)}, [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{in[0] * w, w};
      });
    }
    out = recorded->replay({filled({3}, 5)});
  }
  CHECK_EQ(first_of(out[0]), 10.f);
  CHECK_EQ(first_of(out[1]), 2.f);
}

TW_TEST(capture_leaves_gradients_anew) {
  const Tensor w = filled({3}, 2);
  set_requires_grad(w, true);
  const auto recorded = captured({filled({3}, 1)}, [&](const std::vector<Tensor>& in) {
    modes.capture->note_gradient(*w.get());
    w.extras().grad = Tensor();
    backward({sum(in[0] * w, {}, false)}, {}, {});
    return std::vector<Tensor>{};
  });
  const Tensor first = w.grad();
  recorded->replay({filled({3}, 7)});
  CHECK_EQ(first_of(first), 1.f);
  CHECK_EQ(first_of(w.grad()), 7.f);
}

TW_TEST(capture_ends_with_an_error) {
  const Tensor x = filled({3}, 1);
  for (int i = 0; i < 2; ++i) {
    Tensor left;
    try {
      captured({x}, [&](const std::vector<Tensor>& in) {
        left = in[0] + 1;
        refuse_in_capture("a test");
        return std::vector<Tensor>{};
      });
      CHECK(false);
    } catch (const Error&) {
    }
    CHECK(!modes.capture && modes.plain && !modes.source);
    CHECK_EQ(first_of(left), 2.f);
  }
}

}  // namespace tw
