"""Every in-place form, on every kind of target and alias: values, first and second gradients.

The reference is PyTorch in float64, computed out of place: as if all sources had been copied before
the write.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from subcases import each

import tilewright as tw

MASK = np.array([[True, False, True], [False, True, False], [True, True, False]])
SCALE = np.arange(1.0, 10.0).reshape(3, 3) / 10


def changed(y: torch.Tensor, at: Any, value: Any) -> torch.Tensor:
    """`y` with y[at] = value, out of place."""
    out = y.clone()
    out[at] = value
    return out


def iadd_row(y: Any, o: Any) -> None:
    y[0] += o[1]


def imul_window(y: Any, o: Any) -> None:
    y[1:, :2] *= o[:2, 1:]


def imul_column(y: Any, o: Any) -> None:
    y.T[0] *= o[0]


def iadd_masked(y: Any, o: Any) -> None:
    y[tw.asarray(MASK)] += o[tw.asarray(MASK)]


def set_chain(y: Any, o: Any) -> None:
    y[0][1] = o[2][0]


def set_mask(y: Any, o: Any) -> None:
    y[tw.asarray(MASK)] = o[tw.asarray(MASK)]


def set_rows(y: Any, o: Any) -> None:
    y[tw.asarray([2, 0])] = o[tw.asarray([0, 1])]


# Name: the change of y by o, and its result out of place.
FORMS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], torch.Tensor]]] = {
    "+=": (operator.iadd, operator.add),
    "-=": (operator.isub, operator.sub),
    "*=": (operator.imul, operator.mul),
    "/=": (operator.itruediv, operator.truediv),
    "**=": (operator.ipow, operator.pow),
    "//=": (operator.ifloordiv, lambda y, o: (y / o).detach().floor()),
    "%=": (operator.imod, operator.mod),
    "@=": (operator.imatmul, operator.matmul),
    "*= 3": (lambda y, o: operator.imul(y, 3.0), lambda y, o: y * 3.0),
    "**= 3": (lambda y, o: operator.ipow(y, 3), lambda y, o: y**3),
    "add_": (lambda y, o: y.add_(o), operator.add),
    "sub_": (lambda y, o: y.sub_(o), operator.sub),
    "mul_": (lambda y, o: y.mul_(o), operator.mul),
    "div_": (lambda y, o: y.div_(o), operator.truediv),
    "copy_": (lambda y, o: y.copy_(o), lambda y, o: o + 0 * y),
    "fill_": (lambda y, o: y.fill_(2.0), lambda y, o: 0 * y + 2),
    "zero_": (lambda y, o: y.zero_(), lambda y, o: 0 * y),
    "addmm_": (
        lambda y, o: y.addmm_(o, o.T, beta=0.5, alpha=2.0),
        lambda y, o: 0.5 * y + 2 * (o @ o.T),
    ),
    "y[...] = o": (lambda y, o: operator.setitem(y, ..., o), lambda y, o: o + 0 * y),
    "y[1:] = o[:2]": (
        lambda y, o: operator.setitem(y, slice(1, None), o[:2]),
        lambda y, o: changed(y, slice(1, None), o[:2]),
    ),
    "y[mask] = o[mask]": (set_mask, lambda y, o: changed(y, MASK, o[torch.tensor(MASK)])),
    "y[[2, 0]] = o[[0, 1]]": (set_rows, lambda y, o: changed(y, [2, 0], o[[0, 1]])),
    "y[0][1] = o[2][0]": (set_chain, lambda y, o: changed(y, (0, 1), o[2, 0])),
    "y[0] += o[1]": (iadd_row, lambda y, o: changed(y, 0, y[0] + o[1])),
    "y[1:, :2] *= o[:2, 1:]": (
        imul_window,
        lambda y, o: changed(y, (slice(1, None), slice(None, 2)), y[1:, :2] * o[:2, 1:]),
    ),
    "y.T[0] *= o[0]": (imul_column, lambda y, o: changed(y, (slice(None), 0), y[:, 0] * o[0])),
    "y[mask] += o[mask]": (
        iadd_masked,
        lambda y, o: changed(y, MASK, y[torch.tensor(MASK)] + o[torch.tensor(MASK)]),
    ),
    "chain of views": (
        lambda y, o: y[1:][:, ::-1].T[0].mul_(o[1:, 2]),
        lambda y, o: changed(y, (slice(1, None), 2), y[1:, 2] * o[1:, 2]),
    ),
}

# Shape of the base, and the part of it that is changed.
TARGETS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "a tensor": ((3, 3), lambda base: base),
    "rows": ((4, 3), lambda base: base[:3]),
    "transposed": ((3, 3), lambda base: base.T),
    "a view of a view": ((2, 4, 3), lambda base: base[1][1:]),
    "every second row": ((6, 3), lambda base: base[::2]),
    "another shape": ((9,), lambda base: base.reshape(3, 3)),
}


def through_numpy(y: Any) -> Any:
    return y.detach() if isinstance(y, torch.Tensor) else tw.asarray(y.detach().numpy())


def through_dlpack(y: Any) -> Any:
    return y.detach() if isinstance(y, torch.Tensor) else tw.from_dlpack(y.detach())


def repeated_row(y: Any) -> Any:
    return (torch if isinstance(y, torch.Tensor) else tw).broadcast_to(y[1], (3, 3))


def shifted(base: Any) -> Any:
    """Three rows one place behind those of the target "rows"."""
    return base[1:4]


# What the target is changed by: (base, y, w) -> o.
ALIASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "another tensor": lambda base, y, w: w,
    "itself": lambda base, y, w: y,
    "a view": lambda base, y, w: y[:],
    "detached": lambda base, y, w: y.detach(),
    "transposed": lambda base, y, w: y.T,
    "of a detached": lambda base, y, w: y.detach().T,
    "repeated row": lambda base, y, w: repeated_row(y),
    "through NumPy": lambda base, y, w: through_numpy(y),
    "NumPy, transposed": lambda base, y, w: through_numpy(y).T,
    "through DLPack": lambda base, y, w: through_dlpack(y),
    "DLPack, transposed": lambda base, y, w: through_dlpack(y).T,
}


def numbers(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.6, 1.6, shape)


def reference(shape: Any, part: Any, alias: Any, out_of_place: Any) -> list[np.ndarray]:
    x = torch.tensor(numbers(*shape, seed=1), requires_grad=True)
    w = torch.tensor(numbers(3, 3, seed=2), requires_grad=True)
    base = x * 1.5
    after = base.clone()
    part(after).copy_(out_of_place(part(base), alias(base, part(base), w).clone()))
    y, older, flat = part(after), after[-1], after.reshape(-1)
    loss = ((y * torch.tensor(SCALE)) ** 2).sum() + older.cos().sum() + (flat**3).mean()
    first = torch.autograd.grad(loss, [x, w], create_graph=True, materialize_grads=True)
    total = (first[0] ** 2).sum() + (first[1] ** 2).sum() + (w * x.sum()).sum()
    second = torch.autograd.grad(total, [x, w])
    return [t.detach().numpy() for t in (after, *first, *second)]


def zeros_for_none(grads: Any, like: Any) -> list[Any]:
    return [tw.zeros_like(t) if g is None else g for g, t in zip(grads, like, strict=True)]


def ours(shape: Any, part: Any, alias: Any, change: Any) -> list[np.ndarray]:
    x = tw.asarray(numbers(*shape, seed=1)).requires_grad_()
    w = tw.asarray(numbers(3, 3, seed=2)).requires_grad_()
    base = x * 1.5
    older = base[-1]  # a view from before the change
    y = part(base)
    change(y, alias(base, y, w))
    flat = base.reshape(-1)
    loss = ((y * tw.asarray(SCALE)) ** 2).sum() + tw.cos(older).sum() + (flat**3).mean()
    first = zeros_for_none(tw.grad(loss, [x, w], create_graph=True, allow_unused=True), [x, w])
    total = (first[0] ** 2).sum() + (first[1] ** 2).sum() + (w * x.sum()).sum()
    second = tw.grad(total, [x, w])
    return [np.asarray(t.detach()) for t in (base, *first, *second)]


@each("alias", ALIASES)
@each("target", TARGETS)
@each("form", FORMS)
def test_gradients(form: str, target: str, alias: str) -> None:
    shape, part = TARGETS[target]
    change, out_of_place = FORMS[form]
    expected = reference(shape, part, ALIASES[alias], out_of_place)
    got = ours(shape, part, ALIASES[alias], change)
    for name, a, b in zip(("value", "dx", "dw", "ddx", "ddw"), got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_where_source_and_target_overlap(form: str) -> None:
    shape, part = TARGETS["rows"]
    change, out_of_place = FORMS[form]

    def alias(base: Any, y: Any, w: Any) -> Any:
        return shifted(base)

    expected = reference(shape, part, alias, out_of_place)
    for a, b in zip(ours(shape, part, alias, change), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


LONG_FORMS = {
    "+=": operator.iadd,
    "*=": operator.imul,
    "copy": lambda y, o: operator.setitem(y, ..., o),
}


@each("shift", [-65, -8, -1, 1, 7, 64])
@each("dtype", ["float32", "float64", "int8"])
@each("form", LONG_FORMS)
def test_long_sources_that_overlap_are_read_as_they_were(form: str, dtype: str, shift: int) -> None:
    """Later vectors of a row would read what earlier ones wrote."""
    expected = (np.arange(1000) % 7 + 1).astype(dtype)
    base = tw.asarray(expected, copy=True)
    for x in (expected, base):
        LONG_FORMS[form](x[100:900], x[100 + shift : 900 + shift])
    np.testing.assert_array_equal(np.asarray(base), expected)


@each("dtype", ["float32", "float64", "int8"])
@each("form", LONG_FORMS)
def test_a_transposed_source_of_its_own_is_read_as_it_was(form: str, dtype: str) -> None:
    expected = (np.arange(70 * 70) % 11).astype(dtype).reshape(70, 70)
    square = tw.asarray(expected, copy=True)
    for x in (expected, square):
        LONG_FORMS[form](x, x.T)
    np.testing.assert_array_equal(np.asarray(square), expected)


@each("target", TARGETS)
@each("form", FORMS)
def test_what_was_saved_before_is_protected(form: str, target: str) -> None:
    """A change of what a gradient needs raises, whichever view it was saved or changed through."""
    shape, part = TARGETS[target]
    for saved in (lambda base: base, lambda base: base[:1], part):
        x = tw.asarray(numbers(*shape, seed=1)).requires_grad_()
        w = tw.asarray(numbers(3, 3, seed=2))
        base = x * 1.5
        value = saved(base)
        z = (value * value).sum()
        FORMS[form][0](part(base), w)
        with pytest.raises(RuntimeError, match="changed in place"):
            z.backward()


@pytest.mark.parametrize("form", FORMS)
def test_also_through_memory_that_went_to_numpy_and_back(form: str) -> None:
    for back in (through_numpy, through_dlpack):
        x = tw.asarray(numbers(3, 3, seed=1)).requires_grad_()
        y = x * 1.5
        z = (y * y).sum()
        FORMS[form][0](back(y), tw.asarray(numbers(3, 3, seed=2)))
        with pytest.raises(RuntimeError, match="changed in place"):
            z.backward()


def test_also_through_two_tensors_of_one_array() -> None:
    array = numbers(4, 3, seed=1)
    w = tw.ones((3,), dtype=tw.float64, requires_grad=True)
    whole, part, other = tw.asarray(array), tw.asarray(array[1:]), tw.asarray(array[:1])
    z, apart = (whole * w).sum(), (other * w).sum()
    part += 1
    with pytest.raises(RuntimeError, match="changed in place"):
        z.backward()
    apart.backward()
    np.testing.assert_array_equal(np.asarray(w.grad), array[0])


@each("target", TARGETS)
@each("form", FORMS)
def test_leaves_that_require_grad_are_refused_and_kept(form: str, target: str) -> None:
    shape, part = TARGETS[target]
    x = tw.asarray(numbers(*shape, seed=1)).requires_grad_()
    w = tw.asarray(numbers(3, 3, seed=2))
    version = x.version
    with pytest.raises(RuntimeError, match="leaf that requires grad"):
        FORMS[form][0](part(x), w)
    assert x.version == version
    np.testing.assert_array_equal(np.asarray(x.detach()), numbers(*shape, seed=1))
    with tw.no_grad():
        FORMS[form][0](part(x), w)
    assert x.requires_grad
    assert x.is_leaf


@each("alias", ALIASES)
@each("target", TARGETS)
@each("form", FORMS)
def test_graphs_that_are_never_walked_leave_nothing_behind(
    form: str, target: str, alias: str
) -> None:
    shape, part = TARGETS[target]

    def build() -> None:
        x = tw.asarray(numbers(*shape, seed=1)).requires_grad_()
        w = tw.asarray(numbers(3, 3, seed=2)).requires_grad_()
        base = x * 1.5
        older, y = base[-1], part(base)
        z = (base * base).sum() + (y * y).sum() + (older * older).sum()
        FORMS[form][0](y, ALIASES[alias](base, y, w))
        y *= z
        base *= z
        (older * y.sum() * base.sum()).sum()

    build()
    before = tw.memory.stats()["live_bytes"]
    for _ in range(3):
        build()
    assert tw.memory.stats()["live_bytes"] == before


class TestPlacesOfViews:
    def test_a_view_outlives_its_base(self) -> None:
        x = tw.asarray([1.0, 2.0, 3.0]).requires_grad_()
        y = x * 2
        first, rest = y[:2], y[1:]
        del y
        first *= 5
        assert rest.tolist() == [20.0, 6.0]
        (rest * rest).sum().backward()
        assert x.grad.tolist() == [0.0, 2 * 20.0 * 10, 2 * 6.0 * 2]

    def test_a_repeated_view_adds_up(self) -> None:
        x = tw.asarray([1.0, 2.0]).requires_grad_()
        y = x * 2
        wide = tw.broadcast_to(y, (3, 2))
        y *= 4
        wide.sum().backward()
        assert x.grad.tolist() == [24.0, 24.0]

    def test_views_of_what_joins_a_graph(self) -> None:
        x = tw.asarray([1.0, 2.0]).requires_grad_()
        h = tw.zeros((3, 2))
        rows = [h[i] for i in range(3)]
        rows[0] += x
        rows[1] += rows[0] * 3
        rows[2].copy_(rows[1] + x)
        assert h.requires_grad
        assert all(row.requires_grad for row in rows)
        h.sum().backward()
        assert x.grad.tolist() == [1.0 + 3 + 4] * 2

    def test_the_properties_of_a_view_follow(self) -> None:
        x = tw.asarray([1.0, 2.0]).requires_grad_()
        h = tw.zeros(2)
        view = h[:]
        assert view.is_leaf
        h += x
        assert view.requires_grad
        assert not view.is_leaf
        (g,) = tw.grad(view.sum(), x)
        assert g.tolist() == [1.0, 1.0]
        view.sum().backward()

    def test_a_detached_tensor_has_a_graph_of_its_own(self) -> None:
        x = tw.asarray([1.0, 2.0]).requires_grad_()
        y = x * 3
        constant = y.detach()
        constant[0] *= x[1]
        assert y.tolist() == [6.0, 6.0]
        constant.sum().backward()
        assert x.grad.tolist() == [0.0, 3.0]
        y.sum().backward()
        assert x.grad.tolist() == [3.0, 6.0]

    def test_a_leaf_made_of_a_view(self) -> None:
        h = tw.zeros(3)
        leaf = h[1:].requires_grad_()
        with pytest.raises(RuntimeError, match="leaf that requires grad"):
            leaf += 1
        h += tw.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError, match="take the view again"):
            leaf * 2

    def test_kept_gradients_move_along(self) -> None:
        x = tw.asarray([1.0, 2.0]).requires_grad_()
        y = x * 2
        y.retain_grad()
        view = y[1:]
        view.retain_grad()
        view *= 3
        (y * tw.asarray([1.0, 10.0])).sum().backward()
        assert y.grad.tolist() == [1.0, 10.0]
        assert view.grad.tolist() == [10.0]
        assert x.grad.tolist() == [2.0, 60.0]

    def test_the_base_sees_what_reaches_it_through_a_changed_view(self) -> None:
        x = tw.asarray([1.0, 2.0, 3.0]).requires_grad_()
        y = x * 1
        y.retain_grad()
        view = y[:2]
        view *= 2
        seen: list[object] = []
        y.register_hook(lambda g: seen.append(g.tolist()))
        (view * view).sum().backward()
        assert y.grad.tolist() == [4.0, 8.0, 0.0]
        assert seen == [[4.0, 8.0, 0.0]]
        assert x.grad.tolist() == [8.0, 16.0, 0.0]

    def test_memory_whose_elements_share_places(self) -> None:
        array = np.lib.stride_tricks.sliding_window_view(np.arange(4.0), 3, writeable=True)
        windows = tw.asarray(array)
        with pytest.raises(RuntimeError, match="shows elements several times"):
            windows[0] *= tw.ones(3, dtype=tw.float64, requires_grad=True)
        with pytest.raises(ValueError, match="overlapping windows, share memory; copy"):
            windows *= tw.ones(3, dtype=tw.float64, requires_grad=True)

    def test_overlapping_windows_are_not_written(self) -> None:
        array = np.lib.stride_tricks.sliding_window_view(np.arange(4.0), 3, writeable=True)
        windows = tw.asarray(array)
        for change in (lambda: windows.add_(1), windows.zero_):
            with pytest.raises(ValueError, match="overlapping windows, share memory; copy"):
                change()
        assert windows.tolist() == [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]
        windows[0].add_(1)  # a row alone shares nothing
        assert array[0].tolist() == [1.0, 2.0, 3.0]

    def test_views_whose_axes_cross_are_written(self) -> None:
        x = tw.zeros((4, 3, 5))
        for view in (
            tw.permute_dims(x, (2, 0, 1))[::-2, 1:],
            tw.diagonal(x, axis1=0, axis2=2),
            tw.diagonal(x, axis1=1, axis2=2),
            tw.diagonal(x[::-1], axis1=0, axis2=1),
        ):
            view.add_(1)
        assert x.sum().item() == 3 * 3 * 3 + 4 * 3 + 4 * 3 + 3 * 5

    def test_an_index_may_change_afterwards(self) -> None:
        x = tw.asarray([1.0, 2.0, 3.0]).requires_grad_()
        y, index = x * 1, tw.asarray([0, 1])
        y[index] = tw.asarray([5.0, 5.0])
        index += 1
        (g,) = tw.grad((y * y * y).sum(), x, create_graph=True)
        assert g.tolist() == [0.0, 0.0, 27.0]
        g.sum().backward()
        assert x.grad.tolist() == [0.0, 0.0, 18.0]

    def test_within_a_checkpoint(self) -> None:
        def block(x: tw.Tensor) -> tw.Tensor:
            y = tw.exp(x) * 2
            y[0] *= tw.sin(x[1])
            y[1:].mul_(y[:1])
            return y * y

        x = tw.asarray(numbers(3, 3, seed=1)).requires_grad_()
        (expected,) = tw.grad(block(x).sum(), x)
        (got,) = tw.grad(tw.checkpoint(block, x).sum(), x)
        assert got.tolist() == expected.tolist()

    def test_with_a_planned_pass(self) -> None:
        x = tw.asarray(numbers(3, 3, seed=1)).requires_grad_()

        def loss() -> tw.Tensor:
            y = tw.exp(x) * 2
            old = y[1]
            y[:2] *= x[1:]
            y.T[0] += tw.cos(x[1])
            return (y * y).sum() + (old * old).sum()

        (expected,) = tw.grad(loss(), x)
        (got,) = tw.grad(loss(), x, plan=True)
        assert got.tolist() == expected.tolist()


# The augmented assignment and the operator that it stands for.
AUGMENTED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "+=": (operator.iadd, operator.add),
    "-=": (operator.isub, operator.sub),
    "*=": (operator.imul, operator.mul),
    "/=": (operator.itruediv, operator.truediv),
    "//=": (operator.ifloordiv, operator.floordiv),
    "%=": (operator.imod, operator.mod),
    "**=": (operator.ipow, operator.pow),
    "&=": (operator.iand, operator.and_),
    "|=": (operator.ior, operator.or_),
    "^=": (operator.ixor, operator.xor),
    "<<=": (operator.ilshift, operator.lshift),
    ">>=": (operator.irshift, operator.rshift),
    "@=": (operator.imatmul, operator.matmul),
}
KINDS = ("bool", "int", "float")
ARRAYS = {
    "bool": np.array([[True, False], [True, True]]),
    "uint8": np.array([[1, 2], [3, 4]], np.uint8),
    "int32": np.array([[5, 2], [3, 1]], np.int32),
    "int64": np.array([[5, 2], [3, 1]], np.int64),
    "float32": np.array([[0.5, 2], [3, 1]], np.float32),
    "float64": np.array([[0.5, 2], [3, 1]]),
}


class TestAugmentedAssignment:
    @each("other", [*ARRAYS, "True", "2", "1.5"])
    @each("kind", ARRAYS)
    @each("name", AUGMENTED)
    def test_keeps_object_type_and_memory_or_raises(self, name: str, kind: str, other: str) -> None:
        """The operator's result where the target's kind of number holds it, else TypeError."""
        assign, compute = AUGMENTED[name]
        x = tw.asarray(ARRAYS[kind].copy())
        source = tw.asarray(ARRAYS[other]) if other in ARRAYS else eval(other)
        try:
            result = compute(tw.asarray(ARRAYS[kind]), source)
        except (TypeError, ValueError):
            with pytest.raises((TypeError, ValueError)):
                assign(x, source)
            return
        rank, own = ([k in str(t.dtype) for k in KINDS].index(True) for t in (result, x))
        address = x.data_ptr
        if rank > own:
            with pytest.raises(TypeError, match="cannot be written in place"):
                assign(x, source)
            np.testing.assert_array_equal(np.asarray(x), ARRAYS[kind])
            return
        y = assign(x, source)
        assert y is x
        assert str(x.dtype).endswith(kind)
        assert x.data_ptr == address
        np.testing.assert_array_equal(np.asarray(x), np.asarray(result.astype(x.dtype)))

    @pytest.mark.parametrize("name", ["+=", "-=", "*=", "/=", "//=", "%=", "**=", "@="])
    def test_a_parameter_stays_one(self, name: str) -> None:
        w = tw.nn.Parameter(tw.full((2, 2), 3.0))
        before = w
        with tw.no_grad():
            w = AUGMENTED[name][0](w, tw.full((2, 2), 2.0))
        assert w is before
        assert isinstance(w, tw.nn.Parameter)
        assert w.requires_grad
        assert w.is_leaf

    def test_a_product_of_another_shape_is_refused(self) -> None:
        x = tw.ones((2, 3))
        with pytest.raises(ValueError, match=r"shape \(2, 4\) cannot be written in place"):
            x @= tw.ones((3, 4))
        x @= tw.ones((3, 3))
        assert x.tolist() == [[3.0] * 3] * 2

    def test_a_number_that_does_not_fit_leaves_no_trace(self) -> None:
        x = tw.zeros(2, dtype=tw.int32)
        with pytest.raises(OverflowError, match="does not fit int32"):
            x += 10**10
        assert x.version == 0


EMPTY_CHANGES: dict[str, Callable[[tw.Tensor], object]] = {
    "clamp": lambda h: h.clamp_(0.0, 1.0),
    "pow": lambda h: h.pow_(2.0),
    "div": lambda h: h.div_(tw.ones(h.shape, requires_grad=True)),
    "exp": lambda h: h.exp_(),
    "mul": lambda h: h.mul_(h.detach()),
    "of a view": lambda h: h[:].pow_(2.0),
    "assignment": lambda h: operator.setitem(h, slice(0, 0), 1.0),
}


@pytest.mark.parametrize("change", EMPTY_CHANGES)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_changes_of_no_elements_have_gradients_of_gradients(
    change: str, shape: tuple[int, ...]
) -> None:
    x = tw.zeros(shape, requires_grad=True)
    h = x * 1.0
    EMPTY_CHANGES[change](h)
    (h * h).sum().backward(create_graph=True)
    assert x.grad is not None
    assert x.grad.shape == shape
    (g,) = tw.grad((x.grad * x.grad).sum() + x.sum(), x)
    assert g.shape == shape
