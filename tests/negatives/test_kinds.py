"""Each kind on a few pairs, with results worked out by hand or checked against its definition; the tables of aspects."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from negsample.negatives import ASPECT_OF, ASPECTS, NEGATIVES, kinds_for, mentions
from negsample.negatives.context import CannotDamage, context_of
from negsample.negatives.english import is_function_word
from negsample.negatives.kinds.negate import contrary
from negsample.negatives.kinds.order import WINDOW
from negsample.negatives.kinds.word_mutation import draw_count
from negsample.negatives.mentions import by_rule
from negsample.negatives.vocabulary import Vocabulary
from negsample.records import Pair
from negsample.seeds import generator
from negsample.sentences import split_sentences

FERRY = Pair("ferry", "The ferry to the island was late again.", "The ferry was late. Nobody on board complained.")
BRIDGE = Pair("bridge", "Workers closed the old bridge on Monday.", "The bridge is shut. Repairs take a month.")
HARVEST = Pair("harvest", "Apple growers report a poor year.", "Frost ruined most of the apples.")
PAIRS = [FERRY, BRIDGE, HARVEST]
THREE = "The ferry was late. Nobody complained. Ann read a book."
DOCUMENT = (
    "The ferry Moira was two hours late on Monday. Nobody on board complained about the delay. "
    "A choir from Oban sang on the upper deck. The kitchen sold 140 bowls of soup before noon. "
    "Captain Ruth Hale said fog had held them up near Tobermory. In 2019 the crossing took 3 hours."
)
SUMMARY = "The ferry Moira was two hours late on Monday. Nobody aboard complained about the delay."


def make(kind, pair, pairs=(), seed=0, **options):
    """The kind's negative of a pair, or of a summary of ``DOCUMENT``."""
    pair = Pair("p", DOCUMENT, pair) if isinstance(pair, str) else pair
    return NEGATIVES.get(kind)(pair, context_of(pairs or [pair]), generator(seed), **options)


@pytest.fixture
def rule(monkeypatch):
    monkeypatch.setattr(mentions, "has_model", lambda: False)


class Scripted:
    """A stand-in for a generator which gives what it is told, by method."""

    def __init__(self, **answers):
        self._answers = {name: list(values) for name, values in answers.items()}

    def _next(self, name):
        answer = self._answers[name].pop(0)
        return np.array(answer) if isinstance(answer, list) else answer

    def random(self):
        return self._next("random")

    def integers(self, *bounds, size=None):
        return self._next("integers")

    def permutation(self, items):
        return self._next("permutation")

    def choice(self, items, size, replace):
        chosen = self._next("choice")
        assert len(chosen) == size
        assert not replace
        return chosen


