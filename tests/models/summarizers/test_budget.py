"""Whole sentences within a budget."""

import numpy as np
import pytest

from negsample.errors import InputError
from negsample.models.summarizers import Budget, best_choices, lead, ranked


def test_a_sentence_that_does_not_fit_is_passed_over() -> None:
    assert Budget(words=10).fill([0, 1, 2, 3], [4, 9, 5, 1]) == [0, 2, 3]
    assert Budget(words=10).fill([1, 0, 2, 3], [4, 9, 5, 1]) == [1, 3]
    assert Budget(sentences=2).fill([3, 1, 0], [4, 9, 5, 1]) == [3, 1]


def test_where_nothing_fits_the_shortest_is_taken() -> None:
    assert Budget(words=2).fill([0, 1, 2], [9, 4, 5]) == [1]


def test_a_budget_is_words_or_sentences() -> None:
    for wrong in ({}, {"words": 3, "sentences": 1}, {"words": 0}):
        with pytest.raises(InputError):
            Budget(**wrong)


def test_the_lead_and_a_ranking_stand_in_the_documents_order() -> None:
    document = "One two three. Four five six seven. Eight nine."
    assert lead(document, Budget(sentences=2)) == "One two three. Four five six seven."
    assert lead(document, Budget(words=5)) == "One two three. Eight nine."
    assert ranked(document, Budget(sentences=2), lambda found: [2, 0, 1]) == "One two three. Eight nine."


def test_the_best_choice_takes_what_raises_the_score_most_and_stops_where_nothing_does() -> None:
    worth = {"a": 1.0, "b": 3.0, "c": -2.0, "d": 2.0}
    calls = []

    def score(which: list[int], summaries: list[str]) -> np.ndarray:
        calls.append(len(which))
        return np.array([sum(worth[letter] for letter in text.split()) for text in summaries])

    documents = [(["a", "b", "c", "d"], [1, 1, 1, 1]), (["c", "d"], [1, 1])]
    assert best_choices(documents, Budget(words=3), score) == [[1, 3, 0], [1]]
    assert calls == [6, 4, 2]
    assert best_choices(documents, Budget(sentences=1), score) == [[1], [1]]
    # A score that is not defined is no gain.
    assert best_choices(documents[:1], Budget(words=3), lambda which, texts: np.full(len(texts), np.nan)) == [[]]
