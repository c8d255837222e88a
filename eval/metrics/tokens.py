"""Tokens and function words that the word-overlap metrics share; all of them are of the folded text."""

from collections.abc import Iterator, Sequence

from negsample.text import fold, straight, word_spans, word_tokens

# English function words: articles, pronouns, prepositions, conjunctions, auxiliaries, and a few adverbs that carry no
# topic. "s", "t" and the like are what clitics leave behind when punctuation goes.
_FUNCTION_WORDS = """
a an the this that these those some any each every either neither both all most much many more few less no
none i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she
her hers herself it its itself they them their theirs themselves who whom whose which what one ones someone
anyone everyone something anything everything nothing nobody there here where when why how of in on at by for
from to into onto with without within about above below over under between among through during before after
since until till against across along around behind beside besides beyond despite down up off out near per
than toward towards upon via as and or but nor so yet if because although though while whereas unless whether
then else am is are was were be been being do does did done doing have has had having will would shall should
can could may might must ought need not n very too also just only even still again already ever never always
often such same other another own rather quite almost now once however therefore thus s t d ll m re ve don
didn doesn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())

# Bytes table: a–z and 0–9 stay, every other byte becomes a space. Four times as fast as a regular expression.
_ROUGE_BYTES = bytes(code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789" else 32 for code in range(256))


def content_words(text: str) -> list[str]:
    """``word_tokens`` without the function words, numbers kept."""
    return [token for token in word_tokens(text) if token not in STOP_WORDS]


def content_spans(text: str) -> list[tuple[str, int, int]]:
    """Return the words that are not function words, with straight apostrophes, and where each stands in ``text``.

    ``text`` is as encoders are given it (``readable``).
    """
    plain = straight(text)
    spans = ((plain[begin:stop], begin, stop) for begin, stop in word_spans(text))
    return [found for found in spans if found[0].lower() not in STOP_WORDS]


def rouge_tokens(text: str) -> list[str]:
    """ROUGE's tokens: lower case, runs of a–z and 0–9; everything else is a gap (so other scripts give none)."""
    return fold(text).lower().encode("ascii", "replace").translate(_ROUGE_BYTES).decode("ascii").split()


def ngrams(tokens: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """The n-grams of ``tokens`` in order; none where there are fewer than n."""
    return zip(*(tokens[start:] for start in range(n)), strict=False)


def ngram_set(tokens: Sequence[str], n: int) -> frozenset[tuple[str, ...]]:
    """The distinct n-grams of ``tokens``."""
    return frozenset(ngrams(tokens, n))
