import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.models.align.words import Piece, TermWeights, cut_tokens, pieces, read_words, stem, whole_numbers
from negsample.records import joined


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
    sentence = "The museum paid Ada 1,600 pounds in 1998."
    words = read_words(sentence, lambda word: float(len(word) > 3))
    assert words.forms == ("the", "museum", "paid", "ada", "1", "600", "pound", "in", "1998")
    assert words.facts.tolist() == [False, False, False, True, True, True, False, False, True]
    assert words.weights.tolist() == [0, 1, 1, 0, 0, 0, 1, 0, 1]
    assert words.ends
    assert [sentence[begin:stop] for begin, stop in words.spans][3:6] == ["Ada", "1", "600"]


def test_numbers_and_scripts_without_spaces() -> None:
    spaced = [
        read_words(text, lambda _: 1.0).forms for text in ("It rose 1,600.5 points", "It rose 1 , 600 . 5 points")
    ]
    assert spaced[0] == spaced[1]
    assert read_words("猫が2匹。", lambda _: 0.5).forms == ("猫", "が", "2", "匹")
    forms, weights = ("rose", "5", "5", "to", "1", "000", "000"), np.array([0.9, 1, 1, 0.1, 1, 1, 1])
    # The digits of a number count as one form.
    assert whole_numbers(forms, weights) == [("rose", 0.9), ("5 5", 1), ("to", 0.1), ("1 000 000", 1)]


def test_pieces_know_their_document_and_who_speaks() -> None:
    chat = "Ann: Hi. You?\nBo: yes\nand\nAnn: ok"
    found = pieces(joined(["A line without an end", "and another. So.", chat]))
    assert [(piece.text, piece.speaker, piece.document) for piece in found] == [
        ("A line without an end", "", 0),
        ("and another.", "", 1),
        ("So.", "", 1),
        ("Ann: Hi.", "Ann", 2),
        ("You?", "Ann", 2),
        ("Bo: yes", "Bo", 2),
        ("and", "Bo", 2),
        ("Ann: ok", "Ann", 2),
    ]


@given(st.text(st.sampled_from("ab .é猫\n"), max_size=2000), st.integers(0, 3))
def test_pieces_keep_every_word_and_are_short(text: str, copies: int) -> None:
    text = text + "word " * 200 * copies
    found = [piece.text for piece in pieces(text)]
    assert "".join(found).replace(" ", "") == "".join(text.split())
    assert all(piece and sum(1 if letter.isascii() else 4 for letter in piece) <= 600 for piece in found)


def test_a_stretch_of_a_long_sentence_says_where_the_sentence_goes_on() -> None:
    sentence = "Слово" + " слово" * 60 + " конец."
    found = pieces("Short one. " + sentence + " Another.")
    assert [(piece.opens, piece.closes) for piece in found] == [
        (True, True),
        (True, False),
        (False, False),
        (False, True),
        (True, True),
    ]
    assert Piece("ab cd", closes=False).split(["ab", "cd"]) == [Piece("ab", True, False), Piece("cd", False, False)]


def test_cutting_by_tokens_by_hand() -> None:
    # Tokens: on e tw o three; three words, the first two of two tokens each.
    assert cut_tokens("one two three", [0, 2, 4, 6, 8], 2) == ["one", "two", "three"]
    # The third token is inside "two", so that the cut falls before it.
    assert cut_tokens("one two three", [0, 2, 4, 6, 8], 3) == ["one", "two three"]
    # A word of more tokens than there is room for is cut inside.
    assert cut_tokens("abcdef", [0, 1, 2, 3, 4, 5], 4) == ["abcd", "ef"]
    # Several tokens for one character can't be parted.
    assert cut_tokens("é", [0, 0, 0], 2) == ["é"]


@given(st.lists(st.sampled_from(["a", "bcd", "efghij"]), min_size=1, max_size=30), st.integers(1, 7))
def test_cutting_by_tokens_keeps_every_letter_and_the_limit(words: list[str], most: int) -> None:
    text = " ".join(words)
    starts = [place for place, letter in enumerate(text) if letter != " "]
    parts = cut_tokens(text, starts, most)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert all(len(part.replace(" ", "")) <= most for part in parts)
