"""A summary taken apart into sentences of words, and put together again so that its sentences stay apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from negsample.sentences import SENTENCE_END, split_sentences

# Marks that would look odd in front of the full stop of a sentence that lost its last words.
_PAUSES = ",;:-–—"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its ``words`` (white-space-separated, punctuation attached, at least one).

    ``ending`` is the run of marks that closes it, which the last word ends with; ``""`` where it has none.
    ``new_line`` tells whether it begins a line (a line break always ends a sentence).
    """

    words: tuple[str, ...]
    ending: str
    new_line: bool


@lru_cache(maxsize=4)
def lay_out(text: str) -> tuple[Sentence, ...]:
    """The sentences of ``text``; their words in order are exactly ``text.split()``. ``()`` for a blank text.

    Sentences are those of ``split_sentences``, but a border inside a word (scripts without spaces) is none here.
    """
    sentences = []
    for number, line in enumerate(line for line in text.splitlines() if line.strip()):
        words = tuple(line.split())
        begin = 0
        for stop in _borders(line, words):
            part = words[begin:stop]
            match = SENTENCE_END.search(part[-1])
            sentences.append(Sentence(part, match.group() if match else "", begin == 0 and number > 0))
            begin = stop
    return tuple(sentences)


def _borders(line: str, words: Sequence[str]) -> list[int]:
    """After how many words each sentence of ``line`` ends."""
    ends = set()
    letters = 0
    for sentence in split_sentences(line):
        letters += len(sentence) - sentence.count(" ")
        ends.add(letters)
    borders = []
    letters = 0
    for count, word in enumerate(words, start=1):
        letters += len(word)
        if letters in ends:
            borders.append(count)
    return borders


def count_words(sentences: Sequence[Sentence]) -> int:
    """Number of words in all ``sentences``."""
    return sum(len(sentence.words) for sentence in sentences)


def put_together(sentences: Sequence[Sentence], words: Sequence[Sequence[str]]) -> str:
    """The text in which sentence i of ``sentences`` has become ``words[i]``; no words: the sentence is gone.

    So that the sentences stay apart, each keeps its ending (attached to the word that is last now), its line, and an
    upper-case letter at its beginning if it had one. Words are joined by single spaces. Where the sentences still run
    together (an initial now stands last, say), each gets its own line.
    """
    pieces: list[str] = []
    joints: list[str] = []
    new_line = False
    for sentence, now in zip(sentences, words, strict=True):
        new_line = new_line or sentence.new_line
        if not now:
            continue
        joints.append("\n" if new_line else " ")
        pieces.append(" ".join(_closed(_opened(now, sentence.words[0]), sentence.ending)))
        new_line = False
    text = "".join(joint + piece for joint, piece in zip(joints, pieces, strict=True))[1:]
    if len(pieces) > 1 and len(split_sentences(text)) < len(pieces):
        return "\n".join(pieces)
    return text


def _first_letter(word: str) -> int | None:
    return next((place for place, letter in enumerate(word) if letter.isalnum()), None)


def _opened(words: Sequence[str], opener: str) -> list[str]:
    """``words`` with an upper-case first letter where ``opener``, the first word before, had one."""
    result = list(words)
    before, now = _first_letter(opener), _first_letter(result[0])
    if before is not None and now is not None and opener[before].isupper():
        raised = result[0][now].upper()
        # Some letters have no single upper-case form ("ß"): they are left as they are.
        if len(raised) == 1:
            result[0] = result[0][:now] + raised + result[0][now + 1 :]
    return result


def _closed(words: list[str], ending: str) -> list[str]:
    if ending and not SENTENCE_END.search(words[-1]):
        words[-1] = (words[-1].rstrip(_PAUSES) or words[-1]) + ending
    return words
