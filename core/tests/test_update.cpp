// Steps of optimizers against their formulas in double, over parameters of many sizes.
#include <cmath>
#include <random>
#include <vector>

#include "core/ops/engine/apply.h"
#include "core/ops/engine/records.h"
#include "core/tensor/access.h"
#include "core/tests/check.h"
#include "core/tests/each_isa.h"

namespace tw {
namespace {

using std::int64_t;

constexpr int64_t kSizes[] = {1, 3, 16, 17, 0, 1000, 70001, 5};

// Parameters with their reference in double.
template <class T> struct Model {
  std::vector<Tensor> p, g, s[2];
  std::vector<std::vector<double>> rp, r[2];
  std::mt19937 generator{3};

  Model() {
    for (const int64_t n : kSizes) {
      p.push_back(filled(n, 1));
      g.push_back(filled(n, 0));
      rp.push_back(values(p.back()));
      for (int i = 0; i < 2; ++i) {
        s[i].push_back(filled(n, 0));
        r[i].emplace_back(n);
      }
    }
  }
  static std::vector<double> values(const Tensor& x) {
    const T* at = reinterpret_cast<const T*>(x.pinned_bytes());
    return {at, at + x.count()};
  }
  void fill(const Tensor& x, double scale) {
    std::normal_distribution<double> normal;
    T* at = reinterpret_cast<T*>(x.pinned_bytes());
    for (int64_t i = 0; i < x.count(); ++i) at[i] = static_cast<T>(scale * normal(generator));
  }
  Tensor filled(int64_t n, double scale) {
    const Tensor x = Tensor::empty({n}, DTypeOf<T>::value);
    fill(x, scale);
    return x;
  }
  // Takes three steps of the op, with number and settings, and of formula(number, p, g, s1, s2).
  template <class Formula>
  void check(const OpRecord& op, int states, double lr, Attributes attributes, Formula formula) {
    for (int number = 1; number <= 3; ++number) {
      std::vector<Operand> in;
      for (std::size_t i = 0; i < p.size(); ++i) {
        fill(g[i], 1);
        in.insert(in.end(), {p[i], g[i]});
        for (int k = 0; k < states; ++k) in.push_back(s[k][i]);
      }
      in.insert(in.end(), {number, lr});
      apply(op, in.data(), static_cast<int>(in.size()), attributes, nullptr);
      for (std::size_t i = 0; i < p.size(); ++i) {
        const auto now = values(p[i]), gradient = values(g[i]);
        for (std::size_t j = 0; j < now.size(); ++j) {
          formula(number, rp[i][j], gradient[j], r[0][i][j], r[1][i][j]);
          const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
          CHECK(std::abs(now[j] - rp[i][j]) <= tolerance * (1 + std::abs(rp[i][j])));
        }
      }
    }
  }
};

constexpr double kLr = 0.1;

template <class T> void check_sgd(double momentum, double dampening, double decay, bool nesterov) {
  const Attribute plain[] = {attribute_of(decay)},
                  attributes[] = {attribute_of(momentum), attribute_of(dampening),
                                  attribute_of(decay)};
  const OpRecord& op = momentum == 0 ? k_sgd_step : nesterov ? k_nesterov_step : k_momentum_step;
  Model<T>().check(op, momentum != 0, kLr,
                   momentum == 0 ? Attributes{plain, 1} : Attributes{attributes, 3},
                   [&](int number, double& p, double g, double& m, double&) {
                     g += decay * p;
                     m = number == 1 ? g : momentum * m + (1 - dampening) * g;
                     p -= kLr * (momentum == 0 ? g : nesterov ? g + momentum * m : m);
                   });
}
template <class T> void check_adam(bool decoupled) {
  constexpr double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.1;
  const Attribute attributes[] = {attribute_of(beta1), attribute_of(beta2), attribute_of(eps),
                                  attribute_of(decay), decoupled};
  Model<T>().check(k_adam_step, 2, kLr, {attributes, 5},
                   [&](int number, double& p, double g, double& m, double& v) {
                     if (decoupled)
                       p *= 1 - kLr * decay;
                     else
                       g += decay * p;
                     m = beta1 * m + (1 - beta1) * g;
                     v = beta2 * v + (1 - beta2) * g * g;
                     const double mean = m / (1 - std::pow(beta1, number));
                     p -= kLr * mean / (std::sqrt(v / (1 - std::pow(beta2, number))) + eps);
                   });
}
template <class T> void check_adagrad() {
  constexpr double eps = 1e-10, decay = 0.01, lr_decay = 0.1;
  const Attribute attributes[] = {attribute_of(eps), attribute_of(decay), attribute_of(lr_decay)};
  Model<T>().check(k_adagrad_step, 1, kLr, {attributes, 3},
                   [&](int number, double& p, double g, double& sum, double&) {
                     g += decay * p;
                     sum += g * g;
                     p -= kLr / (1 + (number - 1) * lr_decay) * g / (std::sqrt(sum) + eps);
                   });
}

}  // namespace

TW_TEST(update_sgd) {
  test::on_each_isa([] {
    const auto check = [](auto... settings) {
      check_sgd<float>(settings...);
      check_sgd<double>(settings...);
    };
    check(0., 0., 0., false);
    check(0., 0., 0.01, false);
    check(0.9, 0.1, 0.01, false);
    check(0.9, 0., 0., true);
  });
}
TW_TEST(update_adam) {
  test::on_each_isa([] {
    for (const bool decoupled : {false, true}) {
      check_adam<float>(decoupled);
      check_adam<double>(decoupled);
    }
  });
}
TW_TEST(update_adagrad) {
  test::on_each_isa([] {
    check_adagrad<float>();
    check_adagrad<double>();
  });
}

}  // namespace tw
