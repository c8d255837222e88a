"""Laws that the kinds beyond the papers keep for any text."""

import json
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from negsample.negatives import NEGATIVES, mentions
from negsample.negatives.context import CannotDamage, context_of
from negsample.negatives.rebuild import take_apart
from negsample.negatives.vocabulary import bare
from negsample.records import Pair
from negsample.seeds import generator
from negsample.sentences import normalise

WORDS = st.one_of(
    st.sampled_from(
        [
            "the",
            "River",
            "rose",
            "Mr.",
            "U.S.",
            "was",
            "not",
            "—",
            "3.5",
            "(old)",
            '"Stop!"',
            "late,",
            "Oban",
            "can",
            "你好。",
        ]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=8),
)
SENTENCES = st.tuples(
    st.lists(WORDS, min_size=1, max_size=12), st.sampled_from([".", "!", "?", " .", '."', "", "…"])
).map(lambda made: " ".join(made[0]) + made[1])
SUMMARIES = st.lists(st.tuples(SENTENCES, st.sampled_from([" ", "\n", "  "])), min_size=1, max_size=5).map(
    lambda parts: "".join(sentence + joint for sentence, joint in parts)
)
SEEDS = st.integers(0, 10**6)
KINDS = ["swap", "repeat", "intrude", "entity", "negate", "truncate", "shuffle", "drop", "double", "glue"]
DOCUMENT = (
    "The river rose by 3.5 metres on Monday and the old bridge at Oban was closed. Drivers took the long way by Mull. "
    "Growers of apples expect a thin year after 12 nights of frost! Nobody in the U.S. embassy said a word about it. "
    "It rained. Shops were shut. A choir sang."
)


@pytest.fixture(autouse=True, scope="module")
def _rule():
    # The model is much slower than these laws can wait for, and the laws are not about what it finds.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mentions, "has_model", lambda: False)
        yield


# None of these kinds draws from other pairs.
CONTEXT = context_of([Pair("p", DOCUMENT, "The river rose.")])


def make(kind, summary, seed):
    pair = Pair("p", DOCUMENT, summary)
    try:
        return NEGATIVES.get(kind)(pair, CONTEXT, generator(seed))
    except CannotDamage:
        return None


def letters_of(text):
    """Letters and digits with their numbers, whatever the case and however they are put together."""
    return Counter(letter.upper().casefold() for letter in text if letter.isalnum())


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(KINDS), SUMMARIES, SEEDS)
def test_a_damaged_summary_differs_and_its_label_says_so(kind, summary, seed):
    made = make(kind, summary, seed)
    assume(made is not None)
    assert 0 <= made.label < 1
    assert made.summary.strip()
    assert normalise(made.summary) != normalise(summary)
    assert made == make(kind, summary, seed)
    json.dumps(made.change, allow_nan=False)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(["swap", "shuffle"]), SUMMARIES, SEEDS)
def test_order_alone_changes(kind, summary, seed):
    made = make(kind, summary, seed)
    assume(made is not None)
    assert letters_of(made.summary) == letters_of(summary)
    assert len(made.summary.split()) == len(summary.split())


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(["truncate", "drop", "glue"]), SUMMARIES, SEEDS)
def test_nothing_is_added(kind, summary, seed):
    made = make(kind, summary, seed)
    assume(made is not None)
    assert not letters_of(made.summary) - letters_of(summary)


@settings(deadline=None, max_examples=60)
@given(SUMMARIES, SEEDS)
def test_truncate_keeps_a_beginning(summary, seed):
    made = make("truncate", summary, seed)
    assume(made is not None)
    before, after = summary.split(), made.summary.split()
    assert before[: len(after)] == after
    assert made.label == pytest.approx(len(after) / len(before))


@settings(deadline=None, max_examples=60)
@given(SUMMARIES, SEEDS)
def test_double_adds_at_most_half(summary, seed):
    made = make("double", summary, seed)
    assume(made is not None)
    before, after = len(summary.split()), len(made.summary.split())
    assert 1 <= after - before <= max(before // 2, 1)
    assert made.label == pytest.approx(1 - (after - before) / before)
    assert not letters_of(summary) - letters_of(made.summary)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(["repeat", "intrude", "negate", "glue"]), SUMMARIES, SEEDS)
def test_labels_are_shares_of_words_in_sentences_left_alone(kind, summary, seed):
    made = make(kind, summary, seed)
    assume(made is not None)
    name = {"repeat": "repeated", "intrude": "replaced", "negate": "negated", "glue": "glued"}[kind]
    changed = {item["at"] for item in made.change[name]}
    sentences = take_apart(summary)
    left = sum(len(sentence.words) for place, sentence in enumerate(sentences) if place not in changed)
    assert changed
    assert made.label == pytest.approx(left / len(summary.split()))
    now = Counter(map(bare, made.summary.split()))
    for place, sentence in enumerate(sentences):
        # The first word may change its case, the last its marks.
        if place not in changed:
            assert not Counter(map(bare, sentence.words[1:-1])) - now


@settings(deadline=None, max_examples=60)
@given(SUMMARIES, SEEDS)
def test_repeated_sentences_stand_there_twice(summary, seed):
    made = make("repeat", summary, seed)
    assume(made is not None)
    sentences = take_apart(summary)
    for item in made.change["repeated"]:
        copied = " ".join(map(bare, sentences[item["copy_of"]].words)).strip()
        assert " ".join(map(bare, made.summary.split())).count(copied) >= 2
