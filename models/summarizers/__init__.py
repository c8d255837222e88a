"""Systems that write summaries (an extractor over sentence vectors, language models); choosing whole sentences within a number of
words or of sentences: one rule for every system, so that they compare."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.records import Source
from negsample.sentences import split_sentences
from negsample.text import word_count


@dataclass(frozen=True)
class Budget:
    """At most ``words`` words or ``sentences`` sentences, one of the two.

    With words, a sentence that no longer fits is passed over; where none fits from the beginning, the shortest is taken,
    so that no summary is empty.
    """

    words: int | None = None
    sentences: int | None = None

    def __post_init__(self) -> None:
        given = [count for count in (self.words, self.sentences) if count is not None]
        if len(given) != 1 or given[0] < 1:
            raise InputError("give a number of words or of sentences, 1 or more, and not both")

    def fill(self, order: Iterable[int], counts: Sequence[int]) -> list[int]:
        """The sentences of ``order`` that are taken, in that order; ``counts``: the words of each sentence."""
        chosen: list[int] = []
        room = self.room(counts)
        for place in order:
            if room(chosen)[place]:
                chosen.append(place)
        return chosen

    def room(self, counts: Sequence[int]) -> Callable[[Sequence[int]], np.ndarray]:
        """A function of the sentences chosen so far: which may come next, bool [n]; none where it is enough."""
        sizes = np.asarray(counts, np.int64)

        def allowed(chosen: Sequence[int]) -> np.ndarray:
            free = np.ones(len(sizes), bool)
            free[list(chosen)] = False
            if self.sentences is not None:
                return free & (len(chosen) < self.sentences)
            fits = free & (sizes[list(chosen)].sum() + sizes <= int(self.words or 0))
            if not chosen and not fits.any() and len(sizes):
                fits[int(sizes.argmin())] = True
            return fits

        return allowed


def sentences_of(document: str) -> tuple[list[str], list[int]]:
    """The sentences of a document and the words of each."""
    found = split_sentences(document)
    return found, [word_count(sentence) for sentence in found]


def extract(sentences: Sequence[str], chosen: Iterable[int]) -> str:
    """The chosen sentences as one text, in the order of the document."""
    return " ".join(sentences[place] for place in sorted(chosen))


def lead(document: str, budget: Budget) -> str:
    """The document's first sentences that the budget holds."""
    return ranked(document, budget, lambda sentences: range(len(sentences)))


def ranked(document: str, budget: Budget, order: Callable[[list[str]], Iterable[int]]) -> str:
    """The sentences that come first in ``order`` (a function of them all) and that the budget holds."""
    sentences, counts = sentences_of(document)
    return extract(sentences, budget.fill(order(sentences), counts))


def summaries_of(summarizer: Any, documents: Sequence[str], size: int, **how: Any) -> list[str]:
    """A summary of each document, ``size`` at a time, by ``summarizer.decode(…, **how)``."""
    summarizer.network.eval()
    device = next(summarizer.network.parameters()).device
    found: list[str] = []
    for i in range(0, len(documents), size):
        # A text is its own name: what is drawn for it depends on nothing else.
        own = [Source(document, document) for document in documents[i : i + size]]
        inputs = {name: tensor.to(device) for name, tensor in summarizer.inputs(own).items()}
        found += summarizer.texts(own, summarizer.decode(inputs, own, **how))
    return found


def best_choices(
    documents: Sequence[tuple[Sequence[str], Sequence[int]]],
    budget: Budget,
    score: Callable[[Sequence[int], Sequence[str]], np.ndarray],
) -> list[list[int]]:
    """An extract for each document, found greedily: the sentence that raises the score most, until none does.

    Nallapati et al. (2017, SummaRuNNer), §2.2. ``documents``: sentences and their words; ``score(which, summaries)``
    gives a number for each summary of the document ``which`` (NaN counts as no gain). Of equal ones the first is taken.
    """
    chosen: list[list[int]] = [[] for _ in documents]
    best = np.full(len(documents), -np.inf)
    open_ones = list(range(len(documents)))
    rooms = [budget.room(counts) for _, counts in documents]
    while open_ones:
        tries = [(d, int(s)) for d in open_ones for s in np.flatnonzero(rooms[d](chosen[d]))]
        texts = [extract(documents[d][0], [*chosen[d], s]) for d, s in tries]
        values = np.nan_to_num(score([d for d, _ in tries], texts), nan=-np.inf) if tries else np.zeros(0)
        raised: dict[int, int] = {}
        for (d, s), value in zip(tries, values.tolist(), strict=True):
            if value > best[d]:
                best[d], raised[d] = value, s
        for d, s in raised.items():
            chosen[d].append(s)
        open_ones = sorted(raised)
    return chosen
