"""Choosing the best candidate of each document, on values worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import RecordError
from negsample.io.read import Row
from negsample.scoring.outcomes import Outcome
from negsample.scoring.select import Choice, best


def chosen(*candidates: tuple[str, float | None], by: str = "score") -> list[Choice]:
    rows = [Row(f"line {n}", {"document": text, "n": n}) for n, (text, _) in enumerate(candidates)]
    outcomes = [Outcome(value, aspects={"form": None if value is None else 1 - value}) for _, value in candidates]
    return best(zip(rows, outcomes, strict=True), "document", by)


def facts(choices: list[Choice]) -> list[tuple]:
    return [(c.row.fields["n"], c.candidates, c.margin) for c in choices]


def test_the_highest_of_each_document_with_its_lead() -> None:
    # Documents come back in the order of their first candidate; white space doesn't make another document.
    found = chosen(("a", 0.25), ("b", 0.5), ("a ", 0.75), ("a", 0.5), ("c", 0.5))
    assert facts(found) == [(2, 3, 0.25), (1, 1, None), (4, 1, None)]
    assert facts(chosen(("a", 0.25), ("a", 0.75), by="form")) == [(0, 2, 0.5)]


def test_the_first_of_equal_ones() -> None:
    assert facts(chosen(("a", 0.5), ("a", 0.5), ("a", 0.25))) == [(0, 3, 0.0)]


def test_a_candidate_without_a_value_is_never_preferred() -> None:
    assert facts(chosen(("a", None), ("a", 0.1), ("a", None))) == [(1, 3, None)]
    assert facts(chosen(("a", None), ("a", None))) == [(0, 2, None)]


def test_what_is_written() -> None:
    (choice,) = chosen(("a", 0.25), ("a", 0.75))
    assert choice.fields() == {
        "document": "a", "n": 1, "score": 0.75, "aspects": {"form": 0.25}, "margin": 0.5, "candidates": 2,
    }  # fmt: skip
    with pytest.raises(RecordError, match="'margin' is what select adds"):
        Choice(Row("line 1", {"margin": 1}), Outcome(0.5)).fields()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 3))), min_size=1))
def test_as_a_sort_of_each_documents_candidates_says(candidates) -> None:
    found = {c.row.fields["document"]: c for c in chosen(*candidates)}
    assert list(found) == list(dict.fromkeys(text for text, _ in candidates))
    for text, choice in found.items():
        own = [(value, n) for n, (name, value) in enumerate(candidates) if name == text]
        order = sorted(own, key=lambda pair: (pair[0] is None, -(pair[0] or 0), pair[1]))
        assert choice.row.fields["n"] == order[0][1]
        assert choice.candidates == len(own)
        good = [value for value, _ in order if value is not None]
        assert choice.margin == (good[0] - good[1] if len(good) > 1 else None)
