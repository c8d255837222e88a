"""swap, shuffle, repeat, truncate and glue: results worked out by hand."""

from collections import Counter

import numpy as np
import pytest

from negsample.negatives import NEGATIVES
from negsample.negatives.context import CannotDamage, context_of
from negsample.negatives.kinds.order import WINDOW
from negsample.records import Pair
from negsample.seeds import generator
from negsample.sentences import split_sentences

FERRY = Pair(
    "ferry", "The ferry to the island was late again.", "The ferry was late. Nobody complained. Ann read a book."
)


def make(kind, summary, seed=0, document="The ferry to the island was late again.", **options):
    pair = Pair("p", document, summary)
    return NEGATIVES.get(kind)(pair, context_of([pair]), generator(seed), **options)


class Scripted:
    """A stand-in for a generator which gives what it is told."""

    def __init__(self, **answers):
        self._answers = {name: list(values) for name, values in answers.items()}

    def random(self):
        return self._answers["random"].pop(0)

    def integers(self, *bounds):
        return self._answers["integers"].pop(0)

    def choice(self, items, size, replace):
        chosen = np.array(self._answers["choice"].pop(0))
        assert len(chosen) == size
        assert not replace
        return chosen

    def permutation(self, items):
        return np.array(self._answers["permutation"].pop(0))


def scripted(kind, pair=FERRY, **answers):
    return NEGATIVES.get(kind)(pair, context_of([pair]), Scripted(**answers))


def test_swap_by_hand():
    # All three move: C A B. Of AB, AC, BC only A before B is left.
    made = scripted("swap", integers=[3], choice=[[0, 1, 2]], permutation=[[2, 0, 1]])
    assert made.summary == "Ann read a book. The ferry was late. Nobody complained."
    assert made.label == pytest.approx(1 / 3)
    assert made.change == {"sentences": 3, "order": [2, 0, 1], "pairs": 3, "inverted": 2}


def test_swap_of_two_sentences_is_the_reversal():
    made = make("swap", "The ferry was late. Nobody complained.")
    assert made.summary == "Nobody complained. The ferry was late."
    assert made.label == 0.0


def test_swapped_sentences_that_are_the_same_make_no_pair():
    # A B A: two pairs (AB, BA). Both results leave one of them.
    for seed in range(30):
        made = make("swap", "Rain fell. Wind blew. Rain fell.", seed)
        assert made.summary in ("Wind blew. Rain fell. Rain fell.", "Rain fell. Rain fell. Wind blew.")
        assert made.label == 0.5
        assert made.change["pairs"] == 2


def test_swap_gives_a_sentence_without_a_mark_the_one_of_its_place():
    assert make("swap", "The ferry was late. Nobody complained").summary == "Nobody complained. The ferry was late."
    assert make("swap", "The ferry was late\nNobody complained").summary == "Nobody complained\nThe ferry was late"
    assert make("swap", "He left . She stayed .").summary == "She stayed . He left ."


def test_shuffle_by_hand():
    # One window of 4 words in the second sentence; the words go to 3 0 2 1, of which 2 stays.
    pair = Pair("p", "d", "Ann read. The old book was dull.")
    made = scripted("shuffle", pair, random=[0.5], permutation=[[1, 0], [3, 0, 2, 1]])
    # 8 words, 0.5 → 4 of them: the window of 5 words is cut to 4.
    assert made.summary == "Ann read. Was the book old dull."
    assert made.label == pytest.approx(1 - 3 / 7)
    assert made.change["shuffled"] == [{"at": 1, "was": "The old book was", "is": "was the book old"}]


def test_shuffle_stays_within_windows_and_sentences():
    words = [f"W{number}" for number in range(40)]
    summary = " ".join(words[:25]) + ". " + " ".join(words[25:]) + "."
    for seed in range(40):
        made = make("shuffle", summary, seed)
        first, second = split_sentences(made.summary)
        assert sorted(first.rstrip(".").split()) == sorted(words[:25])
        now = (first.rstrip(".") + " " + second.rstrip(".")).split()
        moves = [abs(place - words.index(word)) for place, word in enumerate(now)]
        assert 0 < max(moves) < WINDOW
        assert made.label == pytest.approx(1 - sum(move > 0 for move in moves) / 40)


