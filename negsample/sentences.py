"""Splitting text into sentences and words: one rule, used everywhere.

A *word* is a white-space-separated token. A *sentence* ends at ``.``, ``!``, ``?``, ``…`` or their
CJK, Arabic and Devanagari counterparts, with closing quotes and brackets, when white space and something that
can open a sentence follow; and at every line break. Abbreviations, initials, and decimal numbers do not end one.
Texts whose publishers set spaces before punctuation ("He left . She stayed .") are split as well.
"""

import re

# Abbreviations after which a full stop does not end the sentence, lower case, without the last full stop.
ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr prof sr jr st mt gen col lt sgt capt cmdr maj rep sen gov pres hon rev fr vs etc al
    fig figs eq eqs ref refs sec no nos vol pp ed eds approx est dept univ inc ltd co corp jan feb mar
    apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun e.g i.e cf viz u.s u.k u.n a.m p.m
    """.split()
)
# These abbreviations often stand at the end of a sentence: a capital after them is taken as a new sentence.
_MAY_END = frozenset(["etc", "inc", "ltd", "co", "corp", "jr", "sr", "al", "u.s", "u.k", "u.n", "a.m", "p.m"])
_STARTERS = frozenset(
    """
    the a an he she it they we i you this that these those his her its their our my but and in on at
    for with as if when while after before however there here what who why how not no
    """.split()
)

_END = re.compile(r"""(?:[.!?…]+["'”’»)\]]*(?=\s|$)|[。！？؟।۔]+["'”’»」』）)\]]*)""")
_LINE = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_OPENERS = "\"'“‘«([{¿¡-–—*•`#$£€"
SENTENCE_END = re.compile(r"""[.!?…。！？؟।۔]+["'”’»」』）)\]]*$""")


def words(text: str) -> list[str]:
    """The white-space-separated tokens of ``text``."""
    return text.split()


def _ends_sentence(line: str, start: int, stop: int) -> bool:
    """Whether the run of end marks ``line[start:stop]`` closes a sentence."""
    marks = line[start:stop]
    rest = line[stop:].lstrip()
    if not rest:
        return True
    if marks[0] in "。！？؟।۔":
        return True
    following = rest.lstrip(_OPENERS)
    if not following:
        # Only quotes or dashes are left: they belong to this sentence.
        return False
    if not marks.startswith(".") or marks.startswith(".."):
        return not following[0].islower() or marks[0] in "!?"
    before = line[:start]
    token = before.rsplit(None, 1)[-1] if before.strip() else ""
    spaced = start > 0 and line[start - 1].isspace()
    if spaced:
        # Detokenised style: the stop stands alone. An abbreviation keeps its stop attached, so this is an end.
        return True
    bare = token.lstrip(_OPENERS).lower()
    if following[0].islower():
        return False
    if marks[-1] in "\"'”’»)]":
        return True
    if bare in ("no", "nos", "sec", "mon", "sun", "sat", "mar") and not following[0].isdigit():
        # Words of their own more often than short for number, section, or a day.
        return True
    if bare in ABBREVIATIONS:
        if bare not in _MAY_END:
            return False
        first = re.split(r"\W", following, maxsplit=1)[0].lower()
        return first in _STARTERS
    # An initial such as "J." before a capitalised name.
    return not (len(bare) == 1 and bare.isalpha() and bare != "i" and following[0].isupper())


def split_sentences(text: str) -> list[str]:
    """Sentences of ``text`` in order, each stripped and not blank; white space inside a sentence is folded.

    Joining the result with spaces gives the words of ``text`` back: ``" ".join(split_sentences(t)).split() == t.split()``.
    """
    sentences = []
    for line in _LINE.split(text):
        begin = 0
        for match in _END.finditer(line):
            if match.start() < begin or not _ends_sentence(line, match.start(), match.end()):
                continue
            sentences.append(line[begin : match.end()])
            begin = match.end()
        sentences.append(line[begin:])
    folded = (" ".join(sentence.split()) for sentence in sentences)
    return [sentence for sentence in folded if sentence]


def normalise(text: str) -> str:
    """Case and white space folded: two texts that agree after this count as the same."""
    return " ".join(text.split()).casefold()
