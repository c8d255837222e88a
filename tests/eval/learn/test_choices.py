"""Weights learned from choices between two summaries: scikit-learn, folds by document, what is too little."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from negsample.errors import InputError
from negsample.eval.judgments import load_judgments
from negsample.eval.learn import FITTED, FitResult, Settings, learn_from
from negsample.eval.learn.inputs import Inputs, targets_of
from negsample.eval.learn.weights import STRENGTHS, agreements, problem, solve
from negsample.eval.report.learn import fit_json, fit_page
from negsample.records import Judged

NAMES = {"score": 1, "coverage": 1, "support": 1}
TRUTH = np.array([0.0, 2.0, 1.0])


def chosen(path: Path, documents: int = 30, ties: float = 0.0, seed: int = 0) -> tuple[list[Judged], Inputs]:
    """Three summaries a document, every two compared by two people, who choose by a sum of the inputs."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(documents, 3, len(NAMES)))
    records = []
    for d in range(documents):
        for i, j in ((0, 1), (0, 2), (1, 2)):
            for person in "pq":
                ahead = rng.random() < expit((values[d, i] - values[d, j]) @ TRUTH)
                choice = "tie" if rng.random() < ties else "a" if ahead else "b"
                texts = {"a": f"Summary {d} {i}.", "b": f"Summary {d} {j}.", "choice": choice}
                records.append({"doc_id": f"d{d}", "document": f"Text {d}.", "annotator": person, **texts})
    path.write_text("".join(json.dumps(row) + "\n" for row in records))
    rows = load_judgments(str(path))
    places = [tuple(map(int, row.summary.strip(".").split()[1:])) for row in rows]
    return rows, Inputs(np.array([values[place] for place in places]), [None] * len(rows), NAMES, 3, ())


def fitted(rows: list[Judged], found: Inputs) -> FitResult:
    return learn_from(rows, targets_of(rows, [])[0], found, Settings("c.jsonl", bootstrap=50))


def test_weights_are_those_of_scikit_learns_logistic_regression(tmp_path: Path) -> None:
    rows, found = chosen(tmp_path / "c.jsonl", 60)
    task = problem(found, targets_of(rows, [])[0][0], [row.document_id for row in rows])
    spread = task.inputs.std(axis=0)
    first, second, won, lost, _ = task.compared()
    apart = (task.inputs[first] - task.inputs[second]) / spread
    for strength, weights in zip(STRENGTHS, solve(task), strict=True):
        # C·Σ loss + ½‖w‖² is the mean of the losses + λ/2‖w‖² times 1/λ. Here no weight is negative, so that the bound is idle.
        logistic = LogisticRegression(C=1 / (strength * (won + lost).sum()), fit_intercept=False, tol=1e-10)
        logistic.fit(np.tile(apart, (2, 1)), np.repeat([1, 0], len(apart)), np.concatenate([won, lost]))
        expected = logistic.coef_[0] / spread
        assert (expected[1:] > 0).all()
        np.testing.assert_allclose(weights[expected > 0], expected[expected > 0], atol=2e-3)
    # Three of four pairs as most people: two right, one equal, one wrong.
    columns = np.zeros((1, len(rows)))
    assert agreements(task, columns) == pytest.approx(0.5)
    people = np.sign(won - lost)
    assert agreements(task, task.inputs.T)[1] == pytest.approx(
        np.mean((apart[:, 1] * people > 0)[people != 0]), abs=1e-12
    )


def test_a_fit_is_judged_by_the_share_of_pairs_on_other_documents(tmp_path: Path) -> None:
    rows, found = chosen(tmp_path / "c.jsonl", 60, ties=0.2)
    result = fitted(rows, found)
    (target,) = result.targets
    assert (target.level, target.coefficient, target.name) == ("choice", "majority", "chosen")
    assert target.best == "coverage"
    assert target.figure(FITTED).value > target.figure("coverage").value > 0.6
    assert target.against.value_first == target.figure(FITTED).value
    raw = target.fit.weights.raw
    assert raw[1] > 1.3 * raw[2] > 0
    assert any("ties (half of each), by the logistic loss" in note for note in result.notes)
    assert "choice as most people" in fit_page(result)
    json.dumps(fit_json(result), allow_nan=False)
    # Another order of the two sides, and of the records, is the same fit.
    lines = (tmp_path / "c.jsonl").read_text().splitlines()
    other = {"a": "b", "b": "a", "tie": "tie"}
    turned = [{**r, "a": r["b"], "b": r["a"], "choice": other[r["choice"]]} for r in map(json.loads, lines[::-1])]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in turned))
    again = load_judgments(str(tmp_path / "d.jsonl"))
    at = {row.summary: k for k, row in enumerate(rows)}
    moved = Inputs(found.values[[at[row.summary] for row in again]], [None] * len(again), NAMES, 3, ())
    np.testing.assert_allclose(fitted(again, moved).targets[0].fit.weights.raw, raw, rtol=1e-3)


@pytest.mark.parametrize(
    ("documents", "ties", "told"),
    [(1, 0.0, "judged summaries of 1 documents"), (8, 1.0, "have the same score: nothing can be learned")],
)
def test_too_little_is_told(tmp_path: Path, documents: int, ties: float, told: str) -> None:
    rows, found = chosen(tmp_path / "c.jsonl", documents, ties)
    with pytest.raises(InputError, match=told):
        fitted(rows, found)


def test_people_who_are_tied_on_every_pair_teach_nothing(tmp_path: Path) -> None:
    rows, found = chosen(tmp_path / "c.jsonl", 8)
    found.values[[row.summary.endswith(" 2.") or row.summary.endswith(" 1.") for row in rows]] = np.nan
    with pytest.raises(InputError, match="there is no pair that people are not tied on"):
        fitted(rows, found)
