"""A summary taken apart into sentences of words, and put together again."""

import pytest

from negsample.negatives.rebuild import count_words, put_together, take_apart
from negsample.sentences import split_sentences


def test_sentences_words_endings_and_lines():
    sentences = take_apart('Rain fell all day. "Stay inside" said Ann.\nThe river rose')
    assert [sentence.text for sentence in sentences] == [
        "Rain fell all day.",
        '"Stay inside" said Ann.',
        "The river rose",
    ]
    assert [sentence.ending for sentence in sentences] == [".", ".", ""]
    assert [sentence.new_line for sentence in sentences] == [False, False, True]
    assert count_words(sentences) == 11
    assert take_apart(" \n\t ") == ()
    # A border inside a word is none; a wrapped sentence is one sentence on one line.
    assert [sentence.words for sentence in take_apart("你好。再见。 谢谢。")] == [("你好。再见。",), ("谢谢。",)]
    wrapped = take_apart("The mayor closed\nthe old bridge. The\nferry sailed\nThe end")
    assert [sentence.text for sentence in wrapped] == [
        "The mayor closed the old bridge.",
        "The ferry sailed",
        "The end",
    ]


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("One  two three.\nFour five.  Six", None, "One two three.\nFour five. Six"),
        # The full stop moves to the word that is last, one that stands alone too.
        ("He left, quickly. She stayed.", ["He left,", "She stayed."], "He left. She stayed."),
        ("He left quickly .", ["He left"], "He left."),
        # A sentence that lost its first word begins in upper case, unless it did not.
        ("It rained. The boat sank.", ["It rained.", "boat sank."], "It rained. Boat sank."),
        ("all of it sank", ["of it sank"], "of it sank"),
        ("Die ßa.", ["ßa."], "ßa."),
        # Line breaks stay where sentences are gone.
        ("First line here\nSecond line here\nThird line here", ["First", "", "Third here"], "First\nThird here"),
        ("First line here\nSecond line here\nThird line here", ["", "", "Third"], "Third"),
        # "J." before a capital is taken for an initial, "Mr." for a title: they get lines.
        ("They met J Smith. Then they left.", ["They met J", "Then they left."], "They met J.\nThen they left."),
        ("He saw Mr Hill. Then he left.", ["He saw Mr", "Then he left."], "He saw Mr.\nThen he left."),
        ("The mayor closed\nthe bridge.\nThe end", ["The bridge.", "The end"], "The bridge.\nThe end"),
        # Without its number the second line begins in lower case, and the first has no end mark: they get paragraphs.
        ("Two men came\n3 boats sank", ["Two men", "boats sank"], "Two men\n\nboats sank"),
    ],
)
def test_put_together(text, now, expected):
    made = put_together(take_apart(text), now and [words.split() for words in now])
    assert made == expected
    assert len(split_sentences(made)) == (len(take_apart(text)) if now is None else sum(map(bool, now)))
