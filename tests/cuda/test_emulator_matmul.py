"""Bugs planted in the kernels of rungs hopper and tensor are caught by the emulator."""

from __future__ import annotations

import ctypes

import emulator
import numpy as np
import pytest
from test_emulator import PRELUDE, Emulated, expanded

pytestmark = pytest.mark.skipif(not emulator.is_wanted(), reason="the emulator is not in use")

LINES = {"TYPE": "half", "SUM": "float", "KIND": 1, "A_LINES": 1, "B_LINES": 0}
SETTINGS = {
    "hopper": LINES | {"WIDE": 128, "STAGES": 3},
    "tensor": LINES | {"SIDE": 64, "A_WHOLE": 1, "B_WHOLE": 1},
}
# Blocks, threads, bytes of shared memory.
LAUNCHES = {
    "hopper": (2, 384, 3 * ((128 + 128) * 128 + 16) + 8 * 16 * 32 * 4),
    "tensor": (4 * 3, 128, 4 * 2 * 64 * 64),
}
MOST_SHARED, SHARED_LIMIT = 227 << 10, 8


def kernel_text(rung: str) -> str:
    settings = "".join(f"#define TW_{name} {value}\n" for name, value in SETTINGS[rung].items())
    # The prelude is put before every text of these tests.
    text = settings + expanded(f"matmul/kernels/{rung}.cuh", before={PRELUDE})
    return text.replace(f"matmul_{rung}", "kernel")


class Matmul(ctypes.Structure):
    _fields_ = (
        ("sizes", ctypes.c_longlong * 3),
        ("matrices", ctypes.c_ulonglong * 3),
        ("steps", ctypes.c_longlong * 9),
        ("factors", ctypes.c_double * 2),
        ("epilogue", ctypes.c_longlong * 4),
        ("partial", ctypes.c_ulonglong),
        ("pieces", ctypes.c_longlong * 2),
    )


class Hopper(ctypes.Structure):
    _fields_ = (
        ("maps", ctypes.c_ubyte * 256),
        ("p", Matmul),
        ("batch", ctypes.c_longlong * 3),
        ("end", ctypes.c_ubyte * 40),
    )


def is_right(rung: str, text: str) -> bool:
    """Whether a kernel multiplies 200 x 264 by 264 x 136."""
    m, n, k = 200, 136, 264
    gpu = Emulated()
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype("float16") for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), "float16")
    places = []
    for matrix in (a, b, c):
        address = ctypes.c_ulonglong()
        gpu.check(gpu.library.cuMemAlloc_v2(ctypes.byref(address), matrix.nbytes))
        gpu.copy(address, matrix.ctypes.data, matrix.nbytes)
        places.append(address.value)
    # Maps lie on 128 bytes.
    room = ctypes.create_string_buffer(ctypes.sizeof(Hopper) + 128)
    parameter = Hopper.from_buffer(room, -ctypes.addressof(room) % 128)
    boxes = ((k, m, 128), (n, k, 64))
    for i, (together, rows, box_rows) in enumerate(boxes):
        numbers = ctypes.c_ulonglong * 3
        gpu.check(
            gpu.library.cuTensorMapEncodeTiled(
                ctypes.c_void_p(ctypes.addressof(parameter) + 128 * i), 6, 3,
                ctypes.c_void_p(places[i]), numbers(together, rows, 1),
                numbers(2 * together, 16), (ctypes.c_uint * 3)(64, box_rows, 1),
                (ctypes.c_uint * 3)(1, 1, 1), 0, 3, 3, 0,
            )
        )  # fmt: skip
    parameter.p.sizes[:] = m, n, k
    parameter.p.matrices[:] = places
    parameter.p.steps[:] = 0, k, 1, 0, n, 1, 0, n, 1
    parameter.p.factors[:] = 1, 0
    parameter.p.pieces[:] = 1, k
    parameter.batch[:] = 1, 0, 0
    function = gpu.function(text)
    blocks, threads, shared = LAUNCHES[rung]
    gpu.check(gpu.library.cuFuncSetAttribute(function, SHARED_LIMIT, MOST_SHARED))
    config = (ctypes.c_uint * 16)(blocks, 1, 1, threads, 1, 1, shared, 0)
    ctypes.memmove(ctypes.addressof(config) + 32, ctypes.byref(gpu.stream), 8)
    taken = parameter if rung == "hopper" else parameter.p
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(taken))
    gpu.check(gpu.library.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None))
    gpu.check(gpu.library.cuStreamSynchronize(gpu.stream))
    gpu.copy(c.ctypes.data, places[2], c.nbytes)
    exact = a.astype("float64") @ b.astype("float64")
    return bool((np.abs(c - exact) <= 2.0**-11 * np.abs(exact) + 1e-3).all())


