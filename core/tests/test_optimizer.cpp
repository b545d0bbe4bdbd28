// Optimizer steps against their formulas in double, over parameters of many sizes.
#include "core/cpu/optimizer.h"

#include <cmath>
#include <random>
#include <vector>

#include "core/tests/check.h"
#include "core/tests/each_isa.h"

namespace tw {
namespace {

using std::int64_t;

constexpr int64_t kSizes[] = {1, 3, 16, 17, 0, 1000, 70001, 5};

// Parameters with their reference in double.
template <class T> struct Model {
  std::vector<std::vector<T>> p, g, s1, s2;
  std::vector<std::vector<double>> rp, r1, r2;
  std::mt19937 generator{3};

  Model() {
    for (const int64_t n : kSizes) {
      p.push_back(random(n));
      g.push_back(random(n));
      s1.emplace_back(n);
      s2.emplace_back(n);
      rp.emplace_back(p.back().begin(), p.back().end());
      r1.emplace_back(n);
      r2.emplace_back(n);
    }
  }
  std::vector<T> random(int64_t n) {
    std::normal_distribution<double> normal;
    std::vector<T> values(n);
    for (T& v : values) v = static_cast<T>(normal(generator));
    return values;
  }
  std::vector<ParameterSlice> slices() {
    std::vector<ParameterSlice> list;
    for (std::size_t i = 0; i < p.size(); ++i)
      list.push_back({p[i].data(), g[i].data(), s1[i].data(), s2[i].data(), int64_t(p[i].size())});
    return list;
  }
  // Takes three steps with step(slices, number) and with formula(number, p, g, s1, s2).
  template <class Step, class Formula> void check(Step step, Formula formula) {
    for (int number = 1; number <= 3; ++number) {
      for (auto& gradient : g) gradient = random(gradient.size());
      const auto list = slices();
      step(list.data(), int64_t(list.size()), number);
      for (std::size_t i = 0; i < p.size(); ++i)
        for (std::size_t j = 0; j < p[i].size(); ++j) {
          formula(number, rp[i][j], double(g[i][j]), r1[i][j], r2[i][j]);
          const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
          CHECK(std::abs(p[i][j] - rp[i][j]) <= tolerance * (1 + std::abs(rp[i][j])));
        }
    }
  }
};

template <class T> void check_sgd(SgdArgs args) {
  Model<T>().check(
      [&](const ParameterSlice* list, int64_t count, int number) {
        args.first_step = number == 1;
        sgd_step(DTypeOf<T>::value, args, list, count);
      },
      [&](int number, double& p, double g, double& m, double&) {
        g += args.weight_decay * p;
        m = number == 1 ? g : args.momentum * m + (1 - args.dampening) * g;
        p -= args.lr * (args.momentum == 0 ? g : args.nesterov ? g + args.momentum * m : m);
      });
}
template <class T> void check_adam(AdamArgs args) {
  Model<T>().check(
      [&](const ParameterSlice* list, int64_t count, int number) {
        args.step = number;
        adam_step(DTypeOf<T>::value, args, list, count);
      },
      [&](int number, double& p, double g, double& m, double& v) {
        if (args.decoupled)
          p *= 1 - args.lr * args.weight_decay;
        else
          g += args.weight_decay * p;
        m = args.beta1 * m + (1 - args.beta1) * g;
        v = args.beta2 * v + (1 - args.beta2) * g * g;
        const double mean = m / (1 - std::pow(args.beta1, number));
        p -= args.lr * mean / (std::sqrt(v / (1 - std::pow(args.beta2, number))) + args.eps);
      });
}
template <class T> void check_adagrad(AdagradArgs args) {
  Model<T>().check(
      [&](const ParameterSlice* list, int64_t count, int number) {
        args.step = number;
        adagrad_step(DTypeOf<T>::value, args, list, count);
      },
      [&](int number, double& p, double g, double& sum, double&) {
        g += args.weight_decay * p;
        sum += g * g;
        p -= args.lr / (1 + (number - 1) * args.lr_decay) * g / (std::sqrt(sum) + args.eps);
      });
}

}  // namespace

TW_TEST(optimizer_sgd) {
  test::on_each_isa([] {
    for (const SgdArgs& args : {SgdArgs{0.1, 0, 0, 0, false, false},
                                {0.1, 0, 0, 0.01, false, false},
                                {0.1, 0.9, 0.1, 0.01, false, false},
                                {0.1, 0.9, 0, 0, true, false}}) {
      check_sgd<float>(args);
      check_sgd<double>(args);
    }
  });
}
TW_TEST(optimizer_adam) {
  test::on_each_isa([] {
    for (const bool decoupled : {false, true}) {
      check_adam<float>({0.01, 0.9, 0.999, 1e-8, 0.1, decoupled, 1});
      check_adam<double>({0.01, 0.9, 0.999, 1e-8, 0.1, decoupled, 1});
    }
  });
}
TW_TEST(optimizer_adagrad) {
  test::on_each_isa([] {
    check_adagrad<float>({0.1, 0.1, 0.01, 1e-10, 1});
    check_adagrad<double>({0.1, 0.1, 0.01, 1e-10, 1});
  });
}

}  // namespace tw
