// The ladders of convolutions on the CPU solve the problem that all devices know.
#pragma once
#include "core/ops/convolution_problem.h"
