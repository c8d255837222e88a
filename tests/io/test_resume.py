"""A folder for one experiment: who has begun it, who waits for it, and what is left of it where that fails."""

import json
import threading

import pytest

from negsample.errors import InputError
from negsample.io import run_record as module
from negsample.io.run_record import trying, waiting, work_folder


def shared(out, **arguments):
    return work_folder(out, arguments, name="a.json", what="a test", alone=False, makes=["read"])


def test_only_the_first_call_begins_the_folder(tmp_path):
    with shared(tmp_path / "x", size=1):
        pass
    with pytest.raises(InputError, match="a bad file"), shared(tmp_path / "x", size=1):
        raise InputError("a bad file")
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["a.json"]
    with pytest.raises(InputError, match="size was 1, is 2"), shared(tmp_path / "x", size=2):
        pass
    for damage in ("{", "3"):
        (tmp_path / "x" / "a.json").write_text(damage)
        with pytest.raises(InputError, match="damaged; give another folder"), shared(tmp_path / "x", size=1):
            pass
    # What is not a mistake of the user leaves what was made.
    with pytest.raises(KeyboardInterrupt), shared(tmp_path / "y", size=1):
        raise KeyboardInterrupt
    assert (tmp_path / "y" / "a.json").is_file()


def test_nothing_is_written_into_a_folder_of_something_else(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    for out, told in (
        (tmp_path, "holds something else than a test"),
        (tmp_path / "mine.txt", "is a file"),
        (tmp_path / "mine.txt" / "x", r"mine\.txt/x: a part of the path is a file"),
    ):
        with pytest.raises(InputError, match=told), shared(out, size=1):
            pass
        assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "lock").write_text("of something else")
    with pytest.raises(InputError, match="holds something else than a test"), shared(tmp_path, size=1):
        pass
    assert (tmp_path / "lock").read_text() == "of something else"


def test_who_waits_while_another_fails_begins_the_folder_again(tmp_path):
    out = tmp_path / "x"
    inside, fail, told = threading.Event(), threading.Event(), []

    def first():
        try:
            with shared(out, size=1):
                (out / "read").mkdir()
                inside.set()
                assert fail.wait(30)
                raise InputError("a bad file")
        except InputError as error:
            told.append(str(error))

    def second():
        with shared(out, size=1):
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
    assert sorted(told, key=str) == sorted(["a bad file", ["a.json", "lock"]], key=str)
    assert json.loads((out / "a.json").read_text()) == {"size": 1}


def test_who_waits_says_for_what(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", (0.05, 0.05))
    path, told, twice = tmp_path / "locks" / "encoder", [], threading.Event()

    def hear(line, error):
        told.append((line, error))
        if len(told) == 2:
            twice.set()

    monkeypatch.setattr(module, "say", hear)

    def wait():
        with waiting(path):
            pass

    with waiting(path):
        other = threading.Thread(target=wait)
        other.start()
        assert twice.wait(60)
    other.join(60)
    assert set(told) == {(f"{path.parent}: waiting for another process, which is working on this, to end", True)}


def test_who_only_tries_does_not_wait(tmp_path):
    with trying(tmp_path / "locks" / "cell") as first, trying(tmp_path / "locks" / "cell") as second:
        assert first
        assert not second
    with trying(tmp_path / "locks" / "cell") as again:
        assert again


def alone(out, size, **options):
    options = {"makes": ["work", "notes"], "kept": ["work/*/done"], **options}
    return work_folder(out, {"size": size}, name="a.json", what="a test", alone=True, **options)


def fail_after(out, size, *files):
    """Write ``files``, then find a mistake."""
    with alone(out, size):
        for file in files:
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            (out / file).write_text("")
        raise InputError("a bad file")


def test_who_is_alone_undoes_what_a_mistake_left_unless_something_is_finished(tmp_path):
    (tmp_path / "empty").mkdir()
    for out in (tmp_path / "new" / "x", tmp_path / "empty"):
        with pytest.raises(InputError, match="a bad file"):
            fail_after(out, 1, "notes/one.json", "work/one/begun")
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
    assert list((tmp_path / "empty").iterdir()) == []
    with pytest.raises(InputError, match="a bad file"):
        fail_after(tmp_path / "empty", 2, "work/one/done")
    assert (tmp_path / "empty" / "work" / "one" / "done").is_file()
    with pytest.raises(InputError, match="size was 2, is 3"):
        fail_after(tmp_path / "empty", 3)


def test_a_second_process_is_refused_as_is_a_folder_that_was_not_to_be_gone_on_with(tmp_path):
    with alone(tmp_path / "x", 1, resume=False):
        with pytest.raises(InputError, match="another process is working on this"), alone(tmp_path / "x", 1):
            pass
        assert json.loads((tmp_path / "x" / "a.json").read_text()) == {"size": 1}
    with pytest.raises(InputError, match="is not empty; go on with --resume"), alone(tmp_path / "x", 1, resume=False):
        pass
