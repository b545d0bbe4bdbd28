"""Public names that make or read tensors are records, made of records, or listed with a reason."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
import shutil
import subprocess

import numpy as np
import pytest
from cases import arrays
from subcases import each

import tilewright as tw
from tilewright import _core
from tilewright._engine.lazy_methods import ABSENT

OPS = {op["name"]: op for op in _core._op_records()}


def words(*lines: str) -> set[str]:
    return set(" ".join(lines).split())


def values(seed: int, dtype: str = "float32") -> list[tw.Tensor]:
    rng = np.random.default_rng(seed)
    if dtype == "float32":
        return [tw.asarray(rng.random((4, 4)) + 0.5, dtype=tw.float32) for _ in range(2)]
    return [tw.asarray(rng.integers(0, 5, (4, 4)), dtype=tw.int64) for _ in range(2)]


def contents(result: object) -> list[tuple[str, bytes]]:
    results = result if isinstance(result, (tuple, list)) else [result]
    return [(str(x.dtype), arrays.array(x).tobytes()) for x in results]


# ---- names ----

OTHER_NAMES = {r["theirs"]: r["ours"] for r in _core._spellings() if r["kind"] == "name"}
# Functions of the package that are no ops, by why.
FUNCTIONS = {
    "memory of other programs and files": """as_tensor asarray from_dlpack from_numpy frombuffer
        load save tensor""",
    "made of ops": """adjoint aminmax argwhere cholesky_inverse cholesky_solve corrcoef cov
        cumulative_trapezoid det diagonal_scatter dist fill_diagonal_ fmax fmin frexp
        gcd gradient i0 index_put index_put_ index_reduce inverse is_nonzero isreal
        istft lcm ldexp logdet logspace lu_unpack matrix_exp matrix_power mode msort
        mvlgamma norm pdist pinverse put renorm resolve_conj slogdet std_mean stft
        sum_to_size take_along_dim trapezoid trapz unravel_index var_mean""",
    "methods as well": "clone detach is_complex is_floating_point is_signed numel t",
    "numbers of Python": """bartlett_window blackman_window hamming_window hann_window
        kaiser_window""",
    "shapes and types alone": """broadcast_shapes can_cast finfo iinfo is_tensor isdtype
        promote_types result_type""",
    "several tensors, made of ops": """atleast_1d atleast_2d atleast_3d block_diag broadcast_arrays
        broadcast_tensors cartesian_prod chunk dsplit hsplit meshgrid split split_with_sizes
        tensor_split vsplit""",
    "walks of the graph, and functions of the caller": """checkpoint checkpoint_sequential grad
        gradcheck gradgradcheck is_grad_enabled vmap zero_grad""",
    "products and sums of them over axes, as `matmul` and formulas": """addbmm addmv addr baddbmm
        bmm dot einsum ger inner kron mm mv outer tensordot vdot vecdot""",
    "ops of several results, or as many as the values say": """histogram unique unique_all
        unique_consecutive unique_counts unique_inverse unique_values""",
    "states of the engine": """are_deterministic_algorithms_enabled use_deterministic_algorithms
        get_default_device set_default_device get_rng_state initial_seed seed set_printoptions
        set_rng_state
        active_device active_isa auto_device cpu_info device_names
        get_autocast_dtype
        is_anomaly_enabled is_autocast_enabled is_batch_invariant env_text env_variables
        force_kernel forced_kernel get_default_dtype set_default_dtype
        get_float32_matmul_precision get_num_threads get_thread_pinning
        kernel_ops kernels_of_op manual_seed matmul_tunables memory_reset_peaks memory_stats
        memory_trim pointwise_table set_device set_float32_matmul_precision set_isa
        set_matmul_tuning set_num_threads set_thread_pinning""",
}
# Methods and properties of Tensor that are no ops, by why.
METHODS = {
    "metadata alone": """device dim dtype element_size get_device grad_fn is_complex is_contiguous
        is_cpu is_cuda is_floating_point is_leaf is_signed is_sparse itemsize name nbytes ndim
        ndimension nelement numel op retains_grad shape size storage_offset stride strides version
        __len__ __hash__ __array_namespace__""",
    "functions of the package on what is in front": " ".join(tw._METHODS),
    "told what to write instead": " ".join(ABSENT),
    "the graph": """backward grad register_forward_hook register_hook
        register_post_accumulate_grad_hook requires_grad requires_grad_
        retain_grad __del__""",
    "numbers for the program": """item tolist __bool__ __complex__ __float__ __format__ __index__
        __int__ __repr__""",
    "memory for other programs": """data_ptr numpy __array__ __array_ufunc__ __dlpack__
        __dlpack_device__ __cuda_array_interface__ __reduce_ex__ __deepcopy__""",
    "a GPU's copies and streams": "cuda is_pinned pin_memory record_stream",
    "random numbers, which a replay draws anew": """bernoulli_ cauchy_ exponential_ geometric_
        log_normal_ normal_ random_ uniform_""",
    "refused": "__delitem__",
    "Python's own": "__doc__ __module__ __new__",
}


@pytest.mark.skipif(not shutil.which("nm"), reason="no nm here")
def test_the_native_module_exports_its_entry_alone() -> None:
    """Another copy of the C++ library in the process must not meet the module's names."""
    command = ["nm", "-D", "--defined-only", _core.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {line.split()[-1] for line in done.stdout.splitlines()} == {"PyInit__core"}


def test_functions_that_are_no_records_are_listed() -> None:
    known = words(*FUNCTIONS.values()) | set(OTHER_NAMES)
    public = {
        name
        for name in dir(tw)
        if not name.startswith("_")
        and callable(getattr(tw, name))
        and not inspect.isclass(getattr(tw, name))
    }
    records = {name for name, op in OPS.items() if op["function"]}
    assert public - records == known


@pytest.mark.parametrize(("name", "ours"), OTHER_NAMES.items())
def test_other_names_are_the_same_records(name: str, ours: str) -> None:
    def lines(function: object) -> list[str]:
        told = (function.__doc__ or "").replace(f" {name}(", f" {ours}(").splitlines()
        # PyTorch's `amax` takes the `dim` with which its `max` would give two tensors.
        return [line for line in told if not line.startswith("Also taken")]

    own = tw.Tensor.copy if ours == "copy" else operator.attrgetter(ours)(tw)
    assert lines(getattr(tw, name)) == lines(own)
    assert not isinstance(getattr(tw, name), type)


def test_methods_that_are_no_records_are_listed() -> None:
    records = {name for name, op in OPS.items() if op["method"]}
    records |= {name for name, ours in OTHER_NAMES.items() if ours in {*records, "equal"}}
    # Held to PyTorch's in test_in_place_forms.py.
    changing = {name for name, op in OPS.items() if op["in_place"]}
    changing |= {name for name, ours in OTHER_NAMES.items() if ours in changing}
    records |= {f"{name}_" for name in changing}
    known = words(*METHODS.values()) | set(MADE_OF_OPS)
    # Of the buffer protocol, from Python 3.12 on.
    ours = set(vars(tw.Tensor)) - {"__buffer__", "__release_buffer__"}
    assert ours - records == known - records


def test_a_record_that_takes_a_tensor_first_is_a_method() -> None:
    for name, op in OPS.items():
        first = op["signature"][1:].partition(":")[2].strip()
        if op["function"] and first.startswith(("Tensor", "Operand")):
            assert callable(getattr(tw.Tensor, name, None)) or name in (*ABSENT, "real", "imag")


@each("name", sorted(tw._METHODS))
def test_functions_of_the_package_that_are_methods_take_a_tensor_first(name: str) -> None:
    function = tw._load(name)
    first = next(iter(inspect.signature(function).parameters.values()))
    assert first.annotation in ("Tensor", "tw.Tensor")
    assert inspect.unwrap(getattr(tw.Tensor, name)) is inspect.unwrap(function) or name == "dot"


@pytest.mark.parametrize("name", ABSENT)
def test_what_tensors_lack_tells_what_to_write(name: str) -> None:
    assert not hasattr(tw.ones(2), name)
    with pytest.raises(AttributeError, match=rf"^Tensor has no attribute '{name}': .*"):
        getattr(tw.ones(2), name)


# ---- methods and operators that are ops by another name ----

CASTS = "bfloat16 bool byte char cpu detach double float half int long short t"
BINARY = """add atan2 div divide eq floor_divide ge greater greater_equal gt le less less_equal lt
    maximum minimum mul multiply ne not_equal pow remainder sub subtract"""
ARITHMETIC = "add sub mul truediv floordiv mod pow"
BITS = "and or xor lshift rshift"


def changed(name: str):
    """An in-place method or operator on a copy; other tensors of the same memory see it."""

    def call(x, y):
        z = x.copy()
        window = z[1:]
        result = getattr(z, name)(y)
        return z, window, z if result is None else result

    return call


def assigned(x, y):
    z = x.copy()
    z[1:, [0, 2]] = y[1:, :2]
    z[0] = 7
    return z


ROWS_IN_PLACE = [
    (row["name"], row["arity"])
    for row in _core.pointwise_table()
    if OPS[row["name"]]["in_place"] and ("floating" in row["kinds"] or row["kinds"] == ["integer"])
]
MADE_OF_OPS = {
    **{name: operator.methodcaller(name) for name in CASTS.split()},
    **{name: (lambda x, y, n=name: getattr(x, n)(y)) for name in BINARY.split()},
    **{
        f"__{r}{name}__": (lambda x, y, n=f"__{r}{name}__": getattr(x, n)(y))
        for name in (*ARITHMETIC.split(), "matmul", *BITS.split())
        for r in ("", "r")
    },
    **{
        f"__i{name}__": changed(f"__i{name}__")
        for name in (*ARITHMETIC.split(), "matmul", *BITS.split())
    },
    **{f"{name}_": changed(f"{name}_") for name in ("add", "sub", "mul", "div", "copy")},
    **{
        f"{name}_": changed(f"{name}_")
        for name, count in ROWS_IN_PLACE
        if count == 2 and "Number" not in OPS[name]["signature"]
    },
    **{
        f"{name}_": lambda x, n=f"{name}_": getattr(x.copy(), n)()
        for name, count in ROWS_IN_PLACE
        if count == 1
    },
    **{
        f"__{name}__": (lambda x, y, n=name: getattr(operator, n)(x, y))
        for name in ("eq", "ge", "gt", "le", "lt", "ne")
    },
    **{f"__{name}__": getattr(operator, name) for name in ("abs", "neg", "pos", "invert")},
    "__divmod__": divmod,
    "__rdivmod__": lambda x, y: x.__rdivmod__(y),
    "__round__": lambda x: round(x, 1),
    "__getitem__": lambda x: (x[1:, ::2], x[[0, 2], 1], x[..., None]),
    "__iter__": tuple,
    "__setitem__": assigned,
    "T": lambda x: x.T,
    "H": lambda x: x.H,
    "data": lambda x: x.data,
    "type": lambda x: x.type(tw.float64),
    "where": lambda x, y: x.where(x > 1, y),
    "mT": lambda x: x.mT,
    "mH": lambda x: x.mH,
    "real": lambda x: tw.complex(x, x + 1).real,
    "imag": lambda x: tw.complex(x, x + 1).imag,
    "addmm_": lambda x, y: x.copy().addmm_(x, y),
    "astype": lambda x: x.astype(tw.float64),
    "clamp": lambda x: x.clamp(0.7, 1.2),
    "clone": lambda x: x.clone(),
    "cumprod": lambda x: x.cumprod(0),
    "cumsum": lambda x: x.cumsum(1),
    "dot": lambda x, y: x.dot(y),
    "expand": lambda x: x[:, :1].expand(4, 4),
    "expand_as": lambda x, y: x[:1].expand_as(y),
    "fill_": lambda x: x.copy().fill_(3),
    "matmul": lambda x, y: x.matmul(y),
    "permute": lambda x: x.permute(1, 0),
    "reshape_as": lambda x, y: x.reshape(2, 8).reshape_as(y),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "to": lambda x: x.to(tw.float64),
    "type_as": lambda x, y: x.type_as(y > 1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    **{
        name: (lambda x, n=name: getattr(x.reshape(2, 4, 2), n)(2))
        for name in ("chunk", "dsplit", "hsplit", "split", "tensor_split", "vsplit")
    },
    "bitwise_not": lambda x: x.bitwise_not(),
    "movedim": lambda x: x.movedim(0, 1),
    "swapdims": lambda x: x.swapdims(0, 1),
    "to_device": lambda x: x.to_device("cpu") + 1,
    "unbind": lambda x: x.unbind(1),
    "view": lambda x: x.view(2, 8),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "view_as": lambda x, y: x.view(2, 8).view_as(y),
    "zero_": lambda x: x.copy().zero_(),
    **{
        f"{name}_": (
            lambda x, y, n=f"{name}_": getattr(x.copy(), n)(1, tw.asarray([[0, 2]] * 4), y)
        )
        for name in ("scatter", "scatter_add")
    },
    **{
        f"{name}_": (
            lambda x, y, n=f"{name}_": getattr(x.copy(), n)(1, tw.asarray([1, 1]), y[:, :2])
        )
        for name in ("index_add", "index_copy")
    },
    "index_fill_": lambda x: x.copy().index_fill_(0, tw.asarray([1, -1]), 7),
    "masked_fill_": lambda x: x.copy().masked_fill_(x > 1, 7),
    "masked_scatter_": lambda x, y: x.copy().masked_scatter_(x > 1, y),
}
OF_INTEGERS = {f"__{p}{name}__" for name in BITS.split() for p in ("", "r", "i")}
OF_INTEGERS |= {"__invert__", "bitwise_not"}
OF_INTEGERS |= {f"bitwise_{name}_" for name in ("left_shift", "right_shift")}


def arity(call) -> int:
    if isinstance(call, operator.methodcaller) or call is tuple:
        return 1
    if call is divmod:
        return 2
    given = [p for p in inspect.signature(call).parameters.values() if p.default is p.empty]
    return len(given)


@each("name", MADE_OF_OPS)
def test_methods_are_made_of_records(name: str) -> None:
    """A replay runs nothing but records: on other values it gives what the method gives there."""
    call = MADE_OF_OPS[name]
    dtype = "int64" if name in OF_INTEGERS else "float32"
    first, others = (values(seed, dtype)[: arity(call)] for seed in (1, 2))
    captured = _core._capture(call, first)
    assert {op for op, _ in captured.calls()} <= set(OPS)
    assert contents(captured.replay(others)) == contents(call(*others))


# ---- what leaves the engine, a replay cannot repeat ----

READERS = {
    "item": lambda x: x[0, 0].item(),
    "tolist": lambda x: x.tolist(),
    "bool": lambda x: bool(x[0, 0]),
    "float": lambda x: float(x[0, 0]),
    "complex": lambda x: complex(x[0, 0]),
    "int": lambda x: int(x[0, 0]),
    "index": lambda x: operator.index(x[0, 0].astype(tw.int64)),
    "format": lambda x: f"{x[0, 0]:.2f}",
    "repr": repr,
    "numpy": lambda x: x.numpy(),
    "asarray of NumPy": np.asarray,
    "memoryview": memoryview,
    "dlpack": np.from_dlpack,
    "data_ptr": lambda x: x.data_ptr,
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "nonzero": tw.nonzero,
    "bincount": lambda x: tw.bincount(x.reshape(-1).astype(tw.int64)),
    "unique": tw.unique,
    "mask": lambda x: x[x > 1],
    "masked_select": lambda x: tw.masked_select(x, x > 1),
    "a single truth value": lambda x: x[x[0, 0] > 1],
    "repeats": lambda x: tw.repeat(x, tw.astype(x[0], tw.int64), axis=0),
    "assignment by a mask": lambda x: x.copy().__setitem__(x > 1, 0),
    "from_dlpack": lambda x: tw.from_dlpack(np.from_dlpack(x)),
    "frombuffer": lambda x: tw.frombuffer(x, tw.float32),
    "another device": lambda x: x.to("null"),
}


@pytest.mark.parametrize("name", READERS)
def test_what_reads_values_is_refused_in_a_capture(name: str) -> None:
    def run(x):
        READERS[name](x)
        return x + 1

    x = values(1)[0]
    with pytest.raises((RuntimeError, BufferError, ValueError, TypeError)) as caught:
        _core._capture(run, [x])
    texts = []
    error: BaseException | None = caught.value
    while error:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    assert any("capture" in text for text in texts), texts
    np.testing.assert_array_equal(arrays.array(x + 1), arrays.array(x) + np.float32(1))


def test_saving_is_refused_in_a_capture(tmp_path) -> None:
    pytest.importorskip("safetensors")
    x = values(1)[0]
    with pytest.raises((RuntimeError, BufferError), match="capture"):
        _core._capture(lambda x: tw.save({"x": x}, tmp_path / "x.safetensors"), [x])
