"""ROUGE-N, -L, -Lsum and -W (Lin 2004, "ROUGE: a package for automatic evaluation of summaries").

Precision is over the summary, recall over the target (a reference, or the document), F is (1 + β²)PR / (R + β²P), with β = 1
their harmonic mean. Tokens and values are those that the ``rouge-score`` package finds in the folded text (``text.fold``; ASCII
is its own fold), where it has the measure and both texts have an n-gram: without one it says 0, and here the value is
missing. ROUGE-Lsum there
splits sentences at line breaks only, so that a text without line breaks is one sentence and Lsum quietly equals L;
here sentences are split by the project's own rule unless ``sentences="newline"`` is asked for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

from negsample.errors import InputError
from negsample.eval.metrics.base import Against, Results, Score, metric, targets_of
from negsample.eval.metrics.lcs import lcs_length, lcs_positions, positions, weighted_lcs
from negsample.eval.metrics.tokens import STOP_WORDS, ngrams, rouge_tokens
from negsample.scoring.scorer import Item, Scorer
from negsample.sentences import split_sentences
from negsample.text import mostly_foreign, word_tokens

WEIGHT = 1.2  # f(k) = k^1.2 in ROUGE-W, as in ROUGE-1.5.5's usual call


Value = Literal["precision", "recall", "f1"]
Stopwords = Literal["keep", "remove"]
References = Literal["max", "mean", "jackknife"]
Tokenize = Literal["rouge", "words", "space"]


class PRF(NamedTuple):
    """Precision, recall and F, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


Tokeniser = Callable[[str], list[str]]
Splitter = Callable[[str], list[str]]


def _prf(precision: float, recall: float, beta: float = 1.0) -> PRF:
    below = recall + beta**2 * precision
    return PRF(precision, recall, (1 + beta**2) * precision * recall / below if below > 0 else 0.0)


# --- what is kept of a text, and how two texts are compared ---------------------------------------------------------


class _Grams(NamedTuple):
    counts: Mapping[Any, int]
    total: int


class _Sequence(NamedTuple):
    tokens: list[str]
    masks: dict[str, int]

    @property
    def total(self) -> int:
        return len(self.tokens)


class _Sentences(NamedTuple):
    sentences: list[list[str]]
    masks: list[dict[str, int]]
    counts: Counter[str]
    total: int


def _grams(tokens: list[str], n: int) -> _Grams:
    grams: Iterable[Any] = tokens if n == 1 else ngrams(tokens, n)
    return _Grams(Counter(grams), max(len(tokens) - n + 1, 0))


def _compare_grams(summary: _Grams, target: _Grams) -> PRF:
    common = summary.counts.keys() & target.counts.keys()
    hits = sum(map(min, map(summary.counts.__getitem__, common), map(target.counts.__getitem__, common)))
    return _prf(hits / summary.total, hits / target.total)


def _sequence(tokens: list[str]) -> _Sequence:
    return _Sequence(tokens, positions(tokens))


def _compare_sequences(summary: list[str], target: _Sequence) -> PRF:
    hits = lcs_length(target.masks, len(target.tokens), summary)
    return _prf(hits / len(summary), hits / len(target.tokens))


def _sentences(sentences: list[list[str]]) -> _Sentences:
    counts = Counter(token for sentence in sentences for token in sentence)
    return _Sentences(sentences, [positions(sentence) for sentence in sentences], counts, sum(map(len, sentences)))


def _compare_sentences(summary: _Sentences, target: _Sentences) -> PRF:
    covered: Counter[str] = Counter()
    for sentence, masks in zip(target.sentences, target.masks, strict=True):
        union = 0
        for other in summary.sentences:
            if not masks.keys().isdisjoint(other):
                union |= lcs_positions(masks, len(sentence), other)
        while union:
            lowest = union & -union
            covered[sentence[lowest.bit_length() - 1]] += 1
            union ^= lowest
    # A token counts no more often than it stands in the summary: ROUGE-1.5.5 and rouge-score clip so, the paper not.
    hits = sum(min(count, summary.counts[token]) for token, count in covered.items())
    return _prf(hits / summary.total, hits / target.total)


def _compare_weighted(summary: list[str], target: list[str]) -> PRF:
    common = weighted_lcs(summary, target, WEIGHT)
    # f⁻¹(WLCS / f(length)) = WLCS^(1/w) / length; rounding may lift it above 1 by an ulp.
    root = common ** (1 / WEIGHT)
    return _prf(min(root / len(summary), 1.0), min(root / len(target), 1.0))


@lru_cache(maxsize=1)
def _porter() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    return lru_cache(maxsize=1 << 18)(PorterStemmer().stem)


def _tokeniser(tokenize: str, stem: bool, stopwords: str) -> Tokeniser:
    """A tokeniser with the options: function words left out first, then stems."""
    plain = {"rouge": rouge_tokens, "words": word_tokens, "space": lambda text: text.lower().split()}[tokenize]
    if not stem and stopwords == "keep":
        return plain

    def tokens(text: str) -> list[str]:
        found = plain(text)
        if stopwords == "remove":
            found = [token for token in found if token not in STOP_WORDS]
        if stem:
            porter = _porter()
            found = [porter(token) if len(token) > 3 else token for token in found]
        return found

    return tokens


# --- the metrics ----------------------------------------------------------------------------------------------------


