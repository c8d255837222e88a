"""A run that is killed and resumed ends as if it had never been killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import load_file

from negsample import Estimator
from negsample.errors import InputError
from negsample.train import job
from negsample.train.config import make_config
from negsample.train.fit import checkpoint, loop
from negsample.train.job import train


class KilledError(Exception):
    """Stands for a kill: nothing in the code under test catches it."""


def settings(tiny_bert, pairs_file, **more):
    values = {
        "corpus": str(pairs_file),
        "encoder": str(tiny_bert),
        "max_length": 64,
        "epochs": 3,
        "batch_size": 16,
        "learning_rate": 1e-3,
        "checkpoint_every": 2,
        "log_examples": True,
    }
    return make_config({**values, **more})


def steps_of(folder):
    lines = [json.loads(line) for line in (folder / "training.jsonl").read_text().splitlines()]
    return [(line["step"], line["ids"]) for line in lines if line["kind"] == "step"]


@pytest.fixture(scope="module")
def whole(tiny_bert, pairs_file, tmp_path_factory):
    """A run that nobody killed."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    train(settings(tiny_bert, pairs_file), out)
    return out


def same_model(one, other):
    a, b = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    assert a.keys() == b.keys()
    for name in a:
        assert np.array_equal(a[name], b[name]), name


def test_the_run_saw_every_example_once_an_epoch(whole):
    seen = [name for _, ids in steps_of(whole) for name in ids]
    assert len(seen) == 3 * len(set(seen))
    assert all(seen.count(name) == 3 for name in set(seen))
    assert [step for step, _ in steps_of(whole)] == list(range(len(steps_of(whole))))


# 96 training examples in batches of 16: six steps an epoch. Checkpoints follow steps 2, 4, 6, … and each epoch.
@pytest.mark.parametrize("fatal", [0, 1, 3, 6, 9, 17])
def test_killed_in_a_step(fatal, whole, tiny_bert, pairs_file, tmp_path, monkeypatch):
    config = settings(tiny_bert, pairs_file)
    real, count = loop.train_step, [0]

    def dying(*arguments):
        if count[0] == fatal:
            raise KilledError
        count[0] += 1
        return real(*arguments)

    monkeypatch.setattr(loop, "train_step", dying)
    with pytest.raises(KilledError):
        train(config, tmp_path / "run")
    monkeypatch.setattr(loop, "train_step", real)
    train(config, tmp_path / "run", resume=True)
    same_model(whole, tmp_path / "run")
    assert steps_of(tmp_path / "run") == steps_of(whole)


@pytest.mark.parametrize("moment", ["before", "inside", "after"])
@pytest.mark.parametrize("fatal", [1, 3, 4])
def test_killed_around_a_checkpoint(moment, fatal, whole, tiny_bert, pairs_file, tmp_path, monkeypatch):
    config = settings(tiny_bert, pairs_file)
    real, count = checkpoint.Checkpoints.save, [0]

    def dying(self, position):
        count[0] += 1
        if count[0] == fatal and moment == "before":
            raise KilledError
        if count[0] == fatal and moment == "inside":
            monkeypatch.setattr(checkpoint, "atomic_json", lambda *_: (_ for _ in ()).throw(KilledError()))
        real(self, position)
        if count[0] == fatal:
            raise KilledError

    keep = checkpoint.atomic_json
    monkeypatch.setattr(checkpoint.Checkpoints, "save", dying)
    with pytest.raises(KilledError):
        train(config, tmp_path / "run")
    monkeypatch.setattr(checkpoint.Checkpoints, "save", real)
    monkeypatch.setattr(checkpoint, "atomic_json", keep)
    train(config, tmp_path / "run", resume=True)
    same_model(whole, tmp_path / "run")
    assert steps_of(tmp_path / "run") == steps_of(whole)


