"""A fit from inputs to its page, without texts that have to be read."""

import json
from dataclasses import replace

import numpy as np
import pytest

from negsample.errors import InputError
from negsample.eval.learn import FITTED, FitResult, Settings, learn_from
from negsample.eval.learn.inputs import Inputs, targets_of
from negsample.eval.learn.weights import sizes
from negsample.eval.report.learn import enough, fit_json, fit_page, in_words, verdict, weights
from negsample.models.fitted import Fitted
from negsample.records import Judged, document_key

NAMES = {"score": 1, "coverage": 1, "support": 1, "terms": 1, "repeated_pairs": -1}
DOCUMENTS, SYSTEMS = 24, 6
SETTINGS = Settings("judged.jsonl", bootstrap=100)


def judged(truth: dict[str, float], noise: float = 0.5, seed: int = 0) -> tuple[list[Judged], Inputs]:
    """Summaries whose human score ``h``, of 1 to 5, is a sum of the inputs named; more is better in every column."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(DOCUMENTS * SYSTEMS, len(NAMES)))
    values[:, 0] = values[:, 1:3].mean(axis=1)
    y = sum(weight * values[:, list(NAMES).index(name)] for name, weight in truth.items())
    y = np.clip(3 + 0.7 * (y + noise * rng.normal(size=len(values))), 1, 5)
    rows = [
        Judged(
            f"d{i // SYSTEMS}",
            f"s{i % SYSTEMS}",
            (f"document {i // SYSTEMS}",),
            f"summary number {i} " + "word " * (i % 7),
            scores={"h": float(y[i]), "other": float(rng.integers(1, 6))},
            dataset="made",
        )
        for i in range(len(values))
    ]
    return rows, Inputs(values, [None] * len(rows), NAMES, 3, ())


@pytest.fixture(scope="module")
def result() -> FitResult:
    rows, found = judged({"coverage": 1.0, "repeated_pairs": 0.7})
    return learn_from(rows, targets_of(rows, ["h"])[0], found, SETTINGS, ["a note"], ["coverage", "support"])


def test_what_people_go_by_is_found_and_measured(result: FitResult) -> None:
    (target,) = result.targets
    moved = weights(result, target.fit.weights)
    assert list(moved)[:2] == ["coverage", "repeated_pairs"]
    # More repetition is worse, though its column is turned.
    assert moved["repeated_pairs"] < -0.3 < 0.3 < moved["coverage"]
    assert target.best == "coverage"
    assert target.better
    assert (target.level, target.figure(FITTED).coefficient) == ("summary", "spearman")
    assert target.figure(FITTED).value > target.figure("coverage").value > target.figure("score").value  # type: ignore[operator]
    assert verdict(target).startswith("Better than coverage")
    assert {f.metric for f in target.figures} >= {"words", "copied", "support"}
    assert {f.level for f in target.figures} == {"pooled", "summary", "system"}


def test_the_curve_rises_and_says_how_many_are_enough(result: FitResult) -> None:
    (target,) = result.targets
    assert [point.documents for point in target.curve] == [5, 10]
    assert target.curve[0].summaries == 5 * SYSTEMS
    assert target.curve[0].mean < target.curve[-1].mean
    assert target.curve[0].unfitted < target.curve[0].mean
    assert "documents" in enough(target)


def test_sizes_leave_something_to_measure_on() -> None:
    assert sizes(9) == []
    assert sizes(10) == [5]
    assert sizes(30) == [5, 10, 20]
    assert sizes(60) == [5, 10, 20, 40]


def test_intervals_of_held_out_documents_hold(result: FitResult) -> None:
    (target,) = result.targets
    share, low, high = target.coverage
    assert low is not None
    assert high is not None
    assert low <= share <= high
    assert 0.8 < share < 0.99


def test_the_overall_score_spreads_as_before(result: FitResult) -> None:
    before = result.inputs.values[:, 0]
    sums = result.fitted.offset + sum(
        weight * result.inputs.values[:, list(NAMES).index(name)] for name, weight in result.fitted.score.items()
    )
    assert sums.mean() == pytest.approx(before.mean())
    assert sums.std() == pytest.approx(before.std())


def test_what_is_fitted_survives_its_file(result: FitResult) -> None:
    again = Fitted.from_plain(json.loads(json.dumps(result.fitted.as_plain(), allow_nan=False)))
    assert again == result.fitted
    assert again.documents == tuple(sorted(document_key(f"document {d}") for d in range(DOCUMENTS)))
    damaged = result.fitted.as_plain()
    damaged["targets"]["h"].pop("scale")
    with pytest.raises(InputError, match="damaged"):
        Fitted.from_plain(damaged)


def test_the_page_and_the_figures(result: FitResult) -> None:
    page = fit_page(result)
    for part in (
        "Better than coverage",
        "repeated_pairs ×−",
        "How many judgments are enough",
        "<svg",
        "a note",
        "cross-validated",
    ):
        assert part in page
    plain = json.loads(json.dumps(fit_json(result), allow_nan=False))
    assert plain["targets"][0]["recommended"] == "h"
    assert in_words({"coverage": 0.8, "terms": 0.001, "repeated_pairs": -0.25}) == (
        "coverage ×0.80, repeated_pairs ×−0.25, and 1 below ×0.02"
    )


def test_where_one_aspect_is_all_there_is_it_is_recommended() -> None:
    rows, found = judged({"support": 1.0}, noise=1.0)
    (target,) = learn_from(rows, targets_of(rows, ["h"])[0], found, SETTINGS).targets
    assert target.best == "support"
    assert not target.better
    assert verdict(target).endswith("use support.")


def test_the_order_of_the_rows_changes_nothing(result: FitResult) -> None:
    rows, found = judged({"coverage": 1.0, "repeated_pairs": 0.7})
    order = np.random.default_rng(1).permutation(len(rows))
    moved = [rows[i] for i in order]
    again = learn_from(moved, targets_of(moved, ["h"])[0], replace(found, values=found.values[order]), SETTINGS)
    for name, weight in result.fitted.targets["h"].weights.items():
        assert again.fitted.targets["h"].weights[name] == pytest.approx(weight, abs=1e-9)
    assert again.fitted.targets["h"].half_width == pytest.approx(result.fitted.targets["h"].half_width)
    assert again.targets[0].figure(FITTED).value == pytest.approx(result.targets[0].figure(FITTED).value)


def test_what_is_missing_is_left_out_and_told() -> None:
    rows, found = judged({"coverage": 1.0})
    found.values[4, 1] = np.nan
    found.reasons[4] = "the summary has no word"
    rows[7] = replace(rows[7], scores={"other": 1.0})
    (target,) = learn_from(rows, targets_of(rows, ["h"])[0], found, SETTINGS).targets
    assert target.left_out == {"no human score": 1, "the summary has no word": 1}
    assert len(target.task.people) == len(rows) - 2
