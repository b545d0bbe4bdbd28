// Tables that fit in registers, which instruction sets that permute lanes look up: here those of
// logarithms, powers and tangents. tools/fit_tables.py computes them.
#pragma once
#include "core/cpu/math/polynomials.h"

#ifdef TW_HAS_LANE_TABLES
namespace tw::TW_ISA_NAME {
namespace {

// The entry for the low four or five bits of each lane of `index`.
TW_INLINE Vec<float> look_up(const float (&table)[16], Vec<float> index) {
  return Vec<float>(look_up_16(table, index.v));
}
TW_INLINE Vec<float> look_up(const float (&table)[32], Vec<float> index) {
  return Vec<float>(look_up_32(table, index.v));
}
// The leading bits of numbers as such an index.
template <int bits> TW_INLINE Vec<float> shifted_down(Vec<float> x) {
  return bit_cast<float>(Vec<std::uint32_t>(bit_cast<std::uint32_t>(x).v >> bits));
}

// Logarithms: inverses of m for the leading five bits of m in [0.75, 1.5), and minus their
// logarithms, which are exact on a grid that exponents times log 2 can be added to.
alignas(64) inline constexpr float kLnInverses[32] = {
    1.0f,        0.9567435f,  0.9292552f, 0.9011943f,  0.87931126f, 0.8538001f, 0.83203894f,
    0.81212014f, 0.78807724f, 0.7697921f, 0.75111127f, 0.7354323f,  0.7168849f, 0.70559835f,
    0.6858854f,  0.6745669f,  1.3218871f, 1.2954396f,  1.2672181f,  1.2427363f, 1.2181047f,
    1.195365f,   1.1713773f,  1.1529353f, 1.1314639f,  1.1140836f,  1.0942955f, 1.0768616f,
    1.0568392f,  1.042083f,   1.0265534f, 1.0f};
alignas(64) inline constexpr float kLnValues[32] = {
    0.0f,         0.04421997f,  0.07337189f,  0.104034424f, 0.12861633f,   0.15805817f,
    0.18387604f,  0.208107f,    0.23815918f,  0.26163483f,  0.28620148f,   0.30729675f,
    0.33283997f,  0.3487091f,   0.37704468f,  0.3936844f,   -0.27906036f,  -0.2588501f,
    -0.23682404f, -0.21731567f, -0.19729614f, -0.17845154f, -0.15818024f,  -0.1423111f,
    -0.12351227f, -0.10803223f, -0.09011078f, -0.0740509f,  -0.055282593f, -0.04122162f,
    -0.02620697f, 0.0f};
// To bases 2 and 10: inverses of so few bits that m inverse - 1 is exact, and minus their
// logarithms in two parts, the first on a grid that exponents, times log10(2) for base 10, can be
// added to.
alignas(64) inline constexpr float kExactInverses[32] = {
    1.0f,       0.953125f,  0.921875f, 0.90625f,  0.875f,   0.8515625f, 0.828125f, 0.8125f,
    0.7890625f, 0.7734375f, 0.75f,     0.734375f, 0.71875f, 0.703125f,  0.6875f,   0.671875f,
    1.3125f,    1.296875f,  1.265625f, 1.25f,     1.21875f, 1.203125f,  1.171875f, 1.15625f,
    1.125f,     1.109375f,  1.09375f,  1.078125f, 1.0625f,  1.046875f,  1.03125f,  1.0f};
alignas(64) inline constexpr float kLog2Values[32] = {
    0.0f,          0.06925964f,  0.11735535f,  0.14201355f,  0.19264221f,  0.23181152f,
    0.27207947f,   0.29956055f,  0.34178162f,  0.370636f,    0.41503906f,  0.44540405f,
    0.47644043f,   0.5081482f,   0.5405731f,   0.57373047f,  -0.39231873f, -0.37504578f,
    -0.33984375f,  -0.32192993f, -0.2854004f,  -0.26678467f, -0.2288208f,  -0.2094574f,
    -0.16992188f,  -0.14974976f, -0.12928772f, -0.10852051f, -0.08746338f, -0.066085815f,
    -0.044387817f, 0.0f};
alignas(64) inline constexpr float kLog2Lows[32] = {0.0f,
                                                    3.0188824e-06f,
                                                    1.6039585e-06f,
                                                    5.455068e-06f,
                                                    2.8660284e-06f,
                                                    4.1517856e-06f,
                                                    7.7663366e-08f,
                                                    -2.650161e-07f,
                                                    6.901037e-06f,
                                                    7.393592e-06f,
                                                    -1.5632212e-06f,
                                                    7.095588e-06f,
                                                    -2.3857444e-06f,
                                                    -1.2896891e-06f,
                                                    -4.7387543e-06f,
                                                    4.776548e-06f,
                                                    1.3028072e-06f,
                                                    6.34502e-06f,
                                                    -6.2528848e-06f,
                                                    1.8367533e-06f,
                                                    -1.8282373e-06f,
                                                    -1.8727261e-06f,
                                                    2.1102853e-06f,
                                                    4.031832e-06f,
                                                    -3.1264424e-06f,
                                                    2.6363548e-06f,
                                                    4.7027816e-06f,
                                                    -3.9489655e-06f,
                                                    5.376559e-07f,
                                                    -3.375028e-06f,
                                                    -6.3019756e-06f,
                                                    0.0f};
alignas(64) inline constexpr float kLog10Values[32] = {
    0.0f,           0.020851135f,  0.03532791f,  0.042751312f,  0.057991028f, 0.06978226f,
    0.081905365f,   0.09017563f,   0.102890015f, 0.11157608f,   0.124938965f, 0.1340828f,
    0.14342117f,    0.15296936f,   0.16272736f,  0.17271042f,   -0.11809921f, -0.11289978f,
    -0.102306366f,  -0.09690857f,  -0.08591461f, -0.08031082f,  -0.06888199f, -0.06305313f,
    -0.051151276f,  -0.045078278f, -0.03891754f, -0.032669067f, -0.02632904f, -0.019893646f,
    -0.0133628845f, 0.0f};
alignas(64) inline constexpr float kLog10Lows[32] = {0.0f,
                                                     -9.962807e-07f,
                                                     5.096479e-08f,
                                                     6.681651e-07f,
                                                     9.1914563e-07f,
                                                     1.2146272e-06f,
                                                     -1.2606072e-06f,
                                                     1.001687e-06f,
                                                     -1.4187832e-06f,
                                                     -1.3052719e-06f,
                                                     -2.2823545e-07f,
                                                     -6.781413e-07f,
                                                     9.692066e-07f,
                                                     -1.900143e-06f,
                                                     -5.845933e-08f,
                                                     1.0997031e-06f,
                                                     -9.943151e-08f,
                                                     1.6618812e-06f,
                                                     1.3210721e-06f,
                                                     -1.4436721e-06f,
                                                     -1.6890187e-08f,
                                                     7.034461e-08f,
                                                     6.9911755e-07f,
                                                     1.3853564e-06f,
                                                     -1.2468126e-06f,
                                                     -9.71473e-08f,
                                                     -5.2452646e-07f,
                                                     -4.9370556e-08f,
                                                     1.0180499e-07f,
                                                     -1.1824767e-06f,
                                                     -1.0770365e-06f,
                                                     0.0f};

// Powers: inverses of m of so few bits that m inverse - 1 is exact, for 32 intervals of m from the
// number whose bits are kPowFirst on; and minus their logarithms in two parts, the first of which
// is on a grid that exponents times log 2 can be added to. The one around 1 has the inverse 1.
inline constexpr std::int32_t kPowFirst = 0x3f3e0000;
alignas(64) inline constexpr float kPowInverses[32] = {
    1.328125f, 1.3125f,  1.28125f,  1.25f,      1.234375f,  1.203125f,  1.1875f,    1.15625f,
    1.140625f, 1.125f,   1.109375f, 1.078125f,  1.0625f,    1.046875f,  1.03125f,   1.015625f,
    1.0f,      0.96875f, 0.9375f,   0.9140625f, 0.890625f,  0.859375f,  0.84375f,   0.8203125f,
    0.796875f, 0.78125f, 0.765625f, 0.7421875f, 0.7265625f, 0.7109375f, 0.6953125f, 0.6796875f};
alignas(64) inline constexpr float kPowLogs[32] = {
    -0.2837677f,  -0.27192688f,  -0.24783325f,  -0.22314453f, -0.21057129f, -0.18492126f,
    -0.17184448f, -0.14518738f,  -0.13157654f,  -0.11778259f, -0.10379028f, -0.07522583f,
    -0.06062317f, -0.045806885f, -0.030776978f, -0.01550293f, 0.0f,         0.03175354f,
    0.06454468f,  0.08985901f,   0.11582947f,   0.1515503f,   0.16990662f,  0.19807434f,
    0.22705078f,  0.24685669f,   0.26705933f,   0.29815674f,  0.3194275f,   0.34117126f,
    0.36338806f,  0.38612366f};
alignas(64) inline constexpr float kPowLogLows[32] = {-4.7293534e-07f,
                                                      -6.8356007e-06f,
                                                      -2.9119515e-06f,
                                                      9.799357e-07f,
                                                      6.519955e-06f,
                                                      -1.0738456e-06f,
                                                      -5.7745046e-06f,
                                                      5.368085e-06f,
                                                      1.8029722e-07f,
                                                      -4.4288294e-07f,
                                                      -6.5104787e-06f,
                                                      2.4088406e-06f,
                                                      -1.4528712e-06f,
                                                      -2.6512657e-06f,
                                                      5.3188724e-06f,
                                                      -1.2568485e-06f,
                                                      0.0f,
                                                      -4.8417246e-06f,
                                                      -6.156597e-06f,
                                                      -2.6796672e-06f,
                                                      2.3477517e-06f,
                                                      -3.9484155e-07f,
                                                      -7.5794155e-06f,
                                                      -4.4270582e-06f,
                                                      6.669385e-06f,
                                                      3.3884785e-06f,
                                                      3.459077e-06f,
                                                      -3.3659621e-06f,
                                                      3.280532e-06f,
                                                      -5.0724566e-07f,
                                                      5.832664e-06f,
                                                      -1.5119615e-06f};
// 2^(k / 32), less k in the bits that a whole number with k as its low ones adds, and the logarithm
// of what that lacks. A step is log 2 / 32 in two parts.
inline constexpr float kPowSteps = 46.16624f, kPowStep = 0.02166085f, kPowStepLow = -5.9520444e-11f;
alignas(64) inline constexpr float kPowBits[32] = {
    1.0f,        0.9953236f,  0.99088687f, 0.98669523f, 0.9827539f, 0.9790684f, 0.9756443f,
    0.97248745f, 0.96960354f, 0.9669987f,  0.9646789f,  0.9626505f, 0.9609198f, 0.95949334f,
    0.9583778f,  0.95758f,    0.95710677f, 0.9569654f,  0.9571631f, 0.9577072f, 0.9586054f,
    0.95986545f, 0.96149516f, 0.96350276f, 0.9658964f,  0.9686847f, 0.9718761f, 0.97547954f,
    0.97950405f, 0.98395884f, 0.9888533f,  0.9941971f};
alignas(64) inline constexpr float kPowRests[32] = {0.0f,
                                                    -4.708458e-08f,
                                                    4.628547e-08f,
                                                    -5.560423e-08f,
                                                    -1.19921575e-08f,
                                                    -4.8776066e-08f,
                                                    4.729782e-08f,
                                                    -3.4814427e-08f,
                                                    3.193418e-08f,
                                                    -2.6886665e-08f,
                                                    3.6210572e-08f,
                                                    1.118421e-09f,
                                                    -3.0990723e-08f,
                                                    -2.6383011e-08f,
                                                    -7.475213e-09f,
                                                    -4.2456357e-08f,
                                                    1.7114271e-08f,
                                                    2.3001967e-08f,
                                                    -3.0476834e-08f,
                                                    -1.6538538e-08f,
                                                    5.233334e-09f,
                                                    -3.5920646e-08f,
                                                    6.1075918e-09f,
                                                    -3.1140544e-08f,
                                                    -1.4719606e-08f,
                                                    -2.8218102e-08f,
                                                    -5.258795e-09f,
                                                    -6.3603873e-09f,
                                                    -6.1282597e-09f,
                                                    -2.4880409e-08f,
                                                    5.1406093e-09f,
                                                    -8.697267e-09f};
// A quarter of 2^(-k / 32), plus k in those bits, and the logarithm of what that lacks.
alignas(64) inline constexpr float kPowDownBits[32] = {
    0.25f,       0.24854927f, 0.24721332f, 0.24598971f, 0.24487601f, 0.24386989f, 0.24296902f,
    0.24217117f, 0.2414741f,  0.24087569f, 0.24037379f, 0.23996636f, 0.23965135f, 0.2394268f,
    0.23929077f, 0.23924135f, 0.23927669f, 0.239395f,   0.23959444f, 0.23987333f, 0.24022995f,
    0.24066262f, 0.24116972f, 0.24174967f, 0.24240088f, 0.24312186f, 0.24391107f, 0.2447671f,
    0.24568847f, 0.24667381f, 0.24772172f, 0.2488309f};
alignas(64) inline constexpr float kPowDownRests[32] = {0.0f,
                                                        -8.697267e-09f,
                                                        5.1406093e-09f,
                                                        -2.4880409e-08f,
                                                        -6.1282597e-09f,
                                                        -6.3603873e-09f,
                                                        -5.258795e-09f,
                                                        -2.8218102e-08f,
                                                        -1.4719606e-08f,
                                                        -3.1140544e-08f,
                                                        6.1075918e-09f,
                                                        -3.5920646e-08f,
                                                        5.233334e-09f,
                                                        -1.6538538e-08f,
                                                        -3.0476834e-08f,
                                                        2.3001967e-08f,
                                                        1.7114271e-08f,
                                                        -4.2456357e-08f,
                                                        -7.475213e-09f,
                                                        -2.6383011e-08f,
                                                        -3.0990723e-08f,
                                                        1.118421e-09f,
                                                        3.6210572e-08f,
                                                        -2.6886665e-08f,
                                                        3.193418e-08f,
                                                        -3.4814427e-08f,
                                                        4.729782e-08f,
                                                        -4.8776066e-08f,
                                                        -1.19921575e-08f,
                                                        -5.560423e-08f,
                                                        4.628547e-08f,
                                                        -4.708458e-08f};

// tan(k pi / 16) as p / q within 2^-37, the larger of the two beside 1.
alignas(64) inline constexpr float kTanNumerators[16] = {
    -0.0f, 0.19926286f, 0.4143183f, 0.6682752f, 1.0f, 1.0001445f,  1.0002528f,  1.001762f,
    1.0f,  1.001762f,   1.0002528f, 1.0001445f, 1.0f, -0.6682752f, -0.4143183f, -0.19926286f};
alignas(64) inline constexpr float kTanDenominators[16] = {
    1.0f, 1.001762f,    1.0002528f,  1.0001445f,  1.0f,  0.6682752f, 0.4143183f, 0.19926286f,
    0.0f, -0.19926286f, -0.4143183f, -0.6682752f, -1.0f, 1.0001445f, 1.0002528f, 1.001762f};

}  // namespace
}  // namespace tw::TW_ISA_NAME
#endif