def _prepare(
    kind: str, tokens: Tokeniser, split: Splitter
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., PRF]]:
    """How to read a summary, how to read a target, and how to compare the two, for one kind of ROUGE."""
    if kind == "rougeLsum":

        def read(text: str) -> _Sentences:
            return _sentences([tokens(sentence) for sentence in split(text)])

        return read, read, _compare_sentences
    if kind == "rougeL":
        return tokens, lambda text: _sequence(tokens(text)), _compare_sequences
    if kind == "rougeW":
        return tokens, tokens, _compare_weighted
    n = int(kind.removeprefix("rouge"))
    return lambda text: _grams(tokens(text), n), lambda text: _grams(tokens(text), n), _compare_grams


def _combine(results: Sequence[PRF], references: str, value: str) -> float:
    """One number from the results against each reference."""
    if references == "mean":
        taken = list(results)
    elif references == "jackknife" and len(results) > 1:
        others = [[*results[:place], *results[place + 1 :]] for place in range(len(results))]
        taken = [max(each, key=lambda result: result.f1) for each in others]
    else:
        taken = [max(results, key=lambda result: result.f1)]
    return sum(getattr(result, value) for result in taken) / len(taken)


def _by_overlap(
    kind: str,
    value: str,
    stem: bool,
    stopwords: str,
    references: str,
    against: str,
    tokenize: str,
    beta: float = 1.0,
    split: Splitter = split_sentences,
) -> Score:
    if not beta > 0:
        raise InputError(f"beta is {beta:g}; give the weight of recall in F, above 0 (1: as much as precision)")
    read_summary, read_target, compare = _prepare(kind, _tokeniser(tokenize, stem, stopwords), split)
    counted = "tokenize=words counts those of any script"
    lacking = f"no word that ROUGE counts (a–z, 0–9; {counted})" if tokenize == "rouge" else "no word"
    if kind[-1] in "234":
        lacking = f"fewer than {kind[-1]} words" + lacking.removeprefix("no word")

    def readable(read: Callable[[str], Any]) -> Callable[[str], Any]:
        """What ``read`` makes of a text, or why nothing can be said of it."""

        def one(text: str) -> Any:
            if tokenize == "rouge" and mostly_foreign(text):
                return f"mostly letters that ROUGE does not count (not a–z; {counted})"
            found = read(text)
            return found if (len(found) if isinstance(found, list) else found.total) else lacking

        # Systems share documents and references, so each distinct text is read once.
        return cache(one)

    def score(items: Sequence[Item]) -> Results:
        # Gone when the call returns.
        summary_of, target_of = readable(read_summary), readable(read_target)
        for item in items:
            targets = [target_of(target) for target in targets_of(item, against)]
            useful = [target for target in targets if not isinstance(target, str)]
            summary = summary_of(item.summary)
            if not targets:
                yield "no reference"
            elif not useful:
                what = "reference" if item.references and against != "document" else "document"
                yield f"the {what} has {targets[0]}"
            elif isinstance(summary, str):
                yield f"the summary has {summary}"
            else:
                results = [_prf(*compare(summary, target)[:2], beta) for target in useful]
                yield _combine(results, references, value)

    return score


def _rouge(kind: str) -> Callable[..., Scorer]:
    def make(
        *,
        value: Value = "f1",
        stem: bool = False,
        stopwords: Stopwords = "keep",
        references: References = "max",
        against: Against = "auto",
        tokenize: Tokenize = "rouge",
        beta: float = 1.0,
    ) -> Score:
        return _by_overlap(kind, value, stem, stopwords, references, against, tokenize, beta)

    make.__name__ = make.__qualname__ = kind.lower()
    make.__doc__ = f"""The metric ``{kind}``, in [0, 1], higher is better.

    ``value``: ``precision``, ``recall`` or ``f1``, in which recall weighs ``beta`` times as much as precision. ``stem``: Porter
    stems of words of more than three letters. ``stopwords``: ``keep`` or ``remove``. ``references``, where there are several:
    ``max`` takes the one with the largest F (rouge-score's rule, whatever ``value`` is), ``mean`` the mean over them,
    ``jackknife`` the mean over the sets with one left out of the ``max`` in each (ROUGE-1.5.5's; one reference alone is taken as
    it is).
    ``against``: ``references``, ``document``, or ``auto``, the references where the record has any, else the document.
    ``tokenize``: ``rouge``, runs of a–z and 0–9, ``words``, those of any script (in one without spaces its characters:
    ``text.word_spans``), or ``space``, what white space separates, in lower case. Missing where the summary, or every
    text to compare it with, has no n-gram or is mostly in letters that are not counted; a reference of that kind beside others
    is passed over.
    """
    return metric(kind)(make)


@metric("rougeLsum")
def rougelsum(
    *,
    value: Value = "f1",
    stem: bool = False,
    stopwords: Stopwords = "keep",
    references: References = "max",
    against: Against = "auto",
    tokenize: Tokenize = "rouge",
    sentences: Literal["rule", "newline"] = "rule",
) -> Score:
    """The metric ``rougeLsum``: options as for ``rouge1``, and ``sentences``: ``rule`` (the project's own splitter,
    the default) or ``newline`` (line breaks only: what rouge-score does)."""
    split = (lambda text: text.split("\n")) if sentences == "newline" else split_sentences
    return _by_overlap("rougeLsum", value, stem, stopwords, references, against, tokenize, split=split)


rouge1, rouge2, rouge3, rouge4 = (_rouge(f"rouge{n}") for n in range(1, 5))
rougel, rougew = _rouge("rougeL"), _rouge("rougeW")
