"""From people's scores and inputs to a fit and its page, without texts that have to be read."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from negsample.errors import InputError
from negsample.eval.judgments import load_judgments
from negsample.eval.learn import FITTED, FitResult, Settings, learn_from
from negsample.eval.learn.inputs import Inputs, Target, further_metrics, targets_of, together
from negsample.eval.report.learn import enough, fit_json, fit_page, in_words, verdict, weights
from negsample.models.fitted import Fitted
from negsample.records import Judged, document_key

NAMES = {"score": 1, "coverage": 1, "support": 1, "terms": 1, "repeated_pairs": -1}
DOCUMENTS, SYSTEMS = 24, 6
SETTINGS = Settings("judged.jsonl", bootstrap=100)


def rows(*scores: dict, documents: int = 5, ratings: tuple[tuple[float, ...], ...] = ()) -> list[Judged]:
    own = [{"h": given} for given in ratings] or [{}] * len(scores)
    ids = range(len(scores))
    return [Judged(str(i % documents), str(i), ("d",), "s", scores=scores[i], ratings=own[i]) for i in ids]


def test_missing_scores_are_missing_and_annotators_who_agree_count_more(tmp_path: Path) -> None:
    (found,), _ = targets_of(rows({"h": 1}, {"h": 2}, {}, {"h": 4}, {"h": 5}, {"h": 6}), ())
    np.testing.assert_array_equal(found.values, [1, 2, np.nan, 4, 5, 6])
    np.testing.assert_array_equal(found.weights, 1)
    given = ((1, 1), (1, 3), (2, 4), (3, 5), (5, 5))
    (found,), _ = targets_of(rows(*({"h": k} for k in range(5)), ratings=given), ())
    # Variances of the means: 0, 1, 1, 1, 0; their mean is 0.6: weights in proportion to 1/0.6 and 1/1.6.
    expected = 1 / (0.6 + np.array([0, 1, 1, 1, 0]))
    np.testing.assert_allclose(found.weights, expected / expected.mean())
    record = {"document_id": "a", "system": "s", "document": "d", "summary": "t", "scores": {"h": [1, 2, 6], "g": 3}}
    (tmp_path / "judged.jsonl").write_text(json.dumps(record) + "\n")
    (row,) = load_judgments(str(tmp_path / "judged.jsonl"))
    assert (row.scores, row.ratings) == ({"h": 3.0, "g": 3.0}, {"h": (1.0, 2.0, 6.0)})


@pytest.mark.parametrize(
    ("values", "documents", "names", "told"),
    [
        ([1, 2], 2, [], "h: 2 judged summaries of 2 documents"),
        ([1, 2, 3, 4, 5], 1, [], "h: 5 judged summaries of 1 documents"),
        ([3, 3, 3, 3, 3], 5, [], "h: all 5 judged summaries"),
        ([1, 2, 3, 4, 5], 5, ["hh"], "--target hh"),
        ([1, 2, 3, 4, 5], 5, ["h", "flat"], "flat: all 5"),
    ],
)
def test_what_can_not_be_fitted_is_told(values: list[float], documents: int, names: list[str], told: str) -> None:
    flat = {"flat": 3.0} if "flat" in names else {}
    with pytest.raises(InputError, match=told):
        targets_of(rows(*({"h": value, **flat} for value in values), documents=documents), names)


def test_targets_that_vary_are_fitted_and_the_overall_score_to_their_mean_in_units_of_spread() -> None:
    found, left_out = targets_of(rows(*({"flat": 3.0, "h": float(i), "same": 1.0} for i in range(5))), ())
    assert [target.name for target in found] == ["h"]
    assert [line.split(":")[1].strip() for line in left_out] == ["flat", "same"]
    one = Target("a", np.array([1.0, 3.0, np.nan]), np.ones(3))
    other = Target("b", np.array([10.0, 10.0, 40.0]), np.ones(3))
    # a is −1, 1; b, of mean 20 and spread √200, is −0.707, −0.707, 1.414.
    expected = [(-1 - 0.5**0.5) / 2, (1 - 0.5**0.5) / 2, 2**0.5]
    np.testing.assert_allclose(together([one, other]).values, expected)
    with pytest.raises(InputError, match="add --references"):
        further_metrics(["rouge1(against=references)"], False)


def judged(truth: dict[str, float], noise: float = 0.5) -> tuple[list[Judged], Inputs]:
    """Summaries whose human score ``h``, of 1 to 5, is a sum of the inputs named; more is better in every column."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(DOCUMENTS * SYSTEMS, len(NAMES)))
    values[:, 0] = values[:, 1:3].mean(axis=1)
    y = sum(weight * values[:, list(NAMES).index(name)] for name, weight in truth.items())
    y = np.clip(3 + 0.7 * (y + noise * rng.normal(size=len(values))), 1, 5)
    made = []
    for i, value in enumerate(y):
        document, summary = f"document {i // SYSTEMS}", f"summary number {i} " + "word " * (i % 7)
        scores = {"h": float(value), "other": float(rng.integers(1, 6))}
        made.append(Judged(f"d{i // SYSTEMS}", f"s{i % SYSTEMS}", (document,), summary, scores=scores, dataset="made"))
    return made, Inputs(values, [None] * len(made), NAMES, 3, ())


