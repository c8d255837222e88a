"""Agreement as an objective: the half that is reported on is never seen."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from negsample.errors import InputError
from negsample.eval import tuning
from negsample.eval.tuning import agreement_of, load_tune_half
from negsample.scoring.scorer import Scorer, collect


def rows(half_of=lambda d: "tune" if d < 3 else "report", documents=6, systems=4):
    rng = np.random.default_rng(1)
    return [
        {
            "document_id": f"d{d}",
            "system": f"s{s}",
            "document": f"Document number {d} tells of many things.",
            "summary": "word " * int(rng.integers(1, 9)) + f"by {s} of {d}",
            "scores": {"good": float(rng.normal()), **({"rare": 1.0} if half_of(d) == "report" else {})},
            **({"half": half} if (half := half_of(d)) else {}),
        }
        for d in range(documents)
        for s in range(systems)
    ]


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


@pytest.fixture
def seen(monkeypatch):
    """In place of a model: the score is the number of words. Every document and summary that it reads is kept."""
    texts: list[str] = []

    def score(items):
        texts.extend(text for item in items for text in (item.document, item.summary))
        return collect(float(len(item.summary.split())) for item in items)

    scorer = Scorer("m", "model:m", True, frozenset({"document"}), score)
    monkeypatch.setattr(tuning, "make_scorers", lambda models, metrics, baselines: ([scorer], []))
    return texts


def test_the_other_half_is_never_seen(tmp_path, seen):
    records = rows()
    path = write(tmp_path / "j.jsonl", records)
    halves = [load_tune_half(path, "good")]
    assert {row.half for row in halves[0].rows} == {"tune"}
    value = agreement_of(tmp_path, halves, "summary", "spearman")
    kept = {text for r in records if r["half"] == "report" for text in (r["document"], r["summary"])}
    assert seen
    assert not kept & set(seen)
    # By hand: the mean of the correlations within the three documents of the tune half.
    pairs = [[(len(r["summary"].split()), r["scores"]["good"]) for r in records[4 * d : 4 * d + 4]] for d in range(3)]
    by_hand = [spearmanr(*zip(*own, strict=True)).statistic for own in pairs]
    assert value == pytest.approx(np.mean(by_hand), abs=1e-12)
    # Whatever people said of the other half changes nothing.
    for record in records:
        if record["half"] == "report":
            record["scores"] = {"good": 100.0 - len(record["summary"])}
            record["summary"] += " and more of it"
    other = [load_tune_half(write(tmp_path / "k.jsonl", records), "good")]
    assert agreement_of(tmp_path, other, "summary", "spearman") == value
    # Of several files it is the mean.
    second = [load_tune_half(write(tmp_path / "b.jsonl", rows(documents=5)[::-1]), "good")]
    alone = [agreement_of(tmp_path, each, "pooled", "pearson") for each in (halves, second)]
    assert agreement_of(tmp_path, [*halves, *second], "pooled", "pearson") == pytest.approx(np.mean(alone))
    few = [load_tune_half(write(tmp_path / "few.jsonl", rows(systems=2)), "good")]
    with pytest.raises(InputError, match=r"no summary-level spearman with good on .*three scored summaries"):
        agreement_of(tmp_path, few, "summary", "spearman")


@pytest.mark.parametrize(
    ("half_of", "human", "message"),
    [
        (lambda d: "", "good", "no row has the field 'half'"),
        (lambda d: "tune" if d else "", "good", "4 of 24 rows have no field 'half'"),
        (lambda d: "report", "good", "no row has half: tune"),
        (
            lambda d: "tune" if d < 3 else "report",
            "goood",
            "no row with half: tune has the score 'goood'; did you mean",
        ),
        # A score that only the other half has.
        (lambda d: "tune" if d < 3 else "report", "rare", "no row with half: tune has the score 'rare'"),
    ],
)
def test_judgments_that_are_refused(tmp_path, half_of, human, message):
    path = write(tmp_path / "j.jsonl", rows(half_of))
    with pytest.raises(InputError) as caught:
        load_tune_half(path, human)
    assert message in str(caught.value)
    assert path in str(caught.value)


def test_a_document_in_both_halves_is_refused(tmp_path):
    records = rows()
    last = records[-1]["document_id"]
    for record in records:
        if record["document_id"] == last:
            record["document"] = records[0]["document"].upper()
    with pytest.raises(InputError, match="2 documents stand in both halves \\(such as document_id 'd0'\\)"):
        load_tune_half(write(tmp_path / "j.jsonl", records), "good")
