"""Op table, records, stub, docstrings and gradients say the same."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from cases import RECORDS, arrays
from cases.check import tensors
from cases.ops import activations, pointwise, updates
from cases.ops.pointwise import OF_COMPLEX
from subcases import each

import tilewright as tw
from tilewright import _core
from tilewright._engine.lazy_methods import ABSENT

TABLE = {row["name"]: row for row in _core.pointwise_table()}
BY_NAME = {case.name: case for case in RECORDS}
OPS = {op["name"]: op for op in _core._op_records()}
# What the ladder of matrix products solves.
LADDER_OPS = {"matmul", "linear", "linear_relu", "addmm", "matmul_into"}
KINDS = {
    "bool": ("bool",),
    "integer": arrays.INTEGERS,
    "floating": arrays.FLOATS,
    "complex": ("complex64", "complex128"),
}
ARGUMENTS = {1: ["x"], 2: ["a", "b"], 3: ["a", "b", "c"]}
# Documented apart from their rows: names of their own, and defaults.
OWN_SIGNATURE = {
    "clip": ["x", "min", "max"],
    "lerp": ["x", "end", "weight"],
    "leaky_relu": ["x", "negative_slope", "inplace"],
    "elu": ["x", "alpha", "inplace"],
    "celu": ["x", "alpha", "inplace"],
    "hardshrink": ["x", "lambd"],
    "softshrink": ["x", "lambd"],
    "softplus": ["x", "beta", "threshold"],
    "hardtanh": ["x", "min_val", "max_val", "inplace"],
    "threshold": ["x", "threshold", "value", "inplace"],
    **{
        name: ["x", "inplace"]
        for name in ("relu", "relu6", "selu", "silu", "mish", "hardsigmoid", "hardswish")
    },
}
# Rows that no function is: other ops' part.
INTERNAL = {name for name in TABLE if not OPS[name]["function"]}
PUBLIC = {name: row for name, row in TABLE.items() if name not in INTERNAL}

# Functions of the module that are no ops on tensors, by what tests them.
NO_OPS = {
    "creation": """arange asarray empty empty_like eye from_dlpack frombuffer full full_like tensor
        linspace
        ones ones_like tril_indices triu_indices zeros zeros_like""",
    "random": """alpha_dropout bernoulli binomial cauchy dropout dropout1d dropout2d dropout3d
        exponential
        feature_alpha_dropout geometric log_normal manual_seed multinomial normal poisson rand
        rand_like randint randint_like randn randn_like randperm standard_gamma uniform""",
    "other names of ops": " ".join(
        row["theirs"]
        for row in _core._spellings()
        if row["kind"] == "name" and hasattr(_core, row["theirs"])
    ),
    "indexing": "bincount masked_select nonzero result_type",
    "several results": "chunk dsplit hsplit split tensor_split vsplit",
    "autograd": "grad is_grad_enabled zero_grad",
    "optimisers": " ".join((*updates.OPS, *updates.OTHERS)),
    "runtime": """active_device active_isa cpu_info device_names env_text env_variables force_kernel
        forced_kernel get_float32_matmul_precision get_num_threads kernel_ops kernels_of_op
        memory_reset_peaks memory_stats memory_trim pointwise_table set_device
        set_float32_matmul_precision set_isa set_num_threads
        get_thread_pinning set_thread_pinning matmul_tunables set_matmul_tuning
        is_anomaly_enabled is_batch_invariant is_autocast_enabled get_autocast_dtype
        get_default_dtype set_default_dtype""",
}


def per_row(rows=TABLE):
    return each("name", list(rows))


def functions_of_the_module() -> set[str]:
    return {
        name
        for name in dir(_core)
        if not name.startswith("_")
        and callable(getattr(_core, name))
        and not inspect.isclass(getattr(_core, name))
    }


# ---- records ----


def test_every_row_has_a_record_and_every_pointwise_record_a_row() -> None:
    assert set(TABLE) == {case.name for case in (*pointwise.RECORDS, *activations.ROWS)}
    parts = {name for name, row in TABLE.items() if "\nSource: " not in row["help"]}
    assert parts == INTERNAL


def test_every_op_has_a_record() -> None:
    known = {name for names in NO_OPS.values() for name in names.split()}
    without = functions_of_the_module() - set(BY_NAME) - known
    assert not without, "neither a record in tests/cases nor a line in NO_OPS"
    assert known <= functions_of_the_module(), "NO_OPS names what is not there"
    assert not known & set(BY_NAME)


def test_every_kernel_belongs_to_an_op() -> None:
    steps = set(NO_OPS["optimisers"].split())  # no records yet
    assert set(tw.kernels.ops()) - steps <= set(OPS)


# ---- the engine's list of ops ----


def test_names_of_ops_are_unique() -> None:
    assert len(OPS) == len(_core._op_records())


@each("name", [name for name, op in OPS.items() if op["function"]])
def test_functions_are_what_the_records_say(name: str) -> None:
    function = getattr(tw, name)
    assert function is getattr(_core, name)
    assert function.__doc__.startswith(f"{name}(")
    assert OPS[name]["help"].splitlines()[0] in function.__doc__
    parameters = inspect.signature(function).parameters
    written = OPS[name]["signature"].split(" -> ")[0]
    assert list(parameters) == re.findall(r"[(,] (?:\*, )?(\w+):", written.replace("(", "( "))


@each("name", [name for name, op in OPS.items() if op["method"]])
def test_methods_are_what_the_records_say(name: str) -> None:
    assert callable(getattr(tw.Tensor, name))


@each("name", list(OPS))
def test_ops_can_be_run(name: str) -> None:
    """By kernels or by other ops; those that only infer are views, whose memory is there."""
    op = OPS[name]
    views = {"permute_dims", "broadcast_to", "slice", "diagonal", "view_as_real", "view_as_complex"}
    views |= {"view_dtype", "windows_along"}
    assert op["body"] or name in tw.kernels.ops() or name in LADDER_OPS or name in views


@per_row()
def test_records_know_the_dtypes_of_the_row(name: str) -> None:
    row, case = TABLE[name], BY_NAME[name]
    taken = {dtype for kind in row["kinds"] for dtype in KINDS[kind]}
    if row["promotes"]:
        taken |= {"bool", *arrays.INTEGERS}
    # addcmul, addcdiv and divide take what is not floating
    if name in ("multiply_add", "add_quotient", "truncated_quotient"):
        taken = {dtype for dtype in taken if "float" in dtype}
        assert set(case.tolerance) > taken
    else:
        assert set(case.tolerance) == taken
    for dtype in taken:
        if row["truth"]:
            expected = "bool"
        elif row["promotes"] and dtype in ("bool", *arrays.INTEGERS):
            expected = "float32"
        else:
            expected = dtype
        assert case.result(dtype) == expected


@each("dtype", arrays.ALL)
@per_row()
def test_the_op_takes_exactly_the_dtypes_of_its_record(name: str, dtype: str) -> None:
    case = BY_NAME[name]
    if dtype.startswith("complex") and name in OF_COMPLEX:
        pytest.skip("tests/ops/pointwise/test_complex.py")
    if name == "finite_or" and dtype in ("bool", *arrays.INTEGERS):
        pytest.skip("nan_to_num copies them")
    numbers = {"clip": 0, "finite_or": 2}.get(name, OPS[name]["signature"].count("Number"))
    arity = TABLE[name]["arity"] - numbers
    x = [tw.ones((2,), dtype=getattr(tw, dtype)) for _ in range(arity)]
    if dtype in case.tolerance:
        assert str(case.call(*x).dtype) == case.result(dtype)
    else:
        with pytest.raises(TypeError, match=r"no kernel for|needs floating-point|would drop"):
            case.call(*x)


# ---- gradients ----


@per_row()
def test_records_know_the_gradients_of_the_row(name: str) -> None:
    row = TABLE[name]
    expected = tuple(i for i, gradient in enumerate(row["gradients"]) if gradient != "none")
    assert BY_NAME[name].differentiable == expected
    if row["truth"]:
        assert not expected, "a truth value has no gradient"


@each("case", RECORDS, ids=str)
def test_ops_are_recorded_where_they_have_gradients(case) -> None:
    if "float64" not in case.tolerance:
        assert not case.differentiable
        return
    args = (
        case.smooth(np.random.default_rng(0))[0]
        if case.differentiable
        else case.arguments(np.random.default_rng(0), "float64")[0]
    )
    for i, x in enumerate(args):
        if x.dtype.kind != "f":
            continue
        inputs = tensors(args, "float64")
        inputs[i].requires_grad_()
        y = case.call(*inputs, **case.variants[0])
        assert y.requires_grad == (i in case.differentiable), f"argument {i}"
        with tw.no_grad():
            z = case.call(*inputs, **case.variants[0])
            assert not z.requires_grad or z is inputs[i]
        if y.requires_grad:
            y.sum().backward()
            assert inputs[i].grad is not None
            assert inputs[i].grad.shape == inputs[i].shape


@per_row()
def test_gradients_mention_what_the_row_has(name: str) -> None:
    row = TABLE[name]
    inputs = set(ARGUMENTS[row["arity"]])
    variables = {"x", "a", "b", "c", "g", "y"}
    assert set(re.findall(r"\b[a-z]\b", row["formula"])) & variables <= inputs
    for gradient in row["gradients"]:
        if gradient not in ("none", "0"):
            assert set(re.findall(r"\b[a-z]\b", gradient)) & variables <= inputs | {"g", "y"}
            assert "g" in re.findall(r"\b[a-z]\b", gradient)


# ---- functions and docstrings ----


@per_row(PUBLIC)
def test_the_function_exists_and_documents_its_row(name: str) -> None:
    row = TABLE[name]
    function = getattr(tw, name)
    assert function is getattr(_core, name)
    doc = function.__doc__
    if name in OWN_SIGNATURE:
        assert doc
        return
    assert row["help"] in doc
    assert f"Formula: {row['formula']}" in doc
    for argument, gradient in zip(ARGUMENTS[row["arity"]], row["gradients"], strict=True):
        line = f"Gradient of {argument}: {gradient}"
        assert (line in doc) == (gradient != "none" and not row["truth"])
    assert ("Result: bool." in doc) == row["truth"]


@per_row(PUBLIC)
def test_the_docstring_tells_the_types(name: str) -> None:
    """Those that the function takes, by trying, and that it raises for others."""
    if name in OWN_SIGNATURE:
        return
    doc = " ".join((getattr(tw, name).__doc__ or "").split())
    told = re.search(r"Types: ([^.;]*)", doc)
    assert told, doc
    kinds = set(KINDS) if told[1] == "all" else set(told[1].split(", "))
    if "integers and bool become" in doc:
        kinds |= {"integer", "bool"}
    for kind, dtypes in KINDS.items():
        dtype = next(iter(dtypes))
        x = [tw.ones((2,), dtype=getattr(tw, dtype)) for _ in range(TABLE[name]["arity"])]
        if kind in kinds:
            getattr(tw, name)(*x)
        else:
            assert "Raises TypeError" in doc
            with pytest.raises(TypeError):
                getattr(tw, name)(*x)


@per_row()
def test_help_is_a_sentence(name: str) -> None:
    text = TABLE[name]["help"]
    assert (
        text[0].isupper()
        or text[0].isdigit()
        or text[0] == "-"
        or text.split("(")[0] in dir(tw)
        or text[0] in "xeab"
    )
    assert text.endswith(".")


@per_row({name: row for name, row in PUBLIC.items() if row["arity"] == 1})
def test_unary_rows_are_methods_as_well(name: str) -> None:
    x = tw.ones((2,))
    assert getattr(x, name)().tolist() == getattr(tw, name)(x).tolist()


@per_row({name: row for name, row in PUBLIC.items() if name not in OWN_SIGNATURE})
def test_arguments_may_be_named(name: str) -> None:
    arity = TABLE[name]["arity"]
    dtype = tw.int32 if "integer" in TABLE[name]["kinds"] else tw.float32
    x = [tw.ones((2,), dtype=dtype) for _ in range(arity)]
    named = dict(zip(ARGUMENTS[arity], x, strict=True))
    assert getattr(tw, name)(**named).tolist() == getattr(tw, name)(*x).tolist()
    with pytest.raises(TypeError, match="unexpected argument 'nonsense'"):
        getattr(tw, name)(*x[1:], nonsense=x[0])


@each("name", sorted(functions_of_the_module()))
def test_every_function_has_a_docstring(name: str) -> None:
    text = getattr(_core, name).__doc__ or ""
    sentence = text.split("\n\n", 1)[-1].strip() if "\n" in text else ""
    assert sentence, f"{name} has a signature at most: {text!r}"


# ---- the stub ----


@pytest.fixture(scope="module")
def stub() -> ast.Module:
    path = Path(tw.__file__).with_name("_core.pyi")
    assert path.exists(), f"no stub {path.name} beside the package"
    return ast.parse(path.read_text())


def stub_functions(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    """By name; of overloads the first one, which has the package's own names."""
    return {node.name: node for node in reversed(body) if isinstance(node, ast.FunctionDef)}


