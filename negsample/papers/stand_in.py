"""Judged summaries that the project makes of its own sample, for ``--smoke`` and where a paper's passage can't be shown."""

from collections import Counter

import numpy as np

from negsample.corpora.files import DOMAINS, load_sample
from negsample.corpora.pairs import CorpusOptions
from negsample.eval.agreement.correlate import Source
from negsample.papers.definition import TableSpec
from negsample.records import Judged, Pair
from negsample.seeds import generator
from negsample.sentences import split_sentences

# Systems by the share of a summary's words that they keep.
KEPT = {"s1": 0.9, "s2": 0.8, "s3": 0.65, "s4": 0.5, "s5": 0.35, "s6": 0.2}
PAIRS = 6


def damaged_sources(spec: TableSpec, seed: int = 0) -> list[Source]:
    """A data set for each that the paper has: a few pairs of the sample, their summaries with words left out.

    The first human score is the share of words kept, every other one the share of neighbouring words that stayed
    neighbours; they have the paper's names. The whole summary is the reference.
    """
    names = spec.human or ("kept", "joined")
    sources = []
    for place in range(len(spec.judgments)):
        domain = DOMAINS[place % len(DOMAINS)]
        pairs = list(load_sample(domain, CorpusOptions(), Counter()))[:PAIRS]
        rows = tuple(_damaged(pair, system, names, domain, seed) for pair in pairs for system in KEPT)
        sources.append(Source(domain, f"sample:{domain}", rows, ()))
    return sources


def _damaged(pair: Pair, system: str, names: tuple[str, ...], domain: str, seed: int) -> Judged:
    words = pair.summary.split()
    count = max(2, round(KEPT[system] * len(words)))
    kept = np.sort(generator(seed, "stand-in", pair.id, system).choice(len(words), size=count, replace=False))
    joined = float((np.diff(kept) == 1).sum()) / (len(words) - 1)
    scores = {name: joined if k else count / len(words) for k, name in enumerate(names)}
    text = " ".join(words[k] for k in kept)
    return Judged(pair.id, system, (pair.document,), text, (pair.summary,), scores, domain)


def permuted_source() -> Source:
    """The three summaries of Clark et al. 2019, Table 1, made of one pair of the sample, each sentence but for its last word:
    whole; with its halves exchanged; with its second half said twice. The reference is the document's beginning.
    """
    pair = next(iter(load_sample("news", CorpusOptions(), Counter())))
    halves = [
        (words[: len(words) // 2], words[len(words) // 2 :]) for words in map(str.split, split_sentences(pair.summary))
    ]
    texts = {
        "human": pair.summary,
        # The last word stays, for it has the mark that ends the sentence.
        "word-order": " ".join(_sentence([*second[:-1], *first, second[-1]]) for first, second in halves),
        "repetition": " ".join(_sentence([*first, *second[:-1], *second]) for first, second in halves),
    }
    reference = " ".join(split_sentences(pair.document)[:3])
    rows = tuple(
        Judged(pair.id, name, (pair.document,), text, (reference,), {"shown": 1.0}, "news")
        for name, text in texts.items()
    )
    return Source("news", "sample:news", rows, ())


def _sentence(words: list[str]) -> str:
    text = " ".join(words)
    return text[0].upper() + text[1:]
