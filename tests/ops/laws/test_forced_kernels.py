"""Forcing a kernel, or an op's body, changes what runs and what `explain` says; results hold."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from cases import RECORDS, arrays
from cases.arrays import FLOATS
from cases.check import assert_close, expected_values, tensors
from cases.record import OpCase
from cases.unrecorded import calls
from cases.uses import LIKE, MADE, bits, gradients
from checkout import ROOT

import tilewright as tw
from tilewright._inspect.explanation import Entry

CHOICES = {op: tw.kernels.names(op) for op in tw.kernels.ops()}
WITH_BODY = [op for op, names in CHOICES.items() if "body" in names]
LADDERS = {
    op: kernels
    for op in CHOICES
    if len(kernels := [k for k in tw.kernels.describe(op) if k["name"] != "body"]) > 1
}
# How many times the record's tolerance a class of precision may be off by: float32 has 24 bits.
LOSS = {"ieee": 1, "fp32": 1, "high": 2.0**8, "medium": 2.0**16}


@dataclass(frozen=True)
class Run:
    """A call of a test record, or its gradients: results, and what holds them to a reference."""

    name: str
    results: Callable[[], list[tw.Tensor]]
    check: Callable[[list[tw.Tensor], float], None]  # how many times the tolerance is allowed
    has_own_bits: bool = False  # which all kernels give, but the definition

    def observed(self) -> tuple[list[tw.Tensor], list[Entry]]:
        with tw.explain() as report:
            results = self.results()
        return results, report._recorded


def value_run(case: OpCase, args: tuple, dtype: str, options: dict) -> Run:
    def check(results: list[tw.Tensor], loss: float) -> None:
        allowed = {name: loss * ulps for name, ulps in case.tolerance.items()}
        expected = expected_values(case, args, dtype, options)
        assert_close(replace(case, tolerance=allowed), *results, expected, dtype, options)

    made = tensors(args, dtype)
    return Run(f"{case} of {dtype}", lambda: [case.call(*made, **options)], check)


def gradient_run(case: OpCase, args: tuple, dtype: str, options: dict) -> Run:
    """Held to what the free choice of kernels gives in float64."""
    places = case.differentiable
    narrow = [x.astype(dtype) if x.dtype.kind == "f" else x for x in args]
    made = [tw.asarray(x, copy=True) for x in narrow]
    wide = [tw.astype(x, tw.float64) if x.dtype == tw.float32 else x for x in made]
    exact = [arrays.array(g) for g in gradients(case, wide, options, places)]

    def check(results: list[tw.Tensor], loss: float) -> None:
        for got, want in zip(results, exact, strict=True):
            unit = arrays.eps(dtype) * np.maximum(1, np.abs(want).max(initial=0))
            error = np.abs(arrays.array(got).astype(np.float64) - want).max(initial=0)
            # What arrives is 2 * y, with the error of y.
            allowed = loss * (case.gradient_tolerance + case.tolerance[dtype] + 2)
            assert error <= allowed * unit, (error / unit, allowed, options)

    name = f"gradients of {case} of {dtype}"
    return Run(name, lambda: gradients(case, made, options, places), check)


def drawn_run(name: str) -> Run:
    x = tw.arange(20, dtype=tw.float32)

    def results() -> list[tw.Tensor]:
        tw.manual_seed(5)
        return [MADE[name]() if name in MADE else LIKE[name](x)]

    expected = results()[0].astype(tw.float64).numpy()

    def check(results: list[tw.Tensor], loss: float) -> None:
        assert loss == 1
        (got,) = results
        # The definition's scalar functions may round the last place another way.
        most = 4e-7 if got.dtype == tw.float32 else 0
        np.testing.assert_allclose(got.astype(tw.float64).numpy(), expected, rtol=most)

    return Run(name, results, check, has_own_bits=True)


def cache_run(dtype: str) -> Run:
    """A cache of keys and values, which is a layer's: its op is no function of the module."""
    rows = np.random.default_rng(7).normal(size=(3, 2, 4, 9, 8)).astype(dtype)
    whole = [tw.asarray(x).astype(tw.float64) for x in rows]
    want = tw.scaled_dot_product_attention(*whole, is_causal=True).numpy()

    def results() -> list[tw.Tensor]:
        cache = tw.nn.KeyValueCache(2, 4, 9, 8, dtype=getattr(tw, dtype))
        parts = [slice(0, 2), slice(2, 3), slice(3, 6), slice(6, 9)]
        return [cache.attend(*(tw.asarray(x[:, :, part]) for x in rows)) for part in parts]

    def check(results: list[tw.Tensor], loss: float) -> None:
        got = np.concatenate([y.numpy() for y in results], axis=2)
        np.testing.assert_allclose(got, want, rtol=0, atol=16 * loss * np.finfo(dtype).eps)

    return Run(f"a cache of {dtype}", results, check)


