"""Files: round trips, exchange with the safetensors package, damage, full disks and kills."""

import errno
import json
import math
import os
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

import tilewright as tw

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


def tensor_of(name):
    return tw.asarray([[0, 1, 2], [3, 0, 1]]).astype(getattr(tw, name))


def write(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


class TestRoundTrip:
    def test_every_dtype(self, path):
        tensors = {name: tensor_of(name) for name in DTYPES}
        tw.save(tensors, path)
        loaded = tw.load(path)
        assert set(loaded) == set(tensors)
        for name, tensor in tensors.items():
            assert loaded[name].dtype == tensor.dtype
            assert loaded[name].tolist() == tensor.tolist()

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)])
    def test_shapes(self, path, shape):
        x = tw.randn(shape)
        tw.save({"x": x}, path)
        loaded = tw.load(path)["x"]
        assert loaded.shape == shape
        assert loaded.tolist() == x.tolist()

    def test_views_and_gradients(self, path):
        x = tw.arange(12).reshape((3, 4)).astype(tw.float32)
        x.requires_grad = True
        tw.save({"t": x.T, "rows": x[::2], "back": x[::-1]}, path)
        loaded = tw.load(path)
        assert loaded["t"].tolist() == x.T.tolist()
        assert loaded["rows"].tolist() == x[::2].tolist()
        assert loaded["back"].tolist() == x[::-1].tolist()
        assert not loaded["t"].requires_grad

    def test_a_model(self, path):
        model, copy = tw.nn.Linear(5, 3), tw.nn.Linear(5, 3)
        tw.save(model.state_dict(), path)
        copy.load_state_dict(tw.load(path))
        assert copy.weight.tolist() == model.weight.tolist()

    def test_metadata(self, path):
        tw.save({}, path, metadata={"epoch": "3", "note": "für später"})
        assert tw.io.load_metadata(path) == {"epoch": "3", "note": "für später"}
        assert tw.load(path) == {}

    def test_paths_of_bytes(self, path):
        tw.save({"x": tw.ones((1,))}, os.fsencode(path), metadata={"a": "b"})
        assert tw.load(os.fsencode(path))["x"].tolist() == [1.0]
        assert tw.io.load_metadata(os.fsencode(path)) == {"a": "b"}
        path.write_bytes(b"")
        with pytest.raises(ValueError, match=f"^{path}: not a safetensors file"):
            tw.load(os.fsencode(path))

    def test_where_the_tensors_go(self, path):
        tw.save({"a": {"b": tw.ones((2,))}}, path)
        assert tw.load(path, map_location="null")["a"]["b"].device == "null"
        assert tw.load(path, map_location="cpu", weights_only=True)["a"]["b"].tolist() == [1, 1]
        with pytest.raises(ValueError, match="no device 'gpu'"):
            tw.load(path, "gpu")
        tw.set_device("null")
        try:
            loaded = tw.load(path)["a"]["b"]
        finally:
            tw.set_device("cpu")
        assert loaded.device == "cpu"
        assert loaded.tolist() == [1, 1]

    def test_names_of_any_text(self, path):
        tensors = {name: tw.ones((1,)) for name in ('a "b"', "", "schön.0", "a/b")}
        tw.save(tensors, path)
        assert set(tw.load(path)) == set(tensors)

    def test_equal_content_gives_equal_files(self, tmp_path):
        x, y = tw.ones((2,)), tw.zeros((3,))
        tw.save({"x": x, "y": y}, tmp_path / "a")
        tw.save({"y": y, "x": x}, tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def same(x, y):
    """Equal in value and type, all the way down; NaN equals NaN."""
    if isinstance(x, tw.Tensor):
        return isinstance(y, tw.Tensor) and x.dtype == y.dtype and same(x.tolist(), y.tolist())
    if type(x) is not type(y):
        return False
    if isinstance(x, dict):
        return list(x) == list(y) and all(same(value, y[key]) for key, value in x.items())
    if isinstance(x, (list, tuple)):
        return len(x) == len(y) and all(map(same, x, y))
    return x == y or (isinstance(x, float) and math.isnan(x) and math.isnan(y))


TREES = {
    "scalars": {"i": -3, "big": 2**80, "f": 0.1, "t": "für \u2028", "yes": True, "none": None},
    "special floats": {"inf": math.inf, "low": -math.inf, "nan": math.nan, "zero": -0.0},
    "sequences": {"list": [1, [2, ()], {}], "tuple": (0.9, 0.999), "empty": [], "none": ()},
    "whole numbers as keys": {"a": {0: tw.ones((2,)), "0": tw.zeros((3,)), -1: "x"}},
    "names that meet": {"a.b": tw.ones((1,)), "a": {"b": tw.zeros((2,)), "b'": 1}, "": {"": 2}},
    "words of the format": {
        "tensor": "tensor", "dict": {"dict": {"tensor": tw.ones((1,))}}, "items": [["a", 1]],
        "inner": {"__metadata__": tw.ones((1,)), "float": {"float": "inf"}},
    },
    "tensors in lists": {"x": [tw.arange(3), (tw.asarray(2.5), tw.zeros((0, 2)))]},
}  # fmt: skip


class TestNested:
    @pytest.mark.parametrize("name", TREES)
    def test_round_trip(self, path, name):
        tw.save(TREES[name], path, metadata={"note": "kept"})
        assert same(tw.load(path), TREES[name])
        assert tw.io.load_metadata(path) == {"note": "kept"}

    def test_every_dtype(self, path):
        tree = {"x": {name: tensor_of(name) for name in DTYPES}}
        tw.save(tree, path)
        assert same(tw.load(path), tree)

    @pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "Adagrad"])
    def test_a_checkpoint_goes_on_as_if_never_stopped(self, path, kind):
        def start():
            tw.manual_seed(3)
            model = tw.nn.Sequential(tw.nn.Linear(4, 3), tw.nn.Tanh(), tw.nn.Linear(3, 2))
            settings = {"momentum": 0.9} if kind == "SGD" else {}
            return model, getattr(tw.optim, kind)(model.parameters(), lr=0.05, **settings)

        def steps(model, optimizer):
            for x in tw.arange(40).astype(tw.float32).reshape((5, 2, 4)):
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()

        (model, optimizer), (other, resumed) = start(), start()
        steps(model, optimizer)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}
        tw.save(state, path)
        loaded = tw.load(path)
        assert same(loaded, state)
        other.load_state_dict(loaded["model"])
        resumed.load_state_dict(loaded["optimizer"])
        steps(model, optimizer)
        steps(other, resumed)
        assert same(other.state_dict(), model.state_dict())
        assert same(resumed.state_dict(), optimizer.state_dict())

    def test_others_read_the_tensors_by_dotted_names(self, path):
        theirs = pytest.importorskip("safetensors.numpy")
        tw.save({"model": {"0": {"weight": tw.ones((2, 3))}}, "lr": 0.1}, path)
        loaded = theirs.load_file(path)
        assert {name: array.shape for name, array in loaded.items()} == {"model.0.weight": (2, 3)}
        rows = tw.data.FileTensor.from_safetensors(path, "model.0.weight")
        assert rows[1].tolist() == [1.0, 1.0, 1.0]

    def test_a_flat_dict_gives_the_same_bytes_as_ever(self, path):
        tw.save({"b": tw.asarray([1, 2], dtype=tw.uint8), "a": tw.asarray([1.0])}, path)
        header = (
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
            b'"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}}'
        )
        header += b" " * (-len(header) % 8)
        content = struct.pack("<Q", len(header)) + header + struct.pack("<f", 1.0) + b"\x01\x02"
        assert path.read_bytes() == content

    @pytest.mark.parametrize(
        ("structure", "text"),
        [
            ("{", "no JSON with a version and a root"),
            ("3", "no JSON with a version and a root"),
            ('{"version":2,"root":{"dict":{}}}', "structure of version 2; this Tilewright reads 1"),
            ('{"version":1,"root":3}', "the root is no dict"),
            ('{"version":1,"root":{"list":[]}}', "the root is no dict"),
            ('{"version":1,"root":{"dict":{"a":[]}}}', "a list without its kind"),
            ('{"version":1,"root":{"dict":{"a":{}}}}', "nothing known"),
            ('{"version":1,"root":{"dict":{"a":{"set":[]}}}}', "a part of kind 'set'"),
            ('{"version":1,"root":{"dict":{"a":{"list":"x"}}}}', "a list that is no list"),
            ('{"version":1,"root":{"dict":{"a":{"tensor":"y"}}}}', "no tensor 'y'"),
            ('{"version":1,"root":{"dict":{"a":{"tensor":[]}}}}', r"no tensor \[\]"),
            ('{"version":1,"root":{"dict":{"a":{"float":"much"}}}}', "float"),
            ('{"version":1,"root":{"items":[[[],1]]}}', "of another form"),
            ('{"version":1,"root":{"items":[[1]]}}', "unpack"),
            ('{"version":1,"root":{"dict":{}}}', "tensor 'x' has no place in it"),
            ('{"version":1,"root":' + '{"list":[' * 5000, "no JSON"),
        ],
    )
    def test_damaged_structures(self, path, structure, text):
        header = {"__metadata__": {"tilewright:structure": structure}, "x": entry()}
        write(path, header, bytes(8))
        with pytest.raises(ValueError, match=rf"model\.safetensors: .*{text}"):
            tw.load(path)


