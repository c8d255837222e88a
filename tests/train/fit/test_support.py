"""Teaching the support judge: its claims, their order, and that interruptions change nothing."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from tests_support import story

from negsample.models.align.support import SupportNetwork
from negsample.models.language.networks import load_pretrained
from negsample.records import Pair
from negsample.train.fit import judge, support
from negsample.train.fit.support import (
    REAL,
    Claim,
    Judged,
    batches,
    changed,
    claims,
    judged,
    judged_loss,
    train_support,
)

PAIRS = [Pair(str(number), *story(number)) for number in range(12)]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("Ann met Bob in May.", "Ann met Tom in May.", ["Tom"]),
        ("Ann met Bob in May.", "Ann met Bob in May of last year.", ["May", "of", "last", "year."]),
        ("Ann did not meet Bob.", "Ann did meet Bob.", ["meet"]),
        ("the the cat", "the the dog", ["dog"]),
        ("Ann met Bob.", "Ann met Bob.", []),
    ],
)
def test_the_words_that_were_changed_are_found(before: str, after: str, words: list[str]) -> None:
    assert [after[begin:stop] for begin, stop in changed(before, after)] == words


def test_claims_are_of_their_pair_and_only_damage_is_marked() -> None:
    found = claims(PAIRS, 200, 0)
    assert found == claims(PAIRS, 200, 0)
    assert found != claims(PAIRS, 200, 1)
    assert len(found) <= 200
    kinds = {claim.kind for claim in found}
    assert REAL in kinds
    assert len(kinds & set(support.KINDS)) >= 3
    for claim in found:
        assert claim.passages
        assert bool(claim.wrong) == claim.doubtful
    assert claims([], 10, 0) == []


def test_every_claim_comes_once_before_any_comes_again() -> None:
    lengths = [7, 1, 5, 3, 9, 2, 8, 4, 6, 10]
    found = batches(lengths, 7, 0, 4)
    assert len(found) == 7
    assert sorted(np.concatenate(found[:3])) == list(range(10))
    assert sorted(np.concatenate(found[3:6])) == list(range(10))


def test_what_people_said_is_of_the_sentences_that_have_to_be_read() -> None:
    document = "Ann met Bob in May. They sold the house."
    summaries = ["Ann met Bob in May. They bought the house.", "They sold the house!"]
    # A sentence that stands in the document is taken as borne out, whatever was said of the whole.
    assert judged([document] * 2, summaries, [0.25, 1.0]) == [Judged(((document, "They bought the house."),), 0.75)]


def test_a_summary_is_as_untrue_as_its_most_doubted_sentence(tiny_bert: Path) -> None:
    _, tokenizer, _ = load_pretrained(str(tiny_bert))
    doubts = torch.tensor([-1.0, 2.0, 0.0])

    def network(own: torch.Tensor, **encoded: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert len(encoded["input_ids"]) == len(own) == 3
        return own, doubts

    batch = [Judged((("a", "b"), ("a", "c")), 1.0), Judged((("a", "d"),), 0.25)]
    loss, highest = judged_loss(network, tokenizer, batch, torch.device("cpu"))  # type: ignore[arg-type]
    assert highest.tolist() == [2, 0]
    # log(1 + e^-2) for the first; for the second log 2, whatever was said of it.
    assert float(loss) == pytest.approx((math.log1p(math.exp(-2)) + math.log(2)) / 2)


def taught(tiny_bert: Path, work: Path, steps: int) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    work.mkdir(exist_ok=True)
    model, tokenizer, _ = load_pretrained(str(tiny_bert))
    torch.manual_seed(0)
    network = SupportNetwork(model)
    said = judged([pair.document for pair in PAIRS], ["Tom sold his boat."] * 12, [0, 1] * 6)
    made, seen = train_support(
        Accelerator(cpu=True), network, tokenizer, "", PAIRS[:9], PAIRS[9:], steps, 0, work, said
    )
    return made._learnt, seen


def test_a_training_that_was_stopped_ends_where_it_would_have(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support, "BATCH", 8)
    monkeypatch.setattr(judge, "SAVE_EVERY", 2)
    # Five steps by damage, then four by what people said: it is stopped among these.
    monkeypatch.setattr(support, "_JUDGED", 3)
    whole, seen = taught(tiny_bert, tmp_path / "whole", 5)
    assert {"all"} < set(seen)
    assert all(0 <= share <= 1 for share in seen.values())
    real = judge.check_sound
    stopped: list[int] = []

    def stop(step: int, *rest: object) -> None:
        real(step, *rest)  # type: ignore[arg-type]
        stopped.append(step)
        if len(stopped) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(judge, "check_sound", stop)
    with pytest.raises(KeyboardInterrupt):
        taught(tiny_bert, tmp_path / "stopped", 5)
    again, _ = taught(tiny_bert, tmp_path / "stopped", 5)
    assert again.keys() == whole.keys()
    for name, tensor in whole.items():
        torch.testing.assert_close(again[name], tensor, atol=1e-6, rtol=0)


def test_it_learns_what_is_not_in_the_passages(tiny_bert: Path) -> None:
    model, tokenizer, _ = load_pretrained(str(tiny_bert))
    torch.manual_seed(0)
    network = SupportNetwork(model)
    true, false = (
        Claim("Ann met Bob.", "Ann met Bob.", REAL),
        Claim("Ann met Bob.", "Ann met Tom.", "entity", ((8, 11),)),
    )
    optimizer = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], 0.02)
    losses = []
    for _ in range(30):
        loss, doubts = support.claims_loss(network, tokenizer, [true, false], torch.device("cpu"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]
    assert doubts[1] > doubts[0]
    # The encoder's own weights stay.
    assert not any(p.requires_grad for name, p in network.named_parameters() if ".linear." in name)
