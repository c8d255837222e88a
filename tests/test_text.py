"""What counts as the same text and as a word: cases by hand, and laws."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.models.embedding_cache import key
from negsample.negatives.index import summary_digest
from negsample.records import document_key
from negsample.text import as_written, fold, is_english, readable, word_count, word_tokens

# Texts that look the same.
SAME = [
    ("Le café a fermé.", "Le cafe\u0301 a ferme\u0301."),
    ("The office is fine.", "The oﬃce is ﬁne."),
    ("It cooperated at once.", "It co\u00adoper\u00adated at once."),
    ("It cooperated at once.", "It co\u00ad\noperated at once."),
    ('Don\'t say "no".', "Don’t say “no”."),
    ("A café is here.", "A café\u00ad is here."),
    ("Don't say it.", "Donʼt say it."),
    ("GDP rose 12 per cent.", "ＧＤＰ ｒｏｓｅ １２ per cent."),
    ("Paid 300 euros.", "Paid\u00a0300\u202feuros."),
    ("A well-known state-run firm, 1990-2000.", "A well‑known state‐run firm, 1990–2000."),
    ("No space here.", "No\u200b sp\u2060ace\ufeff here\u200e."),
    ("CO2 and km2", "CO₂ and km²"),
    ("3 1/2 hours", "3½ hours"),
    ("カフェとガス", "ｶﾌｪとｶﾞｽ"),
    ("한국", unicodedata.normalize("NFD", "한국")),
    ("مدرسة", "ﻣﺪﺭﺳﺔ"),
    ("一日", "⼀⽇"),
    ("fett gesetzt", "𝐟𝐞𝐭𝐭 gesetzt"),
]
# Texts that don't.
DIFFERENT = [
    ("resume", "résumé"),
    ("10² people", "102 people"),
    ("3½", "31/2"),
    ("می‌خواهم", "میخواهم"),
    ("क्‍ष", "क्ष"),
    ("قَلب", "قلب"),
]


@pytest.mark.parametrize(("plain", "other"), SAME)
def test_texts_that_look_the_same_are_the_same(plain: str, other: str) -> None:
    assert plain != other
    assert word_tokens(plain) == word_tokens(other) != []
    assert word_count(plain) == word_count(other)
    assert document_key(plain) == document_key(other)
    assert summary_digest(plain) == summary_digest(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_carries_meaning_is_kept(one: str, other: str) -> None:
    assert document_key(one) != document_key(other)
    assert word_tokens(one) != word_tokens(other)


def test_encoders_read_composed_text_with_its_quotes_and_marks() -> None:
    assert readable("cafe\u0301 ﬁne\u00a0ｇａｓ co\u00adop\u200b “q” x² 5−3 well‑known") == (
        "café fine gas coop “q” x² 5−3 well-known"
    )
    assert readable("今日は晴れ！明日は？") == "今日は晴れ！明日は？"
    assert readable("น้ำ") == "น้ำ"  # NFKC would take SARA AM apart, which Thai vocabularies know whole
    assert readable("a\ud800b") == "a\ufffdb"
    assert key("cafe\u0301") == key("café")
    assert key("don’t") != key("don't")


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_stays_as_it_is(text: str) -> None:
    assert fold(text) is text
    assert readable(text) is text


@given(st.text(st.sampled_from("ae\u0301ç\u00ad\u200b\u2060ﬁｱﾞ日กำिक‑’“½²1 \n م\ufe0f😀한"), max_size=40))
def test_folding_twice_is_folding_once_whatever_the_normal_form(text: str) -> None:
    assert readable(readable(text)) == readable(text)
    assert fold(fold(text)) == fold(text) == fold(readable(text))
    for form in ("NFC", "NFD"):
        assert fold(unicodedata.normalize(form, text)) == fold(text)  # type: ignore[arg-type]


def test_words_by_hand() -> None:
    assert word_tokens("Кот сел. L’été d'or — 12") == ["кот", "сел", "l'été", "d'or", "12"]
    assert word_tokens("हिन्दी में लिखा") == ["हिन्दी", "में", "लिखा"]  # vowel signs belong to the word
    assert word_tokens("2024年3月GDP增长") == ["2024", "年", "3", "月", "gdp", "增", "长"]
    assert word_tokens("猫がいる") == ["猫", "が", "い", "る"]
    # Pairs of letters with their marks: a Thai letter alone says nothing.
    assert word_tokens("ก ขคง") == ["ก", "ขค", "คง"]


def test_counts_by_hand() -> None:
    assert word_count("Rain fell , all day .") == 6  # as white space has it
    assert word_count("今天下雨，明天晴。") == 7
    assert word_count("iPhone 15 在北京 发布") == 7
    assert word_count("สวัสดี") == 4
    assert word_count("") == 0


def test_what_is_shown_is_the_text_as_written() -> None:
    text = "Le cafe\u0301\u200b est\u00a0oﬃciel.\nIl co\u00ad\nopère."
    pieces = ["Le café est officiel.", "Il coopère."]
    first, second = as_written(text, pieces)
    assert first(0, len(pieces[0])) == "Le cafe\u0301\u200b est oﬃciel."
    assert first(3, 7) == "cafe\u0301\u200b"
    assert first(12, 20) == "oﬃciel"
    assert second(3, 10) == "co\u00ad opère"
    assert second(3, 3) == ""


@given(st.text(max_size=50))
def test_any_text_is_found_again(text: str) -> None:
    whole = readable(text)
    (show,) = as_written(text, [whole])
    assert not show(0, 0)
    if text == whole:
        assert show(0, len(text)).split() == text.split()


def test_marks_after_full_width_letters_are_read_as_theirs_and_those_of_chinese_stay() -> None:
    assert readable("Ｔｈｅ ｃａｔ， １．５ ｋｇ！") == "The cat, 1.5 kg!"
    assert readable("他走了，她也走了！") == "他走了，她也走了！"


ENGLISH = (
    "The council has voted to close the bridge, which was built by a firm that is no more. They say it would cost "
    "too much to mend, and there have been two accidents. "
)
SPANISH = (
    "El consejo ha votado a favor de cerrar el puente, que fue construido por una empresa que ya no existe. Dicen "
    "que repararlo costaría demasiado, y que ha habido dos accidentes este año en la ciudad. "
)
BASQUE = (
    "Udalak zubia ixtearen alde bozkatu du, jada existitzen ez den enpresa batek eraiki zuena. Konpontzea "
    "garestiegia izango litzatekeela diote, eta aurten bi istripu izan dira hirian, joan den astean bat eta gaur "
    "bestea. "
)
GERMAN = (
    "Der Rat hat dafür gestimmt, die Brücke zu schließen, die von einer Firma gebaut wurde, die es nicht mehr gibt. "
    "Die Reparatur sei zu teuer, heißt es, und es habe in diesem Jahr zwei Unfälle in der Stadt gegeben. "
)


def test_which_texts_are_english() -> None:
    assert is_english(ENGLISH)
    assert is_english(ENGLISH.lower())
    assert not any(map(is_english, (SPANISH, BASQUE, GERMAN, "理事会は橋の閉鎖を決めた。" * 5)))
    # Too short to tell, but by its letters.
    assert is_english("Puente cerrado")
    assert not is_english("Мост закрыт")
