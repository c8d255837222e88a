"""Choosing the best candidate of each document, on values worked out by hand."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import RecordError
from negsample.scoring.files import Choice, Settings, best, select_best, table
from negsample.scoring.scorer import make_metric


def chosen(*candidates: tuple[str, float | None]) -> list[Choice]:
    values = [math.nan if value is None else value for _, value in candidates]
    records = [{"document": text, "n": n} for n, (text, _) in enumerate(candidates)]
    return best(zip(records, values, strict=True), "document")


def facts(choices: list[Choice]) -> list[tuple]:
    return [(c.record["n"], c.candidates, None if math.isnan(c.margin) else c.margin) for c in choices]


def test_the_highest_of_each_document_with_its_lead() -> None:
    # Documents come back in the order of their first candidate; white space doesn't make another document.
    found = chosen(("a", 0.25), ("b", 0.5), ("a ", 0.75), ("a", 0.5), ("c", 0.5))
    assert facts(found) == [(2, 3, 0.25), (1, 1, None), (4, 1, None)]
    assert facts(chosen(("a", 0.5), ("a", 0.5), ("a", 0.25))) == [(0, 3, 0.0)]
    assert facts(best([({"n": 0}, 0.5), ({"n": 1}, 0.5)], "document")) == [(0, 1, None), (1, 1, None)]


def test_several_documents_are_one_set() -> None:
    rows = [{"documents": ["a", "b"], "n": 0}, {"documents": ["a", "c"], "n": 1}, {"documents": ["a", "b"], "n": 2}]
    assert facts(best(zip(rows, [0.5, 0.5, 0.75], strict=True), "document")) == [(2, 2, 0.25), (1, 1, None)]


def test_what_is_skipped_is_no_candidate_and_what_is_replaced_is_told(tmp_path) -> None:
    rows = [
        {"document": "a", "summary": "x y", "score": 9, "form": 3, "form_percentile": 0.5, "margin": "mine"},
        {"document": "a", "summary": "x"},
        {"document": "a", "summary": "\u200b"},
        {"document": "b", "summary": " "},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scorer = make_metric("words")
    with pytest.raises(RecordError, match="line 3: field 'summary' is blank"):
        select_best(scorer, table(str(tmp_path / "in.jsonl")))
    settings = Settings(on_bad="skip")
    (choice,), tally = select_best(scorer, table(str(tmp_path / "in.jsonl")), settings=settings)
    assert choice.record == {"document": "a", "summary": "x y", "score": 2, "margin": 1, "candidates": 2}
    assert (tally.n, tally.bad) == (2, {"field 'summary' is blank": 2})
    assert (tally.replaced, tally.removed) == ({"score": 1, "margin": 1}, {"form": 1, "form_percentile": 1})
    settings = Settings(on_bad="skip", output_field="w")
    (choice,), tally = select_best(scorer, table(str(tmp_path / "in.jsonl")), settings=settings)
    assert choice.record == {**rows[0], "w": 2, "w_margin": 1, "w_candidates": 2}
    assert not tally.replaced + tally.removed


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 3))), min_size=1))
def test_as_a_sort_of_each_documents_candidates_says(candidates) -> None:
    found = {c.record["document"]: c for c in chosen(*candidates)}
    assert list(found) == list(dict.fromkeys(text for text, _ in candidates))
    for text, choice in found.items():
        own = [(value, n) for n, (name, value) in enumerate(candidates) if name == text]
        order = sorted(own, key=lambda pair: (pair[0] is None, -(pair[0] or 0), pair[1]))
        good = [value for value, _ in order if value is not None]
        assert facts([choice]) == [(order[0][1], len(own), good[0] - good[1] if len(good) > 1 else None)]
