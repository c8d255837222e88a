"""intrude, entity, negate, drop and double, and the tables of aspects."""

import pytest

from negsample.negatives import NEGATIVES, mentions
from negsample.negatives.aspects import ALSO_DAMAGES, ASPECT_OF, ASPECTS, kinds_for
from negsample.negatives.context import CannotDamage, context_of
from negsample.negatives.english import is_function_word
from negsample.negatives.kinds.negate import contrary
from negsample.negatives.mentions import by_rule
from negsample.records import Pair
from negsample.seeds import generator
from negsample.sentences import split_sentences

DOCUMENT = (
    "The ferry Moira was two hours late on Monday. Nobody on board complained about the delay. "
    "A choir from Oban sang on the upper deck. The kitchen sold 140 bowls of soup before noon. "
    "Captain Ruth Hale said fog had held them up near Tobermory. In 2019 the crossing took 3 hours."
)
SUMMARY = "The ferry Moira was two hours late on Monday. Nobody aboard complained about the delay."


@pytest.fixture
def rule(monkeypatch):
    monkeypatch.setattr(mentions, "has_model", lambda: False)


def make(kind, summary=SUMMARY, seed=0, document=DOCUMENT, **options):
    pair = Pair("p", document, summary)
    return NEGATIVES.get(kind)(pair, context_of([pair]), generator(seed), **options)


def test_intruders_are_document_sentences_that_the_summary_does_not_use():
    used, whole = set(), split_sentences(DOCUMENT)
    for seed in range(60):
        made = make("intrude", seed=seed)
        now = split_sentences(made.summary)
        assert len(now) == 2
        own = split_sentences(SUMMARY)
        changed = [place for place in (0, 1) if now[place] != own[place]]
        assert changed == [item["at"] for item in made.change["replaced"]]
        # 9 and 6 words.
        assert made.label == pytest.approx(1 - sum((9, 6)[place] for place in changed) / 15)
        used |= {now[place] for place in changed}
    # The first two are in the summary, one of them nearly.
    assert used <= set(whole[2:])
    assert len(used) >= 3


def test_intruders_keep_the_style_of_the_summary():
    for seed in range(20):
        made = make("intrude", "the ferry Moira was late\nnobody complained about the delay", seed, most=1)
        assert "." not in made.summary
        made = make("intrude", "The ferry Moira was two hours late . Nobody aboard complained about it .", seed)
        assert made.summary.count(" .") == 2


def test_intruders_must_be_of_like_length():
    with pytest.raises(CannotDamage, match="no document sentence of like length"):
        make("intrude", "Late.", document="The kitchen sold 140 bowls of soup to a choir before noon that day.")


def test_a_document_that_is_all_in_the_summary_has_no_intruder():
    with pytest.raises(CannotDamage, match="every document sentence is in the summary"):
        make("intrude", "the kitchen sold 140 bowls of soup", document="The kitchen sold 140 bowls of soup .")


def found(*sentences):
    return [[(mention.text, mention.kind) for mention in group] for group in by_rule(sentences)]


def test_the_rule_finds_names_and_numbers():
    assert found("Yesterday Ruth Hale of Oban paid £3.5bn, or 12% more, in March 2019.", "Hale left on the 21st.") == [
        [
            ("Ruth Hale of Oban", "name"),
            ("3.5", "number"),
            ("12", "number"),
            ("March", "month"),
            ("2019", "year"),
        ],
        [("Hale", "name"), ("21st", "ordinal")],
    ]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        # The opening word is no name unless it is one elsewhere.
        ("Boats came late.", []),
        ("We saw Oban, Mull and Iona's bay.", ["Oban", "Mull", "Iona"]),
        ('She said "Boats came" to Ruth.', ["Ruth"]),
        # A headline.
        ("Ferry Late Again As Fog Holds Moira", []),
        ("the F16 flew over the US in fog.", ["US"]),
        ("I think I'm late, so may I go?", []),
        ("all in lower case, with 4 boats", ["4"]),
        ("五艘船在2019年迟到。", ["2019"]),
    ],
)
def test_the_rule_case_by_case(sentence, expected):
    assert [text for text, _ in found(sentence)[0]] == expected


def test_a_name_known_from_elsewhere_is_found_at_the_beginning():
    assert found("The crew saw Oban.", "Oban was dark.") == [[("Oban", "name")], [("Oban", "name")]]


@pytest.mark.usefixtures("rule")
def test_entity_by_rule():
    seen = set()
    for seed in range(80):
        made = make("entity", seed=seed, most=1)
        (item,) = made.change["exchanged"]
        assert made.summary == SUMMARY.replace(item["was"], item["is"])
        assert item["is"] in DOCUMENT
        assert made.change["by"] == "rule"
        # Moira, two, Monday are the mentions of the first sentence, of 9 words; the second has 6 words and none.
        assert made.change["mentions"] == 3
        assert made.label == pytest.approx((9 * 2 / 3 + 6) / 15)
        seen.add((item["was"], item["is"]))
    # No other day and no other number in words is in the document.
    assert seen == {("Moira", "Oban"), ("Moira", "Ruth Hale"), ("Moira", "Tobermory")}


