"""A summary taken apart into sentences of words, what kinds of negatives do to these, and the text put together again."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, TypeVar

import numpy as np

from negsample.negatives.context import CannotDamage, Damaged
from negsample.negatives.english import is_function_word
from negsample.records import Pair
from negsample.sentences import SENTENCE_END, normalise, split_sentences, unwrapped_lines

T = TypeVar("T")
# Marks that would look odd in front of the full stop of a sentence that lost its last words.
_PAUSES = ",;:-–—"
# Two sentences are of like length where their letters differ by no more than this share, or this number.
_LIKE_SHARE = 0.25
_LIKE_LETTERS = 8
_NEAREST = 5


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its ``words`` (white-space-separated, punctuation attached, at least one).

    ``ending`` is the run of marks that closes it, which the last word ends with; ``""`` where it has none.
    ``new_line`` tells whether it begins a line (one that was only wrapped does not count).
    """

    words: tuple[str, ...]
    ending: str
    new_line: bool

    @property
    def text(self) -> str:
        """The words joined by single spaces."""
        return " ".join(self.words)


# --- apart and together


@lru_cache(maxsize=4)
def take_apart(text: str) -> tuple[Sentence, ...]:
    """The sentences of ``text``; their words in order are exactly ``text.split()``. ``()`` for a blank text.

    Sentences are those of ``split_sentences``, but a border inside a word (scripts without spaces) is none here.
    """
    sentences = []
    for number, line in enumerate(unwrapped_lines(text)):
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
    ends = set(np.cumsum([letter_count(sentence) for sentence in split_sentences(line)]).tolist())
    return [place for place, end in enumerate(np.cumsum(list(map(len, words))).tolist(), start=1) if end in ends]


def count_words(sentences: Iterable[Sentence]) -> int:
    """Number of words in all ``sentences``."""
    return sum(len(sentence.words) for sentence in sentences)


def summary_of(pair: Pair, least: int = 1) -> tuple[tuple[Sentence, ...], int]:
    """The sentences of the pair's summary and the number of its words; CannotDamage where these are below ``least``."""
    sentences = take_apart(pair.summary)
    total = count_words(sentences)
    if total < least:
        raise CannotDamage("one-word summary" if total == 1 else "blank summary")
    return sentences, total


def put_together(sentences: Sequence[Sentence], words: Sequence[Sequence[str]] | None = None) -> str:
    """The text in which sentence i of ``sentences`` has become ``words[i]`` (default: its own); no words: it is gone.

    So that the sentences stay apart, each keeps its ending (attached to the word that is last now), its line, and an
    upper-case letter at its beginning if it had one. Words are joined by single spaces. Where the sentences still run
    together (an initial now stands last, say), each gets its own line, or its own paragraph.
    """
    pieces: list[str] = []
    text = ""
    new_line = False
    for sentence, now in zip(sentences, words or [sentence.words for sentence in sentences], strict=True):
        new_line = new_line or sentence.new_line
        if not now:
            continue
        first = _opened(now[0], sentence.words[0])
        *body, last = [first, *now[1:]]
        pieces.append(" ".join([*body, _ended(last, sentence.ending)]))
        text += ("\n" if new_line else " ") + pieces[-1]
        new_line = False
    for joint in ("\n", "\n\n"):
        if len(pieces) > 1 and len(split_sentences(text)) < len(pieces):
            text = " " + joint.join(pieces)
    return text[1:]


def _opened(word: str, opener: str) -> str:
    """``word`` with an upper-case first letter where ``opener``, which stood first before, had one."""
    capital = next(filter(str.isalnum, opener), "").isupper()
    now = next((place for place, letter in enumerate(word) if letter.isalnum()), None)
    # Some letters have no single upper-case form ("ß"): they are left as they are.
    if not capital or now is None or len(raised := word[now].upper()) > 1:
        return word
    return word[:now] + raised + word[now + 1 :]


def _ended(word: str, marks: str) -> str:
    """``word``, the last of a sentence, with the end ``marks`` unless it has some."""
    return word if not marks or SENTENCE_END.search(word) else (word.rstrip(_PAUSES) or word) + marks


# --- words and sentences changed


def each_word(sentences: Sequence[Sentence], now: Callable[[int, str], Sequence[str]]) -> list[list[str]]:
    """The words of each sentence, in which ``now(place, word)`` stands for each; places count the summary's words from 0."""
    places = count()
    return [[fresh for word in sentence.words for fresh in now(next(places), word)] for sentence in sentences]


def sentence_change(sentences: Sequence[Sentence], kept: int, **done: Any) -> Mapping[str, Any]:
    """What a kind that damages whole sentences tells: their number, their words, the words ``kept``, and what was ``done``."""
    return {"sentences": len(sentences), "words": count_words(sentences), "kept_words": kept, **done}


def draw_places(size: int, most: int, rng: np.random.Generator) -> list[int]:
    """1 … ``most`` (as likely each) of the places 0 … ``size`` - 1, in the order drawn."""
    return rng.choice(size, size=int(rng.integers(1, most + 1)), replace=False).tolist()


def pick(items: Sequence[T], rng: np.random.Generator) -> T:
    """One of ``items``, each as likely."""
    return items[int(rng.integers(len(items)))]


