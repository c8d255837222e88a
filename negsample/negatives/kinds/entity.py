"""Names and numbers exchanged for others of the same kind from the document: fluent, on topic, and wrong.

They are found by the packaged spaCy model where it is installed (extra ``[sample]``), else by the rule in
``negsample.negatives.mentions``; ``change`` says which under ``"by"``.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from negsample.negatives import mentions
from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.english import is_function_word
from negsample.negatives.mentions import Found, Mention
from negsample.negatives.rebuild import draw_places, pick, put_together, summary_of, take_apart
from negsample.records import Pair
from negsample.sentences import split_sentences

# Sentences of a document that are read, spread over it: enough to choose from, and a transcript of hours takes little
# longer than an article. The model reads some 250 sentences a second on one core, the rule 13,000.
_READ_BY_MODEL = 32
_READ_BY_RULE = 400


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """1 … E of the E mentions that can be exchanged (at most ``most``), as likely each, become others of the document.

    A mention is exchanged for one of its kind that has no word in common with it ("Tony Blair" is no change for "Mr
    Blair"), is not its abbreviation, and does not stand in the same sentence. Of amounts the number alone is exchanged,
    so that units are kept.

    Label: each sentence counts with its words, times the share of its mentions (those that could not be exchanged too)
    that were left alone; so a sentence whose only name is wrong counts nothing, whatever else it says.

    Raises CannotDamage where the summary has no mention, or the document none to exchange it for.
    """
    by_model = mentions.has_model()
    pool = _in_document(pair.document, by_model)
    refusal = "no other name or number of the same kind in the document"
    return exchange_mentions(pair, rng, most, lambda mention: pool.get(mention.kind, ()), refusal)


def exchange_mentions(
    pair: Pair,
    rng: np.random.Generator,
    most: int | None,
    others: Callable[[Mention], Iterable[str]],
    refusal: str,
) -> Damaged:
    """As ``make``, mentions being exchanged for one of ``others`` that surely means something else."""
    sentences, total = summary_of(pair)
    by_model = mentions.has_model()
    found = in_summary(pair.summary, by_model)
    if not any(found):
        raise CannotDamage("no name or number in the summary")
    texts = [sentence.text for sentence in sentences]
    options = {
        (number, mention): free
        for number, group in enumerate(found)
        for mention in group
        if (free := [other for other in others(mention) if _is_other(other, mention.text, texts[number])])
    }
    if not options:
        raise CannotDamage(refusal)
    places = list(options)
    chosen = sorted(draw_places(len(places), min(len(places), most or len(places)), rng))
    exchanged = []
    # From the end, so that places in a sentence still hold.
    for number, mention in reversed([places[place] for place in chosen]):
        fresh = pick(options[number, mention], rng)
        texts[number] = texts[number][: mention.start] + fresh + texts[number][mention.stop :]
        exchanged.append({"at": number, "was": mention.text, "is": fresh, "kind": mention.kind})
    right = 0.0
    for number, sentence in enumerate(sentences):
        wrong = sum(item["at"] == number for item in exchanged)
        right += len(sentence.words) * (1 - wrong / max(len(found[number]), 1))
    change = {
        "words": total,
        "mentions": sum(map(len, found)),
        "exchanged": exchanged[::-1],
        "by": mentions.MODEL if by_model else "rule",
    }
    return Damaged(put_together(sentences, [text.split() for text in texts]), right / total, change)


def _is_other(other: str, text: str, sentence: str) -> bool:
    """Whether ``other`` is sure to mean something else than ``text``, and is not in its sentence already."""
    if other.casefold() in sentence.casefold():
        return False
    (words, letters, initials), (own_words, own_letters, own_initials) = _sign(other), _sign(text)
    return words.isdisjoint(own_words) and initials != own_letters and own_initials != letters


@lru_cache(maxsize=4096)
def _sign(text: str) -> tuple[frozenset[str], str, str]:
    """What two names are compared by: words without function words, letters without stops, first letters of words."""
    words = text.replace("-", " ").split()
    content = frozenset(word.casefold() for word in words if not is_function_word(word))
    initials = "".join(word[0] for word in words if word[0].isupper()) if len(words) > 1 else text
    return content or frozenset({text.casefold()}), text.replace(".", ""), initials


# A pair's negatives are made one after another, and sentences of other summaries come again.
@lru_cache(maxsize=16384)
def in_summary(summary: str, by_model: bool) -> Found:
    """The mentions in each sentence of ``summary``."""
    return _find([sentence.text for sentence in take_apart(summary)], by_model)


@lru_cache(maxsize=4)
def _in_document(document: str, by_model: bool) -> dict[str, tuple[str, ...]]:
    """The different names and numbers of each kind, in order."""
    kinds: dict[str, dict[str, None]] = {}
    sentences = split_sentences(document)
    step = -(-len(sentences) // (_READ_BY_MODEL if by_model else _READ_BY_RULE)) or 1
    for group in _find(sentences[::step], by_model):
        for mention in group:
            kinds.setdefault(mention.kind, {})[mention.text] = None
    return {kind: tuple(texts) for kind, texts in kinds.items()}


def _find(sentences: list[str], by_model: bool) -> Found:
    return mentions.by_model(sentences) if by_model else mentions.by_rule(sentences)
