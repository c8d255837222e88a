"""What was said, told by a third."""

import pytest

from negsample.negatives.reported import reported


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I'm late, can I use your car", "Ann is late, can they use Bob's car."),
        ("I really like the blue one.", "Ann really likes the blue one."),
        ("I was going to buy my ticket tomorrow!", "Ann was going to buy their ticket tomorrow."),
        ("You need a new battery for that.", "Ann says that Bob needs a new battery for that."),
        ("My sister lives in Rome now.", "Ann's sister lives in Rome now."),
        ("The battery {vocalsound} is um too small.", "Ann says that the battery is too small."),
        ("I don't know and I have no time.", "Ann doesn't know and they have no time."),
        # What the rule can't tell: questions, what several did, verbs it doesn't know, halves.
        ("Do you like the blue one?", None),
        ("I think we should go.", None),
        ("I bonk the thing today.", None),
        ("I went to the house of the", None),
        ("Okay, that is fine with me.", None),
    ],
)
def test_a_statement_is_told_of_its_speaker(said: str, told: str | None) -> None:
    assert reported(said, "Ann", "Bob") == told