def test_kill_nine(whole, tiny_bert, pairs_file, tmp_path):
    config = settings(tiny_bert, pairs_file)
    words = [f"{key}={value}" for key, value in config.as_dict().items() if value is not None]
    command = [sys.executable, "-m", "negsample", "train", *words, "--out", str(tmp_path / "run"), "--resume"]
    log = tmp_path / "run" / "work" / "training.jsonl"
    for least in (2, 9):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and process.poll() is None:
            if log.exists() and log.read_text().count('"step"') >= least:
                os.kill(process.pid, signal.SIGKILL)
                break
            time.sleep(0.005)
        process.wait()
        assert process.returncode == -signal.SIGKILL, process.stderr.read()
        with pytest.raises(InputError, match="resume"):
            Estimator.load(tmp_path / "run")
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    same_model(whole, tmp_path / "run")
    assert steps_of(tmp_path / "run") == steps_of(whole)
    assert subprocess.run(command, capture_output=True, timeout=240).returncode == 0


def test_the_same_command_twice_is_refused_and_leaves_the_first_unharmed(whole, tiny_bert, pairs_file, tmp_path):
    config = settings(tiny_bert, pairs_file)
    words = [f"{key}={value}" for key, value in config.as_dict().items() if value is not None]
    command = [sys.executable, "-m", "negsample", "train", *words, "--out", str(tmp_path / "run"), "--resume"]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and first.poll() is None and not (tmp_path / "run" / "lock").exists():
            time.sleep(0.005)
        # Held until the second has had its say, however slow the machine.
        os.kill(first.pid, signal.SIGSTOP)
        second = subprocess.run(command, capture_output=True, text=True, timeout=240)
        os.kill(first.pid, signal.SIGCONT)
        _, said = first.communicate(timeout=240)
    finally:
        first.kill()
    assert second.returncode == 2
    assert "run: another process is working on this" in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1
    assert first.returncode == 0, said
    same_model(whole, tmp_path / "run")
    assert not (tmp_path / "run" / "lock").exists()


def test_resume_of_a_finished_run_does_nothing(whole, tiny_bert, pairs_file):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    assert train(settings(tiny_bert, pairs_file), whole, resume=True) is None
    assert before == {path: path.stat().st_mtime_ns for path in whole.rglob("*")}


def test_resume_of_a_finished_run_with_another_configuration_is_refused(whole, tiny_bert, pairs_file):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    with pytest.raises(InputError, match=r"begun with another configuration \(epochs was 3, is 4\)"):
        train(settings(tiny_bert, pairs_file, epochs=4), whole, resume=True)
    assert before == {path: path.stat().st_mtime_ns for path in whole.rglob("*")}


def test_resume_with_another_configuration_is_refused(tiny_bert, pairs_file, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "train_step", lambda *_: (_ for _ in ()).throw(KilledError()))
    with pytest.raises(KilledError):
        train(settings(tiny_bert, pairs_file), tmp_path / "run")
    with pytest.raises(InputError, match="epochs was 3, is 4"):
        train(settings(tiny_bert, pairs_file, epochs=4), tmp_path / "run", resume=True)


def test_a_mistake_clears_what_its_own_call_has_made_and_no_more(tiny_bert, pairs_file, tmp_path, monkeypatch):
    config, out = settings(tiny_bert, pairs_file), tmp_path / "run"

    def ends(error, *, learned=False, **options):
        def end(accelerator, config, loss, parts, splits, work, *_):
            if learned:
                (work / "judge.pt").touch()
            raise error

        monkeypatch.setattr(job, "fit_and_test", end)
        with pytest.raises(type(error)):
            train(config, out, **options)
        return sorted(path.name for path in (out / "work").glob("*.*"))

    mistake = InputError("the cache can't be written")
    assert ends(mistake) == []
    assert not out.exists()
    # Killed before anything was learned: what was read stays for the next call, also where that one meets a mistake.
    assert ends(KilledError()) == ["config.json", "data.json"]
    assert ends(mistake, resume=True) == ["config.json", "data.json"]
    assert ends(mistake, resume=True, learned=True) == ["config.json", "data.json", "judge.pt"]
    shutil.rmtree(out)
    # The judge's many minutes outlive a mistake that comes after them.
    assert ends(mistake, learned=True) == ["config.json", "data.json", "judge.pt"]


def test_folders_that_are_not_ours(tiny_bert, pairs_file, tmp_path):
    config = settings(tiny_bert, pairs_file)
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("x")
    for resume in (False, True):
        with pytest.raises(InputError, match="full"):
            train(config, full, resume=resume)
    with pytest.raises(InputError, match="is a file"):
        train(config, full / "thesis.tex")
    assert sorted(path.name for path in full.iterdir()) == ["thesis.tex"]
