"""A folder for one experiment: who has begun it, and what is left of it where that fails."""

import fcntl
import json
import threading

import pytest

from negsample.errors import InputError
from negsample.io import work_folder as module
from negsample.io.work_folder import alone, claim, opening
from negsample.models.store.segments import lock


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

    monkeypatch.setattr("negsample.models.store.segments.fcntl.flock", deleted_meanwhile)
    with lock(path) as held:
        assert not held
    monkeypatch.undo()
    with lock(path) as held:
        assert held


def alone_in(out, size):
    return alone(out, {"size": size}, "a.json", "a test", makes=("work", "notes.json"), kept="work/*/done")


def fail_after(out, size, *files):
    """Write ``files``, then find a mistake."""
    with alone_in(out, size):
        for file in files:
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            (out / file).write_text("")
        raise InputError("a bad file")


def test_who_is_alone_undoes_what_a_mistake_left_unless_something_is_finished(tmp_path):
    (tmp_path / "empty").mkdir()
    for out in (tmp_path / "new" / "x", tmp_path / "empty"):
        with pytest.raises(InputError, match="a bad file"):
            fail_after(out, 1, "notes.json", "work/one/begun")
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
    assert list((tmp_path / "empty").iterdir()) == []
    with pytest.raises(InputError, match="a bad file"):
        fail_after(tmp_path / "empty", 2, "work/one/done")
    assert (tmp_path / "empty" / "work" / "one" / "done").is_file()
    with pytest.raises(InputError, match="size was 2, is 3"):
        fail_after(tmp_path / "empty", 3)


def test_a_second_process_is_refused_and_leaves_the_first_its_folder(tmp_path):
    with alone_in(tmp_path / "x", 1):
        with pytest.raises(InputError, match="another process is working on this"), alone_in(tmp_path / "x", 1):
            pass
        assert json.loads((tmp_path / "x" / "a.json").read_text()) == {"size": 1}
