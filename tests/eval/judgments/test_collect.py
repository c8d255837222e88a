"""The plain mean of human scores: made where their scales agree, of whole rows alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from negsample.errors import InputError
from negsample.eval.judgments import Unusable, load_sources
from negsample.eval.judgments.collect import is_mean, with_means
from negsample.eval.tuning import load_tune_half
from negsample.records import Judged


def judged(*scores: dict[str, float], dataset: str = "news") -> list[Judged]:
    return [
        Judged(f"d{n}", "s", (f"A text {n}.",), "Text.", (), each, dataset, "tune" if n < 2 else "report")
        for n, each in enumerate(scores)
    ]


def test_the_mean_is_over_all_scores_of_a_row() -> None:
    rows, unusable = judged({"a": 1, "b": 4.5}, {"a": 5, "b": 2}, {"a": 3}), Unusable()
    other = judged({"a": 0, "c": 9}, {"a": 1, "c": 2}, dataset="other")
    found = with_means([*rows, *other], unusable)
    assert [row.scores.get("mean of 2") for row in found] == [2.75, 3.5, None, None, None]
    # A data set of a file has its own mean; the rows that were given stay as they were.
    assert len(unusable.told) == 1
    assert "mean of 2" not in rows[0].scores
    assert is_mean("mean of 2")
    assert not is_mean("mean of all")
    # So have its annotators, of whom one gave no "a".
    rated = replace(rows[0], ratings={"a": (0, 2, None), "b": (4, 5, 5)})
    assert with_means([rated, *rows[1:2]], Unusable())[0].ratings["mean of 2"] == (2, 3.5, None)
    for alone in (judged({"a": 1}, {"a": 5}), judged({"mean of 2": 1, "b": 5}, {"mean of 2": 5, "b": 1})):
        unusable = Unusable()
        assert with_means(alone, unusable) == alone
        assert not unusable.told


@pytest.mark.parametrize(
    "second",
    # Shares, other ratings, too few values to tell, standardised (beside −2 to 2 as well), no scale that raters use.
    [(0, 1), (1, 7), (0, 4), (12, 97), (2, 3), (3, 3), (-1.8, 2.2), (5, 500)],
)
def test_scales_that_differ_have_no_mean_and_it_is_told_once(second: tuple[float, float]) -> None:
    unusable = Unusable()
    rows = judged({"a": 1, "b": second[0]}, {"a": 5, "b": second[1]})
    assert with_means(rows, unusable) == rows
    (told,) = unusable.told
    assert told.endswith(f"a 1 to 5, b {second[0]:g} to {second[1]:g}")


@pytest.mark.parametrize("ends", [(0, 1), (1, 5), (1.33, 4.67), (0, 10), (3, 96), (-0.9, 0.8)])
def test_scales_that_agree_have_one(ends: tuple[float, float]) -> None:
    low, high = ends
    found = with_means(judged({"a": low, "b": high, "c": low}, {"a": high, "b": low, "c": high}), Unusable())
    assert found[0].scores["mean of 3"] == pytest.approx((2 * low + high) / 3)


def test_codings_of_one_another_have_no_mean() -> None:
    rows, unusable = judged(*({"mark": mark, "again": min(mark, 4)} for mark in (1, 2, 3, 4, 5))), Unusable()
    assert with_means(rows, unusable) == rows
    assert unusable.told == ["no mean of the human scores of news, for mark and again say the same (ρ 0.97)"]


@pytest.mark.parametrize("b", [(4, 2, 5), (0.4, 1, 0)])
def test_correlate_and_tune_know_the_mean_or_tell_why_there_is_none(tmp_path: Path, b: tuple[float, ...]) -> None:
    rows = judged(*({"a": a, "b": other} for a, other in zip((1, 5, 3), b, strict=True)))
    records = [
        {"document_id": row.document_id, "system": "s", "document": row.documents[0], "summary": "Text."}
        | {"scores": row.scores, "half": row.half}
        for row in rows
    ]
    (tmp_path / "j.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    path = str(tmp_path / "j.jsonl")
    (source,) = load_sources([path])
    if b[0] == 4:
        assert [row.scores["mean of 2"] for row in source.rows] == [2.5, 3.5, 4]
        half = load_tune_half(path, "mean of 2")
        assert [row.scores["mean of 2"] for row in half.rows] == [2.5, 3.5]
    else:
        assert ["no mean of the human scores" in line for line in source.missing] == [True]
        with pytest.raises(InputError, match="no mean of the human scores"):
            load_tune_half(path, "mean of 2")