@pytest.mark.parametrize("rung", SETTINGS)
def test_the_kernel_as_it_is_multiplies(rung):
    assert is_right(rung, kernel_text(rung))


RELEASE = "if (t > 0 && threadIdx.x % 32 == 0) arrive(&shared->empty[before]);"
BUGS = {
    "the tile is not waited for": ("wait_for_phase(&shared->full[s], ring.parity);", ""),
    "the tile is waited for with the other parity": (
        "wait_for_phase(&shared->full[s], ring.parity);",
        "wait_for_phase(&shared->full[s], ring.parity ^ 1);",
    ),
    "the stage is not waited for": ("wait_for_phase(&shared->empty[s], ring.parity ^ 1);", ""),
    "the stage is waited for with the other parity": (
        "wait_for_phase(&shared->empty[s], ring.parity ^ 1);",
        "wait_for_phase(&shared->empty[s], ring.parity);",
    ),
    "the stage is released while products read it": (
        RELEASE,
        "if (threadIdx.x % 32 == 0) arrive(&shared->empty[s]);",
    ),
    "the stage is never released": (RELEASE, ""),
    "one warp releases for all": (RELEASE, RELEASE.replace("% 32", "% 128")),
    "sums are read before they are there": ("wait_for_products<0>();", ""),
    "products are not fenced": ("fence_products();", ""),
    "products are not committed": ("commit_products();", ""),
    "fewer bytes are expected than come": ("kLeftBytes + kRightBytes);", "kLeftBytes);"),
    "the second half of a tile is not copied": (
        "box < size / kBoxSide",
        "box < size / kBoxSide / 2",
    ),
    "rows of a tile are taken as if they were not turned": ("uint64_t(1) << 62", "uint64_t(0)"),
    "the block's barriers are not there for all": (
        "publish_barriers();\n  }\n  __syncthreads();",
        "publish_barriers();\n  }",
    ),
}


WAIT = "wait_for_copies<kStages - 2>();"
BARRIER = "__syncthreads();  // the tile is there"
TENSOR_BUGS = {
    "tiles are not waited for": (WAIT, ""),
    "one tile fewer is waited for": (WAIT, "wait_for_copies<kStages - 1>();"),
    "warps do not wait for each other": (BARRIER, "__syncwarp();  //"),
    "one stage is replaced while it is read": ("copied % kStages", "(copied + 3) % kStages"),
    "sums pass through tiles that are still read": ("__syncthreads();  // nobody", "//"),
    "copies are no groups": ("commit_copies();\n  };", "};"),
    "chunks are read as if they were not turned": (
        "step * 2 + lane / 16)", "(step * 2 + lane / 16) ^ (row0 + lane % 16) / 2 % 4)",
    ),
}  # fmt: skip
PLANTED = [("hopper", bug) for bug in BUGS] + [("tensor", bug) for bug in TENSOR_BUGS]


@pytest.mark.parametrize(("rung", "bug"), PLANTED)
def test_planted_bugs_show(rung, bug):
    right, wrong = {"hopper": BUGS, "tensor": TENSOR_BUGS}[rung][bug]
    text = kernel_text(rung)
    assert right in text
    try:
        found = is_right(rung, text.replace(right, wrong))
    except RuntimeError as error:  # a launch that failed
        found = "719" not in str(error)
    assert not found


# What a lowering says of a launch, and the kernel otherwise: threads, and bytes of shared memory.
DIFFERENT = {
    "threads": ("kTensorThreads = 4 *", "kTensorThreads = 8 *", RuntimeError),
    "bytes": ("return kTensorStages * 2 * side", "return kTensorStages * side", SyntaxError),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_kernel_that_differs_from_its_launch_is_refused(what):
    right, wrong, error = DIFFERENT[what]
    text = kernel_text("tensor")
    assert right in text
    with pytest.raises(error):
        is_right("tensor", text.replace(right, wrong))
