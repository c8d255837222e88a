import numpy as np
import pytest

from negsample.negatives import vocabulary as module
from negsample.negatives.vocabulary import MAX_LETTERS, VocabularyCounter, bare
from negsample.seeds import generator


def vocabulary(*texts, draw="uniform"):
    counter = VocabularyCounter()
    for text in texts:
        counter.add(text)
    return counter.finish(draw)


def test_bare():
    # The vowel sign at the end of a Hindi word is no punctuation.
    words = ['"Paris,"', "U.S.", "don't", "(2.5%)", "—", "…", "«où»", "नदी।", ""]
    assert [bare(word) for word in words] == ["Paris", "U.S", "don't", "2.5", "", "", "où", "नदी", ""]


def test_types_are_counted_once_and_sorted_and_long_tokens_are_no_words():
    found = vocabulary("Rain, rain and snow.", "snow — and (ice)!", "x" * (MAX_LETTERS + 1))
    assert found.words == ("Rain", "and", "ice", "rain", "snow")


# Binomial, 8,000 draws: sd at most 38.7.
@pytest.mark.parametrize(("draw", "often", "seldom"), [("uniform", 2000, 2000), ("frequency", 5600, 800)])
def test_draws_are_even_over_types_or_over_words(draw, often, seldom):
    drawn = vocabulary("a a a a a a a b c d", draw=draw).draw(8000, generator(draw))
    assert abs(drawn.count("a") - often) < 200
    assert all(abs(drawn.count(word) - seldom) < 200 for word in "bcd")


def test_draw_unlike_avoids_case_and_punctuation_variants():
    found = vocabulary("Rain RAIN rain snow")
    assert {found.draw_unlike("rain,", generator(seed)) for seed in range(40)} == {"snow"}
    assert vocabulary("Rain rain").draw_unlike("RAIN.", generator(0)) is None


def test_a_bounded_vocabulary_depends_on_neither_order_nor_frequency(monkeypatch):
    monkeypatch.setattr(module, "MAX_TYPES", 1000)
    texts = [" ".join(f"w{number}" for number in range(start, start + 700)) for start in range(0, 40_000, 350)]
    forward, backward = (vocabulary(*order, draw="frequency") for order in (texts, texts[::-1]))
    assert len(forward.words) == 1000
    assert forward.words == backward.words
    assert np.array_equal(forward.cumulative, backward.cumulative)
    # Each number stands in two texts, but the first and the last 350 in one.
    exact = [sum(start <= int(word[1:]) < start + 700 for start in range(0, 40_000, 350)) for word in forward.words]
    assert np.diff(forward.cumulative, prepend=0).tolist() == exact
