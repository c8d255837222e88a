"""The judge of form and coherence: what it learns from, by hand; the same weights after a kill, and by several processes."""

import copy
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from tests_support import story

from negsample.errors import InputError
from negsample.models.align.judge import Judge, JudgeNetwork, load_judge
from negsample.models.language.networks import load_pretrained
from negsample.sentences import split_sentences
from negsample.train.fit import judge as judges
from negsample.train.fit.judge import Group, Stretches, group_loss, train_judge

ALONE = Accelerator(cpu=True)
DOCUMENTS = [" ".join(story(number + 7 * part)[0] for part in range(3)) for number in range(16)]


@pytest.fixture
def judge(tiny_bert: Path) -> Judge:
    network, tokenizer, _ = load_pretrained(str(tiny_bert))
    torch.manual_seed(0)
    return Judge(JudgeNetwork(network), tokenizer)


def test_the_loss_by_hand() -> None:
    groups = [Group("form", "a", ("b", "c")), Group("coherence", "d", ("e",))]
    marks = torch.tensor([[1.0, 5.0], [0.0, 9.0], [3.0, 6.0], [0.0, 2.0], [7.0, 1.5]])
    loss, right = group_loss(marks, groups)
    # In form b (0) is below a (1), c (3) is not; in coherence e (1.5) is below d (2). The other marks say nothing.
    gaps = np.array([1.0, -2.0, 0.5])
    assert float(loss) == pytest.approx(np.log1p(np.exp(-gaps)).mean(), rel=1e-5)
    assert right == {"form": 0.5, "coherence": 1.0}
    assert group_loss(marks[:3], groups[:1])[1] == {"form": 0.5}


def test_groups_depend_on_seed_aspect_and_number_alone() -> None:
    one, other = Stretches(DOCUMENTS, 1), Stretches(DOCUMENTS, 1)
    assert one.group("form", 5) == other.group("form", 5)
    other.group("coherence", 3)
    assert one.group("coherence", 7) == other.group("coherence", 7)
    groups = one.batch(0)
    assert [group.aspect for group in groups] == ["form"] * 8 + ["coherence"] * 5
    for group in groups:
        assert any(group.stretch in document for document in DOCUMENTS)
        assert all(copied.split() != group.stretch.split() for copied in group.copies)
        # Form is judged of one sentence, coherence of several.
        sentences = len(split_sentences(group.stretch))
        assert sentences == 1 if group.aspect == "form" else 2 <= sentences <= 4
    # In scripts without spaces as well.
    chinese = "今天天气很好我们都出去了。我们去公园散步看花{}。公园里有很多人在跑步。晚上我们一起回家吃饭。"
    stretches = Stretches([chinese.format(number) for number in range(9)], 0)
    assert {group.aspect for group in stretches.batch(0)} == {"form", "coherence"}


def test_calibration_gives_each_mark_mean_0_and_spread_1_over_its_own_texts(judge: Judge) -> None:
    network = judge.network
    network.centre, network.scale = torch.tensor([1.0, 2.0]), torch.tensor([2.0, 0.5])
    raw = torch.tensor([[4.0, 3.0], [8.0, 9.0], [9.0, 4.0], [1.0, 5.0]])
    shown = (raw - network.centre) / network.scale
    network.calibrate([shown[:2, 0], shown[2:, 1]])
    again = (raw - network.centre) / network.scale
    # 4 and 8 are the texts of form, 4 and 5 those of coherence: each half a gap from their mean, spread gap / √2.
    np.testing.assert_allclose(again[:2, 0], [-(0.5**0.5), 0.5**0.5], atol=1e-6)
    np.testing.assert_allclose(again[2:, 1], [-(0.5**0.5), 0.5**0.5], atol=1e-6)
    before = network.centre.clone()
    network.calibrate([shown[:1, 0], shown[:0, 1]])
    assert torch.equal(network.centre, before)