class TestExchange:
    def test_the_safetensors_package_reads_ours(self, path):
        theirs = pytest.importorskip("safetensors.numpy")
        names = [name for name in DTYPES if name != "bfloat16"]
        tw.save({name: tensor_of(name) for name in names}, path, metadata={"a": "b"})
        loaded = theirs.load_file(path)
        for name in names:
            assert loaded[name].dtype.name == name
            assert loaded[name].tolist() == tensor_of(name).tolist()

    def test_we_read_the_safetensors_packages(self, path):
        theirs = pytest.importorskip("safetensors.numpy")
        names = [name for name in DTYPES if name != "bfloat16"]
        theirs.save_file({name: tensor_of(name).numpy() for name in names}, path, {"a": "b"})
        loaded = tw.load(path)
        assert tw.io.load_metadata(path) == {"a": "b"}
        for name in names:
            assert loaded[name].dtype == getattr(tw, name)
            assert loaded[name].tolist() == tensor_of(name).tolist()

    def test_bfloat16_through_pytorch(self, path):
        pytest.importorskip("torch")
        theirs = pytest.importorskip("safetensors.torch")
        tw.save({"x": tensor_of("bfloat16")}, path)
        loaded = theirs.load_file(path)["x"]
        assert str(loaded.dtype) == "torch.bfloat16"
        assert loaded.tolist() == tensor_of("bfloat16").tolist()


