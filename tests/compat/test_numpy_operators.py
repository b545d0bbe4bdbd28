"""Operators between tensors and what NumPy has besides arrays: units, masks, dates, other types."""

import operator

import numpy as np
import pytest

import tilewright as tw


class Metres(np.ndarray):
    """An array with a unit, which NumPy's functions keep."""

    def __array_finalize__(self, source):
        self.unit = getattr(source, "unit", "m")


class Own:
    """An array that answers NumPy's functions itself."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array_ufunc__(self, function, method, *inputs, **options):
        return "own", function.__name__

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __add__(self, other):
        return "own", "add"

    __radd__ = __sub__ = __rsub__ = __lt__ = __gt__ = __eq__ = __matmul__ = __rmatmul__ = __add__
    __hash__ = None


class Closed(Own):
    """An array that leaves NumPy's functions alone."""

    __array_ufunc__ = None


BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
    operator.imod, operator.ipow,
]  # fmt: skip


def metres(values=(1.0, 2.0, 4.0)):
    return np.array(values).view(Metres)


def masked():
    return np.ma.array([1.0, 2.0, 4.0], mask=[False, True, False])


class TestSubclassesOfArrays:
    @pytest.mark.parametrize("make", [metres, masked])
    @pytest.mark.parametrize("op", BINARY)
    def test_they_keep_what_they_add(self, op, make):
        t, x = tw.tensor([3.0, 5.0, 2.0], dtype=tw.float64), make()
        for ours, of_numpy in ((op(t, x), op(t.numpy(), x)), (op(x, t), op(x, t.numpy()))):
            assert type(ours) is type(of_numpy) is type(x)
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(of_numpy))
            np.testing.assert_array_equal(np.ma.getmaskarray(ours), np.ma.getmaskarray(of_numpy))
            assert getattr(ours, "unit", None) == getattr(x, "unit", None)

    def test_products_and_quotients_with_a_rest(self):
        t, x = tw.ones((3, 3), dtype=tw.float64), metres(np.eye(3))
        assert type(t @ x) is type(x @ t) is Metres
        assert all(type(y) is Metres for y in divmod(t, x + 1))
        whole = np.ones(3, int).view(Metres)
        for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
            assert type(op(tw.tensor([1, 2, 3]), whole)) is Metres
            assert type(op(whole, tw.tensor([1, 2, 3]))) is Metres

    @pytest.mark.parametrize("make", [metres, masked])
    @pytest.mark.parametrize("op", IN_PLACE)
    def test_in_place_the_name_stands_for_the_result(self, op, make):
        t, x = tw.tensor([3.0, 5.0, 2.0], dtype=tw.float64), make()
        before = t.tolist()
        assert type(op(t, x)) is type(x)
        assert t.tolist() == before

    def test_functions_of_numpy(self):
        t = tw.tensor([3.0, 5.0, 2.0])
        for x in (metres(), masked()):
            for result in (np.add(t, x), np.multiply(x, t), np.hypot(t, x)):
                assert type(result) is type(x)

    def test_a_tensor_in_a_graph_is_not_cut_off(self):
        t = tw.ones((3,), requires_grad=True)
        for call in (lambda: t + metres(), lambda: masked() * t):
            with pytest.raises(RuntimeError, match=r"requires grad; use detach\(\)"):
                call()

    def test_their_values_can_be_read(self):
        assert tw.asarray(metres()).tolist() == [1, 2, 4]
        t = tw.zeros((3,))
        t[:] = metres()
        assert t.tolist() == [1, 2, 4]


class TestOwnOperators:
    def test_they_are_asked(self):
        t = tw.ones((2,))
        for other in (Own([1.0, 2.0]), Closed([1.0, 2.0])):
            for name in ("add", "sub", "lt", "gt", "eq", "iadd", "isub", "matmul", "imatmul"):
                assert getattr(operator, name)(t, other)[0] == "own"

    def test_those_that_have_none_are_an_error(self):
        for call in (
            lambda: tw.ones((2,)) * Closed([1.0, 2.0]),
            lambda: divmod(tw.ones((2,)), Own(1)),
        ):
            with pytest.raises(TypeError, match="unsupported operand"):
                call()


