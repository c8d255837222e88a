"""0/1 labels: AUC and its resamples and exchanges against scikit-learn, limits by hand, and never chosen where measured."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.model_selection import GroupKFold

from negsample.errors import InputError
from negsample.eval.agreement import columns
from negsample.eval.agreement.correlate import Correlation, Settings, correlate
from negsample.eval.agreement.levels import make_block, make_resamples, make_table, resampled_correlations
from negsample.eval.agreement.shares import LIMIT, best_limit, measure_limits
from negsample.eval.agreement.significance import compare_metrics, swapped_differences
from negsample.eval.report.correlate import agreement_json, correlation_page
from negsample.resampling import patterns
from negsample.seeds import generator


@pytest.fixture(autouse=True)
def _no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "BASELINES", ("words", "copied"))


def labelled(documents: int = 6, systems: int = 4, seed: int = 0):
    """Labels 0 and 1, and two metrics with ties that follow them more and less."""
    rng = np.random.default_rng(seed)
    d, s = (a.ravel() for a in np.meshgrid(np.arange(documents), np.arange(systems), indexing="ij"))
    good = rng.integers(0, 2, size=len(d)).astype(float)
    a, b = np.round(good * np.array([[2.0], [0.5]]) + rng.normal(size=(2, len(d))))
    names = [f"d{i:02}" for i in d], [f"s{i}" for i in s]
    return make_table("made", *names, {"h": good}, {"a": a, "b": b}, np.arange(len(d)))


def test_aucs_of_resamples_and_exchanges_are_those_of_scikit_learn() -> None:
    table = labelled()
    a, b, good = table.metrics["a"], table.metrics["b"], table.human["h"]
    block, resamples = make_block(table, [a, b, good]), make_resamples(table, 30, 0)
    found = resampled_correlations(block, "label", "auc", [(0, 2), (1, 2)], resamples)
    for weights, values in zip(resamples.weights, found, strict=True):
        rows = np.repeat(np.arange(len(a)), weights[table.documents].astype(int))
        np.testing.assert_allclose(values, [sk.roc_auc_score(good[rows], x[rows]) for x in (a, b)])
    ranks = [np.searchsorted(np.sort(x), x) + np.searchsorted(np.sort(x), x, side="right") for x in (a, b)]
    keep, _ = patterns(generator(0, "t"), 6, 64)
    drawn = swapped_differences(block, "label", 0, 1, keep.astype(float))
    for kept, value in zip(keep.astype(bool)[:, table.documents], drawn, strict=True):
        one, two = np.where(kept, ranks[0], ranks[1]), np.where(kept, ranks[1], ranks[0])
        assert value == pytest.approx(sk.roc_auc_score(good, one) - sk.roc_auc_score(good, two))
    (compared,) = compare_metrics(table, "h", level="label", bootstrap=30, permutations=64)
    assert compared.value_first == pytest.approx(sk.roc_auc_score(good, a))
    assert compared.p_permutation == np.mean(np.abs(drawn) >= abs(compared.difference) - 1e-10)


def test_the_best_limit_by_hand() -> None:
    scores, good = np.array([1.0, 2, 3, 4, 5, 6]), np.array([0, 0, 1, 0, 1, 1]) > 0
    # Under 2.5: 2 of 3 bad, no good; under 4.5: 3 of 3 bad, 1 of 3 good. As good: the highest.
    assert best_limit(scores, good) == 4.5
    assert best_limit(scores, good, 0.34) == 2.5
    assert best_limit(scores, good, 0.0) == 4.5
    # The best summary is bad: every limit that says anything misses it.
    assert best_limit(scores, good & (scores < 6), 0.1) is None
    assert best_limit(scores, np.ones(6, dtype=bool)) is None


@pytest.mark.parametrize("carried", [True, False])
def test_limits_are_measured_on_other_documents(carried: bool) -> None:
    table = labelled(20, 5)
    halves = np.where(table.documents < 10, "tune", "report") if carried else np.full(100, "")
    found = measure_limits(table, "h", halves, bootstrap=50, permutations=100)
    x, good = table.metrics["a"], table.human["h"] == 1
    if carried:
        limit, held = best_limit(x[:50], good[:50]), halves == "report"
        assert found.limits["a"] == limit
        called = x < limit
    else:
        assert found.limits["a"] == best_limit(x, good)
        called, held = np.zeros(100, dtype=bool), np.ones(100, dtype=bool)
        for rest, fold in GroupKFold(5).split(x, groups=table.documents):
            called[fold] = x[fold] < best_limit(x[rest], good[rest])
    bad, called = ~good[held], called[held]
    expected = [f(bad, called) for f in (sk.balanced_accuracy_score, sk.precision_score, sk.recall_score)]
    expected.append(called[~bad].mean())
    mine = [figure for figure in found.figures if figure.metric == "a"]
    assert [figure.coefficient for figure in mine] == list(LIMIT.names)
    np.testing.assert_allclose([figure.value for figure in mine], expected)
    assert all(figure.low <= figure.value <= figure.high and figure.n == held.sum() for figure in mine)
    assert found.constant[1] == (0.5, pytest.approx(bad.mean()), 1.0, 1.0)
    if carried:
        some = measure_limits(table, "h", np.where(table.documents == 19, "", halves), bootstrap=0)
        assert some.how.endswith("measured on half: report; 5 without a half left out")
        assert some.figures[0].n == 45
    (compared,) = found.comparisons
    assert compared.value_first == mine[0].value
    assert 0 < compared.p_permutation < 0.2  # "a" follows the labels much more


def halved(**changes: object) -> list[dict]:
    """Rows of two halves, faithful where they are long."""
    rng = np.random.default_rng(0)
    return [
        {
            "document_id": f"d{d}",
            "system": f"s{s}",
            "document": f"Nobody mended gate {d} of the old harbour in spring.",
            "summary": "Nobody" + " mended" * int(rng.integers(1, 5) + s),
            "references": ["Nobody mended it."],
            "scores": {"faithful": int(s > 2), "form": float(rng.normal())} | changes,
            "half": "tune" if d < 4 else "report",
        }
        for d in range(8)
        for s in range(6)
    ]


def run(path: Path, rows: list[dict], **changes: object) -> Correlation:
    """What is found of ``rows``, written at ``path``."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return correlate(Settings(**{"judgments": (str(path),), "bootstrap": 0, **changes}))  # type: ignore[arg-type]