class TestDamage:
    @pytest.mark.parametrize("size", range(0, 120, 7))
    def test_truncation_anywhere(self, path, size):
        tw.save({"x": tw.ones((3,)), "y": tw.zeros((2,))}, path)
        content = path.read_bytes()
        assert size < len(content)
        path.write_bytes(content[:size])
        with pytest.raises(
            ValueError, match=r"model\.safetensors: .*(truncated|not a safetensors)"
        ):
            tw.load(path)

    @pytest.mark.parametrize(
        ("header", "data", "text"),
        [
            (b"{", b"", "damaged header"),
            (b"[1]", b"", "the header is no table"),
            (b"\xff\xfe{}", b"", "damaged header"),
            (b'{"x":1,"x":2}', b"", "stands there twice"),
            (b"[" * 100_000, b"", "damaged header"),
            ({"x": 3}, b"", "'x': damaged header entry"),
            ({"x": {"dtype": "F32"}}, b"", "'x': damaged header entry"),
            ({"x": entry(shape=(-1, -2))}, bytes(8), "whole and positive"),
            ({"x": entry(shape=(2.0,))}, bytes(8), "whole and positive"),
            ({"x": entry(shape=(3,))}, bytes(8), r"shape \(3,\) of F32 does not fill 8 bytes"),
            ({"x": entry(offsets=(8, 0))}, bytes(8), "does not fill"),
            ({"x": entry()}, bytes(7), "truncated: 8 bytes of tensors, 7 are there"),
            ({"x": entry()}, bytes(9), "1 bytes too many"),
            ({"x": entry(offsets=(4, 12))}, bytes(12), "starts at 4, not 0"),
            ({"x": entry(), "y": entry()}, bytes(8), "starts at 0, not 8"),
            ({"__metadata__": 3}, b"", "metadata is not a table"),
            ({"__metadata__": {"epoch": 3}}, b"", "metadata is not a table of texts"),
            ({"x": entry(dtype=["F32"])}, bytes(8), "'x': damaged header entry"),
            ({"x": entry(dtype=None)}, bytes(8), "'x': damaged header entry"),
            ({"x": entry(shape=("a",))}, bytes(8), "'x': sizes and offsets must be whole"),
            ({"x": entry(shape=(True, 2))}, bytes(8), "'x': sizes and offsets must be whole"),
            ({"x": entry(shape=(10**30, 0), offsets=(0, 0))}, b"", "'x': shape .* 64 bits"),
            ({"x": entry(shape=(2**62, 4, 0), offsets=(0, 0))}, b"", "'x': shape .* 64 bits"),
            ({"x": entry(shape=(1,) * 32 + (2,))}, bytes(8), "'x': shape .* more than 32 axes"),
            ({"x": entry(shape=(10**30,), offsets=(0, 4 * 10**30))}, b"", "'x': shape"),
            (b'{"x":' + b"9" * 5000 + b"}", b"", "damaged header"),
            (b'{"\\ud800":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}', bytes(4), "no text"),
            ('{"x":1}'.encode("utf-16"), b"", "damaged header"),
            ({"x": entry("BOOL", (3,), (0, 3))}, b"\x00\x01\x02", "'x': a BOOL byte is neither"),
            ({"x": entry("BOOL", (), (0, 1))}, b"\xff", "'x': a BOOL byte is neither"),
        ],
    )
    def test_damaged_headers(self, path, header, data, text):
        write(path, header, data)
        with pytest.raises(ValueError, match=rf"model\.safetensors: .*{text}"):
            tw.load(path)

    def test_foreign_element_types(self, path):
        write(path, {"x": entry("F8_E4M3", (2,), (0, 2))}, bytes(2))
        with pytest.raises(TypeError, match="'x' has element type F8_E4M3"):
            tw.load(path)

    def test_garbage(self, path):
        path.write_bytes(bytes(range(256)) * 40)
        with pytest.raises(ValueError, match="not a safetensors file"):
            tw.load(path)

    def test_missing(self, path):
        with pytest.raises(FileNotFoundError):
            tw.load(path)