@pytest.mark.parametrize(
    ("kind", "summary", "answers", "expected", "label", "change"),
    [
        # 8 words, share 0.4 → round(3.2) = 3 added: before words 0, 4 and 7.
        (
            "add",
            FERRY.summary,
            {"random": [0.4], "integers": [[7, 0, 4], [2, 0, 1]]},
            "Tree The ferry was late. Cloud Nobody on board lamp complained.",
            1 - 3 / 8,
            {"words": 8, "mutated": 3, "added": [[0, "tree"], [4, "cloud"], [7, "lamp"]]},
        ),
        # "late." and "Nobody" go: the stop stays, and so does the capital.
        (
            "delete",
            FERRY.summary,
            {"random": [0.25], "choice": [[4, 3]]},
            "The ferry was. On board complained.",
            0.75,
            {"words": 8, "mutated": 2, "deleted": [[3, "late."], [4, "Nobody"]]},
        ),
        (
            "replace",
            FERRY.summary,
            {"random": [0.3], "choice": [[3, 1]], "integers": [[1, 2]]},
            "The lamp was tree. Nobody on board complained.",
            0.75,
            {"words": 8, "mutated": 2, "replaced": [[1, "ferry", "lamp"], [3, "late.", "tree"]]},
        ),
        (
            "sentence-delete",
            FERRY.summary,
            {"integers": [1], "choice": [[0]]},
            "Nobody on board complained.",
            0.5,
            {"deleted": [{"at": 0, "sentence": "The ferry was late."}]},
        ),
        # One sentence of 6 words, share 0.5 → a run of 3, from place 2.
        ("sentence-delete", HARVEST.summary, {"random": [0.5], "integers": [2]}, "Frost ruined apples.", 0.5, {}),
        # All three move: C A B. Of AB, AC, BC only A before B is left.
        (
            "swap",
            THREE,
            {"integers": [3], "choice": [[0, 1, 2]], "permutation": [[2, 0, 1]]},
            "Ann read a book. The ferry was late. Nobody complained.",
            1 / 3,
            {"sentences": 3, "order": [2, 0, 1], "pairs": 3, "inverted": 2},
        ),
        # 7 words, 0.5 → 4 of them: the window of 5 words is cut to 4, which go to 3 0 2 1, so that one stays.
        (
            "shuffle",
            "Ann read. The old book was dull.",
            {"random": [0.5], "permutation": [[1, 0], [3, 0, 2, 1]]},
            "Ann read. Was the book old dull.",
            1 - 3 / 7,
            {"shuffled": [{"at": 1, "was": "The old book was", "is": "was the book old"}]},
        ),
        # Sentence 1 goes; 0 and 2 are both near in length (letters), 4 words each: the second of them is drawn.
        (
            "repeat",
            THREE,
            {"integers": [1, 1], "choice": [[1]]},
            "The ferry was late. Ann read a book. Ann read a book.",
            8 / 10,
            {"words": 10, "kept_words": 8, "repeated": [{"at": 1, "was": "Nobody complained.", "copy_of": 2}]},
        ),
        # Sentence 2, two of its words are left; nothing follows. Then any sentence: number 0, one word.
        (
            "truncate",
            THREE,
            {"random": [0.2], "integers": [2]},
            "The ferry was late. Nobody complained. Ann read",
            8 / 10,
            {},
        ),
        (
            "truncate",
            THREE,
            {"random": [0.7], "integers": [0, 1]},
            "The",
            1 / 10,
            {"cut": {"at": 0, "was": "The ferry was late.", "is": "The"}},
        ),
        (
            "glue",
            THREE,
            {"integers": [1, 2], "choice": [[0]]},
            "The ferry Nobody complained. Ann read a book.",
            6 / 10,
            {"glued": [{"at": 0, "was": "The ferry was late.", "left": "The ferry"}]},
        ),
    ],
)
def test_by_hand(kind, summary, answers, expected, label, change):
    pair = Pair("p", DOCUMENT, summary)
    context = replace(context_of([pair]), vocabulary=Vocabulary(("cloud", "lamp", "tree")))
    made = NEGATIVES.get(kind)(pair, context, Scripted(**answers))
    assert made.summary == expected
    assert made.label == pytest.approx(label)
    assert change.items() <= made.change.items()


ONE_WORD, SAME = "one-word summary", "all sentences are the same"


@pytest.mark.parametrize(
    ("kinds", "summary", "reason"),
    [
        ("crosspair sentence-replace", FERRY.summary, "no other document"),
        ("delete sentence-delete truncate", "Snow.", ONE_WORD),
        ("shuffle", "雨が降った。", ONE_WORD),
        ("add delete replace sentence-delete sentence-replace", " \n ", "blank summary"),
        ("swap repeat glue", "Only one sentence here.", "one-sentence summary"),
        ("swap repeat glue", "雨が降った。船が遅れた。", "one-sentence summary"),
        ("swap repeat", "Rain fell. RAIN fell. Rain  fell.", SAME),
        ("truncate", "Yes. No.", "no sentence of two words"),
        ("shuffle", "Ha ha ha. No.", "no sentence of two different words"),
        ("intrude", "Late.", "no document sentence of like length"),
        ("intrude", DOCUMENT.lower(), "every document sentence is in the summary"),
        ("entity", "the boat was late", "no name or number in the summary"),
        ("entity", "There Hale spoke.", "no other name or number"),
        ("negate", "Boats sailed late. 船迟到了。", "no sentence that the rule can negate"),
        ("drop", "Boats came late. 船迟到了。", "no function word"),
        ("double", "— !", "no word to double"),
        ("add replace", "— !", "empty vocabulary"),
    ],
)
@pytest.mark.usefixtures("rule")
def test_refusals(kinds, summary, reason):
    documents = {"There Hale spoke.": "Today Ruth Hale spoke. We heard Captain Hale.", "— !": "…"}
    document = documents.get(summary, DOCUMENT)
    for kind in kinds.split():
        with pytest.raises(CannotDamage, match=reason):
            make(kind, Pair("p", document, summary))


# --- words, sentences and pairs: the kinds of the papers


def test_bounds_of_k():
    for most, counts in ((8, [1, 1, 4, 8, 8]), (7, [1, 1, 4, 7, 7])):
        assert [draw_count(8, most, Scripted(random=[share])) for share in (0.0, 0.01, 0.5, 0.99, 0.9999)] == counts


