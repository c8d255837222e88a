"""Each kind on a few pairs, with results worked out by hand or checked against its definition."""

from collections import Counter

import numpy as np
import pytest

from negsample.negatives import NEGATIVES
from negsample.negatives.context import CannotDamage, context_of
from negsample.negatives.vocabulary import Vocabulary
from negsample.records import Pair
from negsample.seeds import generator
from negsample.sentences import split_sentences

FERRY = Pair("ferry", "The ferry to the island was late again.", "The ferry was late. Nobody on board complained.")
BRIDGE = Pair("bridge", "Workers closed the old bridge on Monday.", "The bridge is shut. Repairs take a month.")
HARVEST = Pair("harvest", "Apple growers report a poor year.", "Frost ruined most of the apples.")
PAIRS = [FERRY, BRIDGE, HARVEST]


def make(kind, pair, pairs=PAIRS, seed=0, **options):
    return NEGATIVES.get(kind)(pair, context_of(pairs, **options), generator(seed))


class Fixed:
    """A stand-in for a generator which gives what it is told."""

    def __init__(self, share, integers=(), choice=()):
        self._share, self._integers, self._choice = share, list(integers), list(choice)

    def random(self):
        return self._share

    def integers(self, *bounds, size=None):
        return np.array(self._integers.pop(0)) if size is not None else self._integers.pop(0)

    def choice(self, total, size, replace):
        assert not replace
        chosen = np.array(self._choice.pop(0))
        assert len(chosen) == size
        return chosen


VOCABULARY = Vocabulary(("cloud", "lamp", "tree"))


def fixed(kind, pair, rng):
    return NEGATIVES.get(kind)(pair, context_of(PAIRS, vocabulary=VOCABULARY), rng)


def test_add_by_hand():
    # 8 words, share 0.4 → round(3.2) = 3 added: before words 0, 4 and 7.
    made = fixed("add", FERRY, Fixed(0.4, integers=[[7, 0, 4], [2, 0, 1]]))
    assert made.summary == "Tree The ferry was late. Cloud Nobody on board lamp complained."
    assert made.label == pytest.approx(1 - 3 / 8)
    assert made.change == {"words": 8, "mutated": 3, "added": [[0, "tree"], [4, "cloud"], [7, "lamp"]]}


def test_delete_by_hand():
    # "late." and "Nobody" go: the stop stays, and so does the capital.
    made = fixed("delete", FERRY, Fixed(0.25, choice=[[4, 3]]))
    assert made.summary == "The ferry was. On board complained."
    assert made.label == pytest.approx(0.75)
    assert made.change == {"words": 8, "mutated": 2, "deleted": [[3, "late."], [4, "Nobody"]]}


def test_replace_by_hand():
    made = fixed("replace", FERRY, Fixed(0.3, choice=[[3, 1]], integers=[[1, 2]]))
    assert made.summary == "The lamp was tree. Nobody on board complained."
    assert made.label == pytest.approx(0.75)
    assert made.change == {"words": 8, "mutated": 2, "replaced": [[1, "ferry", "lamp"], [3, "late.", "tree"]]}


def test_replace_never_takes_the_word_itself():
    pair = Pair("x", "a document", '"Tree, tree TREE lamp."')
    for seed in range(30):
        made = NEGATIVES.get("replace")(pair, context_of([pair], Vocabulary(("lamp", "tree"))), generator(seed))
        for place, was, now in made.change["replaced"]:
            assert was.strip('".,').casefold() != now.casefold(), (place, was)


@pytest.mark.parametrize(
    ("share", "add", "delete"),
    [(0.0, 1, 1), (0.01, 1, 1), (0.5, 4, 4), (0.99, 8, 7), (0.9999, 8, 7)],
)
def test_bounds_of_k(share, add, delete):
    from negsample.negatives.kinds.word_mutation import draw_count

    assert draw_count(8, 8, Fixed(share)) == add
    assert draw_count(8, 7, Fixed(share)) == delete


def test_sentence_delete_by_hand():
    made = fixed("sentence-delete", FERRY, Fixed(0, integers=[1], choice=[[0]]))
    assert made.summary == "Nobody on board complained."
    assert made.label == 0.5
    assert made.change["deleted"] == [{"at": 0, "sentence": "The ferry was late."}]


def test_sentence_delete_of_one_sentence_takes_a_run_of_words():
    # 6 words, share 0.5 → 3 words, from place 2.
    made = fixed("sentence-delete", HARVEST, Fixed(0.5, integers=[2]))
    assert made.summary == "Frost ruined apples."
    assert made.label == 0.5


def test_sentence_delete_leaves_at_least_one_sentence_and_removes_at_least_one():
    pair = Pair("p", "d", "One came. Two went. Three rose. Four ran.")
    kept = Counter(len(split_sentences(make("sentence-delete", pair, [pair], seed).summary)) for seed in range(600))
    assert sorted(kept) == [1, 2, 3]
    # Uniform: 200 each, sd 11.5.
    assert all(abs(count - 200) < 60 for count in kept.values())


