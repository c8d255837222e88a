"""Two processes that train together: each example once an epoch, and a kill of both leaves no trace."""

import json
import shutil
import signal

import numpy as np
import pytest
from processes import launch, side_by_side
from safetensors.numpy import load_file
from tests_support import write_pairs

# Runs ``negsample train`` and writes down the rows that this process itself computes; KILL_AT ends it in that step.
DRIVER = """
import json, os, runpy, signal, sys
from negsample.train.fit import loop

rank, fatal = os.environ["RANK"], int(os.environ.get("KILL_AT", -1))
real_step, real_gather, steps = loop.train_step, loop.gather, []

def train_step(*arguments):
    steps.append([])
    if len(steps) - 1 == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    def gather(features, split, rows, device):
        steps[-1].extend(split.id(row) for row in rows)
        return real_gather(features, split, rows, device)
    loop.gather = gather
    total = real_step(*arguments)
    loop.gather = real_gather
    with open(f"{os.environ['SEEN']}-{rank}.jsonl", "a") as stream:
        stream.write(json.dumps(steps[-1]) + "\\n")
    return total

loop.train_step = train_step
sys.argv[1:1] = ["train"]
runpy.run_module("negsample", run_name="__main__")
"""
# Dropout is another in each process; without it all is the same.
DRIVER_OF_ALIGN = """
import runpy, sys
from negsample.models.align import judge

init = judge.JudgeNetwork.__init__
def plain(self, encoder):
    init(self, encoder)
    self.dropout.p = 0.0
judge.JudgeNetwork.__init__ = plain
sys.argv[1:1] = ["train"]
runpy.run_module("negsample", run_name="__main__")
"""
EPOCHS, PER_EPOCH = 2, 5
REINFORCE = [
    *("corpus=sample", "limit=31", "encoder=glove(unit=sentence)", "sentences=2", "reward=rouge1", "metrics=[rouge1,words]"),
    *("ml_epochs=1", "epochs=2", "gamma=0.5", "samples=2", "batch_size=8", "gradient_accumulation=2", "--out"),
]  # fmt: skip


@pytest.fixture(scope="module")
def words(tiny_bert, tmp_path_factory):
    """Arguments of a run on 26 pairs: 20 for training, 40 examples in batches of 8, a checkpoint after every second."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    write_pairs(path, 26)
    return [
        *("corpus=" + str(path), "encoder=" + str(tiny_bert), "max_length=64", f"epochs={EPOCHS}", "batch_size=8"),
        *("learning_rate=1e-3", "checkpoint_every=2", "log_examples=true", "--out"),
    ]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """The file of DRIVER."""
    path = tmp_path_factory.mktemp("driver") / "driver.py"
    path.write_text(DRIVER)
    return path


@pytest.fixture(scope="module")
def whole(words, driver, tmp_path_factory):
    """A run by ``accelerate launch`` that nobody killed, and where its processes wrote what they saw."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEN", str(folder / "seen"))
        patch.setenv("NEGSAMPLE_CACHE", str(folder / "cache"))
        done = launch(driver, *words, folder / "run")
    assert done.returncode == 0, done.stderr
    return folder


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def seen(folder):
    """For each process, the ids of each step."""
    return [lines(folder / f"seen-{rank}.jsonl") for rank in range(2)]


def steps_of(run):
    return [(line["step"], line["ids"]) for line in lines(run / "training.jsonl") if line["kind"] == "step"]


def same_weights(one, other, name="model.safetensors", within=1e-6):
    ours, theirs = (load_file(run / name) for run in (one, other))
    assert ours.keys() == theirs.keys()
    for key in ours:
        np.testing.assert_allclose(ours[key], theirs[key], rtol=0, atol=within, err_msg=key)


def test_each_example_once_an_epoch(whole):
    first, second = seen(whole)
    assert len(first) == len(second) == EPOCHS * PER_EPOCH
    assert json.loads((whole / "run" / "run.json").read_text())["processes"] == 2
    for epoch in range(EPOCHS):
        steps = range(epoch * PER_EPOCH, (epoch + 1) * PER_EPOCH)
        counted = sorted(name for step in steps for name in first[step] + second[step])
        # 20 of the pairs, 3 each are in validation and test; one negative each.
        assert len(counted) == len(set(counted)) == 40
        assert {name.partition("/")[2] for name in counted} == {"original", "crosspair-1"}
        # Both had the same amount to do.
        assert all(len(first[step]) == len(second[step]) == 4 for step in steps)
    # What each process computed is what the training log says that the step saw.
    assert [one + other for one, other in zip(first, second, strict=True)] == [
        ids for _, ids in steps_of(whole / "run")
    ]


