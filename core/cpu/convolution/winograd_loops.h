// Winograd's minimal filtering (A. Lavin and S. Gray, "Fast algorithms for convolutional neural
// networks", 2015): transforms of tiles whose elements are vectors of channels. y = At [(G w Gt) *
// (Bt x B)] A; the gradient of the weights is the transpose, dw = Gt [sum (Bt x B) * (A g At)] G.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

// F(m x m, 3 x 3) on tiles of n x n, n = m + 2. Rows 2i - 1 and 2i of each matrix belong to the
// points a and -a: they have the same even columns and opposite odd ones. a is A, not its
// transpose.
template <int m> struct WinogradPoints;
template <> struct WinogradPoints<2> {
  static constexpr float bt[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
  static constexpr float g[4][3] = {{1, 0, 0}, {.5f, .5f, .5f}, {.5f, -.5f, .5f}, {0, 0, 1}};
  static constexpr float a[4][2] = {{1, 0}, {1, 1}, {1, -1}, {0, -1}};
};
template <> struct WinogradPoints<4> {
  static constexpr float bt[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0},
                                     {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0},
                                     {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
  static constexpr float g[6][3] = {{1 / 4.f, 0, 0},
                                    {-1 / 6.f, -1 / 6.f, -1 / 6.f},
                                    {-1 / 6.f, 1 / 6.f, -1 / 6.f},
                                    {1 / 24.f, 1 / 12.f, 1 / 6.f},
                                    {1 / 24.f, -1 / 12.f, 1 / 6.f},
                                    {0, 0, 1}};
  static constexpr float a[6][4] = {{1, 0, 0, 0}, {1, 1, 1, 1},   {1, -1, 1, -1},
                                    {1, 2, 4, 8}, {1, -2, 4, -8}, {0, 0, 0, 1}};
};

using Lane = Vec<float>::Raw;

// Calls f with the constants from, from + step, ...: every factor below must be one.
template <int from, int past, int step = 1, class F> TW_INLINE void each_constant(F f) {
  if constexpr (from < past) {
    f(std::integral_constant<int, from>());
    each_constant<from + step, past, step>(f);
  }
}

// Where a sum of factors(j) * x[j] begins: with a factor of 1 if there is one, so that all other
// terms are added by FMAs; `count` where all are zero.
template <int first, int step, int count, class Factors> constexpr int first_term(Factors factors) {
  int from = count;
  for (int j = first; j < count; j += step)
    if (factors(j) == 1 || (from == count && factors(j) != 0)) {
      from = j;
      if (factors(j) == 1) break;
    }
  return from;
}
// The sum of factors(j) * x[j] over j = first, first + step, ...; without terms zero.
template <int first, int step, int count, class Factors>
TW_INLINE Lane sum_of_terms(const Lane* x, Factors) {
  constexpr int from = first_term<first, step, count>(Factors());
  if constexpr (from == count) {
    return Lane{};
  } else {
    Lane sum = x[from] * Factors()(from);
    each_constant<first, count, step>([&](auto j) TW_LAMBDA_INLINE {
      constexpr int at = decltype(j)::value;
      constexpr float factor = Factors()(at);
      if constexpr (at == from || factor == 0)
        return;
      else if constexpr (factor == 1)
        sum += x[at];
      else if constexpr (factor == -1)
        sum -= x[at];
      else
        sum = fma(x[at], Vec<float>(factor).v, sum);
    });
    return sum;
  }
}
template <const auto& matrix, int i, int first, int step, int count>
TW_INLINE Lane sum_of_row(const Lane* x) {
  return sum_of_terms<first, step, count>(x, [](int j) { return matrix[i][j]; });
}
// x[1] times the factor of row i, of which it is the only odd term, for an FMA.
template <const auto& matrix, int i, int columns> inline constexpr bool kOneOddTerm =
    columns == 3 && matrix[i][1] != 1 && matrix[i][1] != -1;

// y = M x.
template <const auto& matrix, int rows, int columns>
TW_INLINE void transform(const Lane (&x)[columns], Lane (&y)[rows]) {
  y[0] = sum_of_row<matrix, 0, 0, 1, columns>(x);
  each_constant<1, rows - 1, 2>([&](auto i) TW_LAMBDA_INLINE {
    constexpr int row = decltype(i)::value;
    const Lane even = sum_of_row<matrix, row, 0, 2, columns>(x);
    if constexpr (kOneOddTerm<matrix, row, columns>) {
      const Lane factor = Vec<float>(matrix[row][1]).v;
      y[row] = fma(x[1], factor, even);
      y[row + 1] = fma(-x[1], factor, even);
    } else {
      const Lane odd = sum_of_row<matrix, row, 1, 2, columns>(x);
      y[row] = even + odd;
      y[row + 1] = even - odd;
    }
  });
  y[rows - 1] = sum_of_row<matrix, rows - 1, 0, 1, columns>(x);
}
// y = Mt x.
template <const auto& matrix, int rows, int columns>
TW_INLINE void transform_back(const Lane (&x)[rows], Lane (&y)[columns]) {
  // Of x[i] and x[i + 1]; what has no neighbour is itself. The first two change places, since no
  // factor of the first pair is zero.
  Lane sums[rows], differences[rows];
  sums[1] = differences[1] = x[0];
  sums[rows - 1] = differences[rows - 1] = x[rows - 1];
  each_constant<1, rows - 1, 2>([&](auto i) TW_LAMBDA_INLINE {
    constexpr int row = decltype(i)::value;
    sums[row == 1 ? 0 : row] = x[row] + x[row + 1];
    differences[row == 1 ? 0 : row] = x[row] - x[row + 1];
  });
  each_constant<0, columns>([&](auto j) TW_LAMBDA_INLINE {
    constexpr int column = decltype(j)::value;
    const Lane* const terms = column % 2 == 0 ? sums : differences;
    y[column] = sum_of_terms<0, 1, rows>(terms, [](int i) {
      return i < 2 ? matrix[1 - i][column] : i % 2 == 1 || i == rows - 1 ? matrix[i][column] : 0;
    });
  });
}

// Z = f(f(X)t)t, over columns and then over rows: from size x size to result x result vectors.
template <int size, int result, class F, class Load, class Store>
TW_INLINE void transform_square(F f, Load load, Store store) {
  Lane half[result][size];
  each_constant<0, size>([&](auto j) TW_LAMBDA_INLINE {
    Lane x[size], y[result];
#pragma GCC unroll 8
    for (int i = 0; i < size; ++i) x[i] = load(i, decltype(j)::value);
    f(x, y);
#pragma GCC unroll 8
    for (int i = 0; i < result; ++i) half[i][decltype(j)::value] = y[i];
  });
  each_constant<0, result>([&](auto i) TW_LAMBDA_INLINE {
    Lane y[result];
    f(half[decltype(i)::value], y);
#pragma GCC unroll 8
    for (int j = 0; j < result; ++j) store(decltype(i)::value, j, y[j]);
  });
}

// From tiles to planes, and back. Whole vectors of channels are read and written.
template <int size, int result, class F>
TW_INLINE void to_planes(const WinogradTiles& p, const float* x, float* planes, F f) {
  for (std::int64_t t = 0; t < p.tiles; ++t)
    for (std::int64_t c = 0; c < p.channels; c += kLanes<float>) {
      const float* const from = x + p.at[t] + c;
      float* const to = planes + t * p.tile_step + c;
      transform_square<size, result>(
          f,
          [&](int i, int j) TW_LAMBDA_INLINE {
            return Vec<float>::load(from + i * p.row_step + j * p.column_step).v;
          },
          [&](int i, int j, Lane v)
              TW_LAMBDA_INLINE { Vec<float>(v).store(to + (i * result + j) * p.plane_step); });
    }
}
template <int size, int result, class F>
TW_INLINE void from_planes(const WinogradTiles& p, const float* planes, float* y, F f) {
  for (std::int64_t t = 0; t < p.tiles; ++t)
    for (std::int64_t c = 0; c < p.channels; c += kLanes<float>) {
      const float* const from = planes + t * p.tile_step + c;
      float* const to = y + p.at[t] + c;
      transform_square<size, result>(
          f,
          [&](int i, int j)
              TW_LAMBDA_INLINE { return Vec<float>::load(from + (i * size + j) * p.plane_step).v; },
          [&](int i, int j, Lane v)
              TW_LAMBDA_INLINE { Vec<float>(v).store(to + i * p.row_step + j * p.column_step); });
    }
}

template <int m> struct Winograd {
  using Points = WinogradPoints<m>;
  static constexpr int n = m + 2;
  static void input(const WinogradTiles& p, const float* x, float* planes) {
    to_planes<n, n>(p, x, planes, [](const Lane(&x)[n], Lane(&y)[n]) TW_LAMBDA_INLINE {
      transform<Points::bt>(x, y);
    });
  }
  static void output(const WinogradTiles& p, const float* planes, float* y) {
    from_planes<n, m>(p, planes, y, [](const Lane(&x)[n], Lane(&y)[m]) TW_LAMBDA_INLINE {
      transform_back<Points::a>(x, y);
    });
  }
  static void weights(const WinogradTiles& p, const float* w, float* planes) {
    to_planes<3, n>(p, w, planes, [](const Lane(&x)[3], Lane(&y)[n]) TW_LAMBDA_INLINE {
      transform<Points::g>(x, y);
    });
  }
  static void output_gradient(const WinogradTiles& p, const float* g, float* planes) {
    to_planes<m, n>(p, g, planes, [](const Lane(&x)[m], Lane(&y)[n]) TW_LAMBDA_INLINE {
      transform<Points::a>(x, y);
    });
  }
  static void weights_gradient(const WinogradTiles& p, const float* planes, float* dw) {
    from_planes<n, 3>(p, planes, dw, [](const Lane(&x)[n], Lane(&y)[3]) TW_LAMBDA_INLINE {
      transform_back<Points::g>(x, y);
    });
  }
};

template <int m> constexpr WinogradLoops winograd_loops = {
    Winograd<m>::input, Winograd<m>::output, Winograd<m>::weights, Winograd<m>::output_gradient,
    Winograd<m>::weights_gradient};

}  // namespace
}  // namespace tw::TW_ISA_NAME