def test_sentence_replace_takes_sentences_of_other_summaries():
    others = {"The bridge is shut.", "Repairs take a month.", "Frost ruined most of the apples."}
    own = ["The ferry was late.", "Nobody on board complained."]
    labels = set()
    for seed in range(60):
        made = make("sentence-replace", FERRY, seed=seed)
        now = split_sentences(made.summary)
        assert len(now) == 2
        changed = [place for place in (0, 1) if now[place] != own[place]]
        assert changed == [item["at"] for item in made.change["replaced"]]
        assert all(now[place] in others for place in changed)
        assert made.label == pytest.approx(1 - len(changed) / 2)
        labels.add(made.label)
    assert labels == {0.0, 0.5}


def test_sentence_replace_of_one_sentence_takes_a_run_of_words():
    for seed in range(40):
        made = make("sentence-replace", HARVEST, seed=seed)
        (item,) = made.change["replaced"]
        count = len(item["was"].split())
        assert made.label == pytest.approx(1 - count / 6)
        assert made.summary.endswith(".")
        assert len(split_sentences(made.summary)) == 1
        assert item["is"].rstrip(".") in FERRY.summary or item["is"].rstrip(".") in BRIDGE.summary
        kept = HARVEST.summary.split()
        assert made.summary.split()[: item["at_word"]] == kept[: item["at_word"]]


def test_crosspair_takes_a_summary_of_another_document():
    taken = Counter(make("crosspair", FERRY, seed=seed).summary for seed in range(200))
    assert set(taken) == {BRIDGE.summary, HARVEST.summary}
    assert min(taken.values()) > 60
    made = make("crosspair", FERRY)
    assert made.label == 0.0
    assert made.change == {"summary_of": {BRIDGE.summary: "bridge", HARVEST.summary: "harvest"}[made.summary]}


def test_crosspair_never_takes_a_summary_of_the_same_document():
    second = Pair("ferry-2", "the FERRY to the island  was late again.", "Passengers waited for hours.")
    for seed in range(40):
        assert make("crosspair", FERRY, [FERRY, second, BRIDGE], seed).summary == BRIDGE.summary


def test_crosspair_never_takes_from_a_document_that_shares_a_summary():
    twin = Pair("twin", "Quite another text.", FERRY.summary.upper())
    third = Pair("twin-2", "Quite another text.", "Only the twin has this.")
    for seed in range(40):
        assert make("crosspair", FERRY, [FERRY, twin, third, BRIDGE], seed).summary == BRIDGE.summary
    with pytest.raises(CannotDamage, match="no other document"):
        make("crosspair", FERRY, [FERRY, twin, third])


@pytest.mark.parametrize("kind", ["crosspair", "sentence-replace"])
def test_no_other_document(kind):
    with pytest.raises(CannotDamage, match="no other document"):
        make(kind, FERRY, [FERRY])


@pytest.mark.parametrize("kind", ["delete", "sentence-delete"])
def test_one_word_cannot_be_deleted(kind):
    with pytest.raises(CannotDamage, match="one-word summary"):
        make(kind, Pair("x", "doc", "Snow."), [Pair("x", "doc", "Snow.")])


@pytest.mark.parametrize("kind", ["add", "replace", "sentence-replace"])
def test_one_word_can_be_added_to_and_replaced(kind):
    snow = Pair("snow", "It snowed all week.", "Snow.")
    made = make(kind, snow, [snow, *PAIRS])
    assert made.label == 0.0
    assert len(made.summary.split()) == (2 if kind == "add" else 1)
    assert made.summary.endswith(".")


@pytest.mark.parametrize("kind", ["add", "delete", "replace", "sentence-delete", "sentence-replace"])
def test_blank_summary(kind):
    with pytest.raises(CannotDamage, match="blank summary"):
        make(kind, Pair("x", "doc", " \n "))


@pytest.mark.parametrize("kind", ["add", "replace"])
def test_without_words_to_draw(kind):
    pair = Pair("x", "...", "— !")
    with pytest.raises(CannotDamage, match="empty vocabulary"):
        make(kind, pair, [pair])


def test_same_sentence_everywhere():
    pairs = [Pair(str(number), f"document {number}", f"Same again. Number {number} only.") for number in range(3)]
    for seed in range(30):
        for item in make("sentence-replace", pairs[0], pairs, seed).change["replaced"]:
            assert item["was"] != item["is"]


def test_highlights_keep_their_lines():
    pair = Pair("x", "doc", "NEW: Storm nears coast\nSchools are shut today\nFerries stay in port")
    for seed in range(40):
        for kind in ("add", "replace"):
            assert len(make(kind, pair, [pair, *PAIRS], seed).summary.splitlines()) == 3
        made = make("sentence-delete", pair, [pair], seed)
        assert made.summary.splitlines() == [line for line in pair.summary.splitlines() if line in made.summary]