def test_sentence_delete_leaves_one_sentence_to_all_but_one_as_likely_each():
    pair = Pair("p", "d", "One came. Two went. Three rose. Four ran.")
    kept = Counter(len(split_sentences(make("sentence-delete", pair, seed=seed).summary)) for seed in range(300))
    # 100 each, sd 8.2.
    assert sorted(kept) == [1, 2, 3]
    assert all(abs(count - 100) < 42 for count in kept.values())


def test_sentence_replace_takes_sentences_of_other_summaries():
    others = {"The bridge is shut.", "Repairs take a month.", "Frost ruined most of the apples."}
    labels = set()
    for seed in range(40):
        made = make("sentence-replace", FERRY, PAIRS, seed)
        now, changed = split_sentences(made.summary), {item["at"] for item in made.change["replaced"]}
        assert all((now[place] in others) == (place in changed) for place in (0, 1))
        labels.add(made.label)
    assert labels == {0.0, 0.5}
    pairs = [Pair(str(number), f"document {number}", f"Same again. Number {number} only.") for number in range(3)]
    for seed in range(30):
        for item in make("sentence-replace", pairs[0], pairs, seed).change["replaced"]:
            assert item["was"] != item["is"]


def test_sentence_replace_of_one_sentence_takes_a_run_of_words():
    for seed in range(40):
        made = make("sentence-replace", HARVEST, PAIRS, seed)
        (item,) = made.change["replaced"]
        assert made.label == pytest.approx(1 - len(item["was"].split()) / 6)
        assert len(split_sentences(made.summary)) == 1
        assert item["is"].rstrip(".") in FERRY.summary or item["is"].rstrip(".") in BRIDGE.summary
        kept = HARVEST.summary.split()
        assert made.summary.split()[: item["at_word"]] == kept[: item["at_word"]]


def test_crosspair_takes_a_summary_of_another_document():
    ids = {BRIDGE.summary: "bridge", HARVEST.summary: "harvest"}
    found = [make("crosspair", FERRY, PAIRS, seed) for seed in range(200)]
    assert min(Counter(made.summary for made in found).values()) > 60
    assert all((made.label, made.change) == (0.0, {"summary_of": ids[made.summary]}) for made in found)


def test_crosspair_never_takes_from_its_document_nor_one_that_shares_a_summary():
    second = Pair("ferry-2", "the FERRY to the island  was late again.", "Passengers waited for hours.")
    twin = Pair("twin", "Quite another text.", FERRY.summary.upper())
    third = Pair("twin-2", "Quite another text.", "Only the twin has this.")
    for seed in range(40):
        assert make("crosspair", FERRY, [FERRY, second, twin, third, BRIDGE], seed).summary == BRIDGE.summary
    with pytest.raises(CannotDamage, match="no other document"):
        make("crosspair", FERRY, [FERRY, second, twin, third])


def test_one_word_can_be_added_to_and_replaced():
    snow = Pair("snow", "It snowed all week.", "Snow.")
    for kind, count in {"add": 2, "replace": 1, "sentence-replace": 1}.items():
        made = make(kind, snow, [snow, *PAIRS])
        assert (made.label, len(made.summary.split()), made.summary[-1]) == (0.0, count, ".")


def test_highlights_keep_their_lines():
    pair = Pair("x", DOCUMENT, "NEW: Storm nears coast\nSchools are shut today\nFerries stay in port")
    for kind in ("add", "replace", "swap", "shuffle", "repeat"):
        assert len(make(kind, pair, [pair, *PAIRS]).summary.splitlines()) == 3
    left = make("sentence-delete", pair).summary.splitlines()
    assert left == [line for line in pair.summary.splitlines() if line in left]


# --- order


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("The ferry was late. Nobody complained.", "Nobody complained. The ferry was late."),
        ("The ferry was late. Nobody complained", "Nobody complained. The ferry was late."),
        ("The ferry was late\nNobody complained", "Nobody complained\nThe ferry was late"),
        ("He left . She stayed .", "She stayed . He left ."),
    ],
)
def test_swap_of_two_sentences_is_the_reversal_and_each_place_keeps_its_mark(summary, expected):
    made = make("swap", summary)
    assert (made.summary, made.label) == (expected, 0.0)


def test_swapped_sentences_that_are_the_same_make_no_pair():
    # A B A: two pairs (AB, BA). Both results leave one of them.
    for seed in range(30):
        made = make("swap", "Rain fell. Wind blew. Rain fell.", seed=seed)
        assert made.summary in ("Wind blew. Rain fell. Rain fell.", "Rain fell. Rain fell. Wind blew.")
        assert (made.label, made.change["pairs"]) == (0.5, 2)


