"""Splitting text into sentences and words: one rule, used everywhere.

A *word* is a white-space-separated token (what counts as one in scripts without spaces: ``negsample.text``). A *sentence*
ends at ``.``, ``!``, ``?``, ``…`` with closing quotes and brackets, when white space and something that can open a
sentence follow; at the marks of scripts that set no space after them; and at a line break, but not where a line was
only wrapped. Abbreviations, initials, ordinals and decimal numbers do not end one, nor does a mark before lower case.
In a dialogue (``turns``) a line is a turn, and no sentence runs over into the next.
Texts whose publishers set spaces before punctuation ("He left . She stayed .") are split as well.
"""

import re
from dataclasses import dataclass

from negsample.text import fold

# Abbreviations after which a full stop does not end the sentence, lower case, without the last full stop.
ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr prof sr jr st mt gen col lt sgt capt cmdr maj rep sen gov pres hon rev fr vs etc al
    fig figs eq eqs ref refs sec no nos vol pp ed eds approx est dept univ inc ltd co corp jan feb mar
    apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun e.g i.e cf viz u.s u.k u.n a.m p.m
    ft supt atty mme messrs nr str mio mrd bzw ул
    """.split()
)
# These abbreviations often stand at the end of a sentence: a capital after them is taken as a new sentence.
_MAY_END = frozenset(["etc", "inc", "ltd", "co", "corp", "jr", "sr", "al", "u.s", "u.k", "u.n", "a.m", "p.m"])
# Names with a mark of their own.
_MARKED_NAMES = frozenset(["yahoo", "jeopardy"])
_STARTERS = frozenset(
    """
    the a an he she it they we i you this that these those his her its their our my but and in on at
    for with as if when while after before however there here what who why how not no
    """.split()
)
# A number with a full stop is an ordinal after these and before these (German).
_BEFORE_ORDINAL = frozenset(
    "der die das dem den des am im zum zur vom beim bis ab seit und ein eine einem einen einer jeder jede jedes".split()
)
_MONTHS = frozenset(
    """
    januar jänner februar märz april mai juni juli august september oktober november dezember
    """.split()
)

# Marks that end a sentence whether or not a space follows: Chinese and Japanese, Arabic, Indian, Armenian, Ethiopic,
# Burmese, Khmer.
_FULL = "。｡！？．؟۔।॥։።፧။។៕"
# Closing quotes and brackets, and what is not seen.
_CLOSERS = r"""["'”’»)\]」』）】》〉\u00ad\u200b-\u200f\u2060\ufeff]*"""
_WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_END = re.compile(
    rf"(?:[{_FULL}][.!?…{_FULL}]*{_CLOSERS}|[.!?…‼⁇⁈⁉]+{_CLOSERS}(?=\s|$)|(?<=[{_WIDE}])[.!?]+{_CLOSERS}(?=[{_WIDE}]))"
)
_LINE = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_OPENERS = "\"'“‘«([{¿¡-–—*•`#$£€"
SENTENCE_END = re.compile(rf"[.!?…‼⁇⁈⁉{_FULL}]+{_CLOSERS}$")
# A quote that stands alone after the mark, as some publishers set it: ``Will you go ? '' he was asked .
_SPACED_QUOTE = re.compile(r"""\s+(?:''|["”’»]+)\s+""")
# What tells that a quotation goes on, in scripts without letter case: Japanese particles, Chinese verbs of saying.
_SAID = re.compile(r"と|って|[、，]|[^、，。！？；：\s]{0,8}[说說问問答喊叫称稱道]")
# What stands before a turn: a name of up to four words, or a placeholder such as #Person1#, and a colon.
_SPEAKER = re.compile(r"(#[^#:]{1,40}#|[^\W\d_][\w.'’&()/-]*(?: [\w.'’&()/-]+){0,3}) ?(?::\s|：)\s*")
# Characters looked at on each side of a mark.
_NEAR = 200
# Sentences that Moeed et al. 2020 keep of a story before a headline is written or judged (§3.2).
STORY_SENTENCES = 5


def words(text: str) -> list[str]:
    """The white-space-separated tokens of ``text``."""
    return text.split()


def _ends_sentence(line: str, begin: int, start: int, stop: int) -> bool:
    """Whether the run of end marks ``line[start:stop]`` closes the sentence that begins at ``begin``."""
    marks = line[start:stop]
    quote = _SPACED_QUOTE.match(line, stop)
    rest = line[stop : stop + _NEAR].lstrip()
    if not rest:
        return True
    if marks == "．" and rest[:1].isdecimal() and stop < len(line) and not line[stop].isspace():
        return False  # a decimal number in full-width digits
    if marks[0] in _FULL:
        return not (marks[-1] in "”’」』" and _SAID.match(rest))
    following = rest.lstrip(_OPENERS)
    if not following:
        # Only quotes or dashes are left: they belong to this sentence.
        return False
    opens = re.split(r"\W", line[quote.end() : stop + _NEAR] if quote else following, maxsplit=1)[0]
    lower, first = _is_lower(opens), opens.lower()
    before = line[max(begin, start - _NEAR) : start].split()
    spaced = start > 0 and line[start - 1].isspace()
    bare = before[-1].lstrip(_OPENERS).lower() if before else ""
    if not marks.startswith(".") or marks.startswith(".."):
        if bare in _MARKED_NAMES and marks == "!" and not spaced:
            return first in _STARTERS
        # Lower case tells nothing in a sentence that begins so itself, nor where the marks stand alone.
        tells = not line[begin : begin + _NEAR].lstrip(_OPENERS + " ")[:1].islower() and (quote or not spaced)
        return not lower or (marks[0] in "!?‼⁇⁈⁉" and not tells)
    if spaced and (rest[:1] == "." or (lower and line[begin:start].rstrip().endswith("."))):
        # A spaced ellipsis (". . ."): a capital after its last stop ends the sentence.
        return False
    if spaced:
        # Detokenised style: the stop stands alone. An abbreviation keeps its stop attached, so this is an end.
        return True
    if lower:
        return False
    if marks[-1] in "\"'”’»)":
        return True
    if bare.isdecimal() and len(bare) < 3:
        # The number of an item ("1. Introduction"), or an ordinal ("am 3. Oktober", "der 2. Weltkrieg").
        german = before[-2:-1] and before[-2].lower() in _BEFORE_ORDINAL and before[-3:-1] != ["I", "am"]
        german = german and first not in _STARTERS
        return len(before) > 1 and not german and first not in _MONTHS
    if bare in ("no", "nos", "sec", "mon", "sun", "sat", "mar") and not following[0].isdigit():
        # Words of their own more often than short for number, section, or a day.
        return True
    if bare in ("p", "c", "ca") and following[0].isdigit():
        return False
    if bare in ABBREVIATIONS:
        return bare in _MAY_END and first in _STARTERS
    # An initial such as "J." before a capitalised name.
    return not (len(bare) == 1 and bare.isalpha() and bare != "i" and following[0].isupper())


def _is_lower(word: str) -> bool:
    """Whether ``word`` begins in lower case, not as names such as eBay do."""
    return word[:1].islower() and word.islower()


@dataclass(frozen=True, slots=True)
class Turn:
    """A ``line`` of a dialogue; ``text``: without the name before it. ``speaker``: that name, a fact of each of its sentences,
    to whom "I" and "my" belong; of a line without one the last before, "" where there is none.
    """

    speaker: str
    text: str
    line: str


def turns(text: str) -> tuple[Turn, ...] | None:
    """The turns of ``text``, one for each line that is not blank; None where it is no dialogue.

    It is one where most of its lines begin with a name of up to four words (or ``#Person1#``) and a colon, and some name
    comes again (those of a form, ``Place: …``, don't).
    """
    if ":" not in text and "：" not in text:
        return None
    lines = [bare for line in _LINE.split(text) if (bare := line.strip())]
    found = [_SPEAKER.match(line) for line in lines]
    names = [match[1] for match in found if match]
    if 2 * len(names) <= len(lines) or len(set(names)) == len(names):
        return None
    said, speaker = [], ""
    for line, match in zip(lines, found, strict=True):
        speaker = match[1] if match else speaker
        said.append(Turn(speaker, line[match.end() :] if match else line, line))
    return tuple(said)


def unwrapped_lines(text: str) -> list[str]:
    """Return the lines of ``text`` that are not blank, a sentence that was wrapped put on one; the turns of a dialogue.

    A line was wrapped where it has no end mark and the next begins in lower case, while the first line of the stretch
    does not (in a text without capitals, or a list, lower case says nothing).
    """
    if spoken := turns(text):
        return [turn.line for turn in spoken]
    stretches: list[list[str]] = []
    open_line = False
    for line in _LINE.split(text):
        bare = line.strip()
        if open_line and _is_lower(bare.split(None, 1)[0] if bare else "") and not stretches[-1][0][0].islower():
            stretches[-1].append(bare)
        elif bare:
            stretches.append([bare])
        open_line = bool(bare) and not bare.endswith(":") and not SENTENCE_END.search(bare[-_NEAR:])
    # A soft hyphen at the end of a line parts one word.
    return ["\n".join(stretch).replace("\u00ad\n", "").replace("\n", " ") for stretch in stretches]


def split_sentences(text: str) -> list[str]:
    """Sentences of ``text`` in order, each stripped and not blank; white space inside a sentence is folded.

    Joining the result with spaces gives the words of ``text`` back: ``" ".join(split_sentences(t)).split() == t.split()``,
    but where marks that need no space end a sentence inside a token.
    """
    sentences = []
    for line in unwrapped_lines(text):
        begin = 0
        for match in _END.finditer(line):
            if match.start() < begin or not _ends_sentence(line, begin, match.start(), match.end()):
                continue
            sentences.append(line[begin : match.end()])
            begin = match.end()
        sentences.append(line[begin:])
    folded = (" ".join(sentence.split()) for sentence in sentences)
    return [sentence for sentence in folded if sentence]


def story_of(document: str, sentences: int = STORY_SENTENCES) -> str:
    """The first ``sentences`` of a document, as Moeed et al. 2020 (§3.2) cut it; "" where there is none."""
    return " ".join(split_sentences(document)[:sentences])


def headline_of(summary: str) -> str:
    """The first line of a summary of several (the first highlight: Moeed et al. 2020 §3.1), else its first sentence."""
    lines = unwrapped_lines(summary)
    return " ".join(lines[0].split()) if len(lines) > 1 else story_of(summary, 1)


def normalise(text: str) -> str:
    """What a reader would not see (``fold``), case and white space folded: texts that agree after this are the same."""
    return " ".join(fold(text).split()).casefold()
