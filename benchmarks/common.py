"""Made-up texts, which several benchmarks need."""

from collections.abc import Sequence

from negsample.seeds import generator


def made_text(words: int, vocabulary: Sequence[str], *seed: object) -> str:
    """A text of ``words`` words of the ``vocabulary`` in sentences of 20."""
    drawn = [vocabulary[int(i)] for i in generator("benchmark", *seed).integers(len(vocabulary), size=words)]
    return " ".join(" ".join(drawn[i : i + 20]).capitalize() + "." for i in range(0, words, 20))
