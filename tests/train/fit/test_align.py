"""Head ``align``: what it learns from, by hand; the features of a split; a whole training, with and without judge."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from accelerate import Accelerator
from tests_support import split_of, story
from tiny_lm import build

from negsample.errors import InputError
from negsample.models.align.aspects import feature_set
from negsample.models.estimator import Estimator
from negsample.models.features.align import Compared
from negsample.models.folder import on_scale
from negsample.records import LABELLED
from negsample.scoring.scorer import Item, make_metric
from negsample.train.config import make_config
from negsample.train.data import ORIGINAL
from negsample.train.fit import align_features
from negsample.train.fit.align import beginning, compare_untrained, originals, rank
from negsample.train.fit.align_features import compute_features
from negsample.train.job import train

ALONE = Accelerator(cpu=True)


def test_what_ranks_above_what() -> None:
    kinds = ["original", "swap", "swap", "entity", "original", "swap"]
    split = split_of(kinds, [1.0, 0.8, 0.2, 0.5, 1.0, 0.4], [0, 0, 0, 0, 1, 1])
    found = rank(split)
    overall, coverage, support, coherence, form = ({tuple(pair) for pair in pairs.tolist()} for pairs in found.pairs)
    assert overall == {(0, 1), (0, 2), (0, 3), (1, 2), (4, 5)}
    assert coherence == {(0, 1), (0, 2), (1, 2), (4, 5)}
    assert support == {(0, 3)}
    assert coverage == form == set()
    assert [sorted(rows.tolist()) for rows in found.documents] == [[0, 1, 2, 3], [4, 5]]
    beside = rank(split_of(["original", LABELLED, LABELLED], [1.0, 0.4, 1.0], [0, 0, 0]))
    assert {tuple(pair) for pair in beside.pairs[0].tolist()} == {(0, 1), (2, 1)}


def test_the_beginning_holds_whole_documents() -> None:
    kinds = ["original", "swap", "original", "swap", "entity", "original", "swap"]
    split = split_of(kinds, [1, 0.5, 1, 0.4, 0.2, 1, 0.1], [0, 0, 1, 1, 1, 2, 2])
    assert [len(beginning(split, most)) for most in range(1, 9)] == [2, 2, 5, 5, 5, 7, 7, 7]
    some = beginning(split, 3)
    assert some.labels.tolist() == pytest.approx([1, 0.5, 1, 0.4, 0.2])
    assert some.summary_of.tolist() == [0, 1, 2, 3, 4]
    assert some.domains.tolist() == [0, 0, 1, 1, 1]


def test_figures_beside_the_untrained_head(monkeypatch: pytest.MonkeyPatch) -> None:
    split = split_of(["original", "swap", "swap", "original", "swap"], [1, 0.5, 0, 1, 0], [0, 0, 0, 1, 1])
    trained = np.zeros((5, 5), np.float32)
    trained[[0, 3]] = 1.0  # both originals above all their copies
    plain = np.zeros((5, 5), np.float32)
    plain[1] = -1.0  # one copy of three below, the others level: (1 + .5 + .5) / 3
    assert compare_untrained(split, trained, plain, 0)[0]["low"] is None  # two documents
    monkeypatch.setattr("negsample.resampling.MIN_UNITS", 2)
    rows = compare_untrained(split, trained, plain, 0)
    assert [(row["kind"], row["output"], row["n"]) for row in rows] == [("swap", "score", 3), ("swap", "coherence", 3)]
    assert rows[0]["trained"] == 1.0
    assert rows[0]["untrained"] == pytest.approx(2 / 3)
    assert rows[0]["gain"] == pytest.approx(1 / 3)
    assert 0 <= rows[0]["low"] <= rows[0]["high"] <= 0.5


class Texts:
    """A store of texts."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = [np.frombuffer(text.encode(), np.uint8) for text in texts]

    def __getitem__(self, place: int) -> np.ndarray:
        return self.texts[place]

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        return np.array([len(self.texts[row]) for row in rows])


