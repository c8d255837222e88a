"""Mapped files: what they hold, and that a pass over one does not leave all of it in memory."""

from pathlib import Path

import numpy as np
import pytest

from negsample.models.store.memory_map import MappedFile

MB = 1 << 20
STATUS = Path("/proc/self/status")


def mapped_mb() -> float:
    """File pages that this process has in memory."""
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("RssFile:"))
    return int(line.split()[1]) / 1024


def test_content_stays_good_when_pages_are_given_back(tmp_path):
    path = tmp_path / "data"
    content = np.arange(10 * MB, dtype=np.int32)
    content.tofile(path)
    file = MappedFile(path)
    view = file.data.view(np.int32)
    for start in range(0, len(view), MB):
        assert np.array_equal(view[start : start + MB], content[start : start + MB])
        file.touched(1, 4 * MB)
    assert np.array_equal(view, content)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_empty(tmp_path):
    (tmp_path / "data").touch()
    file = MappedFile(tmp_path / "data")
    file.touched(100)
    assert len(file.data) == 0


@pytest.mark.skipif(not STATUS.exists() or "RssFile" not in STATUS.read_text(), reason="needs Linux's /proc")
@pytest.mark.parametrize("told", [True, False])
def test_a_pass_over_a_large_file(told, tmp_path):
    path = tmp_path / "data"
    with path.open("wb") as stream:
        stream.truncate(160 * MB)
    file = MappedFile(path)
    before, most = mapped_mb(), 0.0
    for number, start in enumerate(range(0, 160 * MB, 1 << 16)):
        file.data[start : start + (1 << 16)].sum()
        if told:
            file.touched(1)
        if number % 64 == 0:
            most = max(most, mapped_mb() - before)
    # Without a word the whole file stays; with it no more than some 32 MB.
    assert most < 64 if told else most > 100
