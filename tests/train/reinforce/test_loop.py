"""The loop: γ = 0 is plain fine-tuning, rewards are learned, a killed run comes to the same weights."""

import copy
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_lm
import torch
from accelerate import Accelerator
from hashed import Hashed
from tests_support import story

from negsample.models.summarizers import Budget
from negsample.models.summarizers.extractor import Extractor
from negsample.models.summarizers.language_model import LanguageSummarizer, Limits
from negsample.records import Source
from negsample.rewards import Reward
from negsample.settings import make_settings
from negsample.train.reinforce.config import ReinforceConfig
from negsample.train.reinforce.loop import Rewarding, fit, gamma_at, mixed, self_critical, step

SOURCES = [Source(f"d{n}", document, (summary,)) for n, (document, summary) in enumerate(map(story, range(24)))]


class Shared:
    """Earned by a function of (document, summary); stops the run after ``kill`` calls."""

    def __init__(self, function: Any, kill: int | None = None) -> None:
        self._function, self._kill, self.calls = function, kill, 0

    def score(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> np.ndarray:
        self.calls += 1
        if self.calls == self._kill:
            raise KeyboardInterrupt
        return np.array([self._function(d, s) for d, s in zip(documents, summaries, strict=True)], np.float64)

    def report(self) -> dict[str, float | None]:
        return {}

    def state(self) -> dict[str, Any]:
        return {"length": []}

    def load_state(self, state: dict[str, Any]) -> None:
        pass


def last_sentence(document: str, summary: str) -> float:
    return float(document.split(". ")[-1] in summary)


def config_of(**values: Any) -> ReinforceConfig:
    settings = {"batch_size": 6, "sentences": 1, "seed": 3, "checkpoint_every": 2} | values
    return make_settings(ReinforceConfig, settings, "settings").resolved()


def extract_policy(budget: Budget | None = None) -> Extractor:
    def first(documents: Sequence[str], summaries: Sequence[str], _: Any) -> np.ndarray:
        return np.array([float(d.startswith(s[:10])) for d, s in zip(documents, summaries, strict=True)])

    return Extractor.new(Hashed(), budget or Budget(sentences=1), 0, first)


def quiet(_: str) -> None:
    pass


def test_likelihood_learns_the_best_extracts_and_the_reward_what_is_rewarded(tmp_path: Path) -> None:
    policy = extract_policy()
    reward = Shared(last_sentence)
    taught = config_of(ml_epochs=20, epochs=0, ml_learning_rate=0.02, patience=50)
    fit(
        Rewarding(Accelerator(cpu=True), taught, policy, reward),
        SOURCES,
        [],
        SOURCES[:6],
        _made(tmp_path / "ml"),
        quiet,
    )
    assert reward.calls == 0
    firsts = policy.summarize([source.document for source in SOURCES])
    assert np.mean([s.document.startswith(text) for s, text in zip(SOURCES, firsts, strict=True)]) > 0.9
    # From the beginning again: who is sure of the first sentence hardly ever draws another.
    policy = extract_policy()
    rewarded = config_of(ml_epochs=0, epochs=20, gamma=1.0, learning_rate=0.02, patience=50, samples=2)
    fit(
        Rewarding(Accelerator(cpu=True), rewarded, policy, reward),
        SOURCES,
        [],
        SOURCES[:6],
        _made(tmp_path / "rl"),
        quiet,
    )
    lasts = policy.summarize([source.document for source in SOURCES])
    assert np.mean([last_sentence(s.document, text) for s, text in zip(SOURCES, lasts, strict=True)]) > 0.9


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def weights(policy: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in policy.network.state_dict().items()}


@pytest.fixture
def language(tmp_path: Path) -> LanguageSummarizer:
    folder = tiny_lm.build(tmp_path / "bart", "bart")
    return LanguageSummarizer.load(str(folder), Limits(9, 6, "", 2))


WORDS = [["the", "cat"], ["a", "mat"], ["very", "long"], ["sat", "on"]]
COPIES = [Source(f"c{n}", " ".join(WORDS[n % 4] * 3), (" ".join(WORDS[n % 4]),)) for n in range(16)]


@pytest.mark.parametrize(("policy", "kill"), [("extract", 2), ("extract", 5), ("extract", 8), ("abstract", 5)])
def test_a_killed_run_that_goes_on_comes_to_the_same_weights(tmp_path: Path, policy: str, kill: int) -> None:
    settings = config_of(ml_epochs=1, epochs=2, gamma=0.5, gamma_end=0.9)
    folder = str(tiny_lm.build(tmp_path / "bart", "bart")) if policy == "abstract" else ""
    sources = COPIES if folder else SOURCES

    def run(work: Path, reward: Shared) -> dict[str, torch.Tensor]:
        trained = LanguageSummarizer.load(folder, Limits(9, 6, "", 2)) if folder else extract_policy()
        run = Rewarding(Accelerator(cpu=True), settings, trained, reward)
        fit(run, sources, sources[:4], sources[:6], work, quiet)
        return weights(trained)

    def words(document: str, summary: str) -> float:
        return len(summary.split()) + last_sentence(document, summary)

    whole = run(_made(tmp_path / "whole"), Shared(words))
    work = _made(tmp_path / "killed")
    with pytest.raises(KeyboardInterrupt):
        run(work, Shared(words, kill=kill))
    again = run(work, Shared(words))
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert (work / "training.jsonl").read_text() == (tmp_path / "whole" / "training.jsonl").read_text()


def test_gamma_zero_is_plain_fine_tuning_step_by_step(language: LanguageSummarizer) -> None:
    settings = config_of(sentences=None, policy="abstract", model="x", max_gradient_norm=0)
    model = copy.deepcopy(language.network.model)
    tokenizer = language.tokenizer
    plain = torch.optim.Adam(model.parameters(), lr=1e-3)
    accelerator = Accelerator(cpu=True)
    network, optimizer = accelerator.prepare(language.network, torch.optim.Adam(language.network.parameters(), lr=1e-3))
    for number in range(3):
        batch = COPIES[4 * number : 4 * number + 4]
        run = Rewarding(accelerator, settings, language, Shared(last_sentence))
        loss, earned = step(run, network, optimizer, batch, number, 0.0)
        assert earned is None
        inputs = tokenizer([source.document for source in batch], return_tensors="pt")
        labels = tokenizer([source.references[0] for source in batch], return_tensors="pt")["input_ids"]
        found = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels)
        # All four labels of each of four: transformers' mean over tokens, times the tokens of a summary.
        (found.loss * labels.shape[1]).backward()
        plain.step()
        plain.zero_grad()
        assert loss == pytest.approx(float(found.loss.detach()) * labels.shape[1], rel=1e-5)
        for mine, theirs in zip(language.network.model.parameters(), model.parameters(), strict=True):
            assert torch.allclose(mine, theirs, atol=1e-6)


