"""Data sets from CSV, NumPy's and safetensors files, whole and damaged."""

import re
import zipfile

import numpy as np
import pytest

import tilewright as tw
from tilewright import data


@pytest.fixture
def csv(tmp_path):
    """Writes a file and gives its path."""

    def write(text, encoding="utf-8"):
        path = tmp_path / "set.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


class TestCsv:
    def test_columns_by_name(self, csv):
        path = csv('height,"the ""kind""",n\n1.5,a,3\n\n -2e3 ,"b, or\nc",4\n')
        table = data.read_csv(path, dtype={'the "kind"': str, "n": tw.int64})
        assert list(table) == ["height", 'the "kind"', "n"]
        assert table["height"].tolist() == [1.5, -2000.0]
        assert table["height"].dtype == tw.float32
        assert table['the "kind"'] == ["a", "b, or\nc"]
        assert (table["n"].dtype, table["n"].tolist()) == (tw.int64, [3, 4])

    def test_without_a_header_and_other_separators(self, csv):
        table = data.read_csv(csv("1;2\r\n3;4\r\n"), header=False, delimiter=";", dtype=tw.int8)
        assert {name: column.tolist() for name, column in table.items()} == {0: [1, 3], 1: [2, 4]}
        assert table[0].dtype == tw.int8

    def test_chosen_columns_in_their_order(self, csv):
        path = csv("a,b,c\n1,x,3\n")
        assert list(data.read_csv(path, columns=["c", "a"])) == ["c", "a"]

    def test_a_byte_order_mark_is_no_part_of_a_name(self, csv):
        assert list(data.read_csv(csv("a\n1\n", "utf-8-sig"))) == ["a"]

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
    def test_floating_types(self, csv, dtype):
        values = ["0.1", "-0", "inf", "nan", "1e-3"]
        column = data.read_csv(csv("x\n" + "\n".join(values)), dtype=getattr(tw, dtype))["x"]
        assert column.dtype.name == dtype
        expected = tw.asarray(list(map(float, values)), dtype=tw.float64).astype(column.dtype)
        assert str(column.tolist()) == str(expected.tolist())

    def test_truth(self, csv):
        column = data.read_csv(csv("x\n0\nTrue\nfalse\n1\n"), dtype=tw.bool)["x"]
        assert (column.dtype, column.tolist()) == (tw.bool, [False, True, False, True])

    def test_numbers_at_the_end_of_a_type(self, csv):
        largest, smallest_beyond = 2.0**128 - 2.0**104, 2.0**128 - 2.0**103
        column = data.read_csv(csv(f"x\n{largest!r}\n-inf\n Infinity\nnan\n1e-60\n"))["x"]
        assert str(column.tolist()) == str([largest, -np.inf, np.inf, np.nan, 0.0])
        below = float(np.nextafter(smallest_beyond, 0))
        assert data.read_csv(csv(f"x\n{below!r}\n"))["x"].item() == largest
        for cell, dtype, most in (
            ("1e39", tw.float32, r"3\.403e\+38"),
            (repr(smallest_beyond), tw.float32, r"3\.403e\+38"),
            ("-7e4", tw.float16, "6.55e"),
            ("1e400", tw.float64, r"1\.798e\+308"),
            ("4e38", tw.bfloat16, r"3\.39e\+38"),
        ):
            place = f"line 3, column 'x': '{re.escape(cell)}'"
            with pytest.raises(ValueError, match=f"{place} is no number from .* to {most}"):
                data.read_csv(csv(f"x\n1\n{cell}\n"), dtype=dtype)

    def test_empty_cells(self, csv):
        path = csv("a,b\n1,2\n,3\n")
        assert data.read_csv(path, missing=-1)["a"].tolist() == [1, -1]
        with pytest.raises(ValueError, match=r"line 3, column 'a': is empty; give missing="):
            data.read_csv(path)
        with pytest.raises(ValueError, match="line 3, column 'a': is empty, no whole number"):
            data.read_csv(path, dtype=tw.int64, missing=0)

    def test_whole_numbers_of_64_bits(self, csv):
        table = data.read_csv(csv(f"a\n0\n{2**64 - 1}\n"), dtype=tw.uint64)
        assert table["a"].tolist() == [0, 2**64 - 1]

    def test_a_header_alone(self, csv):
        table = data.read_csv(csv("a,b\n"), dtype={"b": str})
        assert (table["a"].shape, table["b"]) == ((0,), [])

    @pytest.mark.parametrize(
        ("text", "options", "message"),
        [
            ("a,b\n1,2\n\n3\n", {}, "line 4: 1 cells, expected 2"),
            ("a,b\n1,2,3\n", {}, "line 2: 3 cells, expected 2"),
            ("a\n1\nx\n", {}, "line 3, column 'a': 'x' is no number"),
            ("a\n1.5\n", {"dtype": tw.int32}, "line 2, column 'a': '1.5' is no whole number"),
            (
                "a\n7\n300\n",
                {"dtype": tw.uint8},
                "line 3, column 'a': '300' is no .* from 0 to 255",
            ),
            ("a\n-1\n", {"dtype": tw.uint64}, "line 2, column 'a': '-1' is no whole number from 0"),
            (f"a\n{2**64}\n", {"dtype": tw.uint64}, f"'{2**64}' is no whole number from 0"),
            ("a\n1_000\n", {"dtype": tw.int32}, "line 2, column 'a': '1_000' is no whole number"),
            ("a\n1_0.5\n", {}, "line 2, column 'a': '1_0.5' is no number"),
            (f"a\n{2**70}\n", {"dtype": tw.int64}, f"'{2**70}' is no whole number"),
            ("a\n2\n", {"dtype": tw.bool}, "line 2, column 'a': '2' is no bool"),
            ("a,a\n1,2\n", {}, "line 1: column 'a' is named twice"),
            ("a\n1\n", {"columns": ["b"]}, "no column 'b'; there are: 'a'"),
            ("a\n1\n", {"dtype": {"b": str}}, "no column 'b'"),
            ('a\n"1\n', {}, "line 2: unexpected end of data"),
            ("", {}, "holds no header"),
            ("\n\n", {"header": False}, "holds no row"),
        ],
    )
    def test_what_is_wrong_and_on_which_line(self, csv, text, options, message):
        with pytest.raises(ValueError, match=rf"set\.csv: .*{message}"):
            data.read_csv(csv(text), **options)

    def test_other_errors(self, csv, tmp_path):
        with pytest.raises(ValueError, match="no UTF-8 text after line"):
            data.read_csv(csv("a\n\xe9\n", "latin-1"))
        with pytest.raises(FileNotFoundError):
            data.read_csv(tmp_path / "nowhere.csv")
        with pytest.raises(ValueError, match="delimiter is one character, got ''"):
            data.read_csv(csv("a\n"), delimiter="")
        with pytest.raises(TypeError, match="a column cannot be complex64"):
            data.read_csv(csv("a\n1\n"), dtype=tw.complex64)


