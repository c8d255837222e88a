import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.models.align.words import TermWeights, pieces, read_words, stem


class Vocabulary:
    """Stands for a tokenizer: "the" is the most frequent word, then "of", "said", "coin"."""

    def get_vocab(self) -> dict[str, int]:
        return {"[PAD]": 0, "a": 3, "the": 5, "of": 6, "said": 10, "coin": 105}


def test_weights_rise_from_the_most_frequent_word_to_the_unknown_one() -> None:
    weigh = TermWeights(Vocabulary())
    found = [weigh(word) for word in ("a", "the", "of", "said", "coin", "hadrian", "7")]
    assert found[:2] == [0.0, 0.0]
    assert found == sorted(found)
    assert found[-2:] == [1.0, 1.0]
    # rank 100 of 100: (log 101 / log 101)²; rank 1: (log 2 / log 101)².
    assert weigh("coin") == pytest.approx(1.0)
    assert weigh("of") == pytest.approx((np.log(2) / np.log(101)) ** 2)
    assert weigh("said's") == weigh("said")


def test_stems_bring_possessives_and_plurals_together() -> None:
    assert {stem(word) for word in ("Bank", "banks", "bank's", "Banks’", "BANKS")} == {"bank"}
    assert [stem(word) for word in ("glass", "bus", "this", "gas")] == ["glass", "bus", "this", "gas"]


def test_words_of_a_sentence() -> None:
    words = read_words("The museum paid Ada 1,600 pounds in 1998.", lambda word: float(len(word) > 3))
    assert words.forms == ("the", "museum", "paid", "ada", "1", "600", "pound", "in", "1998")
    assert words.facts.tolist() == [False, False, False, True, True, True, False, False, True]
    assert words.weights.tolist() == [0, 1, 1, 0, 0, 0, 1, 0, 1]
    assert words.ends
    assert [words.text[begin:stop] for begin, stop in words.spans][3:6] == ["Ada", "1", "600"]


def test_numbers_are_the_same_however_they_are_spaced() -> None:
    one, other = (
        read_words(text, lambda _: 1.0).forms for text in ("It rose 1,600.5 points", "It rose 1 , 600 . 5 points")
    )
    assert one == other


def test_scripts_without_spaces_give_a_word_a_character() -> None:
    assert read_words("猫が2匹。", lambda _: 0.5).forms == ("猫", "が", "2", "匹")


@given(st.text(st.sampled_from("ab .é猫\n"), max_size=2000), st.integers(0, 3))
def test_pieces_keep_every_word_and_are_short(text: str, copies: int) -> None:
    text = text + "word " * 200 * copies
    found = pieces(text)
    assert "".join(found).replace(" ", "") == "".join(text.split())
    assert all(piece and sum(1 if letter.isascii() else 4 for letter in piece) <= 600 for piece in found)