class Counted:
    """Features that count letters, and how many pairs they are given at a time."""

    sources: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.calls: list[int] = []

    def compare(self, documents: list[str], summaries: list[str]) -> list[Compared]:
        self.calls.append(len(documents))
        one, present = np.ones((1, 1), np.float32), np.ones(4, bool)
        pairs = zip(documents, summaries, strict=True)
        rest = [0] * (len(feature_set()) - 2)
        return [Compared(np.array([len(d), len(s), *rest], np.float32), one, one, present) for d, s in pairs]


def test_long_texts_are_compared_in_smaller_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split = split_of(["original", "swap", "original", "swap", "swap"], [1, 0.5, 1, 0.4, 0.2], [0, 0, 1, 1, 1])
    texts = {"documents": Texts(["d" * 10, "d" * 3]), "summaries": Texts(["s", "ss", "s", "s", "s"])}
    split = dataclasses.replace(split, **texts)  # type: ignore[arg-type]
    found = []
    # Bytes, a document counted once: 11, 2, 4, 1, 1; sixes are full after the first, the third and the fourth pair.
    for most, calls in ((1 << 20, [5]), (6, [1, 2, 2])):
        monkeypatch.setattr(align_features, "_BYTES", most)
        features = Counted()
        computed = compute_features(ALONE, features, split, tmp_path / str(most), "train")  # type: ignore[arg-type]
        found.append(np.stack([item.features for item in computed])[:, :2])
        assert features.calls == calls
    assert found[0].tolist() == found[1].tolist() == [[10, 1], [10, 2], [3, 1], [3, 1], [3, 1]]


def test_a_whole_split_does_not_take_the_short_part_of_its_beginning(tmp_path: Path) -> None:
    split = split_of(["original", "swap", "original", "swap"], [1, 0.5, 1, 0.4], [0, 0, 1, 1])
    split = dataclasses.replace(split, documents=Texts(["text"] * 2), summaries=Texts(["text"] * 4))  # type: ignore[arg-type]
    sizes = [
        len(compute_features(ALONE, Counted(), part, tmp_path, "validation"))
        for part in (beginning(split, 2), split, split)
    ]  # type: ignore[arg-type]
    assert sizes == [2, 4, 4]


def test_each_original_is_found_also_where_its_summary_was_labelled_or_is_a_negative_before() -> None:
    split = split_of(["labelled", "original", "crosspair", "original", "swap"], [0.5, 1, 0, 1, 0], [0, 0, 0, 1, 1])
    split = dataclasses.replace(
        split,
        documents=Texts(["one", "two"]),
        summaries=Texts(["first", "second", "third"]),
        summary_of=np.array([0, 0, 1, 1, 2], np.int32),
    )  # type: ignore[arg-type]
    assert originals(split, 9, ORIGINAL) == (["one", "two"], ["first", "second"])
    assert originals(split, 9) == (["one", "two"], ["first", "second"])
    assert originals(split, 1) == (["one"], ["first"])


RECIPE = {"sentence-delete": 1.0, "entity": 1.0, "repeat": 1.0, "shuffle": 1.0, "replace": 1.0}


@pytest.fixture
def settings(pairs_file: Path, tiny_bert: Path):
    """A way to make the settings of a short run."""
    given = {
        "corpus": str(pairs_file),
        "recipe": RECIPE,
        "negatives": 4,
        "head": "align",
        "judge_steps": 2,
        "support_steps": 2,
        "epochs": 2,
    }
    return lambda **more: make_config({**given, "encoder": f"sentence-transformer:{tiny_bert}", **more})


def told_in(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text())


