"""Agreement among annotators: α by hand, ρ by scipy, κ by hand; too little of it is told in a line."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from negsample.eval.agreement import columns
from negsample.eval.agreement.correlate import Measured, Settings, correlate
from negsample.eval.report.correlate import agreement_json, correlation_page


@pytest.fixture(autouse=True)
def _no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "BASELINES", ("words",))


def measured(path: Path, ratings: list[list[float | None]], systems: int = 5, bootstrap: int = 0) -> Measured:
    """What is found of summaries with the ``ratings``, of which ``systems`` share a document."""
    rows = [
        {
            "document_id": f"d{k // systems}",
            "system": f"s{k % systems}",
            "document": "Nobody mended the gate.",
            "summary": "Nobody" + " mended" * (k % 7),
            "annotators": {"good": own},
        }
        for k, own in enumerate(ratings)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = correlate(Settings((str(path),), metrics=("words",), bootstrap=bootstrap))
    assert "how people agree" in correlation_page(result)
    assert json.dumps(agreement_json(result), allow_nan=False).count('"alpha"') == 1
    return result.datasets[0]


def test_alpha_and_kappa_by_hand(tmp_path: Path) -> None:
    # Two annotators, five summaries, one disagreement; five ratings of ½, five of 0. Observed disagreement 2/10, expected
    # 2·5·5/(10·9): α = 1 − .2·90/50 = .64. Shares of ½: .6 and .4: κ = (.8 − .48)/(1 − .48). The last has one rating.
    data = measured(tmp_path / "a.jsonl", [[0.5, 0.5], [0.5, 0.5], [0, 0], [0, 0], [0.5, 0], [0.5, None]], systems=3)
    found = data.people["good"]
    assert (found.annotators, found.summaries) == (2, 5)
    assert found.alpha == pytest.approx(0.64)
    assert found.kappa == pytest.approx(0.32 / 0.52)
    assert data.source.rows[5].ratings == {"good": (0.5, None)}
    assert data.table.human["good"].tolist() == [0.5, 0.5, 0, 0, 0.25, 0.5]


def test_one_annotator_against_the_mean_of_the_others(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ratings = np.round(rng.normal(size=(50, 1)) * 2 + rng.normal(size=(50, 3)))
    data = measured(tmp_path / "a.jsonl", ratings.tolist(), bootstrap=40)
    found = data.people["good"]
    pooled, summary = [], []
    for k in range(3):
        own, others = ratings[:, k], np.delete(ratings, k, axis=1).mean(axis=1)
        pooled.append(stats.pearsonr(own, others)[0])
        pairs = zip(own.reshape(10, 5), others.reshape(10, 5), strict=True)
        summary.append(np.nanmean([stats.spearmanr(*pair)[0] for pair in pairs]))
    np.testing.assert_allclose(found.ceiling["pooled"].each, pooled)
    assert found.ceiling["summary"].value == pytest.approx(np.mean(summary))
    two = [stats.pearsonr(ratings[:, i], ratings[:, j])[0] for i, j in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(found.pairwise["pooled"].each, two)
    assert found.pairwise["pooled"].value == pytest.approx(np.mean(two))
    for ceiling in (*found.ceiling.values(), *found.pairwise.values()):
        assert ceiling.low <= ceiling.value <= ceiling.high
    assert found.alpha_low < found.alpha < found.alpha_high
    assert found.kappa is None


@pytest.mark.parametrize(
    ("ratings", "told"),
    [([[1, None], [2, None], [None, 3]], "one annotator a summary"), ([[2, 2]] * 4, "all ratings are equal")],
)
def test_too_little_is_told(tmp_path: Path, ratings: list[list[float | None]], told: str) -> None:
    data = measured(tmp_path / "a.jsonl", ratings)
    assert data.people["good"].alpha is None
    assert [reason for reason in data.reasons("good") if reason.startswith(f"people: {told}")]
