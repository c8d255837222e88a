"""A folder for one experiment: who has begun it, and what is left of it where that fails."""

import fcntl
import json
import threading

import pytest

from negsample.errors import InputError
from negsample.models.segments import lock
from negsample.train import claim as module
from negsample.train.claim import claim, opening


def opened(out, **arguments):
    return opening(out, arguments, "a.json", "a test", makes=("read",))


def test_only_the_first_call_begins_the_folder(tmp_path):
    assert claim(tmp_path / "x", {"size": 1}, "a.json", "a test") is True
    assert claim(tmp_path / "x", {"size": 1}, "a.json", "a test") is False
    with pytest.raises(InputError, match="size was 1, is 2"):
        claim(tmp_path / "x", {"size": 2}, "a.json", "a test")


def test_another_exception_than_a_mistake_of_the_user_leaves_what_was_made(tmp_path):
    with pytest.raises(KeyboardInterrupt), opened(tmp_path / "x", size=1):
        raise KeyboardInterrupt
    assert (tmp_path / "x" / "a.json").is_file()


def test_nothing_is_written_into_a_folder_of_something_else(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="holds something else than a test"), opened(tmp_path, size=1):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(InputError, match="is a file"), opened(tmp_path / "mine.txt", size=1):
        pass
    below = tmp_path / "mine.txt" / "x"
    with pytest.raises(InputError, match=r"mine\.txt/x: a part of the path is a file"), opened(below, size=1):
        pass


def test_who_waits_while_another_fails_begins_the_folder_again(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.02)
    out = tmp_path / "x"
    inside, fail, told = threading.Event(), threading.Event(), []

    def first():
        try:
            with opened(out, size=1):
                (out / "read").mkdir()
                inside.set()
                assert fail.wait(30)
                raise InputError("a bad file")
        except InputError as error:
            told.append(str(error))

    def second():
        with opened(out, size=1):
            told.append(sorted(path.name for path in out.iterdir()))

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(30)
    threads[1].start()
    threads[1].join(0.2)
    assert told == []
    fail.set()
    for thread in threads:
        thread.join(30)
    assert sorted(told, key=str) == sorted(["a bad file", ["a.json", "locks"]], key=str)
    assert json.loads((out / "a.json").read_text()) == {"size": 1}


def test_a_lock_file_that_was_deleted_holds_nothing(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    real = fcntl.flock

    def deleted_meanwhile(file, operation):
        path.unlink()
        path.write_text("")
        return real(file, operation)

    monkeypatch.setattr("negsample.models.segments.fcntl.flock", deleted_meanwhile)
    with lock(path) as held:
        assert not held
    monkeypatch.undo()
    with lock(path) as held:
        assert held
