"""The embedding cache, with an encoder that counts what it is asked to encode."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.models import embedding_cache
from negsample.models.embedding_cache import EmbeddingCache, cache_root, clear_cache, find_caches, key, keys
from negsample.text import readable

PARIS, ACUTE = "9ab0b99a04207c22b82d91b781c6daa7", "d4b1b0202b21bb84e60a3d272ecab0db"


def expected(texts: Sequence[str], dim: int = 3) -> np.ndarray:
    """Vectors that anybody can work out: length, sum of code points, first code point, repeated to ``dim``."""
    base = [(len(text), sum(map(ord, text)), ord(text[0]) if text else 0) for text in texts]
    return np.resize(np.array(base, dtype=np.float32).reshape(-1, 3).T, (dim, len(base))).T.astype(np.float32)


class Counting:
    """An encoder that remembers how often it was given each text."""

    unit = "sentence"

    def __init__(self, name: str = "counting", fingerprint: str = "f" * 40, dim: int = 3) -> None:
        self.name, self.fingerprint, self.dim = name, fingerprint, dim
        self.seen: Counter[str] = Counter()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.seen.update(texts)
        return expected(texts, self.dim)

    def save(self, folder: Path) -> dict[str, Any]:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "root"))
    return tmp_path / "root"


def texts(*numbers: int) -> list[str]:
    return [f"text number {number}" for number in numbers]


def stored_rows(cache: EmbeddingCache) -> int:
    with contextlib.closing(sqlite3.connect(cache.folder / "vectors.sqlite")) as db:
        return int(db.execute("SELECT count(*) FROM vectors").fetchone()[0])


def test_key_is_blake2b_of_the_text() -> None:
    # From b2sum -l 128.
    assert key("Paris").hex() == PARIS
    assert key("é").hex() == ACUTE
    assert keys(["é", "Paris"]).tobytes().hex() == ACUTE + PARIS
    assert keys([]).shape == (0, 16)
    assert key("e\u0301").hex() == key("\u200bé").hex() == ACUTE  # what is encoded is the same
    assert len(key("\ud800")) == 16  # a lone surrogate is a text too


def test_what_was_added_is_found_by_key_after_a_restart(tmp_path: Path) -> None:
    assert EmbeddingCache(Counting(dim=5), tmp_path / "wide").rows([]).shape == (0, 5)
    some = texts(1, 2, 1)
    EmbeddingCache(Counting(), tmp_path / "c", chunk=1).add(some, keys(some))
    encoder = Counting()
    cache = EmbeddingCache(encoder, tmp_path / "c")
    cache.add(some, keys(some))
    found = cache.vectors(keys(texts(2, 1, 2)))
    np.testing.assert_array_equal(found, expected(texts(2, 1, 2)))
    assert found.dtype == np.float32
    found += 1  # is the caller's own
    with pytest.raises(InputError, match="vectors were removed"):
        cache.vectors(keys(texts(2, 9)))
    EmbeddingCache(Counting(), tmp_path / "c").rows(texts(9))
    np.testing.assert_array_equal(cache.vectors(keys(texts(2, 9))), expected(texts(2, 9)))
    assert not encoder.seen


ENCODER = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from negsample.models.embedding_cache import EmbeddingCache

class Encoder:
    name, fingerprint, dim, unit, calls = "counting", "f" * 40, 3, "sentence", 0
    def encode(self, texts):
        self.calls += 1
        if self.calls == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.001)
        return np.array([(len(t), sum(map(ord, t)), ord(t[0])) for t in texts], dtype=np.float32)

folder, start, encoder = Path(sys.argv[1]), int(sys.argv[2]), Encoder()
"""
# Both begin at once, when each has said that it is there.
WRITER = """
print(flush=True)
sys.stdin.readline()
cache = EmbeddingCache(encoder, folder / "c", chunk=3)
for first in [*range(start, start + 200, 30)] * 2:
    texts = [f"text number {n}" for n in range(first, first + 45)]
    assert np.array_equal(cache.rows(texts), encoder.encode(texts))
"""
KILLED = 'EmbeddingCache(encoder, folder / "c", chunk=5).rows([f"text number {n}" for n in range(30)])'


