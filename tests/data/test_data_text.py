"""Text as numbers: vocabularies, windows, and the text of Shakespeare's plays."""

import os
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright import data


class TestVocabulary:
    @pytest.mark.parametrize("text", ["hello world\n", "", "größer → 🐚", "\x00\ud800", "aaa"])
    def test_there_and_back(self, text):
        vocabulary = data.Vocabulary.from_text(text + "!")
        tokens = vocabulary.encode(text)
        assert tokens.dtype == tw.int64
        assert tokens.tolist() == [vocabulary.symbols.index(c) for c in text]
        assert vocabulary.decode(tokens) == text
        assert vocabulary.decode(tokens.tolist()) == text
        assert vocabulary.decode(tokens.astype(tw.int16)) == text

    def test_symbols_are_in_order_of_their_code_points(self):
        vocabulary = data.Vocabulary.from_text("banana 🐚")
        assert vocabulary.symbols == " abn🐚"
        assert len(vocabulary) == 5
        assert vocabulary == data.Vocabulary(" abn🐚")
        assert vocabulary != data.Vocabulary("abn")
        assert {vocabulary, data.Vocabulary(" abn🐚")} == {vocabulary}

    def test_unknown_characters_are_named(self):
        vocabulary = data.Vocabulary.from_text("abc")
        with pytest.raises(ValueError, match=r"'x', '🐚' not among the 3 .* first at position 2"):
            vocabulary.encode("abx🐚x")
        with pytest.raises(ValueError, match="'d', 'e', 'f', 'g', 'h' and 2 more not among"):
            vocabulary.encode("defghij")

    @pytest.mark.parametrize(
        ("tokens", "error", "text"),
        [
            ([0, 3], ValueError, "token 3 is not one of 0 to 2"),
            ([-1], ValueError, "token -1 is not one of 0 to 2"),
            (tw.asarray([0.5]), TypeError, "whole numbers, got float32"),
        ],
    )
    def test_tokens_that_stand_for_nothing(self, tokens, error, text):
        with pytest.raises(error, match=text):
            data.Vocabulary("abc").decode(tokens)

    @pytest.mark.parametrize(
        ("symbols", "text"), [("", "no symbols"), ("aba", "'a' is given twice")]
    )
    def test_symbols_that_make_none(self, symbols, text):
        with pytest.raises(ValueError, match=f"Vocabulary: {text}"):
            data.Vocabulary(symbols)

    def test_bytes(self):
        vocabulary = data.ByteVocabulary()
        assert len(vocabulary) == 256
        assert vocabulary.encode("é🐚").tolist() == list("é🐚".encode())
        assert vocabulary.encode(b"\xff\x00").tolist() == [255, 0]
        assert vocabulary.decode(vocabulary.encode("é🐚")) == "é🐚"
        assert vocabulary.decode([255, 65]) == "\ufffdA"
        assert vocabulary.decode([]) == ""
        assert vocabulary.encode("").shape == (0,)
        with pytest.raises(ValueError, match="token 256 is not one of 0 to 255"):
            vocabulary.decode([256])


class TestWindows:
    @pytest.mark.parametrize(("length", "stride"), [(1, 1), (4, 4), (4, 1), (3, 5), (9, 2)])
    def test_windows_and_what_comes_next(self, length, stride):
        sequence = np.random.default_rng(0).integers(0, 50, 30)
        windows = data.Windows(sequence, length, stride)
        starts = [i for i in range(0, 30, stride) if i + length + 1 <= 30]
        assert len(windows) == len(starts)
        x, y = windows.gather(tw.arange(len(windows)))
        assert x.tolist() == [sequence[i : i + length].tolist() for i in starts]
        assert y.tolist() == [sequence[i + 1 : i + length + 1].tolist() for i in starts]
        for i in range(-len(starts), len(starts)):
            assert [part.tolist() for part in windows[i]] == [x[i].tolist(), y[i].tolist()]
        assert x.is_contiguous
        assert y.is_contiguous
        with pytest.raises(IndexError):
            windows[len(starts)]

    def test_without_a_stride_they_do_not_overlap(self):
        assert data.Windows(tw.arange(9), 4).stride == 4
        assert len(data.Windows(tw.arange(9), 4)) == 2
        assert len(data.Windows(tw.arange(8), 4)) == 1

    def test_random_places(self):
        windows = data.Windows(tw.arange(1000), 5, stride=1)

        def epochs():
            sampler = data.RandomSampler(windows, True, 40, tw.Generator(7))
            loader = data.DataLoader(windows, 8, sampler=sampler)
            return [[x.tolist() for x, _ in loader] for _ in range(2)]

        first, second = epochs()
        assert epochs() == [first, second]
        starts = [row[0] for batch in first + second for row in batch]
        assert len(starts) == 80
        assert len({start % 5 for start in starts}) == 5

    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (lambda w: w(tw.arange(4), 4), ValueError, "of 4 elements holds no window of 4"),
            (lambda w: w(tw.zeros((4, 4)), 2), ValueError, r"one axis, this one shape \(4, 4\)"),
            (lambda w: w(tw.arange(4), 0), ValueError, "length must be at least 1, got 0"),
            (lambda w: w(tw.arange(4), 2, 0), ValueError, "stride must be at least 1, got 0"),
            (lambda w: w(tw.arange(4), 2.0), TypeError, "length is a whole number, got 2.0"),
        ],
    )
    def test_errors(self, make, error, text):
        with pytest.raises(error, match=f"Windows: .*{text}"):
            make(data.Windows)


class TestShakespeare:
    def test_finds_folder_subfolder_file_and_variable(self, tmp_path, monkeypatch):
        inner = tmp_path / "tinyshakespeare"
        inner.mkdir()
        (inner / "input.txt").write_text("Ay me!", encoding="utf-8")
        for path in (inner / "input.txt", inner, tmp_path):
            assert data.tinyshakespeare(path) == "Ay me!"
        monkeypatch.setenv("TILEWRIGHT_DATA", str(tmp_path))
        assert data.tinyshakespeare() == "Ay me!"

    def test_the_real_file(self):
        folder = os.environ.get("TILEWRIGHT_DATA", "../shared/data")
        try:
            text = data.tinyshakespeare(folder)
        except FileNotFoundError:
            pytest.skip("no tinyshakespeare here: set TILEWRIGHT_DATA to its folder")
        assert len(text) == 1_115_394
        vocabulary = data.Vocabulary.from_text(text)
        assert len(vocabulary) == 65
        assert vocabulary.decode(vocabulary.encode(text)) == text

    def test_download_without_pooch_says_what_to_install(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "pooch", None)
        with pytest.raises(ImportError, match=r"pip install 'tilewright\[data\]'"):
            data.tinyshakespeare(tmp_path, download=True)

    def test_what_is_missing_or_no_text(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no input.txt in .*; give its folder"):
            data.tinyshakespeare(tmp_path)
        with pytest.raises(FileNotFoundError, match=r"no file or folder .*nowhere"):
            data.tinyshakespeare(tmp_path / "nowhere")
        (tmp_path / "input.txt").write_bytes(b"ab\xff")
        with pytest.raises(ValueError, match="no UTF-8 text: invalid start byte at byte 2"):
            data.tinyshakespeare(tmp_path)
        (tmp_path / "input.txt").write_bytes(b"")
        with pytest.raises(ValueError, match="is empty"):
            data.tinyshakespeare(tmp_path)