def second_gradient_run(dtype: str) -> Run:
    """Of max pooling: what is read where the largest elements were."""
    rng = np.random.default_rng(7)
    x, weights = (rng.normal(size=(3, 12)).astype(dtype) for _ in range(2))
    largest = x.reshape(3, 4, 3).argmax(-1) + 3 * np.arange(4)
    want = np.take_along_axis(weights, largest, -1)

    def results() -> list[tw.Tensor]:
        made = tw.asarray(x).requires_grad_()
        g = tw.ones((3, 4), dtype=getattr(tw, dtype)).requires_grad_()
        y = tw.max_pool1d(made, 3)
        (dx,) = tw.grad(y, [made], [g], create_graph=True)
        return list(tw.grad((dx * tw.asarray(weights)).sum(), [g]))

    def check(results: list[tw.Tensor], loss: float) -> None:
        np.testing.assert_array_equal(results[0].numpy(), want)

    return Run(f"second gradients of max pooling of {dtype}", results, check)


def unrecorded_runs() -> Iterator[Run]:
    for name, call, expected, error in calls():

        def check(results: list[tw.Tensor], loss: float, want=expected, most=error) -> None:
            for got, numbers in zip(results, want, strict=True):
                found = got.astype(tw.float64).numpy()
                np.testing.assert_allclose(found, numbers, rtol=loss * most, atol=loss * most)

        yield Run(name, call, check)


def all_runs() -> Iterator[Run]:
    for case in RECORDS:
        rng = np.random.default_rng(7)
        for dtype in ("float32", "float64", "int64"):
            if dtype not in case.tolerance:
                continue
            odd = case.special(dtype) if case.special and dtype in FLOATS else []
            for args in (*case.arguments(rng, dtype), *odd):
                if all(x.size for x in args):  # where nothing is computed nothing is chosen
                    for options in case.variants:
                        if args[0].ndim or not isinstance(options.get("axis"), int):
                            yield value_run(case, args, dtype, dict(options))
        if case.differentiable:
            for args in case.smooth(rng):
                for options in case.variants:
                    for dtype in sorted({"float32", "float64"} & case.tolerance.keys()):
                        yield gradient_run(case, args, dtype, dict(options))
    for name in (*MADE, *LIKE):
        yield drawn_run(name)
    yield from map(cache_run, ("float32", "float64"))
    yield from map(second_gradient_run, ("float32", "float64"))
    yield from unrecorded_runs()


def solved_by(entry: Entry, op: str, names: list[str]) -> bool:
    """Whether the op's kernels were the candidates: its own calls', or those of another op that
    has none."""
    own = entry.op == op or entry.op not in LADDERS
    return own and [candidate.name for candidate in entry.candidates] == names


@cache
def runs_by_op() -> dict[str, list[Run]]:
    """By the ops whose kernels they launch, those of another op's ladder included."""
    found = defaultdict(list)
    for run in all_runs():
        _, entries = run.observed()
        launched = {entry.op for entry in entries}
        for op, kernels in LADDERS.items():
            names = [kernel["name"] for kernel in kernels]
            if any(solved_by(entry, op, names) for entry in entries):
                launched.add(op)
        for op in launched:
            found[op].append(run)
    return found


# ---- bodies ----


@pytest.mark.parametrize("op", WITH_BODY)
def test_a_body_computes_what_the_kernel_does(op: str) -> None:
    runs = runs_by_op()[op]
    assert runs, "no test record reaches its kernel"
    for run in runs:
        with tw.kernels.use(**{op: "body"}):
            assert tw.forced_kernel(op) == "body"
            results, entries = run.observed()
        assert entries
        assert op not in {entry.op for entry in entries}, run.name
        run.check(results, 1)