def test_repeat_by_hand():
    # Sentence 1 goes; 0 and 2 are both near in length (letters), 4 words each: the second of them is drawn.
    made = scripted("repeat", integers=[1, 1], choice=[[1]])
    assert made.summary == "The ferry was late. Ann read a book. Ann read a book."
    assert made.label == pytest.approx(8 / 10)
    assert made.change == {
        "sentences": 3,
        "words": 10,
        "kept_words": 8,
        "repeated": [{"at": 1, "was": "Nobody complained.", "copy_of": 2}],
    }


def test_repeat_copies_one_of_like_length():
    long = "The committee of the island council met twice this week about the late ferry."
    other = "The owners of the old ferry company sent nobody to speak about it at all."
    for seed in range(40):
        made = make("repeat", f"It rained. {long} Ann read. {other}", seed, most=1)
        (item,) = made.change["repeated"]
        assert {item["at"], item["copy_of"]} in ({0, 2}, {1, 3})


def test_repeat_uses_all_counts():
    counts = Counter(len(make("repeat", FERRY.summary, seed).change["repeated"]) for seed in range(200))
    assert set(counts) == {1, 2}
    assert min(counts.values()) > 60


def test_truncate_by_hand():
    # Sentence 2, two of its words are left; nothing follows.
    made = scripted("truncate", random=[0.2], integers=[2])
    assert made.summary == "The ferry was late. Nobody complained. Ann read"
    assert made.label == pytest.approx(8 / 10)
    # Any sentence: number 0, one word.
    made = scripted("truncate", random=[0.7], integers=[0, 1])
    assert made.summary == "The"
    assert made.label == pytest.approx(1 / 10)
    assert made.change["cut"] == {"at": 0, "was": "The ferry was late.", "is": "The"}


def test_truncate_takes_more_than_a_mark_that_stands_alone():
    for seed in range(20):
        assert make("truncate", "He left early .", seed).summary in ("He", "He left")


def test_glue_by_hand():
    made = scripted("glue", integers=[1, 2], choice=[[0]])
    assert made.summary == "The ferry Nobody complained. Ann read a book."
    assert made.label == pytest.approx(6 / 10)
    assert made.change["glued"] == [{"at": 0, "was": "The ferry was late.", "left": "The ferry"}]


def test_glued_sentences_lose_the_capital_of_a_function_word():
    made = make("glue", "Rain fell hard. The ferry was late.")
    assert made.summary in ("Rain the ferry was late.", "Rain fell the ferry was late.")
    assert make("glue", "Rain fell hard. US ships left.").summary.endswith("US ships left.")


@pytest.mark.parametrize("kind", ["swap", "repeat", "glue"])
@pytest.mark.parametrize("summary", ["Only one sentence here.", "雨が降った。船が遅れた。"])
def test_one_sentence_is_refused(kind, summary):
    with pytest.raises(CannotDamage, match="one-sentence summary"):
        make(kind, summary)


@pytest.mark.parametrize("kind", ["swap", "repeat"])
def test_the_same_sentence_over_and_over_is_refused(kind):
    with pytest.raises(CannotDamage, match="all sentences are the same"):
        make(kind, "Rain fell. RAIN fell. Rain  fell.")


@pytest.mark.parametrize(
    ("kind", "summary", "reason"),
    [
        ("truncate", "Snow.", "one-word summary"),
        ("truncate", "Yes. No.", "no sentence of two words"),
        ("shuffle", "雨が降った。", "one-word summary"),
        ("shuffle", "Ha ha ha. No.", "no sentence of two different words"),
    ],
)
def test_nothing_to_cut_or_shuffle(kind, summary, reason):
    with pytest.raises(CannotDamage, match=reason):
        make(kind, summary)


def test_lines_stay_lines():
    summary = "Storm nears the coast\nSchools are shut\nFerries stay in port today"
    for seed in range(20):
        for kind in ("swap", "shuffle", "repeat"):
            made = make(kind, summary, seed)
            assert len(made.summary.splitlines()) == 3
            assert "." not in made.summary
