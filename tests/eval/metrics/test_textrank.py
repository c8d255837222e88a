"""TextRank: PageRank against networkx, similarities and scores by hand, hostile input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.eval.metrics.baselines import MOST_SENTENCES, pagerank, similarities
from negsample.scoring.scorer import Item, make_metric

DOCUMENT = "The river rose in the night. The river left the town wet. Bakers opened late. The town dried in the sun."


def value(spec: str, document: str, summary: str) -> float:
    return float(make_metric(spec).score([Item(document, summary)]).scores[0])


def test_pagerank_by_hand() -> None:
    # A star 1–0–2 of equal weights: p1 = 0.05 + 0.85·p0/2 with p0 + 2·p1 = 1, so p1 = 0.475/1.85.
    star = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    side = 0.475 / 1.85
    assert pagerank(star) == pytest.approx([1 - 2 * side, side, side], abs=1e-9)
    assert pagerank(np.zeros((4, 4))) == pytest.approx([0.25] * 4)
    assert pagerank(np.zeros((1, 1))) == pytest.approx([1.0])
    assert pagerank(np.zeros((0, 0))).shape == (0,)


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([0.0, 0.0, 0.3, 1.0, 7.5]), min_size=n, max_size=n), min_size=n, max_size=n
        )
    ),
    st.sampled_from([0.5, 0.85]),
)
def test_pagerank_equals_networkx(rows: list[list[float]], damping: float) -> None:
    networkx = pytest.importorskip("networkx")
    weights = np.array(rows)
    graph = networkx.from_numpy_array(weights, create_using=networkx.DiGraph)
    expected = networkx.pagerank(graph, alpha=damping, tol=1e-13, max_iter=1000, weight="weight")
    found = pagerank(weights, damping)
    assert found == pytest.approx([expected[node] for node in range(len(weights))], abs=1e-9)
    assert found.sum() == pytest.approx(1.0)


def test_similarity_is_the_papers_formula() -> None:
    sentences = [["the", "river", "rose"], ["the", "river", "left", "the", "town"], ["sun"], ["sun"]]
    found = similarities(sentences, sentences)
    # Two common types; three and five tokens.
    assert found[0, 1] == pytest.approx(2 / (math.log(3) + math.log(5)))
    assert found[0, 2] == 0.0
    # ln 1 + ln 1 = 0: no value, taken as 0.
    assert found[2, 3] == 0.0
    assert np.array_equal(found, found.T)


def test_inserted_equals_networkx_on_the_whole_graph() -> None:
    networkx = pytest.importorskip("networkx")
    document = [["the", "river", "rose"], ["the", "river", "fell"], ["bakers", "slept"]]
    summary = [["the", "river"], ["river", "bakers"]]
    graph = networkx.Graph()
    graph.add_nodes_from(range(5))
    everything = document + summary
    for i in range(5):
        for j in range(i):
            shared = len(set(everything[i]) & set(everything[j]))
            if shared and j < 3:
                graph.add_edge(i, j, weight=shared / (math.log(len(everything[i])) + math.log(len(everything[j]))))
    ranks = networkx.pagerank(graph, tol=1e-13, max_iter=1000)
    text, short = ". ".join(map(" ".join, document)).title(), ". ".join(map(" ".join, summary)).title()
    assert value("textrank", text, short) == pytest.approx(5 * (ranks[3] + ranks[4]) / 2, abs=1e-8)


def test_a_summary_cannot_vote_for_itself() -> None:
    apart = value("textrank", DOCUMENT, "Pelicans danced.")
    together = value("textrank", DOCUMENT, "Pelicans danced. Pelicans danced well. Pelicans danced again.")
    central = value("textrank", DOCUMENT, "The river left the town.")
    assert together < 0.5
    assert apart < 0.5
    assert central > 1


def test_hostile_input() -> None:
    many = " ".join(f"Word{n} stands here." for n in range(MOST_SENTENCES + 1))
    long = " ".join(["river town"] * 25_000)
    items = [
        Item(DOCUMENT, ""), Item("", "A river."), Item(DOCUMENT, "river"), Item("river", "river"), Item(many, "Here."),
        Item(DOCUMENT, DOCUMENT), Item(DOCUMENT, long), Item("?!", "..."),
    ]  # fmt: skip
    scores = make_metric("textrank").score(items)
    assert [reason is None for reason in scores.reasons] == [False, False, True, True, False, True, True, False]
    assert scores.reasons[4] == "more than 4000 sentences"
    assert np.isfinite(scores.scores[[2, 3, 5, 6]]).all()
    # One at a time gives the same numbers.
    alone = [make_metric("textrank").score([item]).scores[0] for item in items]
    assert np.array_equal(scores.scores, alone, equal_nan=True)