def test_a_report_half_has_the_limits_of_the_tune_half(tmp_path: Path, negsample) -> None:
    result = run(tmp_path / "made.jsonl", halved(), half="report", metrics=("rouge1",), bootstrap=30)
    (data,) = result.datasets
    assert {row.half for row in data.source.rows} == {"report"}
    words = [(len(row["summary"].split()), row["scores"]["faithful"]) for row in halved() if row["half"] == "tune"]
    expected = best_limit(*map(np.array, zip(*((w, f == 1) for w, f in words), strict=True)))
    assert set(data.shares) == {"faithful"}
    assert data.shares["faithful"].limits["words"] == expected
    figure = data.figure("faithful", "words", "limit", "balanced_accuracy")
    assert figure.n == 24
    assert data.figure("form", "words", "label", "auc") is None
    assert {level for human, level in data.beats if human == "faithful"} >= {"label", "limit"}
    plain = json.loads(json.dumps(agreement_json(result), allow_nan=False))
    assert plain["datasets"][0]["shares"][0]["limits"]["words"] == expected
    page = correlation_page(result)
    assert "constant: all bad" in page
    assert "label AUC" in page
    options = ("--half", "report", "--metric", "words", "--bootstrap", 20, "--max-missed", 0.1)
    done = negsample("correlate", "--judgments", tmp_path / "made.jsonl", *options, "--out", tmp_path / "out")
    assert "limit, chosen on half: tune, measured on half: report; to miss at most 0.1 of the bad" in done.stdout


def test_labels_that_say_too_little_are_told_in_a_line(tmp_path: Path) -> None:
    (data,) = run(tmp_path / "one.jsonl", [row for row in halved() if row["document_id"] == "d0"]).datasets
    assert "there is one only" in data.shares["faithful"].how
    assert data.share_lines("faithful") == []
    (data,) = run(tmp_path / "flat.jsonl", halved(faithful=1)).datasets
    assert data.shares == {}
    assert "pooled level: human scores are constant (words)" in data.reasons("faithful")
    rows = halved()
    for row in rows[:24]:
        row["scores"]["faithful"] = 1
    (data,) = run(tmp_path / "tune.jsonl", rows, half="report").datasets
    assert "limit level: no limit could be chosen" in data.reasons("faithful")
    with pytest.raises(InputError, match="--max-missed 1"):
        run(tmp_path / "made.jsonl", halved(), max_missed=1.0)
