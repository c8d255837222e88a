"""Who did what to whom, turned round."""

from itertools import combinations
from typing import Any

import numpy as np

from negsample.negatives.context import Context, Damaged
from negsample.negatives.kinds.speaker import renamed, standing
from negsample.negatives.parse import content, of_sentence, speakers, stems
from negsample.negatives.rebuild import Edit, Sentence, edit_sentences, pick
from negsample.records import Pair

# Beginnings of words by which A does with B what B does with A.
_MUTUAL = frozenset(
    "meet met mari marr talk chat spea spok disc conv agre argu rese equa simi diff comp coop coll frie betw same toge matc "
    "corr rela asso invo with".split()
)
_SUBJECTS = ("nsubj", "nsubjpass")
# Heads of phrases that nobody takes for who or what does something.
_TIMES = frozenset("time times day days week weeks month months year years hour hours order way moment".split())


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """In each of 1 … S sentences (at most ``most``) two noun phrases, one of them a subject, exchange places.

    In a dialogue two speakers' names, where both stand there. Not those joined by "and", in apposition or by what is mutual
    ("met", "with"). Label and exception: ``edit_sentences``; where no such names stand, CannotDamage without the spaCy model.
    """
    names = speakers(pair.document)

    def draw(sentence: Sentence) -> Edit | None:
        text = sentence.text
        for one, other in combinations([name for name in names if standing(name, text)], 2):
            (first, *_), (second, *_) = sorted(
                [standing(one, text), standing(other, text)], key=lambda at: at[0].start()
            )
            between = text[first.end() : second.start()]
            if not stems(between) & _MUTUAL and stems(between) - {"and", "or", "s"}:
                return renamed(text, {one: other, other: one})
        return _turned(text, rng)

    return edit_sentences(pair, rng, most, draw, "no two noun phrases that can be exchanged")


def _turned(text: str, rng: np.random.Generator) -> Edit | None:
    parsed = of_sentence(text)
    phrases = [part for part in parsed.tokens.noun_chunks if _is_plain(part)]
    options = [(one, other) for one, other in combinations(phrases, 2) if _exchangeable(one, other)]
    if not options:
        return None
    one, other = pick(options, rng)
    (start, end), (begin, stop) = parsed.place(one.start, one.end), parsed.place(other.start, other.end)
    first, second = text[start:end], text[begin:stop]
    if one.start == 0 and one[0].pos_ != "PROPN" and first[1:].islower() and text[0].isupper():
        first, second = first[0].lower() + first[1:], second[0].upper() + second[1:]
    return Edit(start, stop, second + text[end:begin] + first)


def _is_plain(part: Any) -> bool:
    named = part.root.pos_ in ("NOUN", "PROPN") and part.root.lower_ not in _TIMES
    return named and len(part) < 5 and not any(token.pos_ == "PRON" for token in part)


def _exchangeable(subject: Any, other: Any) -> bool:
    """Whether the first of two phrases is a subject, and says something else, in good grammar, in place of the other.

    The other belongs to the same verb, or is the subject of what that verb says ("Ann thinks that Tom …").
    """
    head, verb = other.root.head, subject.root.head
    while head.pos_ in ("ADP", "NOUN", "PROPN") and head != head.head:
        head = head.head
    if other.root.dep_ in _SUBJECTS:
        head = other.root.head.head
    between = subject.doc[subject.end : other.start].text
    return (
        subject.root.dep_ in _SUBJECTS
        and other.root.dep_ in ("dobj", "pobj", "dative", *_SUBJECTS)
        and head == verb
        and other.root not in set(subject.root.subtree)
        and (subject.root.tag_[-1] == "S") == (other.root.tag_[-1] == "S")
        and not content(subject.text) & content(other.text)
        and not stems(f"{verb.text} {between}") & _MUTUAL
    )
