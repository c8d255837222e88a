"""What counts as the same text, and what counts as a word: one place decides, for every script.

``fold`` is what is compared (words in metrics and features, the identity of documents), ``readable`` what encoders are
given; both leave ASCII as it is. What is shown and written is the user's own text, which ``as_written`` finds again.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

# Scripts without spaces between words: in the first a character is a word, or nearly; in the others it is a letter.
CHARACTERS = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
LETTERS = r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
# A word's letters, marks and digits in the scripts that set spaces.
SPACED = rf"[[\w\p{{N}}]--[{CHARACTERS}{LETTERS}]]"

_PLAIN_WORD = re.compile(r"\w+(?:'\w+)*")
_WORD = rf"(?P<run>[{LETTERS}&&\w]+)|[{CHARACTERS}&&\w]\p{{M}}*|{SPACED}+(?:'{SPACED}+)*"
_UNSPACED = rf"[{CHARACTERS}{LETTERS}]"
_UNIT = rf"[{_UNSPACED}&&\w--\p{{M}}]|{SPACED}+"
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_FOREIGN_LETTER = re.compile(r"[^\W\d_a-zA-Z]")
_LETTER = re.compile(r"[a-zA-Z]")
# Marks, and scripts that need more than runs of letters.
_INTRICATE = re.compile("[\u0300-\u036f\u0483-\u0489\u0591-\u1dff\u20d0-\u20ff\u2c00-\U0010ffff]")
# Unicode's "default ignorable": soft hyphens (with the line break that they were for), zero-width marks, directions,
# variation selectors. Two joiners mean something after letters of Arabic and Indian scripts (Unicode 16, §23.2).
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_MAYBE_UNSEEN = re.compile(f"[{_IGNORABLE}]")
_BLANK = re.compile(f"[\\s\x00-\x1f\x7f-\x9f{_IGNORABLE}]*")
_UNSEEN = (
    r"\u00ad(?:[ \t]*[\r\n]+\s*)?|[\p{DI}--[\u200c\u200d]]|"
    r"(?<![^\p{Latin}\p{Greek}\p{Cyrillic}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Common}\p{Inherited}])"
    r"[\u200c\u200d]"
)
_CLUSTER = r"\u00ad(?:[ \t]*[\r\n]+\s*)?|\X(?:\p{DI}+\p{M}*)*"
_POWER = re.compile("(?<=[0-9])(?=[⁰¹²³⁴⁵⁶⁷⁸⁹])")
# In Chinese and Japanese these marks are the usual ones; after a full-width letter or digit they belong to it.
_WIDE_MARK = re.compile("(?<=[０-９Ａ-Ｚａ-ｚ])[！-／：-＠［-｀｛-～]")
# Other shapes of a letter or digit: presentation forms, full width, mathematical letters.
_SHAPES = frozenset(["<wide", "<narrow", "<initial", "<medial", "<final", "<isolated", "<font"])
# Function words of English that no other language of its letters has much; their least share, of as many words, at the
# beginning of a text.
_FUNCTION_WORDS = frozenset(
    """
    the of and to is that it was with his they this have from had by what we but not are you she which their would
    there been has
    """.split()
)
_ENGLISH, _FEW, _TELLING = 0.06, 30, 4000
_QUOTES = dict.fromkeys("‘’‚‛‹›´ʹʻʼʽˈ′‵＇", "'") | dict.fromkeys("“”„‟«»″‶〝〞〟＂", '"')


class _Letters(dict[int, str]):
    """A table for ``str.translate`` that is filled by ``rule`` as letters are met."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule

    def __missing__(self, code: int) -> str:
        found = self[code] = self._rule(chr(code))
        return found


def _read(letter: str) -> str:
    kind = unicodedata.category(letter)
    if kind == "Zs":
        return " "
    if letter in "‐‑":
        return "-"
    shape = unicodedata.decomposition(letter).partition(">")[0]
    # Ligatures ("ﬁ"), and the radicals that PDFs write for the characters of which they are.
    joined = shape == "<compat" and (0xFB00 <= ord(letter) <= 0xFB4F or 0x2E80 <= ord(letter) <= 0x2FDF)
    return unicodedata.normalize("NFKC", letter) if joined or (shape in _SHAPES and kind[0] in "LN") else letter


def _straight(letter: str) -> str:
    dash = letter == "−" or unicodedata.category(letter) == "Pd"
    return "-" if dash else _QUOTES.get(letter, letter)


def _fold(letter: str) -> str:
    letter = _straight(letter)
    folded = "".join(map(_straight, unicodedata.normalize("NFKC", letter)))
    if unicodedata.decomposition(letter).startswith("<fraction>"):
        return " " + folded.replace("\u2044", "/")
    if letter.isspace():
        return _read(letter)
    # A spacing accent would become a space.
    return letter if folded.startswith(" ") else folded


_READ, _STRAIGHT, _FOLD = map(_Letters, (_read, _straight, _fold))


@cache
def pattern(text: str) -> "regex.Pattern[str]":
    """Compile ``text``, which may name scripts and subtract sets; when first asked for, because that takes a while."""
    import regex

    return regex.compile(text, regex.V1)