def _parts(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Words of a sentence, the end marks attached to the last of them, and words of mere punctuation that follow."""
    stop = len(words)
    while stop > 1 and not any(letter.isalnum() for letter in words[stop - 1]):
        stop -= 1
    match = SENTENCE_END.search(words[stop - 1])
    if not match or not match.start():
        return list(words[:stop]), "", list(words[stop:])
    return [*words[: stop - 1], words[stop - 1][: match.start()]], match.group(), list(words[stop:])


def without_end(words: Sequence[str]) -> list[str]:
    """``words`` of a sentence without the marks that end it, attached or standing alone; at least one word stays."""
    return _parts(words)[0]


def ended_like(words: Sequence[str], sentence: Sentence) -> list[str]:
    """``words`` with the marks that end ``sentence``, attached or standing alone as they are there."""
    _, marks, alone = _parts(sentence.words)
    return [*words[:-1], _ended(words[-1], marks), *alone]


def moved(sentence: Sentence, place: Sentence) -> Sentence:
    """``sentence`` where ``place`` stood: on its line, and with its ending if it has no marks of its own."""
    bare_end = sentence.words[-1][-1].isalnum()
    return Sentence(sentence.words, sentence.ending or (place.ending if bare_end else ""), place.new_line)


def different_texts(sentences: Sequence[Sentence]) -> list[str]:
    """A text for each sentence, equal for those that differ only in case.

    Raises CannotDamage where there is but one sentence, or one over and over.
    """
    if len(sentences) < 2:
        raise CannotDamage("one-sentence summary")
    texts = [normalise(sentence.text) for sentence in sentences]
    if len(set(texts)) == 1:
        raise CannotDamage("all sentences are the same")
    return texts


def without_capital(word: str) -> str:
    """``word`` without the capital of a sentence's beginning, if it is a function word ("The", not "London" or "I")."""
    return word.lower() if is_function_word(word) and word != "I" else word


def letter_count(text: str) -> int:
    """Number of characters without white space: a length that means the same in scripts which set no spaces."""
    return sum(map(len, text.split()))


def of_like_length(texts: Sequence[str], target: str) -> list[int]:
    """Places of up to five ``texts`` that are about as long as ``target``, the nearest in words first.

    Their letters differ by at most a quarter of the target's, or 8.
    """
    length, words = letter_count(target), len(target.split())
    slack = max(_LIKE_LETTERS, _LIKE_SHARE * length)
    near = [place for place, text in enumerate(texts) if abs(letter_count(text) - length) <= slack]
    return sorted(near, key=lambda place: abs(len(texts[place].split()) - words))[:_NEAREST]


# --- one place of a sentence changed


@dataclass(frozen=True, slots=True)
class Edit:
    """The characters ``start`` … ``stop`` of a sentence become ``text``; ``note`` goes into what the kind tells."""

    start: int
    stop: int
    text: str
    note: Mapping[str, Any] = field(default_factory=dict)

    def of(self, sentence: str) -> str:
        """``sentence`` after the edit."""
        return sentence[: self.start] + self.text + sentence[self.stop :]


def edit_sentences(
    pair: Pair,
    rng: np.random.Generator,
    most: int | None,
    draw: Callable[[Sentence], Edit | None],
    refusal: str,
) -> Damaged:
    """1 … S of the S sentences, as likely each (at most ``most``), change in one place: ``draw``'s edit of ``Sentence.text``.

    Sentences for which it gives None stay. ``change["edited"]`` tells what became what.

    Label: share of the summary's words in sentences left as they were: one wrong word makes its sentence wrong.

    Raises CannotDamage(``refusal``) where no sentence can be changed.
    """
    sentences, total = summary_of(pair)
    count = int(rng.integers(1, min(len(sentences), most or len(sentences)) + 1))
    words: list[Sequence[str]] = [sentence.words for sentence in sentences]
    edited: dict[int, Mapping[str, Any]] = {}
    for place in rng.permutation(len(sentences)).tolist():
        edit, text = draw(sentences[place]), sentences[place].text
        if edit is not None:
            words[place] = edit.of(text).split()
            edited[place] = {"at": place, "was": text[edit.start : edit.stop], "is": edit.text, **edit.note}
        if len(edited) == count:
            break
    if not edited:
        raise CannotDamage(refusal)
    gone = count_words(sentences[place] for place in edited)
    change = sentence_change(sentences, total - gone, edited=[edited[place] for place in sorted(edited)])
    return Damaged(put_together(sentences, words), 1 - gone / total, change)


_VOWEL = re.compile(r"(?!uni[^nm]|us[ei]|eu|one\b|once\b)[aeiou]|hour|hono|heir", re.IGNORECASE)
_ARTICLE = re.compile(r"(?<![\w'’-])(an?) $", re.IGNORECASE)


def exchange(sentence: str, start: int, stop: int, fresh: str) -> Edit:
    """The edit that puts ``fresh`` there, with the capital of what stood there, and the "a" or "an" that it asks for."""
    if sentence[start].isupper() and sentence[:start].strip("\"'“‘([ ") == "":
        fresh = fresh[:1].upper() + fresh[1:]
    article = _ARTICLE.search(sentence, 0, start)
    if article and bool(_VOWEL.match(fresh)) != article.group(1).lower().endswith("n"):
        return Edit(article.start(), stop, f"{article.group(1)[0]}{'n' if _VOWEL.match(fresh) else ''} {fresh}")
    return Edit(start, stop, fresh)