def test_readings_by_hand(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    one, other = "The baker sold a lamp.", "A lamp sold."
    both = f"{one} {other}"
    marks = {one: (2.0, 0.5), other: (-1.0, 4.0), both: (9.0, 3.0)}

    def run(texts: list[str]) -> np.ndarray:
        read.extend(texts)
        return np.array([marks[text] for text in texts], np.float32).reshape(-1, 2)

    monkeypatch.setattr(judge, "_run", run)
    # Form: mean and least over the sentences, each read alone; coherence: the text as a whole.
    assert judge.readings([both, other, ""]).tolist() == [[0.5, -1.0, 3.0], [-1.0, -1.0, 4.0], [0.0, 0.0, 0.0]]
    judge.readings([both])
    assert sorted(read) == sorted(marks)


def test_a_judge_that_was_killed_ends_with_the_same_weights(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "SAVE_EVERY", 2)
    fresh, calls, real = copy.deepcopy(judge.network.state_dict()), itertools.count(1), judges._backward

    def trained(folder: str) -> dict[str, torch.Tensor]:
        (tmp_path / folder).mkdir(exist_ok=True)
        judge.network.load_state_dict(fresh)
        train_judge(ALONE, judge, DOCUMENTS, DOCUMENTS[:3], 5, 0, tmp_path / folder)
        return copy.deepcopy(judge.network.state_dict())

    def dying(*arguments: Any) -> float:
        if next(calls) == 4:
            raise KeyboardInterrupt
        return real(*arguments)

    whole = trained("whole")
    with monkeypatch.context() as patch:
        patch.setattr(judges, "_backward", dying)
        with pytest.raises(KeyboardInterrupt):
            trained("broken")
    again = trained("broken")
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    texts = ["The baker sold a lamp.", "Lamp a sold baker the. " * 40, ""]
    saved = judge.save(tmp_path / "judge")
    np.testing.assert_allclose(
        load_judge(tmp_path / "judge", saved["fingerprint"]).readings(texts), judge.readings(texts), atol=1e-5
    )
    with pytest.raises(InputError, match="damaged or changed"):
        load_judge(tmp_path / "judge", "0" * 64)


@pytest.mark.parametrize(
    ("sentences", "told"),
    [
        ("I saw it all. He went home now. They came in again. We left {}.", "can be damaged in form"),
        ("It rained. He went home now. They came in again. We left {}.", "can be damaged in form"),
        ("A lamp was sold. Nobody knew the price in week {}.", "has 4 sentences or more; set judges=false"),
    ],
)
def test_documents_without_stretches_are_refused(sentences: str, told: str, judge: Judge, tmp_path: Path) -> None:
    documents = [sentences.format(number) for number in range(12)]
    with pytest.raises(InputError, match=told):
        train_judge(ALONE, judge, documents, DOCUMENTS, 1, 0, tmp_path)


class Together:
    """What the judge asks of Accelerate, for threads that stand for processes."""

    def __init__(self, rank: int, size: int, barrier: threading.Barrier, values: list[Any]) -> None:
        self.process_index, self.num_processes = rank, size
        self._barrier, self._values = barrier, values

    def reduce(self, tensor: torch.Tensor, how: str) -> torch.Tensor:
        assert how == "sum"
        self._values[self.process_index] = tensor
        self._barrier.wait()
        total = torch.stack(self._values).sum(0)
        self._barrier.wait()
        return total


def gradients(judge: Judge, groups: list[Group], size: int) -> list[dict[str, np.ndarray]]:
    """The gradient of a step's groups that each of ``size`` threads comes to."""
    barrier, values = threading.Barrier(size, timeout=600), [None] * size
    copies = [Judge(copy.deepcopy(judge.network).train(), judge.tokenizer) for _ in range(size)]
    for each in copies:
        each.network.train()

    def work(rank: int) -> None:
        process: Any = Together(rank, size, barrier, values)
        judges._backward(process, copies[rank], groups, False)
        judges.sum_gradients(process, copies[rank].network)

    with ThreadPoolExecutor(size) as pool:
        list(pool.map(work, range(size)))
    return [
        {name: value.grad.numpy() for name, value in each.network.named_parameters() if value.grad is not None}
        for each in copies
    ]


def test_any_number_of_processes_comes_to_the_same_gradient(judge: Judge) -> None:
    judge.network.dropout.p = 0.0
    groups = Stretches(DOCUMENTS, 0).batch(0)
    assert len(groups) == 13
    whole = gradients(judge, groups, 1)[0]
    assert max(abs(value).max() for value in whole.values()) > 1e-2
    assert gradients(judge, [], 2) == [{}, {}]
    # With 16 processes some have no group.
    for size in (2, 3, 16):
        for found in gradients(judge, groups, size):
            assert found.keys() == whole.keys()
            for name, value in whole.items():
                np.testing.assert_allclose(found[name], value, atol=1e-6, rtol=1e-4, err_msg=f"{size} {name}")