def test_training_leaves_a_model_with_aspects_and_the_seed_decides_its_weights(settings, tmp_path: Path) -> None:
    found = train(settings(), tmp_path / "model")
    assert found is not None
    assert {row["kind"] for row in found["ranking"]} <= set(RECIPE)
    assert set(found["judge"]) == {"form", "coherence"}
    told = told_in(tmp_path / "model")
    assert (told["loss"], told["head_options"]) == ("ranking+bce", {"sources": ["judge", "support"]})
    train(settings(), tmp_path / "again")
    assert told_in(tmp_path / "again")["weights_sha256"] == told["weights_sha256"]
    estimator = Estimator.load(tmp_path / "model")
    documents, summaries = zip(*(story(number) for number in range(6)), strict=True)
    found = estimator.score_pairs(documents, summaries)
    scores, aspects = found.scores, found.aspects
    assert set(aspects) == {"coverage", "support", "coherence", "form"}
    # Order and company change nothing.
    back = estimator.score(documents[::-1], summaries[::-1])[::-1]
    alone = np.concatenate([estimator.score([d], [s]) for d, s in zip(documents, summaries, strict=True)])
    np.testing.assert_allclose(back, scores, atol=1e-5)
    np.testing.assert_allclose(alone, scores, atol=1e-5)


def test_without_training_it_is_the_untrained_sum(settings, tiny_bert: Path, tmp_path: Path) -> None:
    found = train(settings(epochs=0), tmp_path / "model")
    assert found is not None
    assert "judge" not in found
    assert all(row["gain"] == 0 for row in found["ranking"])
    document, summary = story(1)
    metric = make_metric(f"align-untrained(encoder=sentence-transformer:{tiny_bert})")
    score = metric.score([Item(document, summary)]).scores[0]
    # A model folder has a scale, made of its own corpus.
    expected = on_scale({"score": np.array([score])}, told_in(tmp_path / "model")["scale"])["score"][0]
    assert Estimator.load(tmp_path / "model").score([document], [summary])[0] == pytest.approx(expected, abs=1e-4)
    missing = metric.score([Item(document, "!!")])
    assert list(missing.reasons) == ["the summary has no word, so no aspect can be judged"]


@pytest.mark.parametrize("copied", [False, True])
def test_a_language_model_that_reads_the_document(
    settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))
    lm = build(tmp_path / "lm", "gpt", limit=64)
    train(settings(judges=False, epochs=1, lm=str(lm), copy_lm=copied), tmp_path / "model")
    told = told_in(tmp_path / "model")
    assert told["head_options"] == {"sources": ["evidence"]}
    # The scales come from the training summaries; the model is copied only where that is asked for.
    assert len(told["features"]["evidence"]["scales"]) == 7
    assert (tmp_path / "model" / "evidence").exists() == copied
    documents, summaries = zip(*(story(number) for number in range(4)), strict=True)
    scored = Estimator.load(tmp_path / "model").score_pairs(documents, summaries)
    # A document of more than 32 tokens, half of the model's window, is read in part, and that is told.
    assert scored.cut.all()
    shutil.rmtree(lm)
    if not copied:
        with pytest.raises(InputError, match="is no folder"):
            Estimator.load(tmp_path / "model")
        return
    estimator = Estimator.load(tmp_path / "model")
    alone = np.concatenate([estimator.score([d], [s]) for d, s in zip(documents, summaries, strict=True)])
    np.testing.assert_allclose(alone, scored.scores, atol=1e-5)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"loss": "mse"}, "has a loss of its own"),
        ({"encoder": "glove"}, "no token vectors"),
        ({"lm": "NO_LM"}, "no masked or causal language model"),
    ],
)
def test_what_does_not_fit_is_told_before_any_work(values, told, settings, tiny_bert: Path, tmp_path: Path) -> None:
    values = {key: str(tiny_bert) if value == "NO_LM" else value for key, value in values.items()}
    with pytest.raises(InputError, match=told):
        train(settings(**values), tmp_path / "model")
    assert not (tmp_path / "model").exists()
