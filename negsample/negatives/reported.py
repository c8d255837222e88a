"""What somebody said, told of them: the claims that summaries of dialogues make; English only."""

import re

from negsample.negatives.english import AUXILIARIES, PARTICIPLES, PAST, is_function_word
from negsample.negatives.kinds.negate import THIRD
from negsample.negatives.vocabulary import bare

_SINGULAR = {base: third for third, base in THIRD.items()} | {
    "am": "is",
    "do": "does",
    "don't": "doesn't",
    "haven't": "hasn't",
    "are": "is",
    "aren't": "isn't",
    "guess": "guesses",
    "hope": "hopes",
    "wish": "wishes",
    "wonder": "wonders",
    "assume": "assumes",
    "like": "likes",
}
# After a subject they stay as they are.
_STAYS = AUXILIARIES | PAST.keys() | {"had", "can't", "cannot", "won't", "didn't", "couldn't", "wouldn't", "shouldn't"}
_BETWEEN = frozenset("just really also always never still actually already probably only definitely".split())
# Of the speaker first, later; of who is spoken to. What a verb follows ends with a space.
_SPEAKER = {
    "i": ("{0} ", "they "), "i'm": ("{0} is", "they are"), "i've": ("{0} has", "they have"),
    "i'll": ("{0} will", "they will"), "i'd": ("{0} would", "they would"), "my": ("{0}'s", "their"),
    "me": ("{0}", "them"), "mine": ("{0}'s", "theirs"),
}  # fmt: skip
_OTHER = {
    "you": "{0} ", "you're": "{0} is", "you've": "{0} has", "you'll": "{0} will", "you'd": "{0} would", "your": "{0}'s",
}  # fmt: skip
_NOT_TOLD = frozenset("we us our ours we're we'll we've let's myself yourself yours".split())
# Words that no statement begins with, or none that can be told alone.
_NO_STATEMENT = frozenset(
    "yeah so and but okay ok well right oh no yes or because like what how do did does is are am was were can could would will "
    "why where when who which if please thanks thank hi hello hey bye sorry sure then".split()
)
# Nor does one end with these.
_CUT_OFF = frozenset("the a an of to and or but so i if for with from my your his their that's it's".split())
_NOISE = re.compile(r"\{\w+\}|\b(?:um|uh|er|erm|hmm|mm)\b[ ,.]*", re.IGNORECASE)
_WORDS = (4, 30)


def reported(sentence: str, speaker: str, other: str) -> str | None:
    """``sentence``, which ``speaker`` said to ``other``, told by a third: "I'm late, can I use your car" of Ann to Bob as "Ann is
    late, can they use Bob's car". None where it is no statement that the rule can tell."""
    words = _NOISE.sub("", sentence).replace("’", "'").split()
    if not _WORDS[0] <= len(words) <= _WORDS[1] or "?" in sentence or bare(words[0].lower()) in _NO_STATEMENT:
        return None
    if bare(words[-1].lower()) in _CUT_OFF or any(bare(word.lower()) in _NOT_TOLD for word in words):
        return None
    told: list[str] = []
    named = False
    place = 0
    while place < len(words):
        word = words[place]
        core = bare(word.lower())
        tail = word[len(word.rstrip(".,;:!")) :]
        place += 1
        if core in _SPEAKER:
            first, later = _SPEAKER[core]
            form, subject_is_one, named = (later if named else first.format(speaker)), not named, True
        elif core in _OTHER:
            form, subject_is_one = _OTHER[core].format(other), True
        else:
            told.append(word)
            continue
        told.append(form.strip() + tail)
        if not form.endswith(" ") or tail:
            continue
        while place < len(words) and words[place].lower() in _BETWEEN:
            told.append(words[place])
            place += 1
        verb = words[place] if place < len(words) else ""
        if core == "you" and verb not in _SINGULAR:
            continue
        if verb in _SINGULAR:
            told.append(_SINGULAR[verb] if subject_is_one else {"am": "are"}.get(verb, verb))
            place += 1
        elif verb not in _STAYS and verb not in PARTICIPLES and not verb.endswith("ed"):
            return None
    text = " ".join(told).rstrip(".,;:!")
    if not named:
        proper = text[:1].isupper() and not is_function_word(told[0]) and text.startswith((speaker, other))
        text = f"{speaker} says that {text if proper else text[:1].lower() + text[1:]}"
    return f"{text[:1].upper()}{text[1:]}."