ARRAYS = {
    "f4": np.arange(6, dtype="f4").reshape(2, 3),
    "f2": np.arange(3, dtype="f2"),
    "i8": np.arange(-3, 3),
    "u1": np.arange(7, dtype="u1"),
    "bool": np.asarray([True, False, True]),
    "c8": np.asarray([1 + 2j], "c8"),
    "fortran": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    "scalar": np.asarray(3.5),
    "empty": np.zeros((0, 3), "f4"),
}


class TestNumpy:
    @pytest.mark.parametrize("name", ARRAYS)
    def test_npy(self, tmp_path, name):
        np.save(tmp_path / "x.npy", ARRAYS[name])
        x = data.read_npy(tmp_path / "x.npy")
        assert x.numpy().dtype == ARRAYS[name].dtype
        np.testing.assert_array_equal(x.numpy(), ARRAYS[name])
        if x.size:
            x.copy_(tw.zeros_like(x))  # memory of its own

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    def test_npz(self, tmp_path, save):
        save(tmp_path / "x.npz", **ARRAYS)
        tensors = data.read_npz(tmp_path / "x.npz")
        assert list(tensors) == list(ARRAYS)
        for name, x in tensors.items():
            np.testing.assert_array_equal(x.numpy(), ARRAYS[name])

    def damaged(self, path, change):
        np.save(path, np.arange(100.0))
        path.write_bytes(change(path.read_bytes()))
        return path

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (lambda b: b[:-1], r"truncated: shape \(100,\) of float64 takes 800 bytes, 799 are"),
            (lambda b: b + b"x", "damaged: .* takes 800 bytes, 801 are there"),
            (lambda b: b"PK" + b, "not a .npy file: .*use read_npz"),
            (lambda b: b[:9], "not a .npy file"),
            (lambda b: b.replace(b"(100,)", b"(-10,)"), "damaged .npy header: shape"),
            (lambda b: b.replace(b"(100,)", b"'10,)'"), "damaged .npy header"),
            (lambda b: b.replace(b"<f8", b"|b1"), "100 bytes, 800 are there"),
        ],
    )
    def test_damage(self, tmp_path, change, text):
        path = self.damaged(tmp_path / "x.npy", change)
        with pytest.raises(ValueError, match=rf"x\.npy: .*{text}"):
            data.read_npy(path)

    def test_types_that_we_do_not_have(self, tmp_path):
        for array in (np.asarray(["a"]), np.zeros(2, "f8,i4"), np.asarray([None])):
            np.save(tmp_path / "x.npy", array)
            with pytest.raises(TypeError, match=r"x\.npy: "):
                data.read_npy(tmp_path / "x.npy")

    def test_truth_is_0_or_1(self, tmp_path):
        path = tmp_path / "x.npy"
        self.damaged(path, lambda b: b.replace(b"<f8", b"|b1").replace(b"(100,)", b"(800,)"))
        with pytest.raises(ValueError, match="a bool byte is neither 0 nor 1"):
            data.read_npy(path)

    def test_damaged_archives(self, tmp_path):
        path = tmp_path / "x.npz"
        np.savez_compressed(path, a=np.arange(1000))
        whole = path.read_bytes()
        # The directory's last entry says where it begins: 2 GiB before the file.
        before_the_file = whole[:-10] + b"\xff\xff\xff\x7f" + whole[-6:-2] + whole[-2:]
        for content in (whole[:-30], before_the_file, b"no zip", b""):
            path.write_bytes(content)
            with pytest.raises(ValueError, match=r"x\.npz: damaged, or not a \.npz file"):
                data.read_npz(path)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.npy", b"nothing")
        with pytest.raises(ValueError, match=r"x\.npz: a\.npy: not a \.npy file"):
            data.read_npz(path)


