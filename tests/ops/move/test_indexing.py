"""Indexing against NumPy: generated indices, read and written, and the errors of wrong ones."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tilewright as tw

# The seed is hypothesis's own, printed with a failure; deadlines would assert a time.
checked = settings(
    deadline=None,
    max_examples=300,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def counted(shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def ours(index):
    """The same index with our tensors for NumPy's arrays."""
    if isinstance(index, tuple):
        return tuple(ours(item) for item in index)
    return tw.asarray(index) if isinstance(index, np.ndarray) else index


@st.composite
def basic(draw):
    shape = draw(SHAPES)
    index = draw(hnp.basic_indices(shape, max_dims=6, allow_newaxis=True, allow_ellipsis=True))
    return counted(shape), index


@st.composite
def advanced(draw):
    """Integers, slices, masks and integer arrays, mixed."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    index_shape = draw(st.sampled_from([(), (1,), (3,), (2, 3), (2, 1), (0,)]))
    items = []
    axis = new_axes = 0
    while axis < len(shape):
        kind = draw(st.sampled_from(["slice", "integer", "array", "mask", "stop", "new axis"]))
        extent = shape[axis]
        if kind == "stop":
            break
        if kind == "new axis":
            items.append(None)
            new_axes += 1
            if new_axes == 3:
                break
            continue
        if kind == "slice":
            items.append(draw(st.slices(extent)))
        elif kind == "integer":
            items.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "array":
            elements = st.integers(-extent, extent - 1)
            items.append(draw(hnp.arrays(np.int64, index_shape, elements=elements)))
        else:
            # Several masks, or a mask and arrays, must agree in their number of True.
            items.append(draw(hnp.arrays(np.bool_, (extent,))))
        axis += 1
    if draw(st.booleans()):
        # One that stands for no axis may be anywhere: it keeps arrays apart all the same.
        whole = axis == len(shape)
        items.insert(draw(st.integers(0, len(items))) if whole else len(items), ...)
    return counted(shape), tuple(items)


def numpy_result(x, index):
    try:
        return x[index]
    except IndexError:
        assume(False)


@checked
@given(basic())
def test_basic_indices_read(case):
    x, index = case
    expected = x[index]
    y = tw.asarray(x)[index]
    assert y.shape == np.shape(expected)
    np.testing.assert_array_equal(np.asarray(y), expected)


@checked
@given(basic())
def test_basic_indices_are_views(case):
    x, index = case
    t = tw.asarray(x)
    y = t[index]
    assume(y.size)
    y += 1000.0
    np.testing.assert_array_equal(np.asarray(t), x)
    assert (x >= 1000.0).sum() == y.size


@checked
@given(basic(), st.booleans())
def test_basic_indices_written(case, from_array):
    x, index = case
    expected = x.copy()
    t = tw.asarray(x.copy())
    value = -1.0 - counted(np.shape(x[index])) if from_array else -7.0
    expected[index] = value
    t[index] = tw.asarray(value) if from_array else value
    np.testing.assert_array_equal(np.asarray(t), expected)


@checked
@given(advanced())
def test_arrays_and_masks_read(case):
    x, index = case
    expected = numpy_result(x, index)
    y = tw.asarray(x)[ours(index)]
    assert y.shape == np.shape(expected)
    np.testing.assert_array_equal(np.asarray(y), expected)
    np.testing.assert_array_equal(np.asarray(tw.asarray(x)[index]), expected)


@checked
@given(advanced(), st.booleans())
def test_arrays_and_masks_written(case, from_array):
    x, index = case
    shape = np.shape(numpy_result(x, index))
    expected = x.copy()
    t = tw.asarray(x.copy())
    value = -1.0 - counted(shape) if from_array else np.float32(-7.0)
    expected[index] = value
    t[ours(index)] = tw.asarray(value)
    np.testing.assert_array_equal(np.asarray(t), expected)


@checked
@given(advanced())
def test_strided_tensors(case):
    x, index = case
    wide = np.repeat(x, 2, axis=-1)[..., ::-2]
    expected = numpy_result(wide, index)
    np.testing.assert_array_equal(np.asarray(tw.asarray(wide)[ours(index)]), expected)
    written = np.repeat(x, 2, axis=-1)[..., ::-2]
    t = tw.asarray(np.repeat(x, 2, axis=-1))[..., ::-2]
    written[index] = -1.0
    t[ours(index)] = -1.0
    np.testing.assert_array_equal(np.asarray(t), written)


@checked
@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)))
def test_masks_of_several_axes(mask):
    x = counted((*mask.shape, 2))
    np.testing.assert_array_equal(np.asarray(tw.asarray(x)[tw.asarray(mask)]), x[mask])
    t = tw.asarray(x.copy())
    t[tw.asarray(mask)] = -1.0
    x[mask] = -1.0
    np.testing.assert_array_equal(np.asarray(t), x)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (0, 0), (0, 4, 2)])
def test_masks_without_elements_take_nothing_of_any_axis(shape):
    """As in NumPy and the Array API: an extent of 0 need not be the axis's."""
    x, mask = counted((3, 4, 2)), np.zeros(shape, bool)
    t = tw.asarray(x, copy=True)
    np.testing.assert_array_equal(t[tw.asarray(mask)].numpy(), x[mask])
    t[tw.asarray(mask)] = -1.0
    np.testing.assert_array_equal(t.numpy(), x)
    with pytest.raises(IndexError, match="does not match"):
        t[tw.zeros((2, 0), dtype=tw.bool)]


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
     "float32", "float64", "complex64", "complex128"],
)  # fmt: skip
def test_every_dtype(dtype):
    x = (np.arange(12) % 5).reshape(3, 4).astype(dtype)
    t = tw.asarray(x.copy())
    np.testing.assert_array_equal(np.asarray(t[[2, 0], 1:]), x[[2, 0], 1:])
    t[1, ::2] = t[0, 1::2]
    t[[0, 2], [1, 1]] = t[1, 0]
    x[1, ::2] = x[0, 1::2]
    x[[0, 2], [1, 1]] = x[1, 0]
    np.testing.assert_array_equal(np.asarray(t), x)


