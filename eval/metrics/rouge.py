"""ROUGE-N, -L, -Lsum and -W (Lin 2004, "ROUGE: a package for automatic evaluation of summaries").

Precision is over the summary, recall over the target (a reference, or the document), F is (1 + β²)PR / (R + β²P), with β = 1
their harmonic mean. Tokens and values are those that the ``rouge-score`` package finds in the folded text (``text.fold``; ASCII
is its own fold), where it has the measure and both texts have an n-gram: without one it says 0, and here the value is
missing. ROUGE-Lsum there
splits sentences at line breaks only, so that a text without line breaks is one sentence and Lsum quietly equals L;
here sentences are split by the project's own rule unless ``sentences="newline"`` is asked for.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import STOP_WORDS, Against, Results, Score, metric, ngrams, rouge_tokens, targets_of
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


class _Text(NamedTuple):
    """How many n-grams a text has, how often each, and, for subsequences, its sentences with the `positions` of their tokens."""

    total: int
    counts: Mapping[Any, int]
    sentences: list[list[str]]
    masks: list[dict[str, int]]


def _reader(kind: str, tokens: Tokeniser, split: Tokeniser) -> Callable[[str], _Text]:
    def read(text: str) -> _Text:
        if kind[-1].isdigit():
            n, found = int(kind[-1]), tokens(text)
            return _Text(max(len(found) - n + 1, 0), Counter(found if n == 1 else ngrams(found, n)), [], [])
        sentences = [tokens(sentence) for sentence in split(text)] if kind == "rougeLsum" else [tokens(text)]
        masks = [] if kind == "rougeW" else [positions(sentence) for sentence in sentences]
        counts = Counter(token for sentence in sentences for token in sentence) if kind == "rougeLsum" else {}
        return _Text(sum(map(len, sentences)), counts, sentences, masks)

    return read


def _hits(kind: str, summary: _Text, target: _Text) -> float:
    """How much of one text stands in the other, in n-grams or tokens."""
    if kind[-1].isdigit():
        common = summary.counts.keys() & target.counts.keys()
        return sum(map(min, map(summary.counts.__getitem__, common), map(target.counts.__getitem__, common)))
    if kind == "rougeL":
        return lcs_length(target.masks[0], target.total, summary.sentences[0])
    if kind == "rougeW":
        # f⁻¹(WLCS / f(length)) = WLCS^(1/w) / length.
        return weighted_lcs(summary.sentences[0], target.sentences[0], WEIGHT) ** (1 / WEIGHT)
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
    return sum(min(count, summary.counts[token]) for token, count in covered.items())


def _prf(hits: float, summary: _Text, target: _Text, beta: float) -> PRF:
    precision, recall = (
        min(hits / summary.total, 1.0),
        min(hits / target.total, 1.0),
    )  # rounding may lift them by an ulp
    below = recall + beta**2 * precision
    return PRF(precision, recall, (1 + beta**2) * precision * recall / below if below > 0 else 0.0)


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


# --- the metrics


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
    split: Tokeniser = split_sentences,
) -> Score:
    if not beta > 0:
        raise InputError(f"beta is {beta:g}; give the weight of recall in F, above 0 (1: as much as precision)")
    read = _reader(kind, _tokeniser(tokenize, stem, stopwords), split)
    counted = "tokenize=words counts those of any script"
    lacking = f"no word that ROUGE counts (a–z, 0–9; {counted})" if tokenize == "rouge" else "no word"
    if kind[-1] in "234":
        lacking = f"fewer than {kind[-1]} words" + lacking.removeprefix("no word")

    def readable(text: str) -> _Text | str:
        """What is read of a text, or why nothing can be said of it."""
        if tokenize == "rouge" and mostly_foreign(text):
            return f"mostly letters that ROUGE does not count (not a–z; {counted})"
        found = read(text)
        return found if found.total else lacking

    def score(items: Sequence[Item]) -> Results:
        # Systems share documents and references, so each distinct text is read once.
        text_of = cache(readable)
        for item in items:
            targets = [text_of(target) for target in targets_of(item, against)]
            useful = [target for target in targets if not isinstance(target, str)]
            summary = text_of(item.summary)
            if not targets:
                yield "no reference"
            elif not useful:
                what = "reference" if item.references and against != "document" else "document"
                yield f"the {what} has {targets[0]}"
            elif isinstance(summary, str):
                yield f"the summary has {summary}"
            else:
                results = [_prf(_hits(kind, summary, target), summary, target, beta) for target in useful]
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


# --- longest common subsequences
#
# A target text of m tokens is held as one m-bit Python integer for each token type, with a bit at each place where the type
# stands. A column of the classic table is then one integer whose zero bits mark where the length grows by one, and the next
# column takes four integer operations (Crochemore, Iliopoulos, Pinzon and Reid 2001; Hyyrö 2004): O(n·m/30) in all, against
# O(n·m) interpreted steps.


def positions(tokens: Sequence[str]) -> dict[str, int]:
    """For each token type an integer with bit i set where ``tokens[i]`` is that type."""
    masks: dict[str, int] = {}
    for place, token in enumerate(tokens):
        masks[token] = masks.get(token, 0) | 1 << place
    return masks


def lcs_length(masks: Mapping[str, int], size: int, other: Sequence[str]) -> int:
    """Length of the longest common subsequence of ``other`` and the text of ``size`` tokens behind ``masks``."""
    full = (1 << size) - 1
    column = full
    for token in other:
        match = masks.get(token)
        if match is not None:
            kept = column & match
            column = ((column + kept) | (column - kept)) & full
    return size - column.bit_count()


def lcs_positions(masks: Mapping[str, int], size: int, other: Sequence[str]) -> int:
    """Places of one longest common subsequence in the text behind ``masks``, as bits of an integer.

    Of several longest ones it is the one found by walking back from both ends, taking every match on the way and
    otherwise shortening the masked text first: the choice of the ``rouge-score`` package, whose ROUGE-Lsum depends
    on it.
    """
    full = (1 << size) - 1
    column = full
    columns: list[tuple[int, int]] = []
    unmatched = True
    for token in other:
        match = masks.get(token)
        if match is not None:
            kept = column & match
            column = ((column + kept) | (column - kept)) & full
            columns.append((match, match | (column ^ full)))
            unmatched = False
        elif not unmatched:
            # A column without a match repeats the one before, so of several in a row one is enough; but one there must
            # be, for on it the walk back passes over rows that match in the column before.
            columns.append((0, column ^ full))
            unmatched = True
    chosen, row = 0, size
    for match, stop in reversed(columns):
        # Rows that neither match nor raise the length are passed over in one step.
        row = (stop & ((1 << row) - 1)).bit_length()
        if not row:
            break
        if match >> (row - 1) & 1:
            row -= 1
            chosen |= 1 << row
    return chosen


def weighted_lcs(first: Sequence[str], second: Sequence[str], power: float = 1.2) -> float:
    """Weighted LCS of Lin (2004), §4, with f(k) = k^power: runs of consecutive matches of length k count f(k).

    The recursion is the published one: a match always extends the diagonal. The table is filled along its
    anti-diagonals with numpy: time O(n·m), memory O(min(n, m)): two texts of 5,000 words take about 0.2 s, two
    of 50,000 about half a minute, one of 50,000 against one of 100 about half a second.
    """
    if not first or not second:
        return 0.0
    if len(first) > len(second):
        first, second = second, first
    ids: dict[str, int] = {}
    short = np.array([ids.setdefault(token, len(ids)) for token in first], dtype=np.int32)
    # Reversed, so that an anti-diagonal is a plain slice of both.
    long = np.array([ids.setdefault(token, len(ids)) for token in second], dtype=np.int32)[::-1].copy()
    m, n = len(short), len(long)
    gain = np.diff(np.arange(m + 1, dtype=np.float64) ** power)
    # Index i of a diagonal's arrays is row i of the table; row 0 is the border of zeros.
    before, last = np.zeros(m + 1), np.zeros(m + 1)
    runs_before, runs_last = np.zeros(m + 1, dtype=np.int64), np.zeros(m + 1, dtype=np.int64)
    for diagonal in range(2, m + n + 1):
        low, high = max(1, diagonal - n), min(m, diagonal - 1)
        # Cells (i, diagonal - i) for i = low … high; second[diagonal - i - 1] is long[n - diagonal + i].
        equal = short[low - 1 : high] == long[n - diagonal + low : n - diagonal + high + 1]
        # Zeros outside low … high are the border (i, 0); rows below low are never read again.
        value, runs = np.zeros(m + 1), np.zeros(m + 1, dtype=np.int64)
        step = value[low : high + 1]
        np.maximum(last[low - 1 : high], last[low : high + 1], out=step)
        if equal.any():
            where = np.flatnonzero(equal)
            source = where + (low - 1)
            run = runs_before[source]
            step[where] = before[source] + gain[run]
            runs[where + low] = run + 1
        before, last = last, value
        runs_before, runs_last = runs_last, runs
    return float(last[m])
