"""Estimates from a few judgments: by hand, beside ppi-python, valid over many draws; what is too little is told in a line."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from negsample.errors import InputError
from negsample.eval.agreement.estimate import choose, estimate, estimate_means

NAN = np.nan
# Judged: people 1, 2, 6 where the score is 1, 2, 3; the score of two more is 5 and 7.
PEOPLE = np.array([[1.0], [2], [6], [NAN], [NAN]])
SCORES = np.array([[1.0], [2], [3], [5], [7]])


def test_a_mean_by_hand() -> None:
    (found,) = estimate_means("h", ["s"], PEOPLE, SCORES, 0.9)
    # Covariance of people and score 2.5, variance of the score 1 among the judged, 2 among the others: the tuned weight is
    # (2.5/3) / (1/3 + 2/2) = 0.625. The score is 4 higher on the others: 3 + 0.625·4 = 5.5.
    assert (found.judged, found.scored, found.plain) == (3, 2, 3.0)
    assert found.weight == pytest.approx(0.625)
    assert found.value == pytest.approx(5.5)
    # Variance of people 7; of what is left over 7 − 2·.625·2.5 + .625²·1 = 4.265625, and .625²·2/2 of the others.
    plain = stats.t.ppf(0.95, 2) * np.sqrt(7 / 3)
    tuned = stats.t.ppf(0.95, 1) * np.sqrt((4.265625 / 3 + 0.390625) * 2 / 1)
    assert found.plain_high - 3 == pytest.approx(plain)
    assert found.high - 5.5 == pytest.approx(tuned)
    assert found.saved == pytest.approx(3 * (plain / tuned) ** 2 - 3)


def test_means_beside_ppi_python() -> None:
    ppi = pytest.importorskip("ppi_py", reason="ppi-python is not installed")
    rng = np.random.default_rng(0)
    scores = rng.normal(size=2000)
    people = 0.6 * scores + rng.normal(size=2000)
    given = np.where(np.arange(2000) < 500, people, NAN)
    (found,) = estimate_means("h", ["s"], given[:, None], scores[:, None], 0.9)
    labelled = people[:500], scores[:500], scores[500:]
    assert found.value == pytest.approx(ppi.ppi_mean_pointestimate(*labelled, lam=found.weight).item(), abs=1e-12)
    assert found.value == pytest.approx(ppi.ppi_mean_pointestimate(*labelled).item(), abs=2e-3)  # by its own weight
    low, high = ppi.ppi_mean_ci(*labelled, alpha=0.1)
    assert (found.low, found.high) == (pytest.approx(low.item(), abs=3e-3), pytest.approx(high.item(), abs=3e-3))


def test_a_difference_is_that_of_the_documents_that_both_were_judged_on() -> None:
    rng = np.random.default_rng(1)
    hard = rng.normal(size=(40, 1))
    scores = rng.normal(size=(40, 2))
    people = hard + 0.5 * scores + 0.3 * rng.normal(size=(40, 2))
    people[15:] = NAN
    one, two, gap = estimate_means("h", ["a", "b"], people, scores, 0.9)
    (alone,) = estimate_means("h", ["d"], people[:, 1:] - people[:, :1], scores[:, 1:] - scores[:, :1], 0.9)
    assert (gap.system, gap.other) == ("b", "a")
    np.testing.assert_allclose([gap.value, gap.low, gap.high], [alone.value, alone.low, alone.high])
    assert gap.plain == pytest.approx(two.plain - one.plain)
    # Hard documents are hard for both, so that the difference is surer than the means.
    assert gap.high - gap.low < one.high - one.low
    # On documents of their own they are independent.
    people[:15, 0], people[15:30, 0] = NAN, hard[15:30, 0]
    one, two, gap = estimate_means("h", ["a", "b"], people, 0 * scores, 0.9)
    halves = [(each.plain_high - each.plain_low) / 2 for each in (one, two, gap)]
    assert halves[2] ** 2 == pytest.approx(halves[0] ** 2 + halves[1] ** 2)


def test_intervals_hold_as_often_as_they_say_and_are_narrower() -> None:
    rng, held, widths = np.random.default_rng(2), [], []
    for _ in range(400):
        scores = rng.normal(size=(60, 2))
        people = 3 + scores + rng.normal(size=(60, 2))
        people[20:] = NAN
        for each, truth in zip(estimate_means("h", ["a", "b"], people, scores, 0.9), (3, 3, 0), strict=True):
            held.append(each.low <= truth <= each.high)
            widths.append((each.high - each.low) / (each.plain_high - each.plain_low))
    assert 0.87 < np.mean(held) < 0.93
    # Half of the variance is the score's, and a third of all is judged: √(1 − ½·⅔) = .82.
    assert np.mean(widths) == pytest.approx(0.82, abs=0.03)


@pytest.mark.parametrize(
    ("people", "reason"),
    [
        ([NAN, NAN, NAN, NAN, NAN], "no judged summary has a score"),
        ([2, NAN, NAN, NAN, NAN], "one judged summary: no interval"),
        ([2, 2, 2, NAN, NAN], "all 3 judged have the same score: no interval"),
    ],
)
def test_too_little_is_told(people: list[float], reason: str) -> None:
    (found,) = estimate_means("h", ["s"], np.array([people]).T, SCORES, 0.9)
    assert found.reason == reason
    assert found.low is None
    assert found.value == (None if np.isnan(people[0]) else 2.0)


def test_a_score_without_use_weighs_nothing() -> None:
    for scores in (-SCORES, 0 * SCORES, np.where(np.isnan(PEOPLE), NAN, SCORES)):
        (found,) = estimate_means("h", ["s"], PEOPLE, scores, 0.9)
        assert (found.weight, found.value, found.low) == (0.0, found.plain, found.plain_low)
        assert found.saved == pytest.approx(0)


def test_one_document_of_each_stratum_is_chosen() -> None:
    scores = np.arange(24.0).reshape(12, 2)
    scores[3] = NAN
    free = np.arange(12) != 5
    draws = [choose(scores, free, 5, seed) for seed in range(200)]
    strata = [{0, 1}, {2, 4}, {6, 7}, {8, 9}, {10, 11}]
    assert all([len(stratum.intersection(draw)) for stratum in strata] == [1] * 5 for draw in draws)
    assert {d for draw in draws for d in draw} == set.union(*strata)
    assert choose(scores, free, 99, 0) == [0, 1, 2, 4, 6, 7, 8, 9, 10, 11]
    assert choose(scores, free, 0, 0) == []


def rows(judged: int) -> list[dict]:
    """Summaries of twelve documents by two systems; the first documents are judged by their number of words."""
    return [
        {"document_id": f"d{d:02}", "system": system, "document": f"Text {d}.", "summary": " ".join(["word"] * (1 + d % 4 + s))}
        | ({"scores": {"good": 1.0 + d % 4 + s}} if d < judged else {})
        for d in range(12)
        for s, system in enumerate(("old", "new"))
    ]  # fmt: skip


def write(path: Path, records: list[dict]) -> str:
    """JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in records))
    return str(path)