def test_shuffle_stays_within_windows_and_sentences():
    words = [f"W{number}" for number in range(40)]
    summary = " ".join(words[:25]) + ". " + " ".join(words[25:]) + "."
    for seed in range(40):
        made = make("shuffle", summary, seed=seed)
        first, second = split_sentences(made.summary)
        assert sorted(first.rstrip(".").split()) == sorted(words[:25])
        now = (first.rstrip(".") + " " + second.rstrip(".")).split()
        moves = [abs(place - words.index(word)) for place, word in enumerate(now)]
        assert 0 < max(moves) < WINDOW
        assert made.label == pytest.approx(1 - sum(move > 0 for move in moves) / 40)


def test_repeat_copies_one_of_like_length():
    long = "The committee of the island council met twice this week about the late ferry."
    other = "The owners of the old ferry company sent nobody to speak about it at all."
    for seed in range(20):
        (item,) = make("repeat", f"It rained. {long} Ann read. {other}", seed=seed, most=1).change["repeated"]
        assert {item["at"], item["copy_of"]} in ({0, 2}, {1, 3})
    assert {len(make("repeat", THREE, seed=seed).change["repeated"]) for seed in range(20)} == {1, 2}


# --- content: intrude, entity, negate


def test_intruders_are_document_sentences_that_the_summary_does_not_use():
    used, own, whole = set(), split_sentences(SUMMARY), split_sentences(DOCUMENT)
    for seed in range(60):
        now = split_sentences(make("intrude", SUMMARY, seed=seed).summary)
        used |= {sentence for sentence in now if sentence not in own}
    # The first two are in the summary, one of them nearly.
    assert used <= set(whole[2:])
    assert len(used) >= 3
    for seed in range(20):  # in the style of the summary
        made = make("intrude", "the ferry Moira was late\nnobody complained about the delay", seed=seed, most=1)
        assert "." not in made.summary
        made = make("intrude", "The ferry Moira was two hours late . Nobody aboard complained about it .", seed=seed)
        assert made.summary.count(" .") == 2


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (
            "Yesterday Ruth Hale of Oban paid £3.5bn, or 12% more, in March 2019.",
            ["name Ruth Hale of Oban", "number 3.5", "number 12", "month March", "year 2019"],
        ),
        # A name known from elsewhere is found at the beginning too.
        ("We saw Hale.|Hale left on the 21st.", ["name Hale", "name Hale", "ordinal 21st"]),
        ("Boats came late.", []),
        ("We saw Oban, Mull and Iona's bay.", ["name Oban", "name Mull", "name Iona"]),
        ('She said "Boats came" to Ruth.', ["name Ruth"]),
        # A headline.
        ("Ferry Late Again As Fog Holds Moira", []),
        ("the F16 flew over the US in fog.", ["name US"]),
        ("I think I'm late, so may I go?", []),
        ("all in lower case, with 4 boats", ["number 4"]),
        ("五艘船在2019年迟到。", ["year 2019"]),
    ],
)
def test_the_rule_finds_names_and_numbers(sentences, expected):
    found = by_rule(sentences.split("|"))
    assert [f"{mention.kind} {mention.text}" for group in found for mention in group] == expected


@pytest.mark.usefixtures("rule")
def test_entity_by_rule():
    seen = set()
    for seed in range(80):
        made = make("entity", SUMMARY, seed=seed, most=1)
        (item,) = made.change["exchanged"]
        assert made.summary == SUMMARY.replace(item["was"], item["is"])
        # Moira, two, Monday are the mentions of the first sentence, of 9 words; the second has 6 words and none.
        assert (made.change["by"], made.change["mentions"]) == ("rule", 3)
        assert made.label == pytest.approx((9 * 2 / 3 + 6) / 15)
        seen.add((item["was"], item["is"]))
    # No other day and no other number in words is in the document.
    assert seen == {("Moira", "Oban"), ("Moira", "Ruth Hale"), ("Moira", "Tobermory")}