def test_both_killed_and_resumed(whole, words, driver, negsample, tmp_path, monkeypatch):
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(whole / "cache"))
    # In the second epoch: its first step is number 5, and the checkpoint before is the one after step 6.
    fatal, last = 7, 6
    arguments = [driver, *words, tmp_path / "run", "--resume"]
    killed = side_by_side(*arguments, SEEN=str(tmp_path / "seen"), KILL_AT=str(fatal))
    assert [done.returncode for done in killed] == [-signal.SIGKILL] * 2, killed[0].stderr
    assert [len(each) for each in seen(tmp_path)] == [fatal] * 2
    shutil.copytree(tmp_path / "run", tmp_path / "alone")
    done = side_by_side(*arguments, SEEN=str(tmp_path / "seen"))
    assert [each.returncode for each in done] == [0, 0], done[0].stderr
    # The steps after the last checkpoint were done again; none was left out, and all in the order of the whole run.
    for mine, undisturbed in zip(seen(tmp_path), seen(whole), strict=True):
        assert mine == undisturbed[:fatal] + undisturbed[last:]
    assert steps_of(tmp_path / "run") == steps_of(whole / "run")
    same_weights(whole / "run", tmp_path / "run")
    # One process goes on where two have stopped, in the same order; only its dropout is another.
    negsample("train", *words, tmp_path / "alone", "--resume")
    assert steps_of(tmp_path / "alone") == steps_of(whole / "run")


def test_two_processes_train_head_align_as_one_does(tiny_bert, tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", 40)
    words = [
        *(f"corpus={tmp_path}/pairs.jsonl", f"encoder=sentence-transformer:{tiny_bert}", "head=align", "negatives=4"),
        *("epochs=2", "judge_steps=3", "support_steps=3", "recipe=sentence-delete", "--out"),
    ]
    (tmp_path / "driver.py").write_text(DRIVER_OF_ALIGN)
    runs = [launch(tmp_path / "driver.py", *words, tmp_path / str(n), processes=n) for n in (2, 1)]
    assert [done.returncode for done in runs] == [0, 0], runs[0].stderr
    for name in ("model.safetensors", "judge/model.safetensors"):
        same_weights(tmp_path / "2", tmp_path / "1", name, within=1e-4)
    # Adam's first steps go by the sign of a gradient, which is another where it is nearly nothing.
    ours, theirs = (load_file(tmp_path / folder / "support" / "support.safetensors") for folder in "21")
    assert max(np.abs(ours[name] - theirs[name]).mean() for name in ours) < 1e-4
    ours, theirs = (json.loads((tmp_path / folder / "figures.json").read_text()) for folder in "21")
    assert ours["judge"] == theirs["judge"]
    assert ours["support"] == pytest.approx(theirs["support"], abs=1e-3)
    assert ours["cut"] == theirs["cut"]
    assert runs[0].stdout.count("judge: ") == 2


def test_two_processes_train_a_summarizer_as_one_does(negsample, tmp_path):
    done = launch("-m", "negsample", "reinforce", *REINFORCE, tmp_path / "two")
    assert done.returncode == 0, done.stderr
    negsample("reinforce", *REINFORCE, tmp_path / "one")
    one, two = tmp_path / "one", tmp_path / "two"
    assert [json.loads((run / "run.json").read_text())["processes"] for run in (one, two)] == [1, 2]
    # 25 documents: of each epoch's last step there is one, and nothing for the second process or part.
    assert json.loads((one / "figures.json").read_text())["data"]["documents"]["train"] == 25
    alone, together = lines(one / "training.jsonl"), lines(two / "training.jsonl")
    assert len(alone) == len(together) == 3 * (4 + 1)
    for line, other in zip(alone, together, strict=True):
        for name in ("loss", "reward", "train_loss", "validation_loss", "validation_reward"):
            if name in line:
                np.testing.assert_allclose(line[name], other[name], rtol=1e-4, err_msg=f"{name} of {line}")
    same_weights(one, two, within=1e-4)
    # The same test summaries, and a table of them.
    assert lines(one / "summaries.jsonl") == lines(two / "summaries.jsonl")
    assert (two / "test" / "compare.json").is_file()
