"""What kind of text records are, and what is told of it once."""

import dataclasses
from collections import Counter

import pytest

from negsample.records import Row, joined
from negsample.scoring.files import DEFAULTS
from negsample.scoring.scorer import make_metric
from negsample.scoring.tally import KINDS, WORTHLESS, Tally, look, notices, text_kind

NEWS = "The council has voted to close the bridge, which was built by a firm that is no more. They say it would cost too much."
CHAT = "Ann: Shall we go?\nBo: Yes, to the bridge.\nAnn: It is closed."
SPANISH = "El consejo ha votado a favor de cerrar el puente, que fue construido por una empresa que ya no existe. " * 2


@pytest.mark.parametrize(
    ("document", "summary", "kinds"),
    [
        (NEWS, "The council has voted to close the bridge.", []),
        (CHAT, "Ann: Shall we go?", ["short turns"]),
        # Two of a summary's nine pairs of words: under a quarter.
        (NEWS, "A town gives up the bridge, which nobody wants now.", ["in words of their own"]),
        (joined([NEWS, NEWS]), "The council has voted.", ["several documents"]),
        (SPANISH, "El consejo ha votado.", ["not English"]),
        # Turns of a meeting, of forty words and more.
        ("\n".join(f"Ann: {NEWS} {NEWS}" for _ in range(2)), NEWS, []),
        (NEWS, "closed", []),
    ],
)
def test_kinds_by_hand(document, summary, kinds) -> None:
    assert text_kind(document, summary) == set(kinds)


def test_what_is_left_unread_is_counted_and_most_of_a_kind_is_told() -> None:
    tally, scorer = Tally(), make_metric("words")
    rows = [{"documents": [NEWS, CHAT], "summary": "The council has voted.", "question": "What now?"}]
    rows += [
        {"documents": [NEWS], "summary": "The council has voted.", "question": ""},
        {"document": NEWS, "summary": " "},
    ]
    look([Row("here", row) for row in rows], scorer, DEFAULTS, tally)
    assert tally.unread == {"a question, which this score does not read": 1, "several documents, read as one text": 1}
    # The record without a summary is of no kind.
    assert tally.kinds["all"] == 2
    assert tally.kinds["several documents"] == 1
    look([Row("here", rows[0])], dataclasses.replace(scorer, several=True), DEFAULTS, tally)
    assert tally.unread["several documents, read as one text"] == 1
    look([Row("here", rows[1])] * 300, scorer, DEFAULTS, tally)
    assert tally.kinds["all"] == 200


def test_one_line_a_kind_and_only_of_aspects_that_there_are() -> None:
    assert set(WORTHLESS) == set(KINDS)
    told = [kind for kind in KINDS if WORTHLESS[kind]]
    half = Counter({"all": 10} | dict.fromkeys(KINDS, 5))
    assert not list(notices(half, ("support", "form", "coherence", "coverage")))
    more = Counter({"all": 10} | dict.fromkeys(KINDS, 6))
    assert len(list(notices(more, ("support", "form", "coherence", "coverage")))) == len(told)
    assert not list(notices(more, ()))
