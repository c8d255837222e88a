"""A run that is killed and resumed ends as if it had never been killed."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from negsample import Estimator
from negsample.errors import InputError
from negsample.train import job
from negsample.train.config import make_config
from negsample.train.fit import checkpoint, loop
from negsample.train.job import train

# Runs ``negsample train``, which holds itself once nine steps are in its log.
HELD = """
import os, runpy, signal, sys
from negsample.train.fit import loop

real, steps = loop.train_step, []

def train_step(*arguments):
    steps.append(0)
    if len(steps) == 10:
        os.kill(os.getpid(), signal.SIGSTOP)
    return real(*arguments)

loop.train_step = train_step
sys.argv[1:1] = ["train"]
runpy.run_module("negsample", run_name="__main__")
"""


class KilledError(Exception):
    """Stands for a kill: nothing in the code under test catches it."""


@pytest.fixture(scope="module")
def config(tiny_bert, pairs_file):
    """48 pairs to learn from, 96 examples in batches of 16: six steps an epoch, a checkpoint after every second."""
    values = {"corpus": str(pairs_file), "encoder": str(tiny_bert), "max_length": 64, "epochs": 3, "batch_size": 16}
    return make_config({**values, "learning_rate": 1e-3, "checkpoint_every": 2, "log_examples": True})


@pytest.fixture(scope="module")
def words(config):
    """The words of the run as a command, its folder left out."""
    return [*(f"{key}={value}" for key, value in config.as_dict().items() if value is not None), "--resume", "--out"]


@pytest.fixture(scope="module")
def whole(config, tmp_path_factory):
    """A run that nobody killed."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    train(config, out)
    return out


def steps_of(folder):
    lines = [json.loads(line) for line in (folder / "training.jsonl").read_text().splitlines()]
    return [(line["step"], line["ids"]) for line in lines if line["kind"] == "step"]


def same_run(one, other):
    a, b = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    assert a.keys() == b.keys()
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert steps_of(one) == steps_of(other)


@pytest.mark.parametrize(
    ("moment", "fatal"),
    [("step", 1), ("step", 7), ("step", 18), ("before", 4), ("inside", 3), ("after", 4)],
)
def test_killed_at_any_moment(moment, fatal, whole, config, tmp_path, monkeypatch):
    count, step, save = [0], loop.train_step, checkpoint.Checkpoints.save

    def dying_step(*arguments):
        count[0] += 1
        if count[0] == fatal:
            raise KilledError
        return step(*arguments)

    def dying_save(self, position):
        count[0] += 1
        now = count[0] == fatal
        if now and moment == "before":
            raise KilledError
        if now and moment == "inside":
            monkeypatch.setattr(checkpoint, "atomic_json", lambda *_: (_ for _ in ()).throw(KilledError()))
        save(self, position)
        if now:
            raise KilledError

    with monkeypatch.context() as patch:
        if moment == "step":
            patch.setattr(loop, "train_step", dying_step)
        else:
            patch.setattr(checkpoint.Checkpoints, "save", dying_save)
        with pytest.raises(KilledError):
            train(config, tmp_path / "run")
    monkeypatch.undo()
    train(config, tmp_path / "run", resume=True)
    same_run(whole, tmp_path / "run")


def test_a_second_process_is_refused_and_a_killed_one_goes_on(whole, words, negsample, tmp_path):
    out = tmp_path / "run"
    first = subprocess.Popen(
        [sys.executable, "-c", HELD, *words, out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        refused = negsample("train", *words, out, check=None)
    finally:
        first.kill()
    assert first.wait() == -signal.SIGKILL, first.stderr.read()
    assert refused.returncode == 2
    assert "run: another process is working on this" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    with pytest.raises(InputError, match="resume"):
        Estimator.load(out)
    negsample("train", *words, out)
    same_run(whole, out)
    assert not (out / "lock").exists()


def test_a_finished_run_is_left_as_it_is_and_no_other_is_begun_in_its_place(whole, config, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    assert train(config, whole, resume=True) is None
    other = make_config({**config.as_dict(), "epochs": 4})
    for resume, told in ((True, r"\(epochs was 3, is 4\)"), (False, "not empty")):
        with pytest.raises(InputError, match=told):
            train(other, whole, resume=resume)
    with pytest.raises(InputError, match="is a file"):
        train(config, whole / "run.json")
    assert before == {path: path.stat().st_mtime_ns for path in whole.rglob("*")}


def test_a_mistake_clears_what_its_own_call_has_made_and_no_more(config, tmp_path, monkeypatch):
    out = tmp_path / "run"

    def ends(error, *, learned=False, **options):
        def end(run):
            if learned:
                (run.work / "judge.pt").touch()
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
    with pytest.raises(InputError, match="epochs was 3, is 4"):
        train(make_config({**config.as_dict(), "epochs": 4}), out, resume=True)
    assert ends(mistake, resume=True) == ["config.json", "data.json"]
    assert ends(mistake, resume=True, learned=True) == ["config.json", "data.json", "judge.pt"]
    shutil.rmtree(out)
    # The judge's many minutes outlive a mistake that comes after them.
    assert ends(mistake, learned=True) == ["config.json", "data.json", "judge.pt"]
