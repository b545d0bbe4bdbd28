"""Kernels compile for every generation of GPUs with the vendor's own compiler, without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from cases import RECORDS
from cases.check import tensors
from cases.ops.pointwise import OF_COMPLEX
from checkout import ROOT

import tilewright as tw

pytestmark = pytest.mark.tier("all")

CAPABILITIES = (80, 90, 100)
# A multiprocessor has 65,536 registers: one block of 256 threads with up to 255 each, two with 128.
# What does not fit is spilled to memory.
MOST_REGISTERS = {
    "matmul_tensor": 255,
    "matmul_parts": 255,
    "matmul_hopper": 168,
    "matmul_split_groups": 168,
    "matmul_flagged": 192,
    "matmul_registers": 192,
    "attention_keys_backward": 224,  # two results and a tile of scores
    # Blocks of 128 threads.
    "attention_tensor": 255,
    "attention_tensor_queries_backward": 255,
    "attention_tensor_keys_backward": 255,
}
OTHERS_REGISTERS, MOST_SPILLED_BYTES = 128, 64


# Rungs for 16 bits alone.
HALVES = ("tensor", "hopper")
# Rungs that complex numbers take.
COMPLEX = ("naive", "tiled", "registers")


def nvrtc() -> Path:
    for folder in map(Path, sys.path):
        for wheel in ("cu13", "cuda_nvrtc"):
            for found in sorted((folder / "nvidia" / wheel / "lib").glob("libnvrtc.so.1[0-9]")):
                return found
    pytest.skip("the wheel nvidia-cuda-nvrtc is not installed")


def sources() -> list[tuple[str, str, str]]:
    """Every kernel that the records of some types take, functions of complex numbers, rungs."""
    rng = np.random.default_rng(0)
    for case in RECORDS:
        for dtype in ("float32", "bfloat16", "complex64"):
            if dtype not in case.tolerance:
                continue
            try:
                args = tensors(case.arguments(rng, dtype)[0], dtype)
                case.call(*(x.to("cuda") for x in args), **case.variants[0])
            except (NotImplementedError, IndexError):
                continue  # tests/cuda/test_gpu_records.py says which
    z = tw.full((2, 3), 0.5 + 0.25j, device="cuda")
    for name in OF_COMPLEX:
        getattr(tw, name)(*[z] * (2 if name == "pow" else 1))
    for rung in tw.kernels.names("matmul", "cuda"):
        dtypes = (tw.bfloat16, tw.float16) if rung in HALVES else (tw.float32,)
        dtypes += (tw.complex64, tw.complex128) if rung in COMPLEX else ()
        with tw.kernels.use(matmul=rung):
            for dtype in dtypes:
                for shape in ((40, 40), (600, 600), (9, 1104)):
                    if shape[1] < {"split": 512, "split_k": 256}.get(rung, 0):
                        continue
                    if rung == "split_k" and shape[0] > 40:
                        continue  # many tiles
                    x = tw.ones(shape, dtype=dtype, device="cuda")
                    x @ x.T
    for channels in (70, 130):  # the largest blocks of convolutions
        w = tw.ones((channels, 40, 3, 3), device="cuda", requires_grad=True)
        tw.nn.functional.conv2d(tw.ones((1, 40, 23, 25), device="cuda"), w).sum().backward()
    # All of products and attention, whose registers are scarce; of each other kernel the first and
    # every third, which differ in types and widths.
    variants: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for source in map(tuple, tw._core._gpu_sources(0)):
        variants.setdefault(source[:2], []).append(source)
    return [
        source
        for (file, _), each in variants.items()
        for source in each[:: 1 if file.startswith(("matmul/", "attention")) else 3]
    ]


# Asks for the kernels in a process that ends before they have run: 40 seconds of the emulator.
ASK = """
import json, os, conftest, test_gpu_compile
print(json.dumps(test_gpu_compile.sources()), flush=True)
os._exit(0)
"""
# One process for all of them: the emulator is this one's compiler. The first of a file compiles for
# each generation, the others for one in turn; and where that takes more than half of the registers
# or spills any, for Hopper as well. (Of 224 kernels that were compiled for two, those with less
# than half took at most 32 registers more on the other, and 20 bytes of spills.)
PROGRAM = """
import json, re, sys, tilewright as tw
task = json.load(sys.stdin)
files = set()
for i, (file, kernel, settings) in enumerate(task["asked"]):
    everywhere = file not in files
    files.add(file)
    capabilities = task["capabilities"]
    if file in task["hopper"]:
        capabilities = [90]
    elif not everywhere:
        capabilities = list(dict.fromkeys([capabilities[i % len(capabilities)], 90]))
    for capability in capabilities:
        cubin, log = tw._core._gpu_compile(file, settings, capability)
        found = [(k, int(s), int(r)) for k, s, r in re.findall(task["figures"], log, re.S)]
        of = [file, kernel, settings, capability]
        print(json.dumps([*of, len(cubin), cubin[:4].hex(), log, found]))
        most = [task["most"].get(k, task["others_most"]) for k, _, _ in found]
        if not everywhere and all(s == 0 and 2 * r <= m for (_, s, r), m in zip(found, most)):
            break
