"""Forms of calls that PyTorch's programs use, beside PyTorch itself."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")


def leaf(m: Any, *values: float) -> Any:
    return m.tensor([float(v) for v in values], requires_grad=True)


def weights_of_a_model(m: Any) -> Any:
    x, w, b = leaf(m, 1, 2), leaf(m, 3, 4), leaf(m, 5)
    return m.autograd.grad((x * w).sum() * b.sum(), {"w": w, "b": b}.values())


def parts_of_data(m: Any) -> Any:
    z = m.nn.Parameter(m.zeros(3, dtype=m.complex64))
    z.data.real.fill_(1.0)
    z.data[1:].imag.copy_(m.tensor([2.0, 3.0]))
    m.view_as_real(z.data)[0].mul_(4.0)
    return z.detach()


def gathered(m: Any) -> Any:
    rows = m.tensor([])
    for i in range(3):
        rows = m.cat([rows, m.full((1, 2), float(i))])
    return rows


FORMS: list[Callable[[Any], Any]] = [
    weights_of_a_model,
    lambda m: m.autograd.grad(leaf(m, 2).sum() * 3, (x for x in [leaf(m, 1)]), allow_unused=True),
    lambda m: m.autograd.grad((x := leaf(m, 2, 3)).sum(), [x, leaf(m, 1)], materialize_grads=True),
    parts_of_data,
    gathered,
    lambda m: m.cat([m.tensor([]), m.ones((2, 3), dtype=m.float16)], 1),
    lambda m: m.cat([m.ones((2, 3), dtype=m.int64), m.tensor([])], -2),
    lambda m: m.cat([m.tensor([]), m.tensor([])]),
    lambda m: m.full((2,), np.int64(3)),
    lambda m: m.full((2,), np.float32(0.5)),
    lambda m: m.zeros(2).fill_(np.float32(2)),
    lambda m: m.zeros(2).fill_(m.tensor(2.0)),
    lambda m: m.arange(np.int64(3)),
    lambda m: m.linspace(np.float64(0), np.int32(1), 3),
    lambda m: m.repeat_interleave(m.tensor([2, 0, 1])),
    lambda m: m.repeat_interleave(m.tensor([2, 0, 1]), output_size=3),
    lambda m: m.tensordot(m.ones(2, 3), m.ones(3, 2), 1),
    lambda m: m.argsort(m.tensor([[1.0, 3.0, 2.0]]), -1, True),
    lambda m: m.arange(6).reshape(2, 3)[(0, 1),],
    lambda m: m.arange(6).reshape(2, 3)[:, (0, 2)],
    lambda m: m.arange(6).reshape(2, 3)[range(1)],
    lambda m: m.func.jacrev(lambda a, b: a * b, (0, 1))(m.arange(2.0), m.ones(2)),
    lambda m: m.func.jacfwd(lambda a, b: a * b, (1, 0))(m.arange(2.0), m.ones(2)),
    lambda m: m.func.jacfwd(lambda a, b: (a * b, b.sum()), (0, 1))(m.arange(2.0), m.ones(2)),
    lambda m: m.func.hessian(lambda a, b: (a * a * b).sum(), (0, 1))(m.arange(2.0), m.ones(2)),
    lambda m: m.linspace(0, 1, 3, requires_grad=True),
    lambda m: m.logspace(0, 1, 3, requires_grad=True),
    lambda m: m.zeros_like(m.ones(2), requires_grad=True),
    lambda m: m.full_like(m.ones(2), 3, requires_grad=True),
    lambda m: [(t.is_floating_point, t.is_complex, t.is_signed) for t in (
        m.bool, m.uint8, m.int8, m.int64, m.float16, m.bfloat16, m.float64, m.complex128)],
    lambda m: [m.nn.Softmax(dim=1).dim, m.nn.GLU(0).dim, m.nn.Flatten(2).start_dim],
    lambda m: m.is_autocast_enabled("cpu"),
    lambda m: m.get_autocast_dtype("cpu"),
    lambda m: m.nn.utils.clip_grad_norm_([leaf(m, 1)], 1.0, foreach=True),
]  # fmt: skip


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return (value.tolist(), str(value.dtype).split(".")[-1], bool(value.requires_grad))
    return str(value).split(".")[-1]


@pytest.mark.filterwarnings("ignore")  # of PyTorch's
@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    assert plain(form(tw)) == plain(form(torch))


class TestSetGradEnabled:
    def test_the_call_switches(self):
        x = tw.ones(2, requires_grad=True)
        try:
            tw.set_grad_enabled(False)
            assert not (x * 2).requires_grad
        finally:
            tw.set_grad_enabled(True)
        assert (x * 2).requires_grad

    def test_a_block_ends_with_what_was_before_the_call(self):
        block = tw.set_grad_enabled(False)
        assert not tw.is_grad_enabled()
        with block:
            assert not tw.is_grad_enabled()
        assert tw.is_grad_enabled()
        with block:
            assert not tw.is_grad_enabled()
        assert tw.is_grad_enabled()

    def test_a_decorator_switches_inside_alone(self):
        inside = tw.set_grad_enabled(False)(tw.is_grad_enabled)
        assert tw.is_grad_enabled()
        assert not inside()
        assert tw.is_grad_enabled()

    def test_a_block_of_another_thread_leaves_this_one_alone(self):
        blocks = []
        thread = threading.Thread(target=lambda: blocks.append(tw.set_grad_enabled(False)))
        thread.start()
        thread.join()
        with tw.no_grad():
            with blocks[0]:
                assert not tw.is_grad_enabled()
            assert not tw.is_grad_enabled()
        assert tw.is_grad_enabled()

    @pytest.mark.parametrize("mode", ["False", 0, None])
    def test_what_is_no_mode(self, mode):
        with pytest.raises(TypeError, match="True or False"):
            tw.set_grad_enabled(mode)
        assert tw.is_grad_enabled()

    @pytest.mark.parametrize("block", [tw.no_grad, tw.inference_mode, tw.enable_grad])
    def test_decorators_without_brackets(self, block):
        @block
        def inside(*, of: str) -> tuple[str, bool]:
            """What it says."""
            return of, tw.is_grad_enabled()

        assert inside(of="a") == ("a", block is tw.enable_grad)
        assert inside.__doc__ == "What it says."
        assert tw.is_grad_enabled()


class TestViewsThatStepBackwards:
    """PyTorch ends the process where a stride is negative."""

    def test_are_copied(self):
        x = tw.arange(6.0).reshape(2, 3)
        for view in (x.flip(0), x[:, ::-1], tw.rot90(x)):
            assert torch.as_tensor(view).tolist() == view.tolist()
            assert torch.from_dlpack(view).tolist() == view.tolist()
            assert np.from_dlpack(view).tolist() == view.tolist()
            assert x[::-1].__dlpack__(max_version=(1, 0)) is not None

    def test_are_refused_without_a_copy(self):
        with pytest.raises(BufferError, match="steps backwards"):
            tw.arange(3)[::-1].__dlpack__(copy=False)

    def test_axes_of_one_element_step_nowhere(self):
        x = tw.arange(6.0).reshape(2, 3)
        for view in (x[:1][::-1], x[:, :1][:, ::-1], x[:0][:, ::-1]):
            back = torch.from_dlpack(view)
            assert back.tolist() == view.tolist()
            back += 1
            assert back.tolist() == view.tolist()
            np.from_dlpack(view, copy=False)

    def test_others_share_memory(self):
        x = tw.arange(6.0).reshape(2, 3)
        torch.from_dlpack(x[:, ::2])[0, 0] = 9.0
        assert x[0, 0] == 9.0


class TestPartsOfData:
    def test_are_refused_once_the_tensor_is_in_the_graph(self):
        base = tw.zeros(2, dtype=tw.complex64)
        part = tw.view_as_real(base)
        base.mul_(tw.ones(2, dtype=tw.complex64, requires_grad=True))
        with pytest.raises(RuntimeError, match="its graph lacks that change"):
            part.fill_(1.0)

    def test_are_refused_once_their_own_tensor_is(self):
        weight = tw.ones(2, dtype=tw.complex64, requires_grad=True)
        apart = (weight * 1).detach()
        part = apart.real
        part.fill_(2.0)
        apart.mul_(weight)
        with pytest.raises(RuntimeError, match="its graph lacks that change"):
            part.fill_(1.0)

    def test_are_refused_once_their_own_tensor_is_a_leaf(self):
        apart = tw.ones(2, dtype=tw.complex64, requires_grad=True).detach()
        part = apart.real
        apart.requires_grad_()
        with pytest.raises(RuntimeError, match="view of a tensor in the graph"):
            part.fill_(1.0)
        apart.detach().real.fill_(2.0)
        assert apart[0] == 2

    def test_are_refused_where_they_were_taken_without_recording(self):
        weight = tw.ones(2, dtype=tw.complex64, requires_grad=True)
        result = weight * 2
        with tw.no_grad():
            part = result.real
        with pytest.raises(RuntimeError, match="view of a tensor in the graph"):
            part.fill_(1.0)


class TestFiles:
    def test_open_ones(self):
        state = {"w": tw.arange(3.0), "step": 4, "nested": {"b": tw.ones((2, 0))}}
        file = io.BytesIO()
        file.write(b"before")
        tw.save(state, file)
        file.seek(6)
        found = tw.load(file)
        assert found["w"].tolist() == [0.0, 1.0, 2.0]
        assert found["step"] == 4
        assert found["nested"]["b"].shape == (2, 0)
        file.seek(6)
        assert sorted(tw.io.names(file)) == ["nested.b", "w"]

    def test_one_on_disk(self, tmp_path):
        with open(tmp_path / "x", "wb") as file:
            tw.save({"x": tw.arange(2)}, file)
        assert tw.load(tmp_path / "x")["x"].tolist() == [0, 1]
        with open(tmp_path / "x", "rb") as file:
            assert tw.load(file)["x"].tolist() == [0, 1]

    @pytest.mark.parametrize("dtype", [tw.float32, tw.bfloat16, tw.uint8])
    def test_raw_ones_take_and_give_parts(self, dtype):
        class Raw(io.RawIOBase):
            """At most 1000 bytes at a time."""

            def __init__(self, data: bytes = b"") -> None:
                self.held = io.BytesIO(data)

            def readable(self) -> bool:
                return True

            writable = seekable = readable

            def seek(self, place: int, whence: int = 0) -> int:
                return self.held.seek(place, whence)

            def readinto(self, into: Any) -> int:
                return self.held.readinto(memoryview(into)[:1000])

            def write(self, data: Any) -> int:
                return self.held.write(memoryview(data)[:1000])

        x = tw.arange(70_000).astype(dtype)
        file = Raw()
        tw.save({"x": x}, file)
        assert len(file.held.getvalue()) > x.nbytes
        assert (tw.load(Raw(file.held.getvalue()))["x"] == x).all()
        tw.save({"x": x}, plain := io.BytesIO())
        assert plain.getvalue() == file.held.getvalue()

    def test_one_that_takes_less_is_an_error(self):
        class Full:
            def write(self, data: Any) -> int:
                return 4

        with pytest.raises(OSError, match="took 4 of"):
            tw.save({"x": tw.ones(3)}, Full())

    def test_other_formats_are_named(self, tmp_path: Path):
        torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
        np.save(tmp_path / "a.npy", np.ones(2))
        np.savez(tmp_path / "a.npz", a=np.ones(2))
        for name, said in (
            ("a.pt", "torch.save"),
            ("a.npz", "numpy.savez"),
            ("a.npy", "numpy.load"),
        ):
            with pytest.raises(ValueError, match=said):
                tw.load(tmp_path / name)

    def test_what_is_none(self):
        for none in (io.StringIO("text"), 5):
            with pytest.raises(TypeError, match="an open binary file"):
                tw.load(none)
            with pytest.raises(TypeError, match="an open binary file"):
                tw.save({}, none)
        with pytest.raises(ValueError, match="BytesIO: not a safetensors file"):
            tw.load(io.BytesIO(b"xy"))


class TestGenerators:
    def test_states(self):
        generator = tw.Generator(device="cpu").manual_seed(3)
        tw.rand(5, generator=generator)
        state = generator.get_state()
        drawn = tw.rand(3, generator=generator).tolist()
        other = tw.Generator()
        other.set_state(state)
        assert tw.rand(3, generator=other).tolist() == drawn

    @pytest.mark.parametrize("state", [tw.ones(2), tw.zeros(3, dtype=tw.uint64)])
    def test_bad_states_change_nothing(self, state):
        generator = tw.Generator(5)
        with pytest.raises(ValueError, match="what get_state gave"):
            generator.set_state(state)
        assert generator.seed == 5

    def test_devices_that_are_not_there(self):
        with pytest.raises(ValueError, match="no device 'xyz'"):
            tw.Generator(device="xyz")


@pytest.mark.parametrize(
    "value",
    [
        *(np.ones(2), np.ones(1), np.ma.masked, np.ma.array(3.0, mask=True), np.str_("3")),
        *(np.datetime64("2020", "ns"), np.timedelta64(3, "ns"), np.bytes_(b"3"), object()),
        *(tw.ones(2), tw.ones((), requires_grad=True), torch.ones((), requires_grad=True)),
    ],
)
def test_what_is_no_number(value):
    for call in (tw.full, lambda shape, value: tw.zeros(shape).fill_(value)):
        with pytest.raises((TypeError, ValueError)):
            call((2,), value)


@pytest.mark.parametrize("value", [np.float16(3), np.array(3), torch.tensor(3.0), tw.tensor(3)])
def test_what_is_one(value):
    assert tw.full((2,), value).tolist() == [3, 3]


@pytest.mark.parametrize("name", ["jacrev", "jacfwd", "hessian"])
def test_arguments_that_are_named_wrongly(name: str) -> None:
    derivative = getattr(tw.func, name)
    x = tw.ones(2)
    for twice in ((0, 0), (0, -2)):
        with pytest.raises(ValueError, match="given twice"):
            derivative(lambda a, b: (a * b).sum(), twice)(x, x)
    for none in ((), [0, 1], "0"):
        with pytest.raises(TypeError, match="a number or a tuple"):
            derivative(lambda a, b: (a * b).sum(), none)


def test_empty_beginnings_are_in_the_graph() -> None:
    empty, x = tw.tensor([], requires_grad=True), tw.ones((2, 3), requires_grad=True)
    for parts in ([empty, x], [x.detach(), empty], [empty, x, empty]):
        (of_empty,) = tw.grad(tw.cat(parts, 1).sum(), [empty])
        assert of_empty.shape == (0,)
    (of_x,) = tw.grad((tw.cat([empty, x]) * 2).sum(), [x])
    assert of_x.tolist() == [[2.0] * 3] * 2


def test_failures_of_matrices_are_both_kinds_of_error():
    for kind in (ValueError, RuntimeError):
        with pytest.raises(kind, match="cholesky"):
            tw.linalg.cholesky(-tw.eye(2))


def test_options_of_pytorchs_ways_change_nothing():
    x = tw.ones(2, requires_grad=True)
    y = tw.checkpoint(
        lambda v: v * 2, x, use_reentrant=False, preserve_rng_state=False, determinism_check="none"
    )
    assert y.tolist() == [2.0, 2.0]
    tw.optim.Adam([x], capturable=False, foreach=True)
    with tw.autocast("cpu", cache_enabled=False):
        assert tw.is_autocast_enabled("cpu")


@pytest.mark.filterwarnings("ignore")  # of PyTorch's
@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "ASGD", "Rprop", "LBFGS"])
def test_state_of_optimisers(name: str) -> None:
    """By parameter, empty at first; of LBFGS all that it has is the first parameter's."""
    own, theirs = [], []
    for m, names in ((tw, own), (torch, theirs)):
        params = [leaf(m, 1, 2), leaf(m, 3)]
        options = {"momentum": 0.9} if name == "SGD" else {}
        optimizer = getattr(m.optim, name)(params, **options)
        assert not optimizer.state.get(params[0])

        def closure(params=params, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (params[0].square().sum() * params[1]).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        names += [sorted({*optimizer.state.get(param, {})} - {"step"}) for param in params]
    if name != "LBFGS":
        assert own == theirs
    assert own[0]
    assert bool(own[1]) == (name != "LBFGS")


def test_state_of_optimisers_is_their_own() -> None:
    weight = tw.ones(2, requires_grad=True)
    optimizer = tw.optim.SGD([weight], lr=1.0, momentum=0.5)
    weight.sum().backward()
    optimizer.step()
    optimizer.state[weight]["momentum_buffer"].zero_()
    optimizer.step()
    assert weight.tolist() == [-1.0, -1.0]


def test_arrays_by_force() -> None:
    weight = tw.ones(2, requires_grad=True)
    array = weight.numpy(force=True)
    array[0] = 5.0
    assert weight.tolist() == [5.0, 1.0]
    assert (weight * 2).numpy(force=True).tolist() == [10.0, 2.0]
    with pytest.raises(RuntimeError, match="detach"):
        weight.numpy()