@pytest.mark.parametrize("op", [op for op in WITH_BODY if len(CHOICES[op]) == 2])
def test_a_kernel_beside_a_body_runs_by_its_name(op: str) -> None:
    name, _ = CHOICES[op]
    for run in runs_by_op()[op][:4]:
        expected = [bits(x) for x in run.results()]
        with tw.kernels.use(**{op: name}):
            results, entries = run.observed()
        assert {entry.kernel for entry in entries if entry.op == op} == {name}
        assert [bits(x) for x in results] == expected


def test_every_body_beside_kernels_can_be_forced() -> None:
    records = {op["name"]: op for op in tw._core._op_records()}
    for op in WITH_BODY:
        assert records[op]["body"]
    beside = {op for op in CHOICES if op in records and records[op]["body"]}
    assert beside == set(WITH_BODY)


def test_ops_without_a_body_say_so() -> None:
    with pytest.raises(ValueError, match="exp has no kernel 'body'; choose from naive, vector"):
        tw.kernels.use(exp="body").__enter__()
    with pytest.raises(ValueError, match="no op 'reshape' with kernels"):
        tw.kernels.use(reshape="body").__enter__()


# ---- kernels ----


@pytest.mark.parametrize(
    ("op", "kernel"),
    [(op, kernel) for op, kernels in LADDERS.items() for kernel in kernels],
    ids=[f"{op}-{kernel['name']}" for op, kernels in LADDERS.items() for kernel in kernels],
)
def test_a_forced_kernel_runs_or_refuses(op: str, kernel: dict[str, str]) -> None:
    name, names = kernel["name"], [each["name"] for each in LADDERS[op]]
    ran, refused = 0, 0
    for run in runs_by_op()[op]:
        try:
            with tw.kernels.use(**{op: name}):
                results, entries = run.observed()
        except tw.InvalidValueError as error:
            refusal = f"the forced kernel '{name}' does not accept this problem: "
            assert refusal in str(error)  # noqa: PT017  (either outcome is right)
            refused += 1
            continue
        chosen = [entry for entry in entries if solved_by(entry, op, names)]
        assert {entry.kernel for entry in chosen} <= {name}, run.name
        for entry in chosen:
            assert [c.name for c in entry.candidates if c.chosen] == [name]
        run.check(results, LOSS[kernel["precision"]])
        if run.has_own_bits and name != names[0]:
            assert [bits(x) for x in results] == [bits(x) for x in run.results()]
        ran += len(chosen)
    assert ran or (refused and kernel["precision"] != "ieee")


def test_every_ladder_begins_with_the_definition() -> None:
    """But what only moves a generator on, which is one addition."""
    for op, names in CHOICES.items():
        if names != ["body"] and op != "draw":
            assert names[0] == "naive", op


def test_other_kernels_run_other_code() -> None:
    """These rungs add terms in orders of their own, so the last bits tell them apart."""
    rng = np.random.default_rng(11)
    a, b = (tw.asarray(rng.normal(size=s).astype(np.float32)) for s in ((40, 4099), (4099, 24)))
    rungs = ["naive", "simd", "packed"]
    rungs += [name for name in CHOICES["matmul"] if name.startswith("bf16")]
    for isa in tw.kernels.isas():
        found, accepted = [], 0
        for kernel in rungs:
            with tw.kernels.use(isa=isa, matmul=kernel), tw.explain() as report:
                try:
                    found.append(bits(a @ b))
                except tw.InvalidValueError:  # split is for instructions that not all have
                    assert kernel not in rungs[:3]
                    continue
            assert [(e.kernel, e.isa) for e in report._recorded] == [(kernel, isa)]
            accepted += 1
        assert len(set(found)) == accepted >= 3


@pytest.mark.parametrize("op", [op for op in LADDERS if op.startswith("convolution")])
def test_other_rungs_of_convolutions_run_other_code(op: str) -> None:
    """Those of one channel a group in a problem of theirs."""
    rng = np.random.default_rng(11)
    found = defaultdict(set)
    for channels, size in ((64, 3), (1, 7)):
        groups = 64 // channels
        given = [rng.normal(size=s) for s in ((2, 64, 20, 20), (64, channels, size, size))]
        for kernel in (each["name"] for each in LADDERS[op]):
            x, w = (tw.asarray(a.astype(np.float32)).requires_grad_() for a in given)
            with tw.kernels.use(**{op: kernel}), tw.explain() as report:
                try:
                    y = tw.conv2d(x, w, groups=groups, padding=1)
                    results = [y, *tw.grad((y * y).sum(), [x, w])]
                except tw.InvalidValueError:
                    continue
            assert {e.kernel for e in report._recorded if e.op == op} == {kernel}
            found[channels, kernel].add(b"".join(bits(z) for z in results))
    assert {kernel for _, kernel in found} == {each["name"] for each in LADDERS[op]}
    every = [next(iter(results)) for (channels, _), results in found.items() if channels == 64]
    assert len(set(every)) == len(every) == 5
    assert found[1, "depthwise"] != found[1, "naive"]


