// Elementary functions over vectors: what the formulas of problems/pointwise.inc may call. Each is
// given for Vec<float> and Vec<double>, and for whole and complex numbers where that has a meaning.
#pragma once
#include "core/cpu/math/activation.h"
#include "core/cpu/math/basic.h"
#include "core/cpu/math/error_function.h"
#include "core/cpu/math/exponential.h"
#include "core/cpu/math/gamma.h"
#include "core/cpu/math/gelu.h"
#include "core/cpu/math/hyperbolic.h"
#include "core/cpu/math/integer.h"
#include "core/cpu/math/inverse_trigonometric.h"
#include "core/cpu/math/logarithm.h"
#include "core/cpu/math/power.h"
#include "core/cpu/math/trigonometric.h"
#include "core/cpu/simd/complex.h"