def test_bfloat16():
    t = tw.arange(6, dtype="bfloat16").reshape(2, 3)
    assert t[[1, 0], [0, 2]].tolist() == [3.0, 2.0]
    t[t > 3.0] = 0.0
    assert t.tolist() == [[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]]


class TestSpecial:
    def test_lists_ranges_and_scalars_of_numpy(self):
        x = counted((4, 3))
        t = tw.asarray(x)
        np.testing.assert_array_equal(np.asarray(t[[True, False, True, False]]), x[[0, 2]])
        np.testing.assert_array_equal(np.asarray(t[np.int64(2)]), x[2])
        np.testing.assert_array_equal(np.asarray(t[tw.asarray(2)]), x[2])
        assert t[[]].shape == (0, 3)

    def test_huge_bounds(self):
        t = tw.arange(4)
        big = 10**30
        assert t[-big:big].tolist() == [0, 1, 2, 3]
        assert t[big:-big:-1].tolist() == [3, 2, 1, 0]
        assert t[:: 2**62].tolist() == [0]
        assert t[:: -(2**62)].tolist() == [3]

    def test_values_overlap_what_they_overwrite(self):
        x = np.arange(6.0, dtype=np.float32)
        t = tw.asarray(x.copy())
        t[1:] = t[:-1]
        x[1:] = x[:-1].copy()
        np.testing.assert_array_equal(np.asarray(t), x)
        t[::-1] = t
        np.testing.assert_array_equal(np.asarray(t), x[::-1])

    def test_values_are_broadcast_and_converted(self):
        t = tw.zeros((2, 3), dtype=tw.int32)
        t[:] = tw.asarray([1.75, -1.75, 3.0])
        assert t.tolist() == [[1, -1, 3]] * 2
        t[:, 1] = True
        t[0] = [7, 8, 9]
        assert t.tolist() == [[7, 8, 9], [1, 1, 3]]

    def test_iteration_and_length(self):
        t = tw.asarray([[1, 2], [3, 4]])
        assert [row.tolist() for row in t] == [[1, 2], [3, 4]]
        assert len(t) == 2
        assert list(map(int, t[0])) == [1, 2]

    def test_take(self):
        x = counted((3, 4))
        for axis in (0, 1, -1):
            np.testing.assert_array_equal(
                np.asarray(tw.take(tw.asarray(x), tw.asarray([2, 0, -1]), axis=axis)),
                np.take(x, [2, 0, -1], axis=axis),
            )

    def test_nonzero(self):
        x = np.asarray([[1, 0, 2], [0, 0, 3]])
        found = tw.nonzero(tw.asarray(x))
        assert isinstance(found, tuple)
        for a, b in zip(found, np.nonzero(x), strict=True):
            assert a.dtype == tw.int64
            assert not a.requires_grad
            np.testing.assert_array_equal(np.asarray(a), b)


