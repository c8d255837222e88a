"""Sentences that say the contrary: negated where they affirm, affirmed where they negate; English only.

The rule takes the first of these that a sentence has:

1. a negation, which goes: "not", "n't" and "never" are left out (not in "not only"), "no longer" becomes "still",
   "nobody", "nothing", "none" become "somebody", "something", "some", "no" before a word becomes "some";
2. an auxiliary or a modal verb that is not the first or last word, which gets a "not" ("can" becomes "cannot");
   "has", "have", "had" only before a participle. A contraction ("they're", "we'll") counts as one;
3. a common verb right after a pronoun or a capitalised word ("we propose", "Ann thinks", "he went"), which gets a "do
   not", "does not" or "did not".
"""

from collections.abc import Sequence

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.english import (
    AUXILIARIES,
    CLIPPED,
    NEGATIVE_WORDS,
    PARTICIPLES,
    PAST,
    PERFECT,
    PRESENT,
    is_function_word,
)
from negsample.negatives.rebuild import count_words, draw_places, put_together, sentence_change, summary_of
from negsample.negatives.vocabulary import bare
from negsample.records import Pair

_PLURAL = ("i", "we", "you", "they")
_SINGULAR = ("he", "she", "it")
THIRD = {(verb[:-1] + "ies" if verb.endswith("y") and verb[-2] not in "aeou" else verb + "s"): verb for verb in PRESENT}
THIRD |= {verb + "es": verb for verb in PRESENT if verb.endswith(("ch", "sh", "ss", "o"))} | {"has": "have"}
_CONTRACTED = ("'re", "'ll", "i'm")


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """1 … N of the N sentences that the rule can turn (at most ``most``), as likely each, say the contrary.

    The length changes by two words a sentence at most, mostly by one.

    Label: share of the summary's words in sentences left as they were: one "not" makes all that a sentence says wrong.

    Raises CannotDamage where the rule finds nothing to negate or affirm.
    """
    sentences, total = summary_of(pair)
    turned = {place: now for place, sentence in enumerate(sentences) if (now := contrary(sentence.words)) is not None}
    if not turned:
        raise CannotDamage("no sentence that the rule can negate")
    places = list(turned)
    chosen = sorted(places[place] for place in draw_places(len(places), min(len(places), most or len(places)), rng))
    result = [turned[place] if place in chosen else sentence.words for place, sentence in enumerate(sentences)]
    gone = count_words(sentences[place] for place in chosen)
    negated = [{"at": place, "was": sentences[place].text, "is": " ".join(turned[place])} for place in chosen]
    change = sentence_change(sentences, total - gone, negated=negated)
    return Damaged(put_together(sentences, result), 1 - gone / total, change)


def contrary(words: Sequence[str]) -> list[str] | None:
    """The words of a sentence that says the contrary, or None where the rule does not know how."""
    plain = [word.lower().replace("’", "'") for word in words]
    turned = (rule(words, plain, place) for rule in (_affirmed, _negated, _undone) for place in range(len(words)))
    return next((now for now in turned if now is not None), None)


# Each rule gives the sentence as it turns the word at ``place``, None where it can't.


def _affirmed(words: Sequence[str], plain: Sequence[str], place: int) -> list[str] | None:
    word, core = plain[place], bare(plain[place])
    following = plain[place + 1] if place + 1 < len(words) else ""
    before, after = list(words[:place]), list(words[place + 1 :])
    if word == "n't" and before:
        stem = CLIPPED.get(before[-1].lower())
        return [*before[:-1], stem or before[-1], *after] if following else None
    if core in NEGATIVE_WORDS:
        return [*before, _changed(words[place], core, NEGATIVE_WORDS[core]), *after]
    if core.endswith("n't"):
        return [*before, _changed(words[place], core, core[:-3]), *after]
    if word in ("not", "never"):
        kept = bool(following) and following not in ("only", "just", "least") and bool(before or after)
        return [*before, *after] if kept else None
    if word == "no" and following[:1].isalpha():
        longer = following == "longer"
        return [*before, _changed(words[place], "no", "still" if longer else "some"), *after[longer:]]
    return None


def _negated(words: Sequence[str], plain: Sequence[str], place: int) -> list[str] | None:
    if place == len(words) - 1:
        return None
    # Capitals are left out: "May" and "Will" are names as often.
    word, following = words[place].replace("’", "'"), plain[place + 1]
    if not bare(following):
        return None
    if word.lower().endswith(_CONTRACTED):
        return [*words[: place + 1], "not", *words[place + 1 :]]
    # At the beginning an auxiliary asks.
    if place == 0:
        return None
    before, after = list(words[:place]), list(words[place + 1 :])
    if word == "can":
        return [*before, "cannot", *after]
    participle = following.rstrip(",") in PARTICIPLES or following.endswith("ed")
    if word in AUXILIARIES or (word in PERFECT and participle):
        return [*before, words[place], "not", *after]
    return None


def _undone(words: Sequence[str], plain: Sequence[str], place: int) -> list[str] | None:
    if not 0 < place < len(words) - 1 or not words[place].islower():
        return None
    subject, verb = words[place - 1], plain[place]
    pronoun = plain[place - 1]
    named = subject[-1].isalnum() and any(map(str.isupper, subject)) and not is_function_word(subject)
    if pronoun in _PLURAL and verb in PRESENT:
        now = ["do", "not", verb]
    elif (pronoun in _SINGULAR or named) and verb in THIRD:
        now = ["does", "not", THIRD[verb]]
    elif (pronoun in (*_PLURAL, *_SINGULAR) or named) and verb in PAST:
        now = ["did", "not", PAST[verb]]
    else:
        return None
    return [*words[:place], *now, *words[place + 1 :]]


def _changed(word: str, core: str, fresh: str) -> str:
    start = word.lower().replace("’", "'").find(core)
    fresh = fresh.capitalize() if word[start].isupper() else fresh
    return word[:start] + fresh + word[start + len(core) :]
