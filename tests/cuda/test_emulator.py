"""The emulator finds what a GPU would punish: bugs that are planted in small kernels are caught."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import emulator
import pytest
from checkout import ROOT

pytestmark = pytest.mark.skipif(not emulator.is_wanted(), reason="the emulator is not in use")

KERNELS = ROOT / "core/cuda"
FOLDERS = [str(ROOT / "tests"), str(ROOT / "tests/cuda")]
FIND_THIS_FILE = f"import sys; sys.path[:0] = {FOLDERS!r}\n"
PRELUDE = "prelude.cuh"


def expanded(name: str, before: Collection[str] = ()) -> str:
    """A kernel's text with what it includes, each once, as the library expands it."""
    seen: set[Path] = set()

    def texts(name: str) -> str:
        (found,) = [ROOT / name] if (ROOT / name).exists() else KERNELS.rglob(Path(name).name)
        if found in seen:
            return ""
        seen.add(found)
        text = re.sub(r"^#pragma once\n", "", found.read_text(), flags=re.M)
        return re.sub(r'#include "([^"]*)"', lambda match: texts(match[1]), text)

    for other in before:
        texts(other)
    return texts(name)


class Emulated:
    """The stand-in driver, called as core/cuda calls it."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(emulator.build()))
        self.stream = ctypes.c_void_p()
        self.check(self.library.cuStreamCreateWithPriority(ctypes.byref(self.stream), 1, 0))

    @staticmethod
    def check(result: int) -> None:
        if result:
            raise RuntimeError(result)

    def function(self, text: str) -> ctypes.c_void_p:
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        nvrtc = self.library
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), (expanded(PRELUDE) + text).encode(), b"t", 0, None, None
        )
        status = nvrtc.nvrtcCompileProgram(program, 0, None)
        if status:
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise SyntaxError(log.value.decode())
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, code)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(nvrtc.cuModuleLoadData(ctypes.byref(module), code))
        self.check(nvrtc.cuModuleGetFunction(ctypes.byref(function), module, b"kernel"))
        return function

    def run(self, text: str, values: list[int], threads: int = 256, blocks: int = 1) -> list[int]:
        """What a kernel makes of integers; it takes their number and address."""
        data = (ctypes.c_int * len(values))(*values)
        address = ctypes.c_ulonglong()
        self.check(self.library.cuMemAlloc_v2(ctypes.byref(address), ctypes.sizeof(data)))
        self.copy(address, ctypes.addressof(data), ctypes.sizeof(data))
        parameter = (ctypes.c_longlong * 2)(len(values), address.value)
        config = (ctypes.c_uint * 16)(blocks, 1, 1, threads, 1, 1, 0, 0)
        ctypes.memmove(ctypes.addressof(config) + 32, ctypes.byref(self.stream), 8)
        function = self.function(f"#define TW_THREADS {threads}\n{text}")
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(parameter))
        self.check(self.library.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None))
        self.check(self.library.cuStreamSynchronize(self.stream))
        self.copy(ctypes.addressof(data), address, ctypes.sizeof(data))
        return list(data)

    def copy(self, to, source, size: int) -> None:
        to, source = (getattr(x, "value", x) for x in (to, source))
        self.check(
            self.library.cuMemcpyAsync(
                ctypes.c_ulonglong(to),
                ctypes.c_ulonglong(source),
                ctypes.c_size_t(size),
                self.stream,
            )
        )


HEAD = (
    "#ifndef TW_THREADS\n#define TW_THREADS 256\n#endif\nstruct P { int64_t n; int* x; };\n"
    "TW_KERNEL(kernel, P, TW_THREADS) {\n  const int i = threadIdx.x;\n"
)

# Each element becomes its neighbour's, through shared memory.
TURN = (
    HEAD
    + """  __shared__ int s[256];
  s[i] = p.x[i];
  {barrier}
  p.x[i] = s[255 - i];
}}
"""
)


def turned(barrier: str) -> str:
    return TURN.replace("{barrier}", barrier).replace("}}", "}")


@pytest.fixture(scope="module")
def gpu() -> Emulated:
    return Emulated()


def test_a_right_kernel_gives_what_it_should(gpu):
    values = list(range(256))
    assert gpu.run(turned("__syncthreads();"), values) == values[::-1]


def test_a_missing_barrier_shows(gpu):
    values = list(range(256))
    assert gpu.run(turned(""), values) != values[::-1]


def test_a_warp_s_barrier_is_none_of_the_block(gpu):
    values = list(range(256))
    assert gpu.run(turned("__syncwarp();"), values) != values[::-1]


def test_a_barrier_in_divergent_code_is_refused(gpu):
    text = (
        HEAD
        + """
      if (i < 100) { __syncthreads(); p.x[i] = 1; }
      else { __syncwarp(); __shfl_xor_sync(0xffffffffu, i, 1); }
    }
    """
    )
    with pytest.raises(RuntimeError, match="719"):
        Emulated().run(text, [0] * 256)


SUM = (
    HEAD
    + """  int v = p.x[i];
  for (int bits = 16; bits > 0; bits /= 2) v += __shfl_xor_sync({mask}, v, bits);
  {guard} p.x[i] = v;
}}
"""
)


def test_lanes_exchange(gpu):
    right = SUM.replace("{mask}", "0xffffffffu").replace("{guard}", "").replace("}}", "}")
    assert gpu.run(right, [1] * 64, threads=64) == [32] * 64


def test_a_lane_that_takes_no_part_gives_nothing(gpu):
    text = HEAD + "  if (i == 3) return;\n  p.x[i] = __shfl_sync(0xffffffffu, p.x[i], 3);\n}\n"
    got = gpu.run(text, list(range(32)), threads=32)
    assert got[0] != 3
    assert got[5] != 3


def test_shared_memory_holds_nothing_of_the_block_before(gpu):
    text = (
        HEAD
        + """
      __shared__ int s[256];
      if (blockIdx.x == 0) s[i] = 7;
      __syncthreads();
      if (blockIdx.x == 1) p.x[i] = s[i];
    }
    """
    )
    assert 7 not in gpu.run(text, [0] * 256, blocks=2)


# Each thread's four numbers through shared memory, by a copy that goes on beside the arithmetic.
COPY = (
    HEAD
    + """  __shared__ __attribute__((aligned(16))) int s[2][64][4];
  s[0][i % 64][0] = 0;
  copy_async<16>(s[0][i], p.x + 4 * i, 16);
  commit_copies();
  copy_async<16>(s[1][i], p.x + 4 * i, {valid});
  commit_copies();
  {wait}
  {barrier}
  for (int k = 0; k < 4; ++k) p.x[4 * i + k] = s[{which}][63 - i][k];
}}
"""
)


def copied(wait: str = "wait_for_copies<0>();", which: int = 1, valid: int = 16,
           barrier: str = "__syncthreads();") -> str:  # fmt: skip
    values = {"wait": wait, "which": which, "valid": valid, "barrier": barrier}
    text = COPY.replace("}}", "}")
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def test_copies_arrive_when_they_were_waited_for(gpu):
    values = list(range(256))
    turned_by_fours = [values[4 * (63 - i) + k] for i in range(64) for k in range(4)]
    assert gpu.run(copied(), values, threads=64) == turned_by_fours
    assert gpu.run(copied("wait_for_copies<1>();", 0), values, threads=64) == turned_by_fours
    # What is beyond the valid bytes is zero, and is not read.
    half = gpu.run(copied(valid=8), values, threads=64)
    assert half[:4] == [*values[252:254], 0, 0]


def test_a_copy_s_missing_wait_shows(gpu):
    values = list(range(256))
    right = gpu.run(copied(), values, threads=64)
    assert gpu.run(copied(""), values, threads=64) != right
    assert gpu.run(copied("wait_for_copies<1>();"), values, threads=64) != right
    assert gpu.run(copied(barrier=""), values, threads=64) != right


def test_a_copy_to_what_is_still_read_shows(gpu):
    text = (
        HEAD
        + """  __shared__ __attribute__((aligned(16))) int s[64][4];
      copy_async<16>(s[i], p.x + 4 * i, 16);
      commit_copies();
      wait_for_copies<0>();
      __syncthreads();
      const int seen = s[63 - i][0];
      {barrier}
      copy_async<16>(s[i], p.x + 4 * i, 16);
      commit_copies();
      wait_for_copies<0>();
      __syncthreads();
      p.x[4 * i] = seen;
    }
    """
    )
    values = list(range(256))
    expected = [values[4 * (63 - i)] for i in range(64)]
    right = text.replace("{barrier}", "__syncthreads();")
    assert gpu.run(right, values, threads=64)[::4] == expected
    assert gpu.run(text.replace("{barrier}", "__syncwarp();"), values, threads=64)[::4] != expected


def test_a_copy_that_is_not_on_its_bytes_is_refused(gpu):
    body = """  __shared__ __attribute__((aligned(16))) int s[64][4];
  copy_async<16>(s[i], p.x + {}, 16);
  commit_copies();
  wait_for_copies<0>();
}}
"""
    gpu.run(HEAD + body.format("4 * i"), [0] * 256, threads=64)
    with pytest.raises(RuntimeError, match="719"):
        Emulated().run(HEAD + body.format("i"), [0] * 256, threads=64)


def outcome(body: str) -> int:
    """How a process ends that runs a kernel whose body is given."""
    program = (
        f"{FIND_THIS_FILE}"
        "from test_emulator import Emulated, HEAD\n"
        f"Emulated().run(HEAD + {body!r}, [0] * 256)\n"
    )
    environment = {**os.environ, "PYTHONPATH": ""}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=False
    ).returncode


class Streams:
    """Two streams, a number on the GPU, and steps that add to it or double it."""

    def __init__(self) -> None:
        self.gpu = Emulated()
        self.library, self.check = self.gpu.library, self.gpu.check
        self.streams = [self.new(self.library.cuStreamCreateWithPriority, 1, 0) for _ in range(2)]
        self.number = ctypes.c_ulonglong()
        self.check(self.library.cuMemAlloc_v2(ctypes.byref(self.number), 4))
        self.set(1, self.streams[0])
        self.synchronize(0)
        body = "struct P {{ int* x; }};\nTW_KERNEL(kernel, P, 1) {{ *p.x = *p.x {}; }}\n"
        self.kernels = {step: self.gpu.function(body.format(step)) for step in ("+ 1", "* 2")}

    def new(self, create, *options) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self.check(create(ctypes.byref(made), *options))
        return made

    def copy(self, to: int, source: int, stream: ctypes.c_void_p) -> None:
        size = ctypes.c_size_t(4)
        copy = self.library.cuMemcpyAsync
        self.check(copy(ctypes.c_ulonglong(to), ctypes.c_ulonglong(source), size, stream))

    def set(self, value: int, stream: ctypes.c_void_p) -> None:
        data = ctypes.c_int(value)
        self.copy(self.number.value, ctypes.addressof(data), stream)
        data.value = -1  # read before the call returned

    def step(self, what: str, stream: int) -> None:
        parameter = (ctypes.c_longlong * 1)(self.number.value)
        config = (ctypes.c_uint * 16)(1, 1, 1, 1, 1, 1, 0, 0)
        ctypes.memmove(ctypes.addressof(config) + 32, ctypes.byref(self.streams[stream]), 8)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(parameter))
        launch = self.library.cuLaunchKernelEx
        self.check(launch(ctypes.byref(config), self.kernels[what], pointers, None))

    def event(self, flags: int = 0) -> ctypes.c_void_p:
        return self.new(self.library.cuEventCreate, flags)

    def record(self, event: ctypes.c_void_p, stream: int) -> None:
        self.check(self.library.cuEventRecord(event, self.streams[stream]))

    def wait(self, stream: int, event: ctypes.c_void_p) -> None:
        self.check(self.library.cuStreamWaitEvent(self.streams[stream], event, 0))

    def synchronize(self, stream: int) -> None:
        self.check(self.library.cuStreamSynchronize(self.streams[stream]))

    def read(self, stream: int) -> int:
        data = ctypes.c_int()
        self.copy(ctypes.addressof(data), self.number.value, self.streams[stream])
        return data.value


def test_streams_are_ordered_by_events():
    s = Streams()
    event = s.event()
    s.step("+ 1", 0)
    s.record(event, 0)
    s.wait(1, event)
    s.step("* 2", 1)
    assert s.read(1) == 4


def test_a_missing_wait_shows():
    s = Streams()
    s.step("+ 1", 0)
    s.step("* 2", 1)
    assert s.read(1) == 2
    assert s.read(0) == 3


def test_an_event_stands_for_what_was_before_it():
    s = Streams()
    event = s.event()
    s.record(event, 0)
    s.step("+ 1", 0)
    s.wait(1, event)
    s.record(event, 0)  # the wait was for the recording before
    s.step("* 2", 1)
    assert s.read(1) == 2


def test_a_program_that_asks_is_answered_in_the_end():
    s = Streams()
    event = s.event()
    s.step("+ 1", 0)
    s.record(event, 0)
    answers = [s.library.cuEventQuery(event) for _ in range(4)]
    assert answers[0] == 600
    assert answers[-1] == 0
    s.step("+ 1", 0)
    answers = [s.library.cuStreamQuery(s.streams[0]) for _ in range(4)]
    assert (answers[0], answers[-1]) == (600, 0)
    assert s.read(1) == 3


def test_time_between_events():
    s = Streams()
    begin, end, untimed = s.event(), s.event(), s.event(2)
    passed = ctypes.c_float(-1)
    for event in (begin, end, untimed):
        s.record(event, 0)
    elapsed = s.library.cuEventElapsedTime
    assert elapsed(ctypes.byref(passed), begin, end) == 600
    s.synchronize(0)
    assert elapsed(ctypes.byref(passed), begin, end) == 0
    assert passed.value >= 0
    assert elapsed(ctypes.byref(passed), begin, untimed) == 1


def test_pinned_memory_is_read_and_written_late():
    s = Streams()
    pinned = s.new(s.library.cuMemHostAlloc, ctypes.c_size_t(4), 0)
    value = ctypes.c_int.from_address(pinned.value)
    value.value = 5
    s.copy(s.number.value, pinned.value, s.streams[0])
    value.value = 7  # too early: the copy has not read it
    s.step("+ 1", 0)
    s.copy(pinned.value, s.number.value, s.streams[0])
    assert value.value == 7
    s.synchronize(0)
    assert value.value == 8


def test_what_an_address_is():
    s = Streams()
    pinned = s.new(s.library.cuMemHostAlloc, ctypes.c_size_t(4), 0)
    kind, number = ctypes.c_uint(), ctypes.c_int(-1)
    ask = s.library.cuPointerGetAttribute
    assert ask(ctypes.byref(kind), 2, s.number) == 0
    assert kind.value == 2
    assert ask(ctypes.byref(number), 9, s.number) == 0
    assert number.value == 0
    assert ask(ctypes.byref(kind), 2, ctypes.c_ulonglong(pinned.value)) == 0
    assert kind.value == 1
    own = ctypes.c_int()
    assert ask(ctypes.byref(kind), 2, ctypes.c_ulonglong(ctypes.addressof(own))) == 1


def test_pinned_memory_that_was_given_back_is_a_fault():
    program = (
        f"{FIND_THIS_FILE}import ctypes\n"
        "from test_emulator import Streams\n"
        "s = Streams()\n"
        "pinned = s.new(s.library.cuMemHostAlloc, ctypes.c_size_t(4), 0)\n"
        "s.copy(s.number.value, pinned.value, s.streams[0])\n"
        "s.check(s.library.cuMemFreeHost(pinned))\n"
        "s.synchronize(0)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode < 0


def test_writing_past_the_end_is_a_fault():
    assert outcome("p.x[i] = 1;\n}\n") == 0
    assert outcome("p.x[i + 4096] = 1;\n}\n") < 0


def test_the_program_cannot_touch_the_gpu_s_memory():
    program = (
        f"{FIND_THIS_FILE}import ctypes\n"
        "from test_emulator import Emulated\n"
        "address = ctypes.c_ulonglong()\n"
        "Emulated().library.cuMemAlloc_v2(ctypes.byref(address), 4096)\n"
        "ctypes.memset(address.value, 0, 8)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode < 0
