"""Ranges of NVIDIA's tools: a stand-in for a tool's library listens as Nsight would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright as tw

# Attaches as the headers of NVTX 3 say: asks for the tables of all modules, puts its functions into
# the core's, and writes down what they get.
TOOL = r"""
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace {
using Function = void (*)();
struct Callbacks {
  std::size_t bytes;
  int (*table_of)(int module, Function*** table, unsigned* size);
};
struct Version {
  std::size_t bytes;
  std::uint32_t version, reserved;
  void (*set)(std::uint32_t);
};
int level = 0;
int push(const char* name) { std::printf("%*s%s {\n", 2 * level, "", name); return level++; }
int pop() { --level; std::printf("%*s}\n", 2 * level, ""); return level; }
void mark(const char* name) { std::printf("%*s! %s\n", 2 * level, "", name); }
}  // namespace

extern "C" int InitializeInjectionNvtx2(const void* (*exported)(std::uint32_t)) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  const auto* version = static_cast<const Version*>(exported(3));
  if (exported(0) || exported(4) || version->bytes != 24 || version->version != 3) return 0;
  version->set(3);
  const auto* callbacks = static_cast<const Callbacks*>(exported(1));
  if (callbacks->bytes != sizeof(Callbacks)) return 0;
  const unsigned sizes[] = {0, 16, 9, 15, 7, 16, 7};
  for (int module = 1; module <= 6; ++module) {
    Function** table = nullptr;
    unsigned size = 0;
    if (!callbacks->table_of(module, &table, &size) || size != sizes[module] || table[0]) return 0;
    for (unsigned i = 1; i < size; ++i)
      if (*table[i]) return 0;
    if (module != 1) continue;
    *table[2] = reinterpret_cast<Function>(mark);
    *table[9] = reinterpret_cast<Function>(push);
    *table[11] = reinterpret_cast<Function>(pop);
  }
  return callbacks->table_of(7, nullptr, nullptr) == 0;
}
"""


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvtx")
    source, library = folder / "tool.cpp", folder / "libtool.so"
    source.write_text(TOOL)
    command = ["g++", "-shared", "-fPIC", "-Wall", "-Werror", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


def run(program: str, library: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NVTX_INJECTION64_PATH": str(library)}
    return subprocess.run(
        [sys.executable, "-uc", program], env=environment,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def observed(program: str, library: Path) -> list[str]:
    done = run(program, library)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


def test_ranges_and_marks(tool: Path):
    program = (
        "import tilewright as tw\n"
        "nvtx = tw.cuda.nvtx\n"
        "assert nvtx.range_push('outer') == 0\n"
        "assert nvtx.range_push('inner') == 1\n"
        "nvtx.mark('here')\n"
        "assert nvtx.range_pop() == 1\n"
        "assert nvtx.range_pop() == 0\n"
        "try:\n"
        "    with nvtx.range('block'):\n"
        "        tw.ones((3,)) * 2\n"  # nobody asked for ops
        "        raise KeyError\n"
        "except KeyError:\n"
        "    pass\n"
        "assert nvtx.is_attached()\n"
    )
    expected = ["outer {", "  inner {", "    ! here", "  }", "}", "block {", "}"]
    assert observed(program, tool) == expected


OPS = """\
import tilewright as tw
x = tw.ones((3,), device={device!r}, requires_grad=True)
with tw.cuda.nvtx.emit():
    y = tw.exp(x)
    with tw.cuda.nvtx.emit():
        z = y.sum()
    with tw.cuda.nvtx.range("backward"):
        z.backward()
y * 2
"""


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_op_of_a_block_is_a_range(tool: Path, device: str):
    if device == "cuda" and not tw.cuda.is_available():
        pytest.skip(f"no GPU: {tw.cuda.why_unavailable()}")
    lines = observed(OPS.format(device=device), tool)
    assert lines[:2] == ["exp {", "}"]
    assert "sum {" in lines
    assert "multiply {" not in lines
    begin, end = lines.index("backward {"), len(lines) - 1
    assert end > begin + 1  # ops of the backward pass are within
    assert lines[end] == "}"
    level = 0
    for line in lines:
        level += line.endswith("{")
        level -= line.endswith("}")
        assert level >= 0
    assert level == 0


def test_without_a_tool_nothing_happens():
    program = (
        "import tilewright as tw\n"
        "nvtx = tw.cuda.nvtx\n"
        "assert (nvtx.range_push('x'), nvtx.range_pop(), nvtx.is_attached()) == (-2, -2, False)\n"
        "nvtx.mark('x')\n"
        "with nvtx.emit(), nvtx.range('y'):\n"
        "    print((tw.ones((2,)) * 2).tolist())\n"
    )
    done = run(program, "")
    assert (done.stdout, done.stderr) == ("[2.0, 2.0]\n", "")


def test_a_tool_that_does_not_start_is_told_once(tmp_path: Path):
    program = "import tilewright as tw\nfor _ in range(3):\n    tw.cuda.nvtx.range_push('x')\n"
    done = run(program, tmp_path / "nowhere.so")
    assert done.returncode == 0
    assert done.stderr.count("the tool that NVTX_INJECTION64_PATH names does not start") == 1
    assert "ranges are not shown" in done.stderr


# What core/cuda/driver/nvtx.cpp takes for granted, in the vendor's words.
FACTS = """
#include <nvtx3/nvToolsExt.h>
static_assert(NVTX_CB_MODULE_CORE == 1 && NVTX_CB_MODULE_SIZE == 7);
static_assert(NVTX_CBID_CORE_SIZE == 16 && NVTX_CBID_CUDA_SIZE == 9);
static_assert(NVTX_CBID_OPENCL_SIZE == 15 && NVTX_CBID_CUDART_SIZE == 7);
static_assert(NVTX_CBID_CORE2_SIZE == 16 && NVTX_CBID_SYNC_SIZE == 7);
static_assert(NVTX_CBID_CORE_MarkA == 2 && NVTX_CBID_CORE_RangePushA == 9);
static_assert(NVTX_CBID_CORE_RangePop == 11 && NVTX_NO_PUSH_POP_TRACKING == -2);
static_assert(NVTX_ETID_CALLBACKS == 1 && NVTX_ETID_VERSIONINFO == 3 && NVTX_VERSION == 3);
static_assert(sizeof(NvtxExportTableVersionInfo) == 24);
"""


def test_numbers_are_the_headers(tmp_path: Path):
    folders = [Path(path) / "nvidia" / "cu13" / "include" for path in sys.path]
    folders += [Path("/usr/local/cuda/include"), *Path("/usr/local").glob("cuda-*/include")]
    found = next((f for f in folders if (f / "nvtx3" / "nvToolsExt.h").exists()), None)
    if found is None:
        pytest.skip("NVTX's headers are not there (`pip install nvidia-nvtx`)")
    program = tmp_path / "facts.cpp"
    program.write_text(FACTS)
    command = ["g++", "-std=c++17", "-fsyntax-only", f"-I{found}", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