class TestRefusedSaves:
    @pytest.mark.parametrize(
        ("tensors", "text"),
        [
            ([tw.ones((1,))], "expected a dict of tensors"),
            ({"x": {1.0}}, "'x' is a set, not a tensor, dict, list"),
            ({"a": {"b": [0, b"x"]}}, r"'a\.b\.1' is a bytes, not a tensor"),
            ({"a": np.zeros(2)}, r"'a' is a ndarray, not .* tw\.asarray\(\)"),
            ({"a": {None: 1}}, "'a' has the key None; keys are texts or whole numbers"),
            ({"a": {True: 1}}, "'a' has the key True"),
            ({3: tw.ones((1,))}, "3 cannot name a tensor"),
            ({"__metadata__": tw.ones((1,))}, "cannot name a tensor"),
        ],
    )
    def test_what_is_no_dict_of_tensors(self, path, tensors, text):
        path.write_bytes(b"old")
        with pytest.raises(TypeError, match=text):
            tw.save(tensors, path)
        assert path.read_bytes() == b"old"

    def test_names_that_no_file_can_hold(self, path):
        with pytest.raises(ValueError, match=r"'\\ud800' cannot name a tensor: .*surrogate"):
            tw.save({"\ud800": tw.ones((1,))}, path)
        with pytest.raises(ValueError, match=r"metadata 'a': .* lone surrogate"):
            tw.save({}, path, metadata={"a": "\udfff"})
        assert not path.exists()

    def test_values_that_no_file_can_hold(self, path):
        endless = {}
        endless["again"] = endless
        for tree, text in [
            (endless, "nested more than 100 deep, or holds itself"),
            ({"a": "\udfff"}, "'a': .* lone surrogate"),
            ({"a": {"\udfff": 1}}, "'a': .* lone surrogate"),
            ({"a": 10**5000}, "'a' is a whole number of 16610 bits"),
        ]:
            with pytest.raises(ValueError, match=text):
                tw.save(tree, path)
        with pytest.raises(ValueError, match=r"metadata 'tilewright:structure' is the name"):
            tw.save({}, path, metadata={"tilewright:structure": "x"})
        assert not path.exists()

    def test_metadata_must_be_text(self, path):
        with pytest.raises(TypeError, match="metadata maps text to text"):
            tw.save({}, path, metadata={"epoch": 3})
        assert not path.exists()

    def test_a_path_is_no_number(self):
        for call in (lambda: tw.save({}, 3), lambda: tw.load(0), lambda: tw.io.load_metadata(None)):
            with pytest.raises(TypeError, match="expected str, bytes or os"):
                call()

    def test_places_that_cannot_hold_a_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nowhere/x"):
            tw.save({}, tmp_path / "nowhere" / "x")
        with pytest.raises(IsADirectoryError, match="is a folder"):
            tw.save({}, tmp_path)
        if os.path.exists("/dev/full"):
            with pytest.raises(OSError, match="not a regular file"):
                tw.save({}, "/dev/full")


