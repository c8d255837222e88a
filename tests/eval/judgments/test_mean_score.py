"""The plain mean of human scores: made where their scales agree, of whole rows alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from negsample.errors import InputError
from negsample.eval.agreement.correlate import load_sources
from negsample.eval.judgments import Unusable
from negsample.eval.judgments.mean_score import is_mean, with_means
from negsample.eval.tuning import load_tune_halves
from negsample.records import Judged


def judged(*scores: dict[str, float], dataset: str = "news") -> list[Judged]:
    return [
        Judged(f"d{n}", "s", ("A text.",), "Text.", (), each, dataset, "tune" if n < 2 else "report")
        for n, each in enumerate(scores)
    ]


def test_the_mean_is_over_all_scores_of_a_row() -> None:
    rows = judged({"a": 1, "b": 4.5}, {"a": 5, "b": 2}, {"a": 3})
    unusable = Unusable()
    found = with_means(rows, unusable)
    assert [row.scores.get("mean of 2") for row in found] == [2.75, 3.5, None]
    assert list(found[0].scores) == ["a", "b", "mean of 2"]
    assert not unusable.told
    # The rows that were given stay as they were.
    assert "mean of 2" not in rows[0].scores


def test_one_score_has_no_mean_and_nothing_is_told() -> None:
    unusable = Unusable()
    assert with_means(rows := judged({"a": 1}, {"a": 5}), unusable) == rows
    assert not unusable.told


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, 5), (0, 1)),  # ratings and shares
        ((1, 5), (1, 7)),
        ((1, 5), (0, 4)),
        ((1, 5), (12, 97)),
        ((1, 5), (2, 3)),  # too few of its values to tell
        ((1, 5), (3, 3)),
        ((-2.1, 1.9), (-1.8, 2.2)),  # standardised: no scale that raters use
        ((1, 5), (5, 500)),
    ],
)
def test_scales_that_differ_have_no_mean_and_it_is_told_once(first, second) -> None:
    unusable = Unusable()
    rows = judged({"a": first[0], "b": second[0]}, {"a": first[1], "b": second[1]})
    assert with_means(rows, unusable) == rows
    (told,) = unusable.told
    assert told.startswith("no mean of the human scores of news, for their scales differ or can't be told: a ")
    assert told.endswith(f"b {second[0]:g} to {second[1]:g}")


@pytest.mark.parametrize("ends", [(0, 1), (1, 5), (1.33, 4.67), (0, 10), (3, 96), (-0.9, 0.8)])
def test_scales_that_agree_have_one(ends) -> None:
    unusable = Unusable()
    low, high = ends
    found = with_means(judged({"a": low, "b": high, "c": low}, {"a": high, "b": low, "c": high}), unusable)
    assert found[0].scores["mean of 3"] == pytest.approx((2 * low + high) / 3)
    assert not unusable.told


def test_each_data_set_of_a_file_has_its_own() -> None:
    unusable = Unusable()
    one, other = judged({"a": 1, "b": 5}, {"a": 5, "b": 1}), judged({"a": 0, "c": 9}, {"a": 1, "c": 2}, dataset="other")
    found = with_means([*one, *other], unusable)
    assert ["mean of 2" in row.scores for row in found] == [True, True, False, False]
    assert len(unusable.told) == 1


def test_a_score_of_that_name_is_left_alone() -> None:
    rows = judged({"mean of 2": 1, "b": 5}, {"mean of 2": 5, "b": 1})
    assert with_means(rows, Unusable()) == rows


def test_its_name_is_known() -> None:
    assert is_mean("mean of 4")
    assert not is_mean("mean of all")
    assert not is_mean("meaning")


def _write(path: Path, rows: list[Judged]) -> str:
    records = [
        {
            "document_id": row.document_id,
            "system": row.system,
            "document": row.documents[0],
            "summary": row.summary,
            "scores": row.scores,
            "half": row.half,
        }
        for row in (replace(row, documents=(f"A text {n}.",)) for n, row in enumerate(rows))
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


def test_correlate_and_tune_know_the_mean(tmp_path: Path) -> None:
    path = _write(tmp_path / "j.jsonl", judged({"a": 1, "b": 4}, {"a": 5, "b": 2}, {"a": 3, "b": 5}))
    (source,) = load_sources([path])
    assert [row.scores["mean of 2"] for row in source.rows] == [2.5, 3.5, 4]
    (half,) = load_tune_halves([(path, "mean of 2")])
    assert [row.scores["mean of 2"] for row in half.rows] == [2.5, 3.5]


def test_correlate_and_tune_tell_why_there_is_none(tmp_path: Path) -> None:
    path = _write(tmp_path / "j.jsonl", judged({"a": 1, "b": 0.4}, {"a": 5, "b": 1}, {"a": 3, "b": 0}))
    (source,) = load_sources([path])
    assert [line for line in source.missing if "no mean of the human scores" in line] == list(source.missing)
    assert len(source.missing) == 1
    with pytest.raises(InputError, match="no mean of the human scores"):
        load_tune_halves([(path, "mean of 2")])