def test_from_files_to_files(tmp_path: Path, negsample) -> None:
    judged = write(tmp_path / "judged.jsonl", rows(6)[:12])
    every = write(tmp_path / "all.jsonl", rows(0))
    out = tmp_path / "out.json"
    done = negsample("estimate", every, judged, "--metric", "words", "--choose", 2, "--baseline", "new", "--json", out)
    plain = json.loads(out.read_text())
    means = {(each["system"], each["other"]): each for each in plain["estimates"]}
    assert (means["old", None]["judged"], means["old", None]["scored"]) == (6, 6)
    # Judged documents have 1 2 3 4 1 2 words, the others 3 4 1 2 3 4; people's scores are the words: 2.5 of all.
    assert means["old", None]["value"] == pytest.approx(13 / 6 + means["old", None]["weight"] * (17 / 6 - 13 / 6))
    assert means["old", "new"]["value"] == pytest.approx(-1)
    assert means["old", "new"]["reason"] == "all 6 judged have the same difference: no interval"
    assert len(plain["chosen"]) == 2
    assert not {f"d{d:02}" for d in range(6)} & set(plain["chosen"])
    assert f"to have judged next, all systems: {', '.join(plain['chosen'])}" in done.stdout
    assert len(plain["estimates"]) == 3
    assert "old − new" in done.stdout


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"confidence": 0.3}, "--confidence 0.3"),
        ({"human": ("god",)}, "--human god: there is none; did you mean"),
        ({"by": "wods"}, "--by wods: there is none; did you mean"),
        ({"baseline": "older"}, "--baseline older: there is none"),
    ],
)
def test_wrong_settings_are_told(tmp_path: Path, changes: dict, told: str) -> None:
    path = write(tmp_path / "a.jsonl", rows(6))
    with pytest.raises(InputError, match=told):
        estimate((path,), metrics=("words",), **changes)


def test_wrong_files_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", rows(0))
    with pytest.raises(InputError, match="no summary is judged"):
        estimate((path,), metrics=("words",))
    judge = write(tmp_path / "j.jsonl", [{**row, "by": "judge:m"} for row in rows(6)])
    with pytest.raises(InputError, match="scores by judge:m, which are not people's"):
        estimate((judge,), metrics=("words",))
    other = write(tmp_path / "b.jsonl", [{**row, "summary": "Another."} for row in rows(6)])
    with pytest.raises(InputError, match="another summary by system 'old' than before"):
        estimate((path, other), metrics=("words",))