@pytest.mark.parametrize("kind", ["extract", "abstract"])
def test_a_batch_in_parts_is_the_same_step(tmp_path: Path, kind: str) -> None:
    folder = str(tiny_lm.build(tmp_path / "bart", "bart"))
    # Thirteen documents: the parts are not of one size.
    sources = (COPIES if kind == "abstract" else SOURCES)[:13]
    found = []
    for parts in (1, 2, 20):
        abstract = LanguageSummarizer.load(folder, Limits(9, 6, "", 2))
        policy: Any = abstract if kind == "abstract" else extract_policy(Budget(sentences=2))
        settings = config_of(batch_size=13, samples=2, gradient_accumulation=parts)
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=parts)
        # Of plain descent the weights follow the gradient itself.
        network, optimizer = accelerator.prepare(policy.network, torch.optim.SGD(policy.network.parameters(), lr=0.1))
        run = Rewarding(accelerator, settings, policy, Reward("words", length="partial"))
        told = [step(run, network, optimizer, sources, n, 0.5) for n in range(2)]
        found.append((told, weights(policy)))
    (told, whole), *others = found
    for other, own in others:
        assert np.array(other) == pytest.approx(np.array(told), abs=1e-5)
        assert all(torch.allclose(whole[name], own[name], rtol=0, atol=1e-6) for name in whole)


def test_the_losses_gradient_is_that_worked_out_by_hand() -> None:
    # Two steps over two tokens, p = (¼, ¾) at each; the sample is (first, second), and earns 0.6 more than the greedy one.
    logits = torch.tensor([[0.0, math.log(3)], [0.0, math.log(3)]], requires_grad=True)
    log_probs = torch.log_softmax(logits, 1)
    log_prob = (log_probs[0, 0] + log_probs[1, 1]).unsqueeze(0)
    loss = self_critical(log_prob, torch.tensor([1.0]), torch.tensor([0.4]))
    assert float(loss.detach()) == pytest.approx(-0.6 * math.log(0.25 * 0.75))
    loss.sum().backward()
    # (r(greedy) − r(sample)) · (chosen − p): −0.6·(1 − ¼, 0 − ¾) and −0.6·(0 − ¼, 1 − ¾).
    assert logits.grad is not None
    assert logits.grad.flatten().tolist() == pytest.approx([-0.45, 0.45, 0.15, -0.15])
    reinforced, supervised = torch.tensor([2.0]), torch.tensor([4.0])
    assert [float(mixed(gamma, reinforced, supervised)) for gamma in (0.0, 0.25, 1.0)] == [4.0, 3.5, 2.0]


def test_gamma_rises_evenly_to_its_end() -> None:
    settings = config_of(gamma=0.5, gamma_end=0.9, epochs=2)
    found = [gamma_at(settings, epoch, batch, 3) for epoch in range(2) for batch in range(3)]
    assert found == pytest.approx([0.5, 0.58, 0.66, 0.74, 0.82, 0.9])