class TestAtomicity:
    def test_replacing_keeps_mode_and_link(self, tmp_path):
        target, link = tmp_path / "target", tmp_path / "link"
        tw.save({"x": tw.ones((1,))}, target)
        target.chmod(0o640)
        link.symlink_to(target)
        tw.save({"y": tw.ones((1,))}, link)
        assert link.is_symlink()
        assert list(tw.load(target)) == ["y"]
        assert target.stat().st_mode & 0o777 == 0o640

    def test_a_full_disk_leaves_the_old_file_and_no_rest(self, path):
        tw.save({"old": tw.ones((4,))}, path)
        program = (
            "import resource, signal, sys, tilewright as tw\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
            "try: tw.save({'new': tw.ones((1_000_000,))}, sys.argv[1])\n"
            "except OSError as e: print(e.errno, e.filename); sys.exit(7)\n"
        )
        command = [sys.executable, "-c", program, str(path)]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        assert result.returncode == 7
        assert result.stdout == f"{errno.EFBIG} {path}\n"
        assert tw.load(path)["old"].tolist() == [1.0] * 4
        assert os.listdir(path.parent) == [path.name]

    @pytest.mark.parametrize("delay", [0.0, 0.002, 0.01, 0.03])
    def test_a_kill_leaves_a_whole_file(self, path, delay):
        tw.save({"x": tw.full((200_000,), -1.0)}, path)
        program = (
            "import sys, tilewright as tw\n"
            "print('go', flush=True)\n"
            "for i in range(10_000): tw.save({'x': tw.full((200_000,), float(i))}, sys.argv[1])\n"
        )
        command = [sys.executable, "-c", program, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
        x = tw.load(path)["x"]
        assert x.min().item() == x.max().item()
        rest = [name for name in os.listdir(path.parent) if name != path.name]
        assert all(name.endswith(tw.io.TEMPORARY_SUFFIX) for name in rest)


def test_a_type_without_a_code_is_refused(tmp_path) -> None:
    with pytest.raises(TypeError, match="x is complex128, for which the format has no code"):
        tw.save({"x": tw.zeros((2,), dtype=tw.complex128)}, tmp_path / "x.safetensors")
    assert not list(tmp_path.iterdir())
