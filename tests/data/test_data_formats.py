"""Files as other programs write them: byte orders, element types, compression, and its bounds."""

from __future__ import annotations

import csv
import gzip
import io
import struct
import zipfile

import numpy as np
import pytest

import tilewright as tw
from tilewright import data

IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
NPY_TYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")


def idx(code: int, array: np.ndarray) -> bytes:
    header = struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape)
    return header + array.astype(IDX_TYPES[code]).tobytes()


@pytest.mark.parametrize("code", IDX_TYPES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_files_of_every_type(code: int, pack, tmp_path) -> None:
    for shape in ((3, 4), (5,), (0, 2), ()):
        array = (np.arange(np.prod(shape, dtype=int)) * 21 - 3).reshape(shape).astype("i1")
        array = np.asarray(array, IDX_TYPES[code])
        (tmp_path / "x.idx").write_bytes(pack(idx(code, array)))
        got = data.read_idx(tmp_path / "x.idx")
        assert got.numpy().dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(got.numpy(), array)
    name = got.dtype.name
    with pytest.raises(ValueError, match=f"elements are {name}, expected bool"):
        data.read_idx(tmp_path / "x.idx", dtype=tw.bool)
    (tmp_path / "x.idx").write_bytes(idx(code, array.reshape(1)))
    if array.itemsize == 1:
        assert data.FileTensor.from_idx(tmp_path / "x.idx")[:].tolist() == array.reshape(1).tolist()
    else:
        with pytest.raises(ValueError, match=r"big-endian; use read_idx\(\)"):
            data.FileTensor.from_idx(tmp_path / "x.idx")


@pytest.mark.parametrize("kind", NPY_TYPES)
def test_npy_files_of_either_byte_order(kind: str, tmp_path) -> None:
    values = np.arange(-6, 6).astype(kind).reshape(3, 4)
    if kind[0] == "c":
        values = values * (1 + 2j)
    for order in "<>":
        array = values.astype(values.dtype.newbyteorder(order))
        np.save(tmp_path / "x.npy", array)
        np.savez_compressed(tmp_path / "x.npz", a=array, f=np.asfortranarray(array), e=array[:0])
        read = data.read_npz(tmp_path / "x.npz")
        for got in (data.read_npy(tmp_path / "x.npy"), read["a"], read["f"]):
            assert got.numpy().dtype == values.dtype
            np.testing.assert_array_equal(got.numpy(), values)
        assert read["e"].shape == (0, 4)
    if values.itemsize > 1:
        with pytest.raises(ValueError, match=r"foreign byte order; use read_npy\(\)"):
            data.FileTensor.from_npy(tmp_path / "x.npy")


class TestBounds:
    """A bomb is not expanded: what is read stays near what is allowed."""

    def test_npz(self, tmp_path) -> None:
        path = tmp_path / "x.npz"
        np.savez_compressed(path, a=np.zeros(1 << 20), b=np.zeros(1 << 20))
        assert sorted(data.read_npz(path)) == ["a", "b"]
        assert sorted(data.read_npz(path, max_bytes=17 << 20)) == ["a", "b"]
        for bound in (0, 1000, 8 << 20, 16 << 20):
            with pytest.raises(ValueError, match=f"above the bound of {bound}; give max_bytes="):
                data.read_npz(path, max_bytes=bound)

    def test_an_entry_that_is_longer_than_its_header_says(self, tmp_path) -> None:
        header = io.BytesIO()
        np.save(header, np.zeros(8))
        for count in (1, 100, 1 << 26):
            with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("a.npy", header.getvalue() + bytes(count))
            with pytest.raises(ValueError, match=r"x\.npz: a\.npy: damaged: shape \(8,\)"):
                data.read_npz(tmp_path / "x.npz", max_bytes=1 << 20)

    def test_an_entry_that_is_not_as_long_as_its_header_says(self, tmp_path) -> None:
        start = io.BytesIO()
        np.save(start, np.zeros(8))
        content = start.getvalue().replace(
            b"(8,), }" + b" " * 20, b"(80000000000000000,), }" + b" " * 4
        )
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            archive.writestr("a.npy", content)
        with pytest.raises(ValueError, match=r"expand to 640000000000000\d* or more, above"):
            data.read_npz(tmp_path / "x.npz")
        with pytest.raises(ValueError, match=r"a\.npy: truncated: shape"):
            data.read_npz(tmp_path / "x.npz", max_bytes=10**18)

    def test_idx(self, tmp_path) -> None:
        (tmp_path / "x.gz").write_bytes(gzip.compress(idx(8, np.zeros((1 << 22,), "u1"))))
        assert data.read_idx(tmp_path / "x.gz").shape == (1 << 22,)
        with pytest.raises(ValueError, match="above the bound of 1000; give max_bytes="):
            data.read_idx(tmp_path / "x.gz", max_bytes=1000)
        with pytest.raises(TypeError, match="max_bytes is a whole number"):
            data.read_idx(tmp_path / "x.gz", max_bytes=0.5)

    def test_csv(self, tmp_path) -> None:
        (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a\n" + b"1\n" * (1 << 20)))
        assert data.read_csv(tmp_path / "x.csv.gz")["a"].shape == (1 << 20,)
        with pytest.raises(ValueError, match="above the bound of 100000; give max_bytes="):
            data.read_csv(tmp_path / "x.csv.gz", max_bytes=100_000)


class TestCsv:
    def test_compressed(self, tmp_path) -> None:
        text = "\ufeffa,b\r\n1,x\r\n2,ä\r\n".encode()
        for name, content in (("x.csv", text), ("x.csv.gz", gzip.compress(text))):
            (tmp_path / name).write_bytes(content)
            table = data.read_csv(tmp_path / name, dtype={"b": str})
            assert (table["a"].tolist(), table["b"]) == ([1.0, 2.0], ["x", "ä"])
        (tmp_path / "y.csv.gz").write_bytes(gzip.compress(b"p,q\n1,2\n"))
        assert len(data.from_file(tmp_path / "y.csv.gz")) == 1
        for damaged in (gzip.compress(text * 99)[:-9], gzip.compress(text)[:-8] + bytes(8)):
            (tmp_path / "z.csv.gz").write_bytes(damaged)
            with pytest.raises(ValueError, match=r"z\.csv\.gz: (truncated|damaged)"):
                data.read_csv(tmp_path / "z.csv.gz", dtype={"b": str})

    def test_cells_of_any_length(self, tmp_path) -> None:
        before = csv.field_size_limit()
        long = "x" * 400_000
        (tmp_path / "x.csv").write_text(f"a,b\n1,{long}\n", encoding="utf-8")
        assert data.read_csv(tmp_path / "x.csv", dtype={"b": str})["b"] == [long]
        assert csv.field_size_limit() == before
        (tmp_path / "x.csv").write_text(f"a\n{long}\n", encoding="utf-8")
        with pytest.raises(ValueError, match="is no number"):
            data.read_csv(tmp_path / "x.csv")
        assert csv.field_size_limit() == before


def test_fills_are_what_pixels_can_be() -> None:
    images = {name: tw.zeros((1, 3, 3), dtype=getattr(tw, name)) for name in (
        "uint8", "int8", "int64", "bool", "float16", "float32", "float64"
    )}  # fmt: skip
    good = {"uint8": (0, 255, 7.0), "int8": (-128,), "int64": (2**62 + 1,), "bool": (True, 0),
            "float16": (65504, 0.1, float("nan")), "float32": (1e38, float("-inf"))}  # fmt: skip
    bad = {"uint8": (300, -1, 0.5, float("nan")), "int8": (128,), "int64": (2**63,), "bool": (2,),
           "float16": (1e6,), "float32": (1e39, -1e300)}  # fmt: skip
    for name, fills in good.items():
        for fill in fills:
            for transform in (data.RandomCrop(5, 1, fill), data.RandomCrop((3, 5), 1, fill=fill)):
                corner = transform(images[name])[0, 0, 0].item()
                assert corner == pytest.approx(fill, 1e-3, nan_ok=True)
    for name, fills in bad.items():
        for fill in fills:
            for transform in (data.RandomCrop(5, 1, fill), data.RandomShift(1, fill)):
                with pytest.raises(ValueError, match=f"fill .* is no {name}, the type of the im"):
                    transform(images[name])
    with pytest.raises(TypeError, match="fill is a number"):
        data.RandomCrop(5, 1, "white")(images["uint8"])
