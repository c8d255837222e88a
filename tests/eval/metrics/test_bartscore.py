"""BARTScore in its three directions, against plain calls of tiny models."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_lm import WORDS, build

from negsample.errors import InputError
from negsample.scoring.scorer import Item, make_metric

DOCUMENT, SUMMARY = "The cat sat on the mat.", "A cat sat."
REFERENCES = ("The cat sat.", "A long cat.")


def ids(text: str) -> list[int]:
    return [WORDS.index(word) for word in text.lower().replace(".", " .").split()]


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("bart"), "bart", limit=64)


def plain(folder: Path, given: str, target: str) -> float:
    """As the authors compute it: special tokens on both sides, the mean over the target's tokens."""
    import transformers

    model = transformers.BartForConditionalGeneration.from_pretrained(folder).eval()
    source, labels = ([2, *ids(text), 3] for text in (given, target))
    with torch.no_grad():
        loss = model(input_ids=torch.tensor([source]), labels=torch.tensor([labels])).loss
    return -float(loss)


def test_as_the_loss_of_the_model_itself(bart: Path) -> None:
    item = Item(DOCUMENT, SUMMARY, REFERENCES)
    expected = {
        "faithfulness": plain(bart, DOCUMENT, SUMMARY),
        "precision": np.mean([plain(bart, reference, SUMMARY) for reference in REFERENCES]),
        "recall": np.mean([plain(bart, SUMMARY, reference) for reference in REFERENCES]),
    }
    for direction, value in expected.items():
        metric = make_metric(f"bartscore(model={bart},direction={direction})")
        assert metric.needs == ({"document"} if direction == "faithfulness" else {"references"})
        assert metric.score([item, Item("On.", "On.", ("On.",))]).scores[0] == pytest.approx(value, abs=1e-5)


def test_a_causal_model_reads_tldr(tmp_path: Path) -> None:
    import transformers

    folder = build(tmp_path, "gpt", limit=64)
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    # TL, ;, DR and : are unknown to the tiny model.
    before, target = [2, *ids(DOCUMENT), 1, 1, 1, 1], ids(SUMMARY)
    with torch.no_grad():
        logs = torch.log_softmax(model(input_ids=torch.tensor([before + target])).logits[0], dim=-1)
    expected = np.mean([float(logs[len(before) - 1 + i, token]) for i, token in enumerate(target)])
    found = make_metric(f"bartscore(model={folder})").score([Item(DOCUMENT, SUMMARY)]).scores[0]
    assert found == pytest.approx(expected, abs=1e-5)


def test_what_is_refused(bart: Path, tiny_bert: Path) -> None:
    with pytest.raises(InputError, match="needs an encoder"):
        make_metric("bartscore")
    with pytest.raises(InputError, match="faithfulness"):
        make_metric(f"bartscore(model={bart},direction=both)")
    with pytest.raises(InputError, match="no masked or causal language model"):
        make_metric(f"bartscore(model={tiny_bert})")