@pytest.fixture(scope="module")
def result() -> FitResult:
    made, found = judged({"coverage": 1.0, "repeated_pairs": 0.7})
    return learn_from(made, targets_of(made, ["h"])[0], found, SETTINGS, ["a note"], ["coverage", "support"])


def test_what_people_go_by_is_found_and_measured(result: FitResult) -> None:
    (target,) = result.targets
    moved = weights(result, target.fit.weights)
    assert list(moved)[:2] == ["coverage", "repeated_pairs"]
    # More repetition is worse, though its column is turned.
    assert moved["repeated_pairs"] < -0.3 < 0.3 < moved["coverage"]
    assert (target.best, target.better) == ("coverage", True)
    assert (target.level, target.figure(FITTED).coefficient) == ("summary", "spearman")
    assert target.figure(FITTED).value > target.figure("coverage").value > target.figure("score").value  # type: ignore[operator]
    assert verdict(target).startswith("Better than coverage, the best of the score and aspects that it was fitted from")
    assert {f.metric for f in target.figures} >= {"words", "copied", "support"}
    assert {f.level for f in target.figures} == {"pooled", "summary", "system"}
    share, low, high = target.coverage
    assert low is not None
    assert high is not None
    assert 0.8 < low <= share <= high <= 1
    few, more = target.curve
    assert (few.documents, few.summaries, more.documents) == (5, 5 * SYSTEMS, 10)
    assert few.unfitted < few.mean < more.mean
    # The fitted score is where the unfitted one was, and spreads as far.
    columns, before = dict(zip(NAMES, result.inputs.values.T, strict=True)), result.inputs.values[:, 0]
    sums = result.fitted.offset + sum(weight * columns[name] for name, weight in result.fitted.score.items())
    assert (sums.mean(), sums.std()) == pytest.approx((before.mean(), before.std()))


def test_what_is_fitted_survives_its_file(result: FitResult) -> None:
    again = Fitted.from_plain(json.loads(json.dumps(asdict(result.fitted), allow_nan=False)))
    assert again == result.fitted
    assert again.documents == tuple(sorted(document_key(f"document {d}") for d in range(DOCUMENTS)))
    damaged = asdict(result.fitted)
    damaged["targets"]["h"].pop("scale")
    with pytest.raises(InputError, match="damaged"):
        Fitted.from_plain(damaged)


def test_the_page_and_the_figures(result: FitResult) -> None:
    page = fit_page(result)
    for part in ("Better than coverage", "repeated_pairs ×−", "<svg", "a note", "cross-validated", "documents"):
        assert part in page
    plain = json.loads(json.dumps(fit_json(result), allow_nan=False))
    assert plain["targets"][0]["recommended"] == "h"
    assert "documents" in enough(result.targets[0])
    told = in_words({"coverage": 0.8, "terms": 0.001, "repeated_pairs": -0.25})
    assert told == "coverage ×0.80, repeated_pairs ×−0.25, and 1 below ×0.02"


def test_one_aspect_is_recommended_where_it_is_all_there_is_and_what_is_missing_is_told() -> None:
    made, found = judged({"support": 1.0}, noise=1.0)
    found.values[4, 1] = np.nan
    found.reasons[4] = "the summary has no word"
    made[7] = replace(made[7], scores={"other": 1.0})
    (target,) = learn_from(made, targets_of(made, ["h"])[0], found, SETTINGS).targets
    assert (target.best, target.better) == ("support", False)
    assert verdict(target).endswith("use support.")
    # A trivial baseline that people agree with more than with either.
    values = {"words": 0.95, "copied": 0.9, "tf-recall": 0.1}
    figures = [replace(f, value=values.get(f.metric, f.value)) for f in target.figures]
    told = verdict(replace(target, figures=tuple(figures)))
    assert told.endswith("use support. Trivial baselines are above support: words 0.950, copied 0.900.")
    assert target.left_out == {"no human score": 1, "the summary has no word": 1}
    assert len(target.task.people) == len(made) - 2
