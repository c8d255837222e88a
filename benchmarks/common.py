"""Made-up texts, which several benchmarks need."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from negsample.seeds import generator

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of all threads, which a busy machine hardly moves, and the answer of ``work``."""
    begin = time.process_time()
    answer = work()
    return time.process_time() - begin, answer


def made_text(words: int, vocabulary: Sequence[str], *seed: object) -> str:
    """A text of ``words`` words of the ``vocabulary`` in sentences of 20."""
    drawn = [vocabulary[int(i)] for i in generator("benchmark", *seed).integers(len(vocabulary), size=words)]
    return " ".join(" ".join(drawn[i : i + 20]).capitalize() + "." for i in range(0, words, 20))
