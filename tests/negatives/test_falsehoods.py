"""Kinds of negatives that make a sentence false in one place, on sentences worked out by hand; innocent rewording."""

import pytest

from negsample.negatives import NEGATIVES, mentions
from negsample.negatives.context import CannotDamage, context_of
from negsample.negatives.kinds.number import wrong
from negsample.negatives.reword import reword
from negsample.records import Pair
from negsample.seeds import generator

DOCUMENT = (
    "The tired farmer sold the old tractor to a neighbour before noon. Her brother repaired a broken fence. "
    "Prices rose by 12 per cent in 2019. The council closed the narrow bridge."
)
OTHER = Pair("other", "Pilots trained hard.", "Ruth Hale crossed Iceland in a glider without maps.")
DIALOGUE = "#Person1#: I lost my bag.\n#Person2#: Where was it?\n#Person1#: On a bus to town.\n#Person2#: Call them."
NEEDS_MODEL = ["roles", "word", "detail", "join"]
model = pytest.mark.skipif(not mentions.has_model(), reason="needs the spaCy model: pip install 'negsample[sample]'")


def made(kind, claim, document=DOCUMENT, seeds=range(40)):
    """All that a kind makes of a one-sentence summary; what is told of it holds, and nothing else is changed."""
    pair, found = Pair("p", document, claim), {}
    context = context_of([pair, OTHER])
    for seed in seeds:
        damaged = NEGATIVES.get(kind)(pair, context, generator(seed), most=1)
        assert damaged == NEGATIVES.get(kind)(pair, context, generator(seed), most=1)
        if kind != "foreign":
            (item,) = damaged.change["edited"]
            places = [place for place in range(len(claim) + 1) if claim.startswith(item["was"], place)]
            edits = [claim[:place] + item["is"] + claim[place + len(item["was"]) :] for place in places]
            assert damaged.summary in edits
            assert damaged.label == 0
        found[damaged.summary] = damaged
    return set(found)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("1,600", "800 3,200 16,000 1,760 1,440"),
        ("3.5", "1.8 7.0 35.0 3.8 3.2"),
        ("7", "4 14 70 8 6"),
        ("21st", "22nd 20th 28th 42nd"),
        ("11th", "12th 10th 18th 22nd"),
        ("3:30", "12:30 1:30 2:30 4:30 5:30 6:30"),
        ("two", "four twenty three twelve"),
        ("Ninety", "eighty"),
        ("0", ""),
        ("1.2.3", ""),
    ],
)
def test_numbers_keep_their_format(number, expected):
    assert wrong(number) == expected.split()


def test_years_move_by_ten_at_most():
    assert sorted(map(int, wrong("2019"))) == [*range(2009, 2019), *range(2020, 2030)]
    assert made("number", "It has 1,600 seats.") <= {f"It has {n} seats." for n in wrong("1,600")}
    assert made("number", "Twenty-three of two-year terms ended.") <= {
        f"Twenty-three of {n}-year terms ended." for n in wrong("two")
    }


def test_antonyms_keep_case_and_article_and_leave_names_and_idioms_alone():
    assert made("antonym", "More prices rose in North Oban.") == {
        "Less prices rose in North Oban.",
        "More prices fell in North Oban.",
    }
    assert made("antonym", "It was an easy win at first.") == {"It was a difficult win at first."}
    assert made("antonym", "It may at least be as long as a bridge before.") == {
        "It will at least be as long as a bridge before.",
        "It may at most be as long as a bridge before.",
    }
    with pytest.raises(CannotDamage, match="no word with a contrary in the list"):
        made("antonym", "Ships sailed.")


def test_speakers_are_exchanged():
    claim = "#Person1# lost #Person1#'s bag on a bus."
    assert made("speaker", claim, DIALOGUE) == {"#Person2# lost #Person2#'s bag on a bus."}
    with pytest.raises(CannotDamage, match="no dialogue"):
        made("speaker", claim)
    with pytest.raises(CannotDamage, match="no sentence with a speaker"):
        made("speaker", "#Person1# calls #Person2#.", DIALOGUE)
    assert made("roles", "#Person1# tells #Person2# of it.", DIALOGUE) == {"#Person2# tells #Person1# of it."}


def test_foreign_names_come_from_other_documents(monkeypatch):
    monkeypatch.setattr(mentions, "has_model", lambda: False)
    # "Ruth" begins its sentence: the rule can't tell that it is a name.
    assert made("foreign", "We met Ann Lee there.") == {"We met Hale there.", "We met Iceland there."}


@model
def test_roles_are_turned_round():
    assert made("roles", "The farmer sold the tractor.") == {"The tractor sold the farmer."}
    for mutual in ("The farmer met the mayor.", "The farmer and the mayor slept.", "The farmer is the mayor."):
        with pytest.raises(CannotDamage, match="no two noun phrases"):
            made("roles", mutual)


@model
def test_words_and_phrases_are_those_of_the_document():
    found = made("word", "The council closed the bridge.")
    assert "The council repaired the bridge." in found
    assert "The farmer closed the bridge." in found
    assert not any("Prices" in text for text in found)


@model
def test_details_are_those_of_other_documents():
    assert made("detail", "The council closed the bridge.") <= {
        "The council closed the bridge in a glider.",
        "The council closed the bridge in a glider without maps.",
        "The council closed the bridge without maps.",
    }


@model
def test_facts_are_joined_wrongly():
    assert made("join", "The council closed the bridge.") == {
        "The council sold the old tractor to a neighbour before noon.",
        "The council repaired a broken fence.",
        "The council rose by 12 per cent in 2019.",
    }


@pytest.mark.parametrize("kind", NEEDS_MODEL)
def test_kinds_that_parse_refuse_without_the_model(kind, monkeypatch):
    monkeypatch.setattr(mentions, "has_model", lambda: False)
    with pytest.raises(CannotDamage, match="needs the spaCy model: pip install"):
        made(kind, "The council closed the bridge.")


def test_rewording_keeps_the_meaning():
    found = {reword("The film was postponed by approximately a year.", generator(seed)) for seed in range(40)}
    assert found <= {
        f"The {film} was {late} by {about} a year."
        for film in ("film", "movie")
        for late in ("postponed", "put off")
        for about in ("approximately", "about", "roughly")
    }
    assert len(found) > 5
    assert "The film was postponed by approximately a year." not in found
    assert reword("Ships sailed.", generator(0)) is None


@model
def test_rewording_leaves_out_what_may_be_left_out():
    found = {reword("The farmer quickly sold the tractor in May.", generator(seed)) for seed in range(40)}
    assert {"The farmer sold the tractor in May.", "The farmer quickly sold the tractor."} <= found
    assert reword("No farmer sold the tractor in May.", generator(0)) is None