def equal_positions(x: np.ndarray) -> None:
    found = tw.nonzero(tw.asarray(x))
    assert len(found) == x.ndim
    for a, b in zip(found, np.nonzero(x), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)


class TestNonzero:
    """Counted in pieces of 65536 elements, and found eight at a time."""

    @pytest.mark.parametrize("density", [0, 0.001, 0.3, 1])
    @pytest.mark.parametrize(
        "shape",
        [
            *((n,) for n in (0, 1, 7, 8, 9, 63, 2047, 2048, 65535, 65536, 65537, 400_003)),
            *((5, 13), (70_000, 1), (1, 70_000), (3, 0, 2), (2, 3, 4, 5, 6), (40, 41, 43)),
        ],
    )
    def test_shapes(self, shape, density, threads):
        x = np.random.default_rng(0).random(shape) < density
        for count in (1, 2):
            tw.set_num_threads(count)
            equal_positions(x)

    @pytest.mark.parametrize(
        "dtype", ["int8", "uint64", "float32", "float64", "complex64", "complex128"]
    )
    def test_types(self, dtype):
        rng = np.random.default_rng(1)
        x = (rng.integers(0, 3, (9, 11)) * (1j if dtype.startswith("complex") else 1)).astype(dtype)
        equal_positions(x)
        equal_positions(x[::2, ::-3].T)

    def test_what_is_not_zero(self):
        x = np.asarray([0.0, -0.0, np.nan, np.inf, 5e-324, -1.0])
        equal_positions(x)

    def test_ops(self):
        with tw.explain() as report:
            tw.nonzero(tw.asarray([0.0, 1.0]))
        names = [record.op for record in report]
        assert names == ["not_equal", "nonzero_counts", "nonzero_positions"]

    @pytest.mark.parametrize("shape", [(300_000,), (700, 301)])
    def test_masks(self, shape):
        rng = np.random.default_rng(2)
        x, mask = rng.random((*shape, 2)), rng.random(shape) < 0.2
        t, m = tw.asarray(x, copy=True), tw.asarray(mask)
        np.testing.assert_array_equal(t[m].numpy(), x[mask])
        np.testing.assert_array_equal(t[m, 1].numpy(), x[mask, 1])
        t[m] = -1.0
        x[mask] = -1.0
        np.testing.assert_array_equal(t.numpy(), x)

    def test_gradients_of_masks(self):
        x = tw.asarray(np.arange(6.0).reshape(2, 3)).requires_grad_()
        mask = tw.asarray([[True, False, True], [False, True, False]])
        (x[mask] ** 2).sum().backward()
        expected = np.where(np.asarray(mask), 2 * x.detach().numpy(), 0)
        np.testing.assert_array_equal(x.grad.numpy(), expected)

    def test_rows_may_be_changed(self):
        first, second = tw.nonzero(tw.asarray([[0, 1], [1, 1]]))
        first += 5
        assert (first.tolist(), second.tolist()) == ([5, 6, 6], [1, 0, 1])

    def test_in_a_pool_with_a_quota(self, tmp_path):
        mask = np.random.default_rng(3).random(200_000) < 0.5
        with tw.memory.Pool(quota_bytes=1_200_000, spill_dir=tmp_path):
            m = tw.asarray(mask, copy=True)
            (found,) = tw.nonzero(m)
            np.testing.assert_array_equal(np.asarray(found), np.flatnonzero(mask))

    def test_on_a_device_that_computes_nothing(self):
        x = tw.ones((3, 4), device="null")
        for found in tw.nonzero(x):
            assert (found.device, found.shape) == ("null", (0,))
        assert x[x > 0].shape == (0,)
        x[x > 0] = 1.0
        assert x[tw.asarray([0, 2], device="null"), 1].shape == (2,)

    def test_a_capture_names_op_and_line(self):
        def step(x):
            y = x * 2
            return y[y > 1]  # the line

        for function in (step, lambda x: tw.nonzero(x)[0]):
            with pytest.raises(RuntimeError, match="capture: nonzero reads how many") as caught:
                tw._core._capture(function, [tw.ones((3,))])
            lines = [entry.statement for entry in caught.traceback]
            assert any("# the line" in str(line) or "nonzero(x)" in str(line) for line in lines)