@pytest.mark.usefixtures("rule")
def test_entity_keeps_units_and_kinds():
    document = "Profit was £3.5bn in 2019, not £640m. In 2021 it fell by 12%."
    for seed in range(30):
        made = make("entity", "Last year profit was £3.5bn in 2019.", seed, document)
        for item in made.change["exchanged"]:
            assert item["is"] in {"3.5": ("640", "12"), "2019": ("2021",)}[item["was"]]
        assert "£" in made.summary
        assert "bn in 20" in made.summary


@pytest.mark.usefixtures("rule")
def test_entity_does_not_take_another_name_of_the_same():
    document = "Today Ruth Hale spoke. Then Captain Hale left the United Kingdom, or the UK."
    with pytest.raises(CannotDamage, match="no other name or number"):
        make("entity", "There Hale spoke.", document="Today Ruth Hale spoke. We heard Captain Hale.")
    for seed in range(20):
        made = make("entity", "It was the UK that won.", seed, document)
        assert made.change["exchanged"][0]["is"] in ("Ruth Hale", "Captain Hale")


@pytest.mark.usefixtures("rule")
def test_entity_without_mentions():
    with pytest.raises(CannotDamage, match="no name or number in the summary"):
        make("entity", "the boat was late")


def test_entity_with_the_model():
    if not mentions.has_model():
        pytest.skip("the spaCy model is not installed: pip install 'negsample[sample]'")
    document = (
        "Angela Merkel met Barack Obama in Berlin on Monday. They flew to Paris on Friday and spent $3.5 million."
    )
    pool = {(mention.text, mention.kind) for group in mentions.by_model(split_sentences(document)) for mention in group}
    assert {("Angela Merkel", "person"), ("Barack Obama", "person"), ("Berlin", "place"), ("Paris", "place")} <= pool
    assert ("3.5", "money") in pool
    for seed in range(20):
        made = make("entity", "Angela Merkel was in Paris.", seed, document)
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


def test_negate_counts_the_words_of_sentences_left_alone():
    for seed in range(30):
        made = make("negate", "The ferry was late. Boats sailed. Nobody complained.", seed)
        changed = [item["at"] for item in made.change["negated"]]
        assert changed in ([0], [2], [0, 2])
        assert made.label == pytest.approx(1 - sum((4, 2, 2)[place] for place in changed) / 8)
        assert ("was not late" in made.summary) == (0 in changed)
        assert ("Somebody complained." in made.summary) == (2 in changed)


def test_negate_refuses_what_the_rule_does_not_know():
    with pytest.raises(CannotDamage, match="no sentence that the rule can negate"):
        make("negate", "Boats sailed late. 船迟到了。")


def test_drop_takes_function_words_and_only_these():
    for seed in range(40):
        made = make("drop", "The choir sang on the US deck. It was not for it.", seed)
        gone = [word for _, word in made.change["deleted"]]
        assert set(gone) <= {"The", "on", "the", "It", "was", "for"}
        assert made.label == pytest.approx(1 - len(gone) / 12)
        assert all(word in made.summary.lower().split() for word in ("choir", "sang", "us", "deck.", "not", "it."))


def test_drop_needs_function_words():
    with pytest.raises(CannotDamage, match="no function word"):
        make("drop", "Boats came late. 船迟到了。")


def test_double_repeats_phrases_at_once():
    for seed in range(40):
        made = make("double", "The choir sang on deck. Soup was sold.", seed)
        added = len(made.summary.split()) - 8
        assert 1 <= added <= 4
        assert made.label == pytest.approx(1 - added / 8)
        assert len(split_sentences(made.summary)) == 2
        for _, phrase in made.change["doubled"]:
            bare = phrase.rstrip(".").lower()
            assert f"{bare} {bare}" in made.summary.lower()


def test_double_of_one_word():
    assert make("double", "Snow.").summary == "Snow Snow."
    with pytest.raises(CannotDamage, match="no word to double"):
        make("double", "— !")


def test_function_words():
    assert is_function_word("The")
    assert is_function_word("us")
    assert not is_function_word("US")
    assert not is_function_word("not")


def test_every_kind_damages_one_known_aspect():
    assert set(ASPECT_OF) == set(NEGATIVES.names())
    assert set(ASPECT_OF.values()) == set(ASPECTS)
    for kind, others in ALSO_DAMAGES.items():
        assert set(others) <= set(ASPECTS) - {ASPECT_OF[kind]}


def test_kinds_for():
    assert kinds_for("coherence") == ("repeat", "swap")
    assert kinds_for("coherence", also=True) == ("intrude", "repeat", "sentence-replace", "swap")
    with pytest.raises(KeyError):
        kinds_for("beauty")