def is_blank(text: str) -> bool:
    """Tell whether a reader sees nothing of ``text``: white space, control characters, zero-width marks."""
    return _BLANK.fullmatch(text) is not None


def _translate(text: str, table: _Letters) -> str:
    return _BEYOND_ASCII.sub(lambda found: found[0].translate(table), text)


def _seen(text: str) -> str:
    """``text`` composed, without what is not seen."""
    text = unicodedata.normalize("NFC", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    text = _WIDE_MARK.sub(lambda found: chr(ord(found[0]) - 0xFEE0), text)
    if not _MAYBE_UNSEEN.search(text):
        return text
    return unicodedata.normalize("NFC", pattern(_UNSEEN).sub("", text))


def readable(text: str) -> str:
    """Return ``text`` as encoders were trained to read it; the same again for what this returns.

    Composed (NFC), ligatures, full-width letters and the like in their usual shape, every kind of space a space, unseen
    characters out. Quotes, dashes and the marks of Chinese and Japanese stay. Half of a surrogate pair becomes U+FFFD.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _translate(_seen(text), _READ))


def straight(text: str) -> str:
    """Return ``text`` with straight quotes and apostrophes and plain hyphens; each letter stays in its place."""
    return text if text.isascii() else _translate(text, _STRAIGHT)


def fold(text: str) -> str:
    """Return what is compared in place of ``text``: differences that a reader would not see are gone.

    ``readable``, and what Unicode holds compatible (NFKC) besides, straight quotes, hyphens for dashes. A fraction stays
    apart from what is before it, and so does a power (10² is not 102).
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _translate(_POWER.sub("^", _seen(text)), _FOLD))


def find_spans(words: str, text: str) -> Iterator[tuple[int, int]]:
    """Find where the words of ``text`` begin and end, in order.

    ``words`` is a ``pattern``. What its group ``run`` takes is a stretch of letters without spaces: its words are the pairs of
    neighbouring letters (with their marks), which overlap (character n-grams: McNamee and Mayfield 2004).
    """
    for match in pattern(words).finditer(text):
        if match.lastgroup != "run":
            yield match.span()
            continue
        letters = [letter.span() for letter in pattern(r"\X").finditer(text, pos=match.start(), endpos=match.end())]
        yield from ((one[0], other[1]) for one, other in pairwise(letters)) if len(letters) > 1 else letters


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return where the words of ``text`` begin and end; punctuation is none, an apostrophe inside a word stays.

    Chinese and Japanese: each character is a word. Thai, Lao, Khmer, Burmese: see ``find_spans``.
    """
    return list(find_spans(_WORD, straight(text)))


def word_tokens(text: str) -> list[str]:
    """Return the words of ``text`` (see ``word_spans``), folded and in lower case."""
    text = fold(text).lower()
    if not _INTRICATE.search(text):
        return _PLAIN_WORD.findall(text)
    return [text[begin:stop] for begin, stop in word_spans(text)]


def has_no_spaces(word: str) -> bool:
    """Tell whether ``word`` has a character of a script that sets no spaces between words."""
    return _INTRICATE.search(word) is not None and pattern(_UNSPACED).search(word) is not None


def word_count(text: str) -> int:
    """Return the number of white-space-separated tokens; one in a script without spaces counts as its characters."""
    tokens = fold(text).split()
    return sum(len(pattern(_UNIT).findall(token)) if has_no_spaces(token) else 1 for token in tokens)


def mostly_foreign(text: str) -> bool:
    """Tell whether most letters of ``text`` are others than a–z, A–Z."""
    if text.isascii():
        return False
    text = fold(text)
    return len(_FOREIGN_LETTER.findall(text)) > len(_LETTER.findall(text))


def is_english(text: str) -> bool:
    """Tell whether ``text`` is in English, as far as its function words tell; one of under 30 words, whether its letters are.

    They are a sixth of English text and more, and next to none of another language's: those that it has too are left out.
    """
    tokens = word_tokens(text[:_TELLING])
    if len(tokens) < _FEW:
        return not mostly_foreign(text)
    return sum(token in _FUNCTION_WORDS for token in tokens) >= _ENGLISH * len(tokens)


def as_written(text: str, pieces: Sequence[str]) -> list[Callable[[int, int], str]]:
    """Return for each of ``pieces`` what its characters from one place to another are in ``text``, white space folded.

    ``pieces`` are ``readable(text)`` cut up: all its characters in order, but for white space.
    """
    spans: list[tuple[int, int]] = []
    for match in pattern(_CLUSTER).finditer(text):
        spans += [match.span()] * _letters(readable(match[0]))
    if len(spans) != _letters("".join(pieces)):
        # Marks that join over what is not seen: the pieces are the nearest thing.
        text = "".join(pieces)
        spans = [(place, place + 1) for place, letter in enumerate(text) if not letter.isspace()]

    def take(before: int, piece: str, begin: int, stop: int) -> str:
        own = spans[before + _letters(piece[:begin]) : before + _letters(piece[:stop])]
        return " ".join(text[own[0][0] : own[-1][1]].split()) if own else ""

    found: list[Callable[[int, int], str]] = []
    before = 0
    for piece in pieces:
        found.append(partial(take, before, piece))
        before += _letters(piece)
    return found


def _letters(text: str) -> int:
    return sum(map(len, text.split()))