def test_other_instruction_sets_run_other_code() -> None:
    """Wider vectors add up other partial sums."""
    x = tw.asarray(np.random.default_rng(12).normal(size=(50, 100)).astype(np.float32))
    found = set()
    for isa in tw.kernels.isas():
        with tw.kernels.use(isa=isa):
            found.add(bits(tw.log_softmax(x)))
    assert len(found) == len(tw.kernels.isas())


@pytest.mark.parametrize("case", RECORDS, ids=str)
def test_instruction_sets_are_named_and_agree(case: OpCase) -> None:
    rng = np.random.default_rng(13)
    dtype = "float32" if "float32" in case.tolerance else next(iter(case.tolerance))
    args = case.arguments(rng, dtype)[0]
    run = value_run(case, args, dtype, dict(case.variants[0]))
    for isa in tw.kernels.isas():
        with tw.kernels.use(isa=isa):
            results, entries = run.observed()
        assert {entry.isa for entry in entries} <= {isa}
        run.check(results, 1)


# ---- names ----

FOLDERS = ("core", "binding", "blas", "src")
# Python files that write one of the names, and why.
EXCEPTIONS = {
    "src/tilewright/kernels.py": "an example",
    "src/tilewright/cli/ops.py": "a field of op records",
    "src/tilewright/tune/search.py": "numbers of a rung are measured on that rung",
    "src/tilewright/tune/gpu.py": "rates of a GPU's rungs are measured on those rungs",
    "src/tilewright/tune/rungs.py": "what a call costs beside its kernel, by the least of them",
    "src/tilewright/bench/networks/convolution.py": "rungs that are no rivals of the others",
    "src/tilewright/optim/optimizer.py": "a keyword of PyTorch's",
    "src/tilewright/optim/fused.py": "what the core calls rows of a table",
    "src/tilewright/data/sampler.py": "an attribute of PyTorch's",
    "src/tilewright/bench/validation.py": "the definition, where NumPy is missing",
    "src/tilewright/bench/optimization_cases.py": "the kernel that an optimization works in",
    "src/tilewright/bench/ablation.py": "the definition, where an ablation begins",
    "src/tilewright/_kernels/validation.py": "the definition, which others are held against",
}

# Two ladders have rungs of one name, such as their definitions.
LADDER_FILES = {
    "core/runtime/registry.cpp",  # that of every other op
    "core/cpu/matmul/matmul.cpp",
    "core/cpu/matmul/split_choice.cpp",
    "core/cpu/convolution/convolution.cpp",
    "core/cuda/matmul/matmul.cpp",
    "core/cuda/convolution/convolution.cpp",
}

# Tests, and units of values, such as "rows".
NO_KERNELS = {"tests", "thresholds.inc"}


def test_names_of_kernels_are_in_their_records_alone() -> None:
    """As a whole string: help and comments may speak of them."""
    names = "|".join({name for kernels in CHOICES.values() for name in kernels})
    # No key of a dictionary, and no argument's name of nanobind's.
    literal = re.compile(rf'(?<!\[)"({names})"(?!_a)')
    found = defaultdict(set)
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*")):
        if path.suffix in (".cpp", ".h", ".inc", ".py") and not NO_KERNELS & set(path.parts):
            for name in literal.findall(path.read_text()):
                found[name].add(str(path.relative_to(ROOT)))
    assert set(found) == set(names.split("|"))
    for name, paths in found.items():
        native = {path for path in paths if not path.startswith("src/")}
        assert len(native) == 1 or native <= LADDER_FILES, (
            f"{name!r} is written in {sorted(native)}"
        )
        assert paths - native <= set(EXCEPTIONS), f"{name!r} is written in {sorted(paths)}"