def test_the_stub_lists_the_module(stub: ast.Module) -> None:
    functions = set(stub_functions(stub.body))
    declared = {name for name in functions if not name.startswith("_")}
    assert declared == functions_of_the_module()


def test_the_stub_lists_classes_and_dtypes(stub: ast.Module) -> None:
    classes = {node.name for node in stub.body if isinstance(node, ast.ClassDef)}
    actual = {
        name
        for name in dir(_core)
        if not name.startswith("_") and inspect.isclass(getattr(_core, name))
    }
    assert {name for name in classes if not name.startswith("_")} == actual
    named = {
        target.id
        for node in stub.body
        if isinstance(node, ast.AnnAssign) and isinstance(target := node.target, ast.Name)
    }
    assert set(arrays.ALL) <= named


def test_the_stub_lists_the_tensor(stub: ast.Module) -> None:
    tensor = next(n for n in stub.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    declared = {n.name for n in tensor.body if isinstance(n, ast.FunctionDef)}
    declared |= {
        n.target.id
        for n in tensor.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    actual = {name for name in vars(tw.Tensor) if not name.startswith("_")} - {*ABSENT}
    assert {name for name in declared if not name.startswith("_")} == actual


@per_row(PUBLIC)
def test_the_stub_has_the_rows_arguments(stub: ast.Module, name: str) -> None:
    node = stub_functions(stub.body)[name]
    given = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    assert given == OWN_SIGNATURE.get(name, ARGUMENTS[TABLE[name]["arity"]])
    if name not in OWN_SIGNATURE:
        assert not node.args.posonlyargs, "the engine takes these arguments by name as well"
