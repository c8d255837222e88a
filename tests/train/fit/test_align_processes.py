"""Head align trained by several processes: shared features, one judge, the same model as one process gives."""

import copy
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from processes import launch
from safetensors.numpy import load_file
from tests_support import story, write_pairs

from negsample.models.align.judge import Judge, JudgeNetwork
from negsample.train.fit.judge import Stretches, _backward

DOCUMENTS = [" ".join(story(number + 7 * part)[0] for part in range(3)) for number in range(20)]
# Dropout is another in each process; without it all is the same.
DRIVER = """
import sys
from negsample.cli import main
from negsample.models.align import judge

init = judge.JudgeNetwork.__init__
def plain(self, encoder):
    init(self, encoder)
    self.dropout.p = 0.0
judge.JudgeNetwork.__init__ = plain
main(["train", *sys.argv[1:]])
"""


class Together:
    """What the judge and the features ask of Accelerate, for threads that stand for processes."""

    def __init__(self, rank, size, barrier, values):
        self.process_index, self.num_processes = rank, size
        self.is_main_process = not rank
        self._barrier, self._values = barrier, values

    def wait_for_everyone(self):
        self._barrier.wait()

    def reduce(self, tensor, how):
        assert how == "sum"
        self._values[self.process_index] = tensor
        self._barrier.wait()
        total = torch.stack(self._values).sum(0)
        self._barrier.wait()
        return total


def gradients(judge, groups, size):
    """The gradient of a step's groups that each of ``size`` threads comes to."""
    barrier, values = threading.Barrier(size, timeout=120), [None] * size
    judges = [Judge(copy.deepcopy(judge.network), judge.tokenizer) for _ in range(size)]

    def work(rank):
        _backward(Together(rank, size, barrier, values), judges[rank], groups, False)

    with ThreadPoolExecutor(size) as pool:
        list(pool.map(work, range(size)))
    return [
        {name: value.grad.numpy() for name, value in each.network.named_parameters() if value.grad is not None}
        for each in judges
    ]


def test_any_number_of_processes_comes_to_the_same_gradient(tiny_bert):
    from transformers import AutoModel, AutoTokenizer

    torch.manual_seed(1)
    judge = Judge(JudgeNetwork(AutoModel.from_pretrained(tiny_bert)), AutoTokenizer.from_pretrained(tiny_bert))
    judge.network.train()
    judge.network.dropout.p = 0.0
    groups = Stretches(DOCUMENTS, 0).batch(0)
    assert len(groups) == 13
    whole = gradients(judge, groups, 1)[0]
    assert max(abs(value).max() for value in whole.values()) > 1e-2
    # With 16 processes some have no group.
    for size in (2, 3, 16):
        for found in gradients(judge, groups, size):
            assert found.keys() == whole.keys()
            for name, value in whole.items():
                np.testing.assert_allclose(found[name], value, atol=1e-6, rtol=1e-4, err_msg=f"{size} {name}")


@pytest.fixture(scope="module")
def words(tiny_bert, tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    write_pairs(path, 40)
    return [
        *(f"corpus={path}", f"encoder=sentence-transformer:{tiny_bert}", "head=align", "negatives=4", "epochs=2"),
        *("judge_steps=3", "recipe=sentence-delete", "--out"),
    ]


def test_two_real_processes_train_what_one_trains(words, tmp_path):
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER)
    two = launch(driver, *words, tmp_path / "two")
    assert two.returncode == 0, two.stderr
    one = launch(driver, *words, tmp_path / "one", processes=1)
    assert one.returncode == 0, one.stderr
    assert json.loads((tmp_path / "two" / "run.json").read_text())["processes"] == 2
    for name in ("model.safetensors", "judge/model.safetensors"):
        ours, theirs = (load_file(tmp_path / folder / name) for folder in ("two", "one"))
        assert ours.keys() == theirs.keys()
        for key in ours:
            np.testing.assert_allclose(ours[key], theirs[key], atol=1e-4, err_msg=key)
    ours, theirs = (json.loads((tmp_path / folder / "figures.json").read_text()) for folder in ("two", "one"))
    assert ours["judge"] == theirs["judge"]
    assert ours["cut"] == theirs["cut"]
    assert two.stdout.count("judge: ") == 1
