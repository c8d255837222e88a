"""Copies that are whole or not made."""

import shutil

import pytest

from negsample.io.files import copy_file


def test_a_copy_is_whole_or_not_made(tmp_path, monkeypatch):
    source, target = tmp_path / "source", tmp_path / "folder" / "file"
    source.write_text("new")
    copy_file(source, target)
    assert target.read_text() == "new"

    def stop_half_way(source, name):
        with open(name, "w") as stream:
            stream.write("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfile", stop_half_way)
    with pytest.raises(KeyboardInterrupt):
        copy_file(source, target)
    assert [path.name for path in target.parent.iterdir()] == ["file"]
    assert target.read_text() == "new"
