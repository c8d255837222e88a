"""People's scores as what is to be fitted, and the metrics that a fit may weigh."""

import json
from pathlib import Path

import numpy as np
import pytest

from negsample.errors import InputError
from negsample.eval.judgments import load_judgments
from negsample.eval.learn.inputs import Target, further_metrics, targets_of, together
from negsample.records import Judged


def rows(
    values: list[float | None], documents: int = 5, ratings: list[tuple[float, ...]] | None = None
) -> list[Judged]:
    return [
        Judged(
            str(i % documents),
            str(i),
            ("d",),
            "s",
            scores={} if value is None else {"h": value},
            ratings={"h": ratings[i]} if ratings else {},
        )
        for i, value in enumerate(values)
    ]


def test_missing_scores_are_missing() -> None:
    (found,), _ = targets_of(rows([1, 2, None, 4, 5, 6]), ())
    np.testing.assert_array_equal(found.values, [1, 2, np.nan, 4, 5, 6])
    np.testing.assert_array_equal(found.weights, 1)


def test_annotators_who_agree_count_more(tmp_path: Path) -> None:
    given = [(1, 1), (1, 3), (2, 4), (3, 5), (5, 5)]
    (found,), _ = targets_of(rows([1, 2, 3, 4, 5], ratings=given), ())
    # Variances of the means: 0, 1, 1, 1, 0; their mean is 0.6: weights in proportion to 1/0.6 and 1/1.6.
    expected = 1 / (0.6 + np.array([0, 1, 1, 1, 0]))
    np.testing.assert_allclose(found.weights, expected / expected.mean())
    path = tmp_path / "judged.jsonl"
    record = {"document_id": "a", "system": "s", "document": "d", "summary": "t", "scores": {"h": [1, 2, 6], "g": 3}}
    path.write_text(json.dumps(record) + "\n")
    (row,) = load_judgments(str(path))
    assert (row.scores, row.ratings) == ({"h": 3.0, "g": 3.0}, {"h": (1.0, 2.0, 6.0)})


@pytest.mark.parametrize(
    ("values", "documents", "names", "told"),
    [
        ([1, 2], 2, [], "h: 2 judged summaries of 2 documents"),
        ([1, 2, 3, 4, 5], 1, [], "h: 5 judged summaries of 1 documents"),
        ([3, 3, 3, 3, 3], 5, [], "h: all 5 judged summaries"),
        ([1, 2, 3, 4, 5], 5, ["hh"], "--target hh"),
    ],
)
def test_what_can_not_be_fitted_is_told(values: list[float], documents: int, names: list[str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        targets_of(rows(values, documents), names)


def test_one_score_that_does_not_vary_is_left_out_and_told() -> None:
    judged = [Judged(str(i), str(i), ("d",), "s", scores={"flat": 3.0, "h": float(i), "same": 1.0}) for i in range(5)]
    found, left_out = targets_of(judged, ())
    assert [target.name for target in found] == ["h"]
    assert [line.split(":")[1].strip() for line in left_out] == ["flat", "same"]
    with pytest.raises(InputError, match="flat: all 5"):
        targets_of(judged, ["h", "flat"])


def test_the_overall_score_is_fitted_to_the_mean_in_units_of_spread() -> None:
    one = Target("a", np.array([1.0, 3.0, np.nan]), np.ones(3))
    other = Target("b", np.array([10.0, 10.0, 40.0]), np.ones(3))
    # a is −1, 1; b, of mean 20 and spread √200, is −0.707, −0.707, 1.414.
    expected = [(-1 - 0.5**0.5) / 2, (1 - 0.5**0.5) / 2, 2**0.5]
    np.testing.assert_allclose(together([one, other]).values, expected)


def test_a_metric_that_needs_references_must_be_asked_for() -> None:
    with pytest.raises(InputError, match="add --references"):
        further_metrics(["rouge1(against=references)"], False)
    assert [metric.name for metric in further_metrics(["words", "words"], False)] == ["words"]