class TestFromFile:
    def test_each_ending(self, tmp_path):
        x, y = np.arange(6, dtype="f4").reshape(3, 2), np.arange(3.0, dtype="f4")
        np.save(tmp_path / "a.npy", x)
        np.savez(tmp_path / "a.npz", x=x, y=y)
        tw.save({"x": tw.asarray(x), "y": tw.asarray(y)}, tmp_path / "a.safetensors")
        (tmp_path / "a.CSV").write_text("y,z\n0,9\n1,9\n2,9\n")
        assert repr(data.from_file(tmp_path / "a.npy")) == "TensorDataset(float32 (3, 2))"
        for ending in ("npz", "safetensors"):
            rows = data.from_file(tmp_path / f"a.{ending}", "y", "x")
            assert [part.tolist() for part in rows[1]] == [1.0, [2.0, 3.0]]
        assert len(data.from_file(tmp_path / "a.npz").tensors) == 2
        assert [part.item() for part in data.from_file(tmp_path / "a.CSV", "z", "y")[2]] == [9, 2]
        for name in ("a.npy", "a.safetensors"):
            rows = data.from_file(tmp_path / name, in_memory=False)
            assert isinstance(rows.tensors[0], data.FileTensor)
            assert len(list(data.DataLoader(rows, 2))) == 2

    @pytest.mark.parametrize(
        ("name", "options", "error", "text"),
        [
            ("a.txt", {}, ValueError, "the ending is one of .csv, .npy"),
            ("a.npz", {"in_memory": False}, ValueError, "rows of a .npz file cannot be read alone"),
            ("a.npz", {}, ValueError, r"first axes differ: \(3,\), \(2,\)"),
        ],
    )
    def test_errors(self, tmp_path, name, options, error, text):
        np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.arange(2))
        with pytest.raises(error, match=text):
            data.from_file(tmp_path / name, **options)

    def test_names_that_are_not_there(self, tmp_path):
        np.savez(tmp_path / "a.npz", x=np.arange(3))
        np.save(tmp_path / "a.npy", np.arange(3))
        with pytest.raises(KeyError, match="no tensor 'z'; there are: 'x'"):
            data.from_file(tmp_path / "a.npz", "z")
        with pytest.raises(KeyError, match="one array, without a name"):
            data.from_file(tmp_path / "a.npy", "z")
