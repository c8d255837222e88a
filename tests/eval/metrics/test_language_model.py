"""Masked and causal perplexity: against plain loops over tiny models, windows, missing values, wrong models."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from tiny_lm import WORDS, build

from negsample.errors import InputError
from negsample.models.language.language_model import load_lm, token_losses
from negsample.scoring.scorer import Item, make_metric

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("masked"), "bert")


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("causal"), "gpt")


def log_probabilities(folder: Path, kind: str, ids: list[int]) -> np.ndarray:
    """log P(word) at every place, [t, words], from one plain call."""
    import transformers

    model = getattr(transformers, kind).from_pretrained(folder).eval()
    with torch.no_grad():
        return torch.log_softmax(model(input_ids=torch.tensor([ids])).logits[0].double(), dim=-1).numpy()


def test_masked_by_a_plain_loop(masked: Path) -> None:
    ids = [WORDS.index(word) for word in ["the", "cat", "sat", "."]]
    losses = []
    for place, target in enumerate(ids):
        row = [2, *ids, 3]
        row[1 + place] = 4
        losses.append(-log_probabilities(masked, "BertForMaskedLM", row)[1 + place, target])
    metric = make_metric(f"mlm(model={masked})")
    found = metric.score([Item("", "The cat sat.")]).scores[0]
    assert found == pytest.approx(math.exp(np.mean(losses)), rel=1e-5)
    assert not metric.higher_is_better
    assert metric.needs == frozenset()


def test_masked_windows_stand_around_their_token(masked: Path) -> None:
    head = load_lm(str(masked), "masked")
    words = ["the", "cat", "sat", "on", "a", "mat", "very", "long", "."] * 4
    ids = [WORDS.index(word) for word in words]
    found = token_losses(head, [" ".join(words)], 8)[0]
    assert len(found) == 36
    # Six tokens between the two special ones; the window of token t begins three before it, within the text.
    for place in (0, 2, 3, 17, 32, 33, 35):
        begin = min(max(place - 3, 0), 30)
        row = [2, *ids[begin : begin + 6], 3]
        row[1 + place - begin] = 4
        expected = -log_probabilities(masked, "BertForMaskedLM", row)[1 + place - begin, ids[place]]
        assert found[place] == pytest.approx(expected, abs=1e-5)


def test_causal_by_a_plain_call(causal: Path) -> None:
    ids = [2] + [WORDS.index(word) for word in ["the", "cat", "sat", "."]]
    table = log_probabilities(causal, "GPT2LMHeadModel", ids)
    losses = [-table[place, ids[place + 1]] for place in range(4)]
    metric = make_metric(f"perplexity(model={causal})")
    assert metric.score([Item("", "The cat sat.")]).scores[0] == pytest.approx(math.exp(np.mean(losses)), rel=1e-5)
    assert not metric.higher_is_better


@pytest.mark.parametrize("window", [8, 9, 16])
def test_causal_windows_overlap_by_half(causal: Path, window: int) -> None:
    head = load_lm(str(causal), "causal")
    words = ["the", "cat", "sat", "on", "a", "mat", "very", "long", "."] * 4
    ids = [2] + [WORDS.index(word) for word in words]
    found = token_losses(head, [" ".join(words)], window)[0]
    assert len(found) == 36
    assert np.isfinite(found).all()
    step, begin, expected = window // 2, 0, {}
    while len(expected) < 36:
        row = ids[begin : begin + window]
        table = log_probabilities(causal, "GPT2LMHeadModel", row)
        for place in range(len(row) - 1):
            expected.setdefault(begin + place, -table[place, row[place + 1]])
        begin += step
    assert found == pytest.approx([expected[place] for place in range(36)], abs=1e-5)


def test_without_a_beginning_token_the_first_is_not_counted(tmp_path: Path) -> None:
    folder = build(tmp_path, "gpt", begin=False)
    ids = [WORDS.index(word) for word in ["the", "cat", "sat"]]
    table = log_probabilities(folder, "GPT2LMHeadModel", ids)
    expected = math.exp(-(table[0, ids[1]] + table[1, ids[2]]) / 2)
    scores = make_metric(f"perplexity(model={folder})").score([Item("", "the cat sat"), Item("", "the"), Item("", "")])
    assert scores.scores[0] == pytest.approx(expected, rel=1e-5)
    assert scores.reasons[1:] == ["the summary has no token to predict"] * 2


@pytest.mark.parametrize("name", ["mlm", "perplexity"])
def test_batch_order_and_hostile_input(name: str, masked: Path, causal: Path) -> None:
    metric = make_metric(f"{name}(model={masked if name == 'mlm' else causal})")
    texts = [
        "the cat sat on a mat .",
        "",
        "zyx",
        "very long " * 60,
        "the",
        "the of and",
        "\ud800 cat",
        "the cat sat on a mat .",
    ]
    items = [Item("", text) for text in texts]
    together = metric.score(items)
    assert [reason is None for reason in together.reasons] == [True, False, *[True] * 6]
    assert (np.delete(together.scores, 1) >= 1).all()
    alone = np.concatenate([metric.score([item]).scores for item in items])
    assert together.scores == pytest.approx(alone, rel=1e-5, nan_ok=True)
    assert metric.score(items[::-1]).scores[::-1] == pytest.approx(together.scores, rel=1e-5, nan_ok=True)
    assert metric.score([]).scores.shape == (0,)


def test_wrong_models_are_refused(masked: Path, causal: Path, tiny_bert: Path) -> None:
    for spec, told in (
        ("mlm", "mlm(model=FOLDER)"),
        ("perplexity", "perplexity(model=FOLDER)"),
        (f"mlm(model={causal})", "AutoModelForMaskedLM"),
        (f"perplexity(model={masked})", "later tokens"),
        (f"mlm(model={tiny_bert})", "weights that AutoModelForMaskedLM needs are missing"),
        (f"mlm(model={masked},window=17)", "8 to 16"),
    ):
        with pytest.raises(InputError, match=re.escape(told)):
            make_metric(spec)
