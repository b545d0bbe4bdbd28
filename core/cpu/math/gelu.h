// GELU, x times the share of a normal distribution below x, and its slope.
#pragma once
#include "core/cpu/math/activation.h"
#include "core/cpu/math/pieces_float32.h"

namespace tw::TW_ISA_NAME {
namespace {

TW_INLINE Vec<double> gelu_erf(Vec<double> x) {
  using T = double;
  const Scaled share = normal_share_pair(x);
  const Vec<T> limited = at_least(x, -64);
  const Pair<T> product = two_product(limited, share.y.hi);
  const Vec<T> y = scale(product.hi + fma(limited, share.y.lo, product.lo), share.n);
  const Vec<T> inside = where(abs(x) < kUnchanged<T> * kUnchanged<T>, x * 0.5, y);
  return where(x > 64, x, where(x == -kInfinity, kNan, inside));
}
TW_INLINE Vec<double> gelu_erf_slope(Vec<double> x) {
  const Vec<double> limited = clamp<double>(x, -64, 64);
  return fma(limited, normal_density(limited), normal_share(limited));
}

// For float, by one exponential: good everywhere.
TW_INLINE Vec<float> gelu_by_exp(Vec<float> x) {
  const Vec<float> v = at_least(minus_abs(x), -15);
  const FloatShare s = float_share(v);
  return mirrored(x, v * s.inverse * s.y, s.power);
}
// The slope at x is 1 minus that at -x.
TW_INLINE Vec<float> gelu_slope_by_exp(Vec<float> x) {
  const Vec<float> v = at_least(minus_abs(x), -15);
  const FloatShare s = float_share(v);
  const Vec<float> density = s.e * 0.3989422804014327f;
  const Vec<float> y = scale_down(fma(s.inverse, s.y, v * density), s.power);
  return where(x < 0, y, 1 - y);
}

#ifdef TW_HAS_LANE_TABLES
// tools/fit_polynomials.py gelu_share gelu_slope has these fits.
// Near 0, where most arguments lie, by a table in registers: the share and the slope at v <= 0 as
// polynomials in the distance from -n kPieceStep, whose coefficients of power k are pieces[k][n];
// fitted within 2^-24 of the result, of the slope where it is 0 of a quarter of the density.
typedef float NormalPieces[8][16];
inline constexpr float kPieceStep = 0x1.6p-2f;
inline constexpr float kPiecesFrom = -5.32f;  // less than 15.5 steps
alignas(64) inline constexpr NormalPieces kSharePieces = {
    {0.5f, 0.36551714f, 0.24588385f, 0.1512118f, 0.08456572f, 0.042829953f, 0.01958008f,
     0.008058616f, 0.0029797633f, 0.0009882197f, 0.00029355535f, 7.802144e-05f, 1.8536737e-05f,
     3.933901e-06f, 7.4526935e-07f, 1.2597224e-07f},
    {0.3989423f, 0.3760547f, 0.31497353f, 0.23441158f, 0.15501226f, 0.09108253f, 0.047553893f,
     0.02206069f, 0.009093563f, 0.0033306656f, 0.0010839519f, 0.000313452f, 8.054044e-05f,
     1.8388193e-05f, 3.7303198e-06f, 6.724115e-07f},
    {1.0056837e-06f, 0.06463801f, 0.10827164f, 0.12086882f, 0.10657118f, 0.07827365f, 0.049039822f,
     0.026541645f, 0.012503625f, 0.0051521314f, 0.0018630454f, 0.0005926195f, 0.0001661149f,
     4.1086107e-05f, 8.976092e-06f, 1.7335631e-06f},
    {-0.06645817f, -0.055260926f, -0.027683087f, 0.0024799886f, 0.023009988f, 0.029663019f,
     0.025788782f, 0.01761134f, 0.009945937f, 0.004758055f, 0.0019541003f, 0.00069470366f,
     0.00021498594f, 5.8136284e-05f, 1.3777343e-05f, 2.8674515e-06f},
    {0.0004959461f, -0.015766459f, -0.02276859f, -0.019528894f, -0.009869499f, -0.00027209544f,
     0.0051330435f, 0.006179378f, 0.004755654f, 0.0028208233f, 0.001368586f, 0.0005579948f,
     0.0001939984f, 5.81005e-05f, 1.5078215e-05f, 3.4069142e-06f},
    {0.013944131f, 0.006639983f, 0.0010219278f, -0.0044083213f, -0.006190314f, -0.0044742133f,
     -0.0017179006f, 0.00036793965f, 0.0011324899f, 0.0010292958f, 0.00064642535f, 0.0003179513f,
     0.00012770983f, 4.3224158e-05f, 1.2452154e-05f, 3.0861693e-06f},
    {0.015935035f, 0.00720539f, 0.002469492f, 0.0022987777f, 0.00024296789f, -0.0017905557f,
     -0.0014537873f, -0.00085459696f, -0.00015375325f, 0.00016471326f, 0.00019198334f,
     0.00012487847f, 6.252826e-05f, 2.457662e-05f, 8.065231e-06f, 2.2275913e-06f},
    {0.024158936f, 0.010386679f, -5.7906826e-05f, 0.0011588872f, 0.0013426767f, -0.0013502982f,
     -0.0008851354f, -0.0010504599f, -0.00036604638f, -5.656559e-07f, 4.3846372e-05f, 2.565899e-05f,
     2.3310162e-05f, 1.0137429e-05f, 3.9321408e-06f, 1.2123683e-06f},
};
alignas(64) inline constexpr NormalPieces kSlopePieces = {
    {0.5f, 0.23624833f, 0.029339544f, -0.09052514f, -0.12857614f, -0.11371814f, -0.078499824f,
     -0.045024917f, -0.022027534f, -0.009316027f, -0.0034325297f, -0.0011072189f, -0.0003136926f,
     -7.8238336e-05f, -1.7206894e-05f, -3.3411488e-06f},
    {0.7978846f, 0.7076733f, 0.48107287f, 0.21953194f, 0.016954467f, -0.08690198f, -0.10718202f,
     -0.08361087f, -0.05058294f, -0.025217433f, -0.010640514f, -0.003854786f, -0.0012093652f,
     -0.0003304308f, -7.893415e-05f, -1.6532522e-05f},
    {1.985644e-06f, 0.2509021f, 0.38191316f, 0.35493287f, 0.22479859f, 0.081866406f, -0.012451042f,
     -0.047510568f, -0.04454429f, -0.028704049f, -0.014562266f, -0.0061027245f, -0.002162087f,
     -0.0006561335f, -0.00017198299f, -3.9155777e-05f},
    {-0.2658986f, -0.19973113f, -0.048025962f, 0.090379946f, 0.14622588f, 0.12071414f, 0.06088336f,
     0.011051513f, -0.012509574f, -0.015882289f, -0.011004168f, -0.005660132f, -0.0023413359f,
     -0.0008060179f, -0.00023517753f, -5.8808113e-05f},
    {0.0009610063f, -0.09015572f, -0.117514536f, -0.07485023f, -0.006942635f, 0.0376453f,
     0.0436815f, 0.026893346f, 0.00833502f, -0.0018515348f, -0.004294504f, -0.0032169276f,
     -0.0016660992f, -0.0006749592f, -0.00022413261f, -6.246475e-05f},
    {0.067483194f, 0.037818965f, -0.0067772493f, -0.037821103f, -0.03614787f, -0.0142458165f,
     0.005291243f, 0.011931573f, 0.008706656f, 0.0033162544f, -1.8993784e-05f, -0.0009454607f,
     -0.0007678105f, -0.00039613436f, -0.00015565458f, -4.946249e-05f},
    {0.030508475f, 0.021590007f, 0.021113701f, 0.0068857768f, -0.0067791436f, -0.0119454255f,
     -0.0058732373f, 9.675506e-05f, 0.002555793f, 0.002146251f, 0.0009937956f, 7.4261465e-05f,
     -0.00018062614f, -0.00015498292f, -7.899033e-05f, -2.9968702e-05f},
    {0.03887042f, 0.003311975f, 0.0007454711f, 0.007775107f, 0.0040971986f, -0.0013026495f,
     -0.000978334f, -0.0016333609f, -0.00042664513f, 0.00011070951f, 0.00077089755f, 0.00015188358f,
     2.7727954e-05f, -2.6619156e-05f, -2.5662985e-05f, -1.2946544e-05f},
};

TW_INLINE Vec<float> normal_by_pieces(Vec<float> v, const NormalPieces& pieces) {
  const Vec<float> shifted = fma(v, -1 / kPieceStep, Format<float>::rounder);
  const Vec<float> t = fma(shifted - Format<float>::rounder, kPieceStep, v);
  Vec<float> y = look_up(pieces[7], shifted);
#pragma GCC unroll 7
  for (int k = 6; k >= 0; --k) y = fma(y, t, look_up(pieces[k], shifted));
  return y;
}
#endif

TW_INLINE Vec<float> gelu_erf(Vec<float> x) {
  using T = float;
  TW_WIDEN(gelu_erf) {
#ifdef TW_HAS_LANE_TABLES
    const Vec<T> v = at_least(minus_abs(x), kPiecesFrom);
    const Vec<T> y = fma(v, normal_by_pieces(v, kSharePieces), at_least(x, -0.0));
    if (!any_below(x, kPiecesFrom)) [[likely]]
      return y;
    // Lane by lane: what a number gives does not depend on its neighbours.
    return out_of_line([=]()
                           TW_LAMBDA_INLINE { return where(x < kPiecesFrom, gelu_by_exp(x), y); });
#else
    return gelu_by_exp(x);
#endif
  }
}
TW_INLINE Vec<float> gelu_erf_slope(Vec<float> x) {
  using T = float;
  TW_WIDEN(gelu_erf_slope) {
#ifdef TW_HAS_LANE_TABLES
    const Vec<T> v = minus_abs(x);
    const Vec<T> below = normal_by_pieces(v, kSlopePieces), y = where(x < 0, below, 1 - below);
    if (!any_below(v, kPiecesFrom)) [[likely]]
      return y;
    return out_of_line(
        [=]() TW_LAMBDA_INLINE { return where(v < kPiecesFrom, gelu_slope_by_exp(x), y); });
#else
    return gelu_slope_by_exp(x);
#endif
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
