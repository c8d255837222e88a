"""Sentences and words: cases by hand, and laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.sentences import normalise, split_sentences, words

CASES = [
    ("He left. She stayed.", ["He left.", "She stayed."]),
    ("Who came? Nobody! We waited…", ["Who came?", "Nobody!", "We waited…"]),
    ("Dr. Ito met Mr. Bell at 3.5 p.m. on 4 May.", ["Dr. Ito met Mr. Bell at 3.5 p.m. on 4 May."]),
    ("J. R. Moss and T. Lind won.", ["J. R. Moss and T. Lind won."]),
    ("It cost $3.50. They paid.", ["It cost $3.50.", "They paid."]),
    ("“Go.” She went.", ["“Go.”", "She went."]),
    ('He said "No." Then he left.', ['He said "No."', "Then he left."]),
    ("(It rained.) We ran.", ["(It rained.)", "We ran."]),
    ("Acme Inc. sold it. The Acme Inc. They said so.", ["Acme Inc. sold it.", "The Acme Inc.", "They said so."]),
    ("She said no. Then he sat. See No. 5 there.", ["She said no.", "Then he sat.", "See No. 5 there."]),
    ("See e.g. Fig. 2 in the text.", ["See e.g. Fig. 2 in the text."]),
    # Detokenised, as many published outputs are.
    ("he left . she stayed . it rained", ["he left .", "she stayed .", "it rained"]),
    ("One line\nAnother line\r\n\n  Third ", ["One line", "Another line", "Third"]),
    ("今日は晴れ。明日は雨！", ["今日は晴れ。", "明日は雨！"]),
    ("क्या? हाँ। ठीक है।", ["क्या?", "हाँ।", "ठीक है।"]),
    ("no end mark", ["no end mark"]),
    ("", []),
    (" \n\t ", []),
    ("Version 2.0 came out. It was 1.5 times faster.", ["Version 2.0 came out.", "It was 1.5 times faster."]),
    ("Wait... what happened?", ["Wait... what happened?"]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_cases(text, expected):
    assert split_sentences(text) == expected


TEXTS = st.text(st.sampled_from("ab AB.!?…。\"')\n\t1ş̌ \u2028"), max_size=60)


@given(TEXTS)
def test_no_word_is_lost_or_changed(text):
    sentences = split_sentences(text)
    # CJK marks may end a sentence inside a token; everywhere else tokens stay whole.
    assert "".join("".join(sentences).split()) == "".join(text.split())
    if "。" not in text:
        assert " ".join(sentences).split() == words(text)


@given(TEXTS)
def test_a_sentence_splits_no_further(text):
    for sentence in split_sentences(text):
        assert sentence.strip() == sentence != ""
        assert "\n" not in sentence


@given(st.text())
def test_any_text_is_split(text):
    assert all(split_sentences(text))


def test_normalise_folds_case_and_space():
    assert normalise("  The\tCAT \n sat ") == "the cat sat" == normalise("the cat sat")
    assert normalise("Straße") == normalise("STRASSE")


def test_a_long_text_takes_linear_time():
    assert len(split_sentences("word " * 100_000)) == 1
    assert len(split_sentences("It was so. " * 20_000)) == 20_000
    assert len(split_sentences("a" * 100_000)) == 1
    assert len(split_sentences("x." * 50_000)) == 1