@pytest.mark.usefixtures("rule")
def test_entity_keeps_units_and_kinds_and_takes_no_other_name_of_the_same():
    money = Pair(
        "m", "Profit was £3.5bn in 2019, not £640m. In 2021 it fell by 12%.", "Last year profit was £3.5bn in 2019."
    )
    land = Pair(
        "l", "Today Ruth Hale spoke. Then Captain Hale left the United Kingdom, or the UK.", "It was the UK that won."
    )
    others = {"3.5": ("640", "12"), "2019": ("2021",), "UK": ("Ruth Hale", "Captain Hale")}
    for pair in (money, land):
        for seed in range(25):
            made = make("entity", pair, seed=seed)
            assert all(item["is"] in others[item["was"]] for item in made.change["exchanged"])
            assert pair is land or ("£" in made.summary and "bn in 20" in made.summary)


@pytest.mark.skipif(
    not mentions.has_model(), reason="the spaCy model is not installed: pip install 'negsample[sample]'"
)
def test_entity_with_the_model():
    document = (
        "Angela Merkel met Barack Obama in Berlin on Monday. They flew to Paris on Friday and spent $3.5 million."
    )
    pool = {(mention.text, mention.kind) for group in mentions.by_model(split_sentences(document)) for mention in group}
    assert {("Angela Merkel", "person"), ("Barack Obama", "person"), ("Berlin", "place"), ("Paris", "place")} <= pool
    assert ("3.5", "money") in pool
    for seed in range(20):
        made = make("entity", Pair("p", document, "Angela Merkel was in Paris."), seed=seed)
        assert made.change["by"] == mentions.MODEL
        for item in made.change["exchanged"]:
            assert (item["was"], item["is"]) in {("Angela Merkel", "Barack Obama"), ("Paris", "Berlin")}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The ferry was late.", "The ferry was not late."),
        ("The ferry was not late.", "The ferry was late."),
        ("The ferry wasn't late.", "The ferry was late."),
        ("The ferry was n't late .", "The ferry was late ."),
        ("It ca n't wait .", "It can wait ."),
        ("It won’t wait.", "It will wait."),
        ("They can swim.", "They cannot swim."),
        ("They cannot swim.", "They can swim."),
        ("Ann has left the boat.", "Ann has not left the boat."),
        ("Ann has never left.", "Ann has left."),
        ("Nobody complained.", "Somebody complained."),
        ("There was no fog at sea.", "There was some fog at sea."),
        ("It is no longer there.", "It is still there."),
        ("They're on deck.", "They're not on deck."),
        ("We propose a ferry.", "We do not propose a ferry."),
        ("Ann thinks so too.", "Ann does not think so too."),
        ("He tries it again.", "He does not try it again."),
        ("Then he went home.", "Then he did not go home."),
        # "not only" does not negate, and goes with nothing that could be.
        ("Boats sailed not only from Oban.", None),
        ("Boats sailed late.", None),
        ("Boats came late.", "Boats did not come late."),
        ("The year has many days.", None),
        ("Was it late?", None),
        ("Late it was.", None),
        ("Will May go?", None),
    ],
)
def test_contrary(sentence, expected):
    now = contrary(sentence.split())
    assert (now and " ".join(now)) == expected


# --- form


def test_truncate_and_glue_mind_marks_and_capitals():
    for seed in range(20):
        assert make("truncate", "He left early .", seed=seed).summary in ("He", "He left")
    made = make("glue", "Rain fell hard. The ferry was late.")
    assert made.summary in ("Rain the ferry was late.", "Rain fell the ferry was late.")
    assert make("glue", "Rain fell hard. US ships left.").summary.endswith("US ships left.")
    assert [is_function_word(word) for word in ("The", "us", "US", "not")] == [True, True, False, False]


def test_drop_takes_function_words_and_only_these():
    for seed in range(40):
        made = make("drop", "The choir sang on the US deck. It was not for it.", seed=seed)
        gone = [word for _, word in made.change["deleted"]]
        assert set(gone) <= {"The", "on", "the", "It", "was", "for"}
        assert made.label == pytest.approx(1 - len(gone) / 12)
        assert all(word in made.summary.lower().split() for word in ("choir", "sang", "us", "deck.", "not", "it."))


def test_double_repeats_phrases_at_once():
    assert make("double", "Snow.").summary == "Snow Snow."
    for seed in range(20):
        made = make("double", "The choir sang on deck. Soup was sold.", seed=seed)
        assert len(split_sentences(made.summary)) == 2
        for _, phrase in made.change["doubled"]:
            bare = phrase.rstrip(".").lower()
            assert f"{bare} {bare}" in made.summary.lower()


# --- aspects


def test_every_kind_damages_one_known_aspect():
    assert set(ASPECT_OF) == set(NEGATIVES.names())
    assert set(ASPECT_OF.values()) == set(ASPECTS)
    assert kinds_for("coherence") == ("intrude", "repeat", "sentence-replace", "swap")
