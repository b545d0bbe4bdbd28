"""What core/cuda/driver/driver.inc declares is what the vendor's headers declare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

# A parameter is alike where it has the same size and is a pointer, or a number, on both sides.
PROGRAM = r"""
#include <cuda.h>
#include <nvrtc.h>
#include <type_traits>
#include "core/cuda/driver/driver.h"

template <class A, class B> constexpr bool alike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class Theirs, class Ours> struct Same;
template <class R, class... A, class S, class... B> struct Same<R (*)(A...), S (*)(B...)> {
  static_assert(sizeof...(A) == sizeof...(B), "another number of parameters");
  static constexpr bool value = (alike<A, B> && ...) && alike<R, S>;
};

namespace tw::cuda {
#define TW_DRIVER(name, symbol, ...) \
  static_assert(Same<decltype(&::symbol), decltype(Driver::name)>::value, #symbol);
#define TW_COMPILER(name, symbol, ...) \
  static_assert(Same<decltype(&::symbol), decltype(Compiler::name)>::value, #symbol);
#include "core/cuda/driver/driver.inc"

static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(attribute::multiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(attribute::shared_bytes_per_block ==
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(attribute::capability_major == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(attribute::capability_minor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(attribute::function_shared_limit ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
static_assert(alignof(TensorMap) % alignof(CUtensorMap) == 0);
static_assert(tensor_map::float16 == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
static_assert(tensor_map::bfloat16 == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(tensor_map::rows_of_128_turned == CU_TENSOR_MAP_SWIZZLE_128B);
static_assert(tensor_map::fetch_256 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
static_assert(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kNotReady == CUDA_ERROR_NOT_READY);
static_assert(kRelaxedCapture == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(kUntimed == CU_EVENT_DISABLE_TIMING);
static_assert(kPointerKind == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(kPointerDevice == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(kHostIsPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(kHostIsMapped == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(kNonBlocking == CU_STREAM_NON_BLOCKING);
}  // namespace tw::cuda
"""


def headers() -> Path:
    for folder in map(Path, sys.path):
        for wheel in ("cu13", "cuda_runtime"):
            found = folder / "nvidia" / wheel / "include"
            if (found / "cuda.h").exists() and (found / "nvrtc.h").exists():
                return found
    pytest.skip("the wheels nvidia-cuda-runtime and nvidia-cuda-nvrtc are not installed")


def test_declarations_are_the_headers(tmp_path: Path):
    program = tmp_path / "headers.cpp"
    program.write_text(PROGRAM)
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{ROOT}", f"-I{headers()}", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