class TestPlainArrays:
    @pytest.mark.parametrize("op", BINARY)
    def test_they_make_tensors(self, op, tmp_path):
        t, x = tw.tensor([3.0, 5.0, 2.0], dtype=tw.float64), np.array([1.0, 2.0, 4.0])
        in_a_file = np.memmap(tmp_path / "values", x.dtype, "w+", shape=(3,))
        in_a_file[:] = x
        torch = pytest.importorskip("torch")
        for other in (x, in_a_file, np.float32(2), x[0:1], memoryview(x), torch.from_numpy(x)):
            assert type(op(t, other)) is tw.Tensor
        for other in (x, in_a_file, np.float32(2)):
            assert type(op(other, t)) is tw.Tensor
            np.testing.assert_allclose(np.asarray(op(other, t)), op(np.asarray(other), t.numpy()))

    @pytest.mark.parametrize("op", IN_PLACE)
    def test_in_place(self, op):
        t = tw.tensor([3.0, 5.0, 2.0], dtype=tw.float64)
        same = t
        assert op(t, np.array([1.0, 2.0, 4.0])) is same


DATES = [
    np.timedelta64(1, "D"), np.datetime64("2020-01-01"), np.array([1, 2], "m8[D]"),
    np.array(["2020", "2021"], "M8[Y]"), np.array(1, "m8[s]"), np.timedelta64("NaT"),
]  # fmt: skip
OTHERS = [
    np.array(["a", "b"]), np.array([b"a", b"b"]), np.array([1, None]), np.zeros(2, "V3"),
    np.zeros(2, [("a", "i4")]), np.void(b"12345678"), np.longdouble(1), np.zeros(2, "clongdouble"),
]  # fmt: skip


class TestOtherTypes:
    @pytest.mark.parametrize("x", DATES + OTHERS, ids=repr)
    def test_they_are_not_read(self, x):
        t = tw.ones((2,))
        calls = [
            lambda: tw.asarray(x), lambda: tw.tensor(x), lambda: tw.tensor([x, x]),
            lambda: tw.Tensor(x), lambda: tw.tensor(x, dtype=tw.int64), lambda: t[x],
            lambda: t.__setitem__(0, x), lambda: tw.add(t, x), lambda: tw.where(t > 0, t, x),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(TypeError):
                call()
        assert t.tolist() == [1, 1]

    @pytest.mark.parametrize("x", DATES, ids=repr)
    def test_dates_are_no_numbers(self, x):
        t = tw.ones((2,))
        for call in (lambda: tw.full((2,), x), lambda: t.fill_(x), lambda: t.clip(x, 2)):
            with pytest.raises(TypeError):
                call()
        with pytest.raises((TypeError, BufferError)):
            tw.from_dlpack(x)

    @pytest.mark.parametrize("x", DATES, ids=repr)
    def test_operators_refuse_them(self, x):
        t = tw.ones((2,))
        for op in BINARY + IN_PLACE + [divmod, operator.matmul]:
            with pytest.raises(TypeError, match=r"no dtype for (datetime|timedelta)64"):
                op(t, x)
        assert t.tolist() == [1, 1]

    def test_numpys_own_operators_keep_their_way(self):
        t, days = tw.tensor([2.0, 3.0]), np.timedelta64(1, "D")
        assert (days * t).tolist() == (days * t.numpy()).tolist()
        assert (np.array([1, 2], "m8[D]") / t).dtype == np.dtype("m8[D]")
        assert (days == t).tolist() == [False, False]
        with pytest.raises(TypeError):
            days + t
        assert (np.array([1, 2], object) * t).tolist() == [2.0, 6.0]

    def test_the_type_is_told(self):
        with pytest.raises(
            TypeError, match=r"asarray: no dtype for timedelta64\[D\] of numpy\.time"
        ):
            tw.asarray(np.timedelta64(1, "D"))
        with pytest.raises(TypeError, match=r"no dtype for datetime64\[Y\] of numpy\.ndarray"):
            tw.asarray(np.array(["2020"], "M8[Y]"))
        with pytest.raises(TypeError, match="operator: no dtype for buffer format 'O'"):
            tw.ones((2,)) + np.array([1, None])

    def test_bytes_are_bytes_where_that_is_meant(self):
        for x in (np.arange(3, dtype=np.uint8), memoryview(b"abc"), np.uint8(7)):
            assert tw.asarray(x).dtype == tw.uint8