def process(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ENCODER + script, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_two_processes_at_once(tmp_path: Path) -> None:
    runs = [process(WRITER, tmp_path, start, 0) for start in (0, 100)]
    for run in runs:
        assert run.stdout is not None
        run.stdout.readline()
    for run in runs:
        assert run.stdin is not None
        print(file=run.stdin, flush=True)
    for run in runs:
        _, errors = run.communicate()
        # No warning of damage either.
        assert (run.returncode, errors) == (0, "")
    encoder, everything = Counting(), texts(*range(300))
    np.testing.assert_array_equal(EmbeddingCache(encoder, tmp_path / "c").rows(everything), expected(everything))
    assert not encoder.seen


def test_a_killed_run_loses_only_the_chunk_it_was_in(tmp_path: Path) -> None:
    run = process(KILLED, tmp_path, 0, 4)
    run.communicate()
    assert run.returncode == -signal.SIGKILL
    encoder, everything = Counting(), texts(*range(30))
    np.testing.assert_array_equal(EmbeddingCache(encoder, tmp_path / "c").rows(everything), expected(everything))
    assert encoder.seen == Counter(texts(*range(15, 30)))


def test_texts_whose_ends_are_left_out_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Short(Counting):
        """Reads twelve characters."""

        counts: ClassVar[Counter[str]] = Counter()

        def encode(self, texts: Sequence[str]) -> np.ndarray:
            self.counts["truncated"] += sum(len(text) > 12 for text in texts)
            return super().encode(texts)

    cache = EmbeddingCache(Short(), tmp_path)
    cache.rows(["short", "also short"])
    cache.rows(["short", "longer than twelve", "new", "as long as that was"])
    cache.rows(["longer than twelve"])
    assert ["2 of 3 new texts are longer" in record.message for record in caplog.records] == [True]


class Broken(Counting):
    """Returns what it is told to."""

    def __init__(self, result: np.ndarray) -> None:
        super().__init__()
        self.result = result

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return self.result


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.array([[0, 0, 0], [0, np.nan, 0]]), "not finite.*'text number 2'"),
        (np.array([[0, 0, 0], [0, 1e39, 0]]), "not finite"),
        (np.zeros((2, 4)), "shape"),
        (np.zeros((1, 3)), "shape"),
    ],
)
def test_wrong_vectors_are_refused_and_not_stored(tmp_path: Path, result: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        EmbeddingCache(Broken(result), tmp_path / "c").rows(texts(1, 2))
    assert stored_rows(EmbeddingCache(Counting(), tmp_path / "c")) == 0


class Numbers(Counting):
    """Wide vectors without much work: each text is a number."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.outer(np.array(texts, dtype=np.float32), np.ones(self.dim, dtype=np.float32))


def test_memory_stays_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count, dim = 20_000, 512
    monkeypatch.setattr(embedding_cache, "_KEPT_BYTES", 1 << 20)
    asked = [str(number) for number in range(count)]
    wanted = keys(asked)
    tracemalloc.start()
    for _ in range(2):
        cache = EmbeddingCache(Numbers(dim=dim), tmp_path / "c", chunk=512)
        cache.add(asked, wanted)
        for start in range(0, count, 500):
            found = cache.vectors(wanted[start : start + 500])
            np.testing.assert_array_equal(found[:, 5], np.arange(start, start + 500))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stored_rows(cache) == count
    assert peak < count * dim * 4 / 4


def test_where_caches_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_root() == tmp_path / "root"
    monkeypatch.delenv("NEGSAMPLE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "negsample"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_root() == tmp_path / "home" / ".cache" / "negsample"


def test_report_and_clearing(own_root: Path) -> None:
    assert find_caches() == []
    one = EmbeddingCache(Counting("one", "a" * 40))
    two = EmbeddingCache(Counting("org/two", "b" * 40))
    assert one.folder == own_root / "one-aaaaaaaaaaaaaaaa-d3"
    assert two.folder == own_root / "org-two-bbbbbbbbbbbbbbbb-d3"
    one.rows(texts(1, 2, 3))
    two.rows(texts(1))
    (own_root / "unrelated").mkdir()
    (own_root / "unrelated" / "keep.txt").write_text("mine")
    (one.folder / "keep.txt").write_text("mine")
    report = find_caches()
    assert [(info.name, info.fingerprint[0], info.rows) for info in report] == [("one", "a", 3), ("org/two", "b", 1)]
    assert report[0].bytes > 3 * 12
    with pytest.raises(InputError, match="did you mean one"):
        clear_cache("onne")
    assert clear_cache("one") >= report[0].bytes
    assert [info.name for info in find_caches()] == ["org/two"]
    # The object goes on in a new cache.
    np.testing.assert_array_equal(one.rows(texts(1, 2, 4)), expected(texts(1, 2, 4)))
    assert [info.name for info in find_caches()] == ["one", "org/two"]
    clear_cache()
    assert find_caches() == []
    assert not two.folder.exists()
    assert (one.folder / "keep.txt").read_text() == (own_root / "unrelated" / "keep.txt").read_text() == "mine"
    assert clear_cache() == 0


def test_clearing_in_the_middle_of_a_run_loses_nothing_for_that_run() -> None:
    class Clearing(Counting):
        def encode(self, texts: Sequence[str]) -> np.ndarray:
            if len(self.seen) == 30:
                clear_cache()
            return super().encode(texts)

    cache = EmbeddingCache(Clearing(), chunk=1)
    everything = texts(*range(40))
    np.testing.assert_array_equal(cache.rows(everything), expected(everything))


@pytest.mark.parametrize("when", ["from the beginning", "later"])
def test_where_nothing_can_be_kept_vectors_are_computed_without_it(
    tmp_path: Path, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = Counting()
    if when == "later":
        cache = EmbeddingCache(encoder, tmp_path / "c", chunk=1)
        cache.rows(texts(1))
        shutil.rmtree(tmp_path / "c")
    (tmp_path / "c").write_text("")
    if when != "later":
        cache = EmbeddingCache(encoder, tmp_path / "c", chunk=1)
    for _ in range(2):
        cache.add(texts(3), keys(texts(3)))
        np.testing.assert_array_equal(cache.rows(texts(1, 2, 3)), expected(texts(1, 2, 3)))
    assert encoder.seen == Counter(texts(1, 2, 3))
    assert ["NEGSAMPLE_CACHE" in record.message for record in caplog.records] == [True]


def test_a_cache_that_can_only_be_read_is_read(caplog: pytest.LogCaptureFixture) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "c"
        EmbeddingCache(Counting(), folder).rows(texts(1, 2))
        for path, mode in ((Path(name), 0o755), (folder / "vectors.sqlite", 0o444), (folder, 0o555)):
            path.chmod(mode)
        # Root may write anywhere.
        before = os.geteuid()
        os.seteuid(before or 65534)
        try:
            encoder = Counting()
            cache = EmbeddingCache(encoder, folder)
            for _ in range(2):
                np.testing.assert_array_equal(cache.rows(texts(2, 3)), expected(texts(2, 3)))
                cache.add(texts(1, 3), keys(texts(1, 3)))
        finally:
            os.seteuid(before)
            folder.chmod(0o755)
    assert encoder.seen == Counter(texts(3))
    assert len(caplog.records) == 1


def test_a_folder_of_another_encoder_is_refused(tmp_path: Path) -> None:
    EmbeddingCache(Counting(), tmp_path / "c").rows(texts(1))
    for other in (Counting(fingerprint="e" * 40), Counting(dim=4)):
        with pytest.raises(InputError, match="holds vectors of encoder 'counting'"):
            EmbeddingCache(other, tmp_path / "c")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "header": lambda path: path.write_bytes(b"no file of SQLite's" * 900),
    "shorter": lambda path: os.truncate(path, 8192),
    "empty": lambda path: os.truncate(path, 0),
    "middle": lambda path: path.write_bytes(path.read_bytes()[:8192] + b"\x7f" * 32768),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_is_told_of_and_begun_anew(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    EmbeddingCache(Counting(), tmp_path / "c").rows(texts(*range(40)))
    (tmp_path / "c" / "notes.txt").write_text("mine")
    DAMAGE[damage](tmp_path / "c" / "vectors.sqlite")
    everything, encoder = texts(*range(42)), Counting()
    np.testing.assert_array_equal(EmbeddingCache(encoder, tmp_path / "c").rows(everything), expected(everything))
    # An empty file is a cache that has nothing yet.
    assert ["vectors.sqlite: damaged" in record.message for record in caplog.records] == [True] * (damage != "empty")
    assert encoder.seen == Counter(everything)
    fresh = Counting()
    np.testing.assert_array_equal(EmbeddingCache(fresh, tmp_path / "c").rows(everything), expected(everything))
    assert not fresh.seen
    assert (tmp_path / "c" / "notes.txt").read_text() == "mine"


@settings(max_examples=10, deadline=None)
@given(st.lists(st.lists(st.text(max_size=3), max_size=6), max_size=3), st.integers(1, 4), st.booleans())
def test_any_sequence_of_calls(calls: list[list[str]], chunk: int, reopen: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        encoder = Counting()
        cache = EmbeddingCache(encoder, Path(folder), chunk=chunk)
        for call in calls:
            if reopen:
                cache = EmbeddingCache(encoder, Path(folder), chunk=chunk)
            np.testing.assert_array_equal(cache.rows(call), expected(list(map(readable, call))))
        assert encoder.seen == Counter({readable(text) for call in calls for text in call})