"""
FIGURES = r"entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers"
OF_HOPPER = ("matmul/kernels/hopper.cuh", "matmul/kernels/split_groups.cuh")


def output_of(program: str, text: str = "", variables: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=text, capture_output=True, text=True, check=False, cwd=ROOT / "tests",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), **(variables or {})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif(not tw.cuda.is_available(), reason="no GPU, and no emulator of one")
def test_kernels_compile_within_their_budgets():
    library = nvrtc()
    asked = json.loads(output_of(ASK))
    task = {
        "asked": asked, "capabilities": CAPABILITIES, "hopper": OF_HOPPER, "figures": FIGURES,
        "most": MOST_REGISTERS, "others_most": OTHERS_REGISTERS,
    }  # fmt: skip
    variables = {"TILEWRIGHT_NVRTC": "", "LD_LIBRARY_PATH": str(library.parent)}
    made = [
        json.loads(line) for line in output_of(PROGRAM, json.dumps(task), variables).splitlines()
    ]
    assert {(file, kernel) for file, kernel, *_ in made} == {(f, k) for f, k, _ in asked}
    assert len({file for file, *_ in made}) >= 8
    generations = {(file, capability) for file, _, _, capability, *_ in made}
    assert len(generations) >= len(CAPABILITIES) * len({f for f, _ in generations} - {*OF_HOPPER})
    assert not [log for *_, log, _ in made if "serialized" in log]
    for file, _, settings, capability, size, magic, log, found in made:
        assert size > 500, file
        assert magic == b"\x7fELF".hex(), file
        assert found, (file, log)
        for kernel, spilled, registers in found:
            note = (file, kernel, capability, settings)
            assert registers <= MOST_REGISTERS.get(kernel, OTHERS_REGISTERS), note
            assert spilled <= MOST_SPILLED_BYTES, note


# What the vendor's compiler makes of a rung: settings, and how many instructions of a kind.
INSTRUCTIONS = {
    # Two by four parts of a warp, six products, twice 16 terms of a tile of 32.
    "bf16x6": (
        "matmul/kernels/parts.cuh", 80,
        {"TYPE": "float", "PARTS": 3, "A_LINES": 1, "B_LINES": 0},
        {"HMMA.16816.F32.BF16": 2 * 4 * 6 * 2},
    ),
    # Four by eight parts of a warp, twice 32 bytes of a tile's 64; tiles are copied in four places.
    "tensor": (
        "matmul/kernels/tensor.cuh", 80,
        {"TYPE": "bfloat16", "KIND": 0, "SIDE": 128, "A_LINES": 1, "B_LINES": 0, "A_WHOLE": 1,
         "B_WHOLE": 1},
        {"HMMA.16816.F32.BF16": 4 * 8 * 2, "LDSM.16.M88.4": 8, "LDSM.16.MT88.4": 8,
         "LDGSTS.E.BYPASS.128": 4 * 8},
    ),
    "tf32": (
        "matmul/kernels/tensor.cuh", 80,
        {"TYPE": "float", "KIND": 2, "SIDE": 128, "A_LINES": 1, "B_LINES": 1, "A_WHOLE": 1,
         "B_WHOLE": 0},
        {"HMMA.1688.F32.TF32": 4 * 8 * 2, "LDSM.16.M88.4": 16},
    ),
    # Four times 16 terms of a tile; the first tile, the others and a last one are apart.
    "hopper": (
        "matmul/kernels/hopper.cuh", 90,
        {"TYPE": "bfloat16", "KIND": 0, "WIDE": 256, "STAGES": 4, "A_LINES": 1, "B_LINES": 0},
        {"HGMMA.64x256x16.F32.BF16": 4 * 3, "UTMALDG.3D": 7 * 5, "USETMAXREG": 2},
    ),
    # Four times 16 terms of a tile, three products.
    "split on warpgroups": (
        "matmul/kernels/split_groups.cuh", 90,
        {"TYPE": "float", "A_LINES": 1, "B_LINES": 1},
        {"HGMMA.64x128x16.F32": 4 * 3, "USETMAXREG": 2},
    ),
    # One or two times 16 rows of a warp, two products with eight times 8 keys or columns of four
    # times 16 terms; two for the first tile's queries, keys and values each.
    "attention": (
        "attention/forward.cuh", 80,
        {"IN": "bfloat16", "TYPE": "float", "KIND": 0, "MASK": 0, "SIZE": 64, "VALUES": 64,
         "HIGH": 2},
        {"HMMA.16816.F32.BF16": 2 * 2 * 8 * 4, "LDSM.16.M88.4": 2 * 4 + 4 * 4,
         "LDSM.16.MT88.4": 4 * 4, "LDGSTS.E.BYPASS.128": 8 + 2 * 2 * 4},
    ),
    # Three products by queries, four by keys.
    "attention backward": (
        "attention/backward.cuh", 90,
        {"IN": "half", "TYPE": "float", "KIND": 1, "MASK": 0, "SIZE": 128, "VALUES": 64,
         "HIGH": 1},
        {"HMMA.16816.F32": 2 * (64 + 32) + 2 * 64 + 32},
    ),
    # Two by four parts of a warp, three products, twice 16 terms of a tile of 32.
    "split on warps": (
        "matmul/kernels/split_warps.cuh", 80,
        {"TYPE": "float", "A_LINES": 1, "B_LINES": 0},
        {"HMMA.16816.F32": 2 * 4 * 3 * 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("rung", INSTRUCTIONS)
def test_rungs_are_on_tensor_cores(rung, tmp_path: Path):
    """The instructions of tensor cores are in what the vendor's compiler made."""
    found = [Path(p) / "nvidia" / "cu13" / "bin" / "nvdisasm" for p in sys.path]
    disassembler = next((path for path in found if path.exists()), None)
    if disassembler is None:
        pytest.skip("the wheel nvidia-cuda-nvdisasm is not installed")
    library = nvrtc()
    file, capability, settings, expected = INSTRUCTIONS[rung]
    text = "".join(
        f"#define TW_{name} {value}\n" for name, value in ({"SUM": "float"} | settings).items()
    )
    program = (
        "import sys, tilewright as tw\n"
        "made = tw._core._gpu_compile(sys.argv[1], sys.argv[2], int(sys.argv[3]))\n"
        "sys.stdout.buffer.write(made[0])\n"
    )
    environment = {**os.environ, "TILEWRIGHT_NVRTC": "", "LD_LIBRARY_PATH": str(library.parent)}
    cubin = tmp_path / "kernel.cubin"
    made = subprocess.run(
        [sys.executable, "-c", program, file, text, str(capability)],
        capture_output=True, env=environment, check=True,
    )  # fmt: skip
    cubin.write_bytes(made.stdout)
    listed = subprocess.run([disassembler, cubin], capture_output=True, text=True, check=True)
    counts = {name: listed.stdout.count(name) for name in expected}
    assert counts == expected
