"""Trivial baselines and novelty: values by hand, laws, hostile input, and multi-document rows."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests_support import SHARED_DATA

from negsample.eval.metrics.base import STOP_WORDS, content_words, score_judged, word_tokens
from negsample.records import Judged
from negsample.scoring.scorer import Columns, Item, Scorer, collect, make_metric

DATA = SHARED_DATA / "human"
DOCUMENT = "The storm closed the port. Ships waited for the storm to pass. Crews slept. Nobody sailed."
TRIVIAL = ("words", "copied", "tf-recall", "lead-overlap")


def one(spec: str, summary: str, document: str = DOCUMENT, *references: str) -> float:
    return float(make_metric(spec).score([Item(document, summary, references)]).scores[0])


def test_words() -> None:
    assert one("words", "a  b\nc .") == 4.0
    assert one("words", "") == 0.0


def test_copied() -> None:
    # storm, closed, port stand in the document, "shop" does not.
    assert one("copied", "Storm closed shop, port.") == 3 / 4
    # Tokens are counted, not types: "storm storm shop" is 2 of 3.
    assert one("copied", "storm storm shop") == pytest.approx(2 / 3)
    # Bigrams: "the storm" and "storm closed" are there, "closed shop" is not.
    assert one("copied(n=2)", "the storm closed shop") == pytest.approx(2 / 3)
    assert np.isnan(one("copied(n=2)", "storm"))


def test_tf_recall() -> None:
    # Content words: storm 2, closed, port, ships, waited, pass, crews, slept, sailed: 10 ("nobody", "to" are not).
    assert sorted(content_words(DOCUMENT)) == sorted(
        ["storm", "closed", "port", "ships", "waited", "storm", "pass", "crews", "slept", "sailed"]
    )
    assert one("tf-recall", "The storm, the storm and the ships.") == 3 / 10
    assert one("tf-recall", "the of and") == 0.0
    assert one("tf-recall", DOCUMENT) == 1.0
    assert np.isnan(one("tf-recall", "storm", "the of and"))


def test_lead_overlap() -> None:
    # The first three sentences have 5 + 7 + 2 = 14 words; the summary has "the", "storm" and "crews" of them.
    assert one("lead-overlap", "The storm. Crews sailed.") == 3 / 14
    # Clipped: one "closed" in the lead.
    assert one("lead-overlap", "closed closed closed") == 1 / 14


def test_novelty() -> None:
    # Distinct unigrams storm, closed, shop: one of three is new.
    assert one("novelty1", "storm closed shop storm") == pytest.approx(1 / 3)
    # Bigrams: "storm closed" is old; "closed shop" and "shop storm" are new.
    assert one("novelty2", "storm closed shop storm") == pytest.approx(2 / 3)
    # With a reference of 8 words the 4-word summary gets half; two references of 8 and 4 words: 4/6.
    assert one("novelty1", "storm closed shop storm", DOCUMENT, "a b c d e f g h") == pytest.approx(1 / 6)
    assert one("novelty1", "storm closed shop storm", DOCUMENT, "a b c d e f g h", "a b c d") == pytest.approx(2 / 9)
    assert one("novelty1(length=none)", "storm closed shop storm", DOCUMENT, "a b c d e f g h") == pytest.approx(1 / 3)
    assert np.isnan(one("novelty4", "one two three"))


WORD = st.sampled_from(["storm", "port", "the", "ships", "of", "waited", "Кот", "é", "shop", "7"])
TEXT = st.lists(WORD, min_size=1, max_size=12).map(" ".join)


@given(document=TEXT, summary=TEXT)
def test_ranges_and_complement(document: str, summary: str) -> None:
    for spec in ("copied", "tf-recall", "lead-overlap", "novelty1(length=none)"):
        value = one(spec, summary, document)
        assert np.isnan(value) or 0.0 <= value <= 1.0
    assert one("copied", summary, f"{document} {summary}") == 1.0
    assert one("novelty1(length=none)", summary, f"{document} {summary}") == 0.0


@given(document=TEXT, summary=TEXT, more=TEXT)
def test_a_longer_summary_never_names_less(document: str, summary: str, more: str) -> None:
    for spec in ("tf-recall", "lead-overlap", "words"):
        short, long = one(spec, summary, document), one(spec, f"{summary} {more}", document)
        assert np.isnan(short) or long >= short


def test_stop_words_are_lower_case_single_tokens() -> None:
    assert all(word_tokens(word) == [word] for word in STOP_WORDS)
    assert {"the", "of", "and", "is"} <= STOP_WORDS
    assert not {"government", "new", "said", "two"} & STOP_WORDS


# --- several documents


def test_score_judged_is_the_mean_over_documents() -> None:
    rows = [
        Judged("d", "s", ("storm port", "port", "ship"), "port"),
        Judged("d", "t", ("storm",), "storm"),
        Judged("d", "u", ("storm", "the of"), "storm"),
    ]
    scores = score_judged(make_metric("tf-recall"), rows)
    assert scores.scores[:2] == pytest.approx([(0.5 + 1 + 0) / 3, 1.0])
    # One of the documents has no content word: missing, with the reason, not a mean over the others.
    assert np.isnan(scores.scores[2])
    assert scores.reasons[2] == "the document has no content words"


def test_score_judged_reads_references_once() -> None:
    calls: list[Item] = []

    def score(items: Sequence[Item]) -> Columns:
        calls.extend(items)
        return collect(0.0 for _ in items)

    rows = [Judged("d", "s", tuple("abcdefghij"), "x", ("ref",)), Judged("d", "t", ("a", "b"), "x")]
    score_judged(Scorer("m", "m", True, frozenset(), score), rows)
    assert len(calls) == 1 + 2
    calls.clear()
    score_judged(Scorer("m", "m", True, frozenset({"document"}), score), rows)
    assert len(calls) == 10 + 2


def test_not_finite_is_missing() -> None:
    scores = collect([1.0, float("inf"), "a reason"])
    assert scores.reasons == [None, "the value is not finite", "a reason"]
    assert np.isnan(scores.scores[1:]).all()
