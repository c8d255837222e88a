import numpy as np
import pytest

from negsample.errors import InputError
from negsample.negatives import vocabulary
from negsample.negatives.vocabulary import MAX_LETTERS, bare, vocabulary_of
from negsample.seeds import generator


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ('"Paris,"', "Paris"),
        ("U.S.", "U.S"),
        ("don't", "don't"),
        ("(2.5%)", "2.5"),
        ("—", ""),
        ("…", ""),
        ("«où»", "où"),
        # The vowel sign at the end of a Hindi word is no punctuation.
        ("नदी।", "नदी"),
        ("", ""),
    ],
)
def test_bare(word, expected):
    assert bare(word) == expected


def test_types_are_counted_once_and_sorted():
    vocabulary = vocabulary_of(["Rain, rain and snow.", "snow — and (ice)!"])
    assert vocabulary.words == ("Rain", "and", "ice", "rain", "snow")


def test_long_tokens_are_no_words():
    assert vocabulary_of(["short " + "x" * (MAX_LETTERS + 1)]).words == ("short",)


def test_uniform_draws_are_even_over_types():
    vocabulary = vocabulary_of(["a a a a a a a b c d"])
    drawn = vocabulary.draw(8000, generator("uniform"))
    counts = {word: drawn.count(word) for word in "abcd"}
    # Binomial(8000, 1/4): sd 38.7.
    assert all(abs(count - 2000) < 200 for count in counts.values())


def test_frequent_words_are_drawn_by_their_counts():
    vocabulary = vocabulary_of(["a a a a a a a b c d"], draw="frequency")
    drawn = vocabulary.draw(8000, generator("frequency"))
    assert abs(drawn.count("a") - 5600) < 200
    assert all(abs(drawn.count(word) - 800) < 140 for word in "bcd")


def test_draw_unlike_avoids_case_and_punctuation_variants():
    vocabulary = vocabulary_of(["Rain RAIN rain snow"])
    assert {vocabulary.draw_unlike("rain,", generator(seed)) for seed in range(40)} == {"snow"}
    assert vocabulary_of(["Rain rain"]).draw_unlike("RAIN.", generator(0)) is None


def test_unknown_draw_is_refused():
    with pytest.raises(InputError, match="uniform or frequency"):
        vocabulary_of(["a"], draw="zipf")


def test_a_bounded_vocabulary_depends_on_neither_order_nor_frequency(monkeypatch):
    monkeypatch.setattr(vocabulary, "MAX_TYPES", 1000)
    texts = [" ".join(f"w{number}" for number in range(start, start + 700)) for start in range(0, 40_000, 350)]
    forward = vocabulary_of(texts, draw="frequency")
    backward = vocabulary_of(reversed(texts), draw="frequency")
    assert len(forward.words) == 1000
    assert forward.words == backward.words
    counts = np.diff(forward.cumulative, prepend=0)
    assert np.array_equal(forward.cumulative, backward.cumulative)
    # Each number stands in two texts, but the first and the last 350 in one.
    exact = [sum(start <= int(word[1:]) < start + 700 for start in range(0, 40_000, 350)) for word in forward.words]
    assert counts.tolist() == exact
