import pytest

from negsample.negatives.rebuild import count_words, put_together, take_apart
from negsample.sentences import split_sentences


def words_of(text):
    return [list(sentence.words) for sentence in take_apart(text)]


def test_sentences_words_endings_and_lines():
    sentences = take_apart('Rain fell all day. "Stay inside" said Ann.\nThe river rose')
    assert [sentence.words for sentence in sentences] == [
        ("Rain", "fell", "all", "day."),
        ('"Stay', 'inside"', "said", "Ann."),
        ("The", "river", "rose"),
    ]
    assert [sentence.ending for sentence in sentences] == [".", ".", ""]
    assert [sentence.new_line for sentence in sentences] == [False, False, True]
    assert count_words(sentences) == 11


def test_blank_text_has_no_sentence():
    assert take_apart(" \n\t ") == ()


def test_a_border_inside_a_word_is_none():
    assert words_of("你好。再见。 谢谢。") == [["你好。再见。"], ["谢谢。"]]


def test_put_together_without_change_gives_the_words_back():
    text = "One  two three.\nFour five.  Six"
    assert put_together(take_apart(text), words_of(text)) == "One two three.\nFour five. Six"


def test_the_full_stop_moves_to_the_word_that_is_last():
    sentences = take_apart("He left, quickly. She stayed.")
    assert put_together(sentences, [["He", "left,"], ["She", "stayed."]]) == "He left. She stayed."


def test_a_stop_that_stands_alone_moves_too():
    assert put_together(take_apart("He left quickly ."), [["He", "left"]]) == "He left."


def test_a_sentence_that_lost_its_first_word_begins_upper_case():
    text = put_together(take_apart("It rained. The boat sank."), [["It", "rained."], ["boat", "sank."]])
    assert text == "It rained. Boat sank."
    assert len(split_sentences(text)) == 2


def test_lower_case_sentences_stay_lower_case():
    assert put_together(take_apart("all of it sank"), [["of", "it", "sank"]]) == "of it sank"


def test_a_letter_without_one_upper_case_form_is_left():
    assert put_together(take_apart("Die ßa."), [["ßa."]]) == "ßa."


def test_line_breaks_stay_where_sentences_are_gone():
    sentences = take_apart("First line here\nSecond line here\nThird line here")
    assert put_together(sentences, [["First"], [], ["Third", "here"]]) == "First\nThird here"
    assert put_together(sentences, [[], [], ["Third"]]) == "Third"


@pytest.mark.parametrize(
    ("text", "now"),
    [
        # "J." before a capital is taken for an initial, "Mr." for a title.
        ("They met J Smith. Then they left.", [["They", "met", "J"], ["Then", "they", "left."]]),
        ("He saw Mr Hill. Then he left.", [["He", "saw", "Mr"], ["Then", "he", "left."]]),
    ],
)
def test_sentences_that_would_run_together_get_lines(text, now):
    joined = put_together(take_apart(text), now)
    assert "\n" in joined
    assert len(split_sentences(joined)) == 2


def test_a_wrapped_sentence_is_one_sentence_on_one_line():
    sentences = take_apart("The mayor closed\nthe old bridge. The\nferry sailed\nThe end")
    assert [sentence.words for sentence in sentences] == [
        ("The", "mayor", "closed", "the", "old", "bridge."),
        ("The", "ferry", "sailed"),
        ("The", "end"),
    ]
    assert [sentence.new_line for sentence in sentences] == [False, False, True]
    now = [["The", "bridge."], ["The", "ferry"], ["The", "end"]]
    assert put_together(sentences, now) == "The bridge. The ferry\nThe end"


def test_lines_that_would_be_taken_for_wrapped_ones_get_paragraphs():
    # Without its number the second line begins in lower case, and the first has no end mark.
    joined = put_together(take_apart("Two men came\n3 boats sank"), [["Two", "men"], ["boats", "sank"]])
    assert joined == "Two men\n\nboats sank"
    assert len(split_sentences(joined)) == 2
