"""Random programs on the GPU and on PyTorch's CPU, in float64: values and gradients.

`--gpu-programs N` runs more of them, `--program-seed S` one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

import tilewright as tw

torch = pytest.importorskip("torch")

from programs.generator import program as program_of  # noqa: E402  (they import torch)
from programs.judge import judge  # noqa: E402
from programs.program import Program, Settings, Step, rendered  # noqa: E402

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True"),
    pytest.mark.skipif(not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" not in metafunc.fixturenames:
        return
    one = metafunc.config.getoption("program_seed")
    count = metafunc.config.getoption("gpu_programs")
    metafunc.parametrize("seed", range(count) if one is None else [one])


@contextmanager
def made_there() -> Iterator[None]:
    """New tensors are the GPU's."""
    tw.set_device("cuda")
    try:
        yield
    finally:
        tw.set_device("cpu")


def reads_on_the_host(step: Step) -> bool:
    """NumPy does not see the GPU's memory, and DLPack gives it to PyTorch's GPUs alone."""
    return any("numpy()" in s.tw or "dlpack" in s.tw for s in (step, *step.body))


def there(seed: int) -> Program:
    """The program without what shares memory with the host, and no settings of the CPU's."""
    program = program_of(seed, tw.kernels.isas(), ["naive"])
    steps = tuple(step for step in program.steps if not reads_on_the_host(step))
    settings = Settings(finale=program.settings.finale, plan=program.settings.plan)
    return replace(program, steps=steps, settings=settings)


def test_a_program_there_agrees_with_pytorch(seed: int) -> None:
    program = there(seed)
    with made_there():
        verdict = judge(program)
    if verdict.wrong:
        again = f"pytest {__file__} --program-seed {seed}"
        text = rendered(program)
        pytest.fail(f"program {seed}: {verdict.text}\nagain: {again}\n\n{text}", pytrace=False)


def test_most_programs_are_compared() -> None:
    with made_there():
        kinds = Counter(judge(there(seed)).kind for seed in range(700, 712))
    assert kinds["agree"] >= 6, kinds


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [there(seed) for seed in range(200)]
    with_sine = [p for p in programs if any("tw.sin(" in step.tw for step in p.steps)][:4]
    plain, devices = tw.sin, set()

    def scaled(x: tw.Tensor) -> tw.Tensor:
        devices.add(x.device)
        return plain(x) * (1 + 1e-6)

    with made_there():
        assert not any(judge(program).wrong for program in with_sine)
        monkeypatch.setattr(tw, "sin", scaled)
        assert any(judge(program).wrong for program in with_sine)
    assert devices == {"cuda:0"}
