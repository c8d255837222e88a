"""What counts as the same text and as a word: cases by hand, and laws."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.corpora import load_pairs
from negsample.models.embedding_cache import key
from negsample.negatives.index import summary_digest
from negsample.records import document_key
from negsample.sentences import Turn, normalise, split_sentences, turns, words
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
    # A sentence goes on after a quotation, and after a mark before lower case.
    ("“Will you resign?” he was asked. He left.", ["“Will you resign?” he was asked.", "He left."]),
    ('"Stop!" she said. "Stop!" They went.', ['"Stop!" she said.', '"Stop!"', "They went."]),
    ("« Partez-vous ? » demanda-t-il. Il part.", ["« Partez-vous ? » demanda-t-il.", "Il part."]),
    ("`` Will you go ? '' he asked . She left .", ["`` Will you go ? '' he asked .", "She left ."]),
    ("Yahoo! shares fell. Toto! won it.", ["Yahoo! shares fell.", "Toto! won it."]),
    ("Yahoo! Inc. grew. He used Yahoo! The firm grew.", ["Yahoo! Inc. grew.", "He used Yahoo!", "The firm grew."]),
    ("who came? nobody! we waited.", ["who came?", "nobody!", "we waited."]),
    ("He owns one. iPhones sold well.", ["He owns one.", "iPhones sold well."]),
    ("“你会辞职吗？”他被问道。他走了。", ["“你会辞职吗？”他被问道。", "他走了。"]),
    ("“我走了。”她站起来。", ["“我走了。”", "她站起来。"]),
    ("「もう帰る。」と彼は言った。雨だ。", ["「もう帰る。」と彼は言った。", "雨だ。"]),
    # Other scripts' marks.
    ("今天下雨!明天晴.好?是的。", ["今天下雨!", "明天晴.", "好?", "是的。"]),
    ("هل ستستقيل؟ لا۔ نعم.", ["هل ستستقيل؟", "لا۔", "نعم."]),
    ("वह गया। क्या सच में? ठीक है॥", ["वह गया।", "क्या सच में?", "ठीक है॥"]),
    ("ភ្លៀង។ ខ្យល់។", ["ភ្លៀង។", "ខ្យល់។"]),
    ("He left.\u200b She stayed.\u200b", ["He left.\u200b", "She stayed.\u200b"]),
    # Ordinals, and numbers of items.
    ("Am 3. Oktober kam er. Es war so.", ["Am 3. Oktober kam er.", "Es war so."]),
    ("Berlin, 3. Oktober 2004: Es regnet.", ["Berlin, 3. Oktober 2004: Es regnet."]),
    ("Der 2. Weltkrieg endete. Im 19. Jahrhundert auch.", ["Der 2. Weltkrieg endete.", "Im 19. Jahrhundert auch."]),
    ("Er kam als 3. Dann ging er.", ["Er kam als 3.", "Dann ging er."]),
    ("I am 30. Tom is 5. They won in 2004. It rained.", ["I am 30.", "Tom is 5.", "They won in 2004.", "It rained."]),
    ("1. FC Köln gewann. 2. Some rain fell.", ["1. FC Köln gewann.", "2. Some rain fell."]),
    # A wrapped line is none of its own; a highlight is.
    (
        "The council voted to close\nthe old bridge. The mayor\nagreed.",
        ["The council voted to close the old bridge.", "The mayor agreed."],
    ),
    (
        "Police say a man was shot\neBay shares fall\nHe was taken away",
        ["Police say a man was shot", "eBay shares fall", "He was taken away"],
    ),
    ("police say a man was shot\nhe was taken away", ["police say a man was shot", "he was taken away"]),
    ("The office co\u00ad\noperated at once.", ["The office cooperated at once."]),
    ("You need:\nflour\nsugar", ["You need:", "flour", "sugar"]),
    ("The heading\n\nand a paragraph.", ["The heading", "and a paragraph."]),
    # Full-width stops, spaced ellipses, further abbreviations.
    ("Ｔｈｅ ｃａｔ ｓａｔ． Ｉｔ ｌｅｆｔ．", ["Ｔｈｅ ｃａｔ ｓａｔ．", "Ｉｔ ｌｅｆｔ．"]),
    ("猫坐下．它走了．", ["猫坐下．", "它走了．"]),
    ("Pi is ３．１４ here. It is.", ["Pi is ３．１４ here.", "It is."]),
    ("He said . . . nothing.", ["He said . . . nothing."]),
    ("He said . . . Then he left . She stayed .", ["He said . . .", "Then he left .", "She stayed ."]),
    ("(See p. 5.) It was c. 1950.", ["(See p. 5.)", "It was c. 1950."]),
    ("Ft. Worth won. It did.", ["Ft. Worth won.", "It did."]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_cases(text, expected):
    assert split_sentences(text) == expected


def test_turns_by_hand():
    chat = "Ann: Hi Bo. You there?\n\nbo b : yes\nand late\nAnn: ok"
    lines = ["Ann: Hi Bo. You there?", "bo b : yes", "and late", "Ann: ok"]
    speakers, said = ["Ann", "bo b", "bo b", "Ann"], ["Hi Bo. You there?", "yes", "and late", "ok"]
    assert turns(chat) == tuple(map(Turn, speakers, said, lines))
    # A line that begins in lower case was not wrapped: it is a turn's.
    assert split_sentences(chat) == ["Ann: Hi Bo.", "You there?", "bo b : yes", "and late", "Ann: ok"]


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ("#Person1#: Hello.\n#Person2#: Hi!\n#Person1#: So?", ["#Person1#", "#Person2#", "#Person1#"]),
        ("Professor E: So .\r\nPhD A: Tran\r\nProfessor E: Um", ["Professor E", "PhD A", "Professor E"]),
        ("(They sit down.)\nZoë O’Hara: Yes.\nZoë O’Hara: No.", ["", "Zoë O’Hara", "Zoë O’Hara"]),
        ("小明：你好。\n小红：你好！\n小明：再见。", ["小明", "小红", "小明"]),
    ],
)
def test_who_speaks(text, speakers):
    assert [turn.speaker for turn in turns(text) or ()] == speakers


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ann: Hi. Bo: Hi. Ann: Bye.",
        # A form, whose names don't come again; half of the lines; names that are too long; times, and addresses.
        "Place: the hall\nTime: noon\nPrice: free",
        "Ann: Hi.\nShe waves.\nAnn: Bye.\nShe goes.",
        "One two three four five: a\nOne two three four five: b",
        "10:30 coffee\n10:30 tea\n11:15 lunch",
        "http://a.org\nhttp://b.org",
    ],
)
def test_what_is_no_dialogue(text):
    assert turns(text) is None


def test_no_text_of_the_sample_is_a_dialogue():
    pairs = list(load_pairs("sample"))
    assert len(pairs) == 80
    assert all(turns(text) is None for pair in pairs for text in (pair.document, pair.summary))


@given(st.lists(st.tuples(st.sampled_from(["Ann", "bo", "Dr. X"]), st.text("ab. A!:", min_size=1)), min_size=4))
def test_a_sentence_stays_in_its_turn(spoken):
    lines = [f"{name}: a{said}" for name, said in spoken]
    assert split_sentences("\n".join(lines)) == [part for line in lines for part in split_sentences(line)]


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
    assert len(split_sentences("Dr. " * 50_000)) == 1
    assert len(split_sentences("yes! " * 50_000)) == 50_000
    assert len(split_sentences("A line of\n" + "many words\n" * 50_000)) == 1
