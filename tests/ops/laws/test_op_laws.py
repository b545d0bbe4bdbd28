"""What holds for every op, because it is a record: the next one in the list is covered."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from cases import RECORDS, arrays
from cases.ops import updates
from cases.record import OpCase
from cases.uses import (
    DIFFERENTIABLE,
    LIKE,
    MADE,
    bits,
    gradients,
    large_use,
    per,
    smooth_uses,
    uses,
)
from subcases import each

import tilewright as tw
from tilewright import _core
from tilewright.memory import Pool

# Results are as long as the values say: in test_indexing.py, test_scatter.py and test_order.py.
OF_ANY_LENGTH = {"nonzero", "masked_select", "bincount"}


def test_every_function_is_under_the_laws() -> None:
    functions = {op["name"] for op in _core._op_records() if op["function"] or op["method"]}
    covered = {case.name for case in RECORDS} | set(MADE) | set(LIKE) | OF_ANY_LENGTH
    steps = {*updates.OPS, *updates.OTHERS}  # in test_steps.py
    assert functions <= covered | steps


# ---- calls can be replayed ----


@per(RECORDS)
def test_replays_give_the_bits_of_eager(case: OpCase) -> None:
    for (first, options), (others, _) in zip(uses(case, 1), uses(case, 2), strict=True):
        captured = _core._capture(lambda *x, o=options: case.call(*x, **o), first)
        (early,) = captured.replay(first)
        expected = bits(case.call(*first, **options))
        assert bits(early) == expected
        assert bits(captured.replay(others)[0]) == bits(case.call(*others, **options))
        assert bits(early) == expected


@per(DIFFERENTIABLE)
def test_replays_of_gradients_give_the_bits_of_eager(case: OpCase) -> None:
    for args, options in smooth_uses(case):
        places = [i for i, x in enumerate(args) if isinstance(x, tw.Tensor)]

        def run(*given, args=args, options=options, places=places):
            full = list(args)
            for i, x in zip(places, given, strict=True):
                full[i] = x
            return gradients(case, full, options, case.differentiable)

        given = [args[i] for i in places]
        captured = _core._capture(run, given)
        # Other values at which the op is smooth: where they were, in another order.
        others = [x[::-1].copy() if x.ndim == 1 and x.dtype == tw.float64 else x for x in given]
        for operands in (given, others):
            for got, want in zip(captured.replay(operands), run(*operands), strict=True):
                assert bits(got) == bits(want)


@pytest.mark.parametrize("name", [*MADE, *LIKE])
def test_replays_make_and_draw_what_eager_does(name: str) -> None:
    call = MADE.get(name) or LIKE[name]
    inputs = [] if name in MADE else [tw.arange(20, dtype=tw.float32)]
    captured = _core._capture(call, inputs)
    tw.manual_seed(4)
    expected = [bits(call(*inputs)) for _ in range(2)]
    tw.manual_seed(4)
    assert [bits(captured.replay(inputs)[0]) for _ in range(2)] == expected


# Parameters that are numbers, by what else their functions are called with.
X = tw.asarray([-3.0, -1.0, -0.4, 0.3, 0.7, 2.0, 30.0])
ROWS = {"axis": 0, "index": tw.asarray([1, 2])}
BESIDE_NUMBERS: dict[str, dict] = {
    "threshold": {"x": X, "threshold": 0.2, "value": 0.1},
    "full": {"shape": (3,), "fill_value": 1.0},
    "full_like": {"x": X, "fill_value": 1.0},
    "arange": {"start": -1.0, "stop": 9.0, "step": 0.125},
    "linspace": {"start": 0.0, "stop": 9.0, "num": 4},
    "pad": {"x": X, "pad": (1, 1), "value": 1.0},
    "index_add": {"x": X, **ROWS, "source": X[:2]},
    "softplus": {"x": X / 2},
}
NUMBERS = [
    (op["name"], parameter)
    for op in _core._op_records()
    if op["function"]
    for parameter in re.findall(r"(\w+): Number", op["signature"])
]


@each(("name", "parameter"), NUMBERS)
def test_a_number_in_a_tensor_is_read_anew_or_refused(name: str, parameter: str) -> None:
    """What a replay must not do is go on with the number of its recording."""
    beside = BESIDE_NUMBERS.get(name, {"x": X})

    def run(value: tw.Tensor) -> tw.Tensor:
        return getattr(tw, name)(**{**beside, parameter: value})

    first, other = tw.asarray(0.25), tw.asarray(0.5)
    assert bits(run(first)) != bits(run(other))
    try:
        captured = _core._capture(run, [first])
    except tw.StateError as error:
        assert "capture: item() reads a value" in str(error)  # noqa: PT017  (either outcome is right)
        return
    assert bits(captured.replay([other])[0]) == bits(run(other))


# ---- what is inferred is what runs; a device that computes nothing ----


@per(RECORDS)
def test_on_the_null_device_results_are_as_inferred(case: OpCase) -> None:
    for args, options in uses(case, 1):
        expected = case.call(*args, **options)
        y = case.call(*(x.to("null") for x in args), **options)
        assert (y.device, y.shape, y.dtype) == ("null", expected.shape, expected.dtype)
        if y.size:
            assert y.strides == expected.strides


@per(DIFFERENTIABLE)
def test_gradients_on_the_null_device(case: OpCase) -> None:
    for args, options in smooth_uses(case):
        there = [x.to("null") if isinstance(x, tw.Tensor) else x for x in args]
        for g, i in zip(
            gradients(case, there, options, case.differentiable), case.differentiable, strict=True
        ):
            assert (g.device, g.shape, g.dtype) == ("null", args[i].shape, args[i].dtype)


@per(RECORDS)
def test_operands_on_two_devices_are_refused(case: OpCase) -> None:
    for args, options in uses(case, 1):
        if len(args) > 1:
            mixed = [args[0].to("null"), *args[1:]]
            with pytest.raises(ValueError, match=r"'null'.*'cpu'|'cpu'.*'null'"):
                case.call(*mixed, **options)
            return


# ---- memory ----


SMALLEST_SPILL = 1 << 16  # bytes; smaller blocks stay


def leaves_of(case: OpCase, args: list) -> list[tw.Tensor]:
    """Copies in the pool in force, of which those that can have a gradient want one."""
    inside = [x.detach().copy() if isinstance(x, tw.Tensor) else x for x in args]
    for i in case.differentiable:
        inside[i].requires_grad_()
    return inside


def in_pools(run, folder) -> tuple[list[bytes], dict]:
    """What `run` gives in a pool with the quota that it needs, and the pool's figures.

    In a smaller one, where operands have to make room for each other, it gives the same or raises.
    """
    with Pool() as free:
        run(free)
    peak = free.stats()["peak_live_bytes"]
    with Pool(quota_bytes=max(peak, 4096), spill_dir=folder) as pool:
        got = run(pool)
    for part in (0.85, 0.7, 0.5):
        with Pool(quota_bytes=max(int(peak * part), 4096), spill_dir=folder) as small:
            try:
                assert run(small) == got
            except MemoryError:
                break
    return got, pool.stats()


@per(RECORDS)
def test_a_quota_that_holds_the_op_alone(case: OpCase, tmp_path) -> None:
    """Its operands had to leave before."""
    for args, options in (*uses(case, 1), large_use(case, 1)):
        inputs = [x.detach() for x in args]

        def run(pool: Pool, inputs=inputs, options=options) -> list[bytes]:
            inside = [x.copy() for x in inputs]
            pool.spill()
            return [bits(case.call(*inside, **options))]

        got, figures = in_pools(run, tmp_path)
        assert got == [bits(case.call(*args, **options))]
        large = [x for x in inputs if x.size * x.dtype.itemsize >= SMALLEST_SPILL]
        assert figures["restores"] >= len(large)


@per([case for case in DIFFERENTIABLE if "float64" in case.tolerance])
@each("plan", [False, True])
@each("call", [lambda f, *x: f(*x), tw.checkpoint], ids=["plain", "checkpoint"])
def test_gradients_of_what_had_left(case: OpCase, call, plan: bool, tmp_path) -> None:
    """Everything leaves between the passes, and again in a hook amid the backward pass."""
    args, options = large_use(case, 1)

    def run(pool: Pool | None, call=call, plan=plan) -> list[bytes]:
        inside = leaves_of(case, args)
        y = call(lambda *x: case.call(*x, **options), *inside)
        if pool:
            y.register_hook(lambda g: (pool.spill(), g)[1])
            pool.spill()
        (y * y).sum().backward(plan=plan)
        return [bits(y), *(bits(inside[i].grad) for i in case.differentiable)]

    got, figures = in_pools(run, tmp_path)
    assert got == run(None, lambda f, *x: f(*x), False)
    if max(args[i].size for i in case.differentiable) * 8 >= SMALLEST_SPILL:
        assert figures["spills"] > 0


@per(DIFFERENTIABLE)
def test_gradients_under_checkpoint_and_with_hooks(case: OpCase) -> None:
    for args, options in smooth_uses(case):
        expected = [bits(g) for g in gradients(case, args, options, case.differentiable)]
        leaves = [args[i].detach().requires_grad_() for i in case.differentiable]
        full = list(args)
        for i, leaf in zip(case.differentiable, leaves, strict=True):
            full[i] = leaf
            leaf.register_hook(lambda g: None)
        y = tw.checkpoint(lambda *x, o=options: case.call(*x, **o), *full)
        y.register_hook(lambda g: None)
        got = tw.grad((y * y).sum(), leaves)
        assert [bits(g) for g in got] == expected


@per(DIFFERENTIABLE)
def test_planned_gradients_in_a_quota_that_holds_them(case: OpCase, tmp_path) -> None:
    def planned(args: list, options: dict) -> list[bytes]:
        full = list(args)
        for i in case.differentiable:
            full[i] = full[i].detach().copy().requires_grad_()
        y = tw.checkpoint(lambda *x: case.call(*x, **options), *full)
        y.register_hook(lambda g: None)
        (y * y).sum().backward(plan=True)
        return [bits(full[i].grad) for i in case.differentiable]

    for args, options in smooth_uses(case):
        expected = [bits(g) for g in gradients(case, args, options, case.differentiable)]
        with Pool() as free:
            assert planned(args, options) == expected
        peak = free.stats()["peak_live_bytes"]
        with Pool(quota_bytes=max(peak, 4096), spill_dir=tmp_path):
            assert planned(args, options) == expected


# ---- gradients ----


@per([case for case in DIFFERENTIABLE if len(case.differentiable) > 1])
def test_gradients_of_some_operands_are_those_of_all(case: OpCase) -> None:
    places = case.differentiable
    for args, options in smooth_uses(case):
        every = dict(zip(places, gradients(case, args, options, places), strict=True))
        for count in range(1, len(places)):
            for wanted in combinations(places, count):
                got = gradients(case, args, options, wanted)
                assert [bits(g) for g in got] == [bits(every[i]) for i in wanted]


OF_SEVERAL_RESULTS = {
    op["name"] for op in _core._op_records() if "tuple" in op["signature"].split("->")[1]
}


@per([case for case in DIFFERENTIABLE if case.name in OF_SEVERAL_RESULTS])
def test_gradients_with_some_results_unused(case: OpCase) -> None:
    """They are those with gradients of zero for the others."""
    for args, options in smooth_uses(case):
        leaves = [args[i].detach().requires_grad_() for i in case.differentiable]
        full = list(args)
        for i, leaf in zip(case.differentiable, leaves, strict=True):
            full[i] = leaf
        results = [y for y in getattr(tw, case.name)(*full, **options) if y.requires_grad]
        for count in range(1, len(results)):
            for used in combinations(range(len(results)), count):
                seeds = [y.detach() if i in used else y.detach() * 0 for i, y in enumerate(results)]
                every = tw.grad(results, leaves, seeds, retain_graph=True)
                some = tw.grad(
                    [results[i] for i in used],
                    leaves,
                    [seeds[i] for i in used],
                    retain_graph=True,
                    allow_unused=True,
                )
                for got, want in zip(some, every, strict=True):
                    a = arrays.array(want)
                    b = arrays.array(got) if got is not None else a * 0
                    assert abs(a - b).max(initial=0) <= 1e-13 * (1 + abs(a).max(initial=0))


@per(DIFFERENTIABLE)
def test_a_changed_operand_is_noticed_or_was_not_read(case: OpCase) -> None:
    """Whatever a gradient reads is saved, so its version is checked: no wrong gradient in silence.

    The same for the result. What is not read may change.
    """
    for args, options in smooth_uses(case):
        expected = [bits(g) for g in gradients(case, args, options, case.differentiable)]
        tensors = [i for i, x in enumerate(args) if isinstance(x, tw.Tensor)]
        for changed in (*tensors, None):
            full = [x.detach().copy() if isinstance(x, tw.Tensor) else x for x in args]
            leaves = [full[i].requires_grad_() for i in case.differentiable]
            for i, leaf in zip(case.differentiable, leaves, strict=True):
                full[i] = leaf * 1
            y = case.call(*full, **options)
            if changed is None and 0 in y.strides:
                continue  # elements that share memory cannot be written
            g = y.detach() * 2  # of the sum of squares
            (y if changed is None else full[changed]).detach().zero_()
            try:
                got = tw.grad(y, leaves, g)
            except tw.StateError as error:
                if "changed in place" not in str(error):
                    raise
                continue
            assert [bits(x) for x in got] == expected, f"operand {changed}"


@per(RECORDS)
def test_twice_the_same_and_operands_untouched(case: OpCase) -> None:
    for args, options in uses(case, 1):
        versions = [x.version for x in args]
        assert bits(case.call(*args, **options)) == bits(case.call(*args, **options))
        assert [x.version for x in args] == versions