class TestErrors:
    @pytest.mark.parametrize(
        ("index", "text"),
        [
            (3, "index: 3 is out of range for axis 0 with size 3"),
            (-4, "index: -4 is out of range for axis 0 with size 3"),
            ((0, 4), "index: 4 is out of range for axis 1 with size 4"),
            ((0, 0, 0), "index: 3 indices for 2 dimensions"),
            ((..., ...), "index: more than one ellipsis"),
            ([0, 3], "index: 3 is out of range for axis 0 with size 3"),
            ([0.5], "index: arrays must be integer or bool, got float32"),
            ("row", "got str"),
            (1.0, "got float"),
            ([True, False], r"index: mask of shape \(2,\) does not match \(3, 4\) at axis 0"),
            (slice(0, 1, 0), "index: slice step is 0"),
            (([0, 1], [0, 1, 2]), r"index: .*\(2,\) and \(3,\)"),
        ],
    )
    def test_wrong_indices(self, index, text):
        x = tw.asarray(counted((3, 4)))
        before = x.tolist()
        expected = IndexError if not _is_value_error(index) else ValueError
        with pytest.raises(expected, match=text):
            x[index]
        with pytest.raises(expected, match=text):
            x[index] = 1.0
        assert x.tolist() == before

    @pytest.mark.parametrize(
        ("index", "value"),
        [(slice(None), [1.0, 2.0]), (0, np.zeros((2, 4))), ([0, 1], np.zeros((3, 4)))],
    )
    def test_wrong_values(self, index, value):
        x = tw.asarray(counted((3, 4)))
        before = x.tolist()
        with pytest.raises(ValueError, match="index assignment"):
            x[index] = tw.asarray(value)
        with pytest.raises(TypeError, match="index assignment: complex64 into float32"):
            x[0] = tw.asarray([1j])
        with pytest.raises(TypeError, match="cannot make a tensor of str"):
            x[0] = "text"
        assert x.tolist() == before

    def test_no_deletion_and_no_axes(self):
        x = tw.asarray([1.0])
        with pytest.raises(TypeError, match="cannot be deleted"):
            del x[0]
        point = tw.asarray(1.0)
        with pytest.raises(IndexError, match="1 indices for 0 dimensions"):
            point[0]
        with pytest.raises(TypeError, match="0-d"):
            len(point)
        with pytest.raises(TypeError, match="0-d"):
            iter(point)

    def test_read_only_memory(self):
        x = np.zeros(3, np.float32)
        x.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            tw.asarray(x)[0] = 1.0

    def test_index_arrays_out_of_range_are_numpys_errors_too(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for bad in (5, -5):
                with pytest.raises(IndexError):
                    tw.arange(4)[[0, bad]]
                with pytest.raises(IndexError):
                    np.arange(4)[[0, bad]]


def _is_value_error(index):
    return isinstance(index, slice)


EMPTY = {
    "mask of one axis": (np.zeros((0, 3)), np.zeros(0, bool)),
    "mask of both axes": (np.zeros((0, 3)), np.zeros((0, 3), bool)),
    "mask of the last axis": (np.zeros((2, 0)), (slice(None), np.zeros(0, bool))),
    "mask of an empty last axis": (np.zeros((2, 0)), np.zeros((2, 0), bool)),
    "integers": (np.zeros((2, 3)), np.zeros(0, int)),
    "list": (np.zeros((2, 3)), []),
    "list of an empty list": (np.zeros((2, 3)), [[]]),
}


@pytest.mark.parametrize("case", EMPTY)
def test_empty_index_arrays(case):
    x, index = EMPTY[case]
    t = tw.asarray(x.copy())
    assert t[index].shape == x[index].shape
    t[index] = 1
    np.testing.assert_array_equal(np.asarray(t), x)


def test_empty_arrays_that_are_no_index():
    t = tw.ones((2, 3))
    with pytest.raises(IndexError):
        t[np.zeros(0)]
    with pytest.raises(IndexError):
        t[np.zeros(0)] = 1


@pytest.mark.parametrize("padding", [4, -1])
def test_padding_by_any_number_of_its_row(padding: int) -> None:
    """Rows may be counted from the end, the one of padding too."""
    weight = tw.arange(10, dtype=tw.float32).reshape((5, 2)).requires_grad_(True)
    tw.embedding(tw.asarray([-1, 4, 0]), weight, padding).sum().backward()
    assert weight.grad[:, 0].tolist() == [1, 0, 0, 0, 0]
    for mode in ("mean", "sum", "max"):
        bags = tw.asarray([[-1, 0, 4], [4, -1, -1]])
        found = tw.embedding_bag(bags, weight, mode=mode, padding_idx=padding)
        assert found.tolist() == [[0, 1], [0, 0]]
    with pytest.raises(IndexError, match="-6 is out of range for axis 0 with size 5"):
        tw.embedding(tw.asarray([-6]), weight, padding)
