// Functions of float and double by one name, for kernels that are compiled in either.
#include "prelude.cuh"

TW_DEVICE float exponential(float x) { return ::expf(x); }
TW_DEVICE double exponential(double x) { return ::exp(x); }
TW_DEVICE float logarithm(float x) { return ::logf(x); }
TW_DEVICE double logarithm(double x) { return ::log(x); }
TW_DEVICE float tangent(float x) { return ::tanhf(x); }
TW_DEVICE double tangent(double x) { return ::tanh(x); }
