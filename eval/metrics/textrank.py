"""TextRank (Scialom et al. 2019, §2.1): how important the summary's sentences are in the graph of the document's."""

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain

import numpy as np

from negsample.eval.metrics.base import Results, Score, metric
from negsample.scoring.scorer import Item
from negsample.sentences import split_sentences
from negsample.text import word_tokens

DAMPING = 0.85  # Mihalcea & Tarau (2004), §2
# A graph of n sentences takes n² numbers: 128 MB at this limit.
MOST_SENTENCES = 4000


def pagerank(weights: np.ndarray, damping: float = DAMPING) -> np.ndarray:
    """Solve p = (1 − d)/n + d·Σ_j p_j·w_ji/Σ_k w_jk, float64 [n], sum 1.

    ``weights`` [n, n]: w_ij ≥ 0, the weight of the edge from i to j. A node without edges passes its share to all nodes alike.
    """
    n, strength = len(weights), weights.sum(axis=1, keepdims=True)
    passed = np.where(strength > 0, weights / np.where(strength > 0, strength, 1.0), 1 / max(n, 1))
    return np.linalg.solve(np.eye(n) - damping * passed.T, np.full(n, (1 - damping) / max(n, 1)))


def similarities(rows: Sequence[Sequence[str]], columns: Sequence[Sequence[str]]) -> np.ndarray:
    """Compute TextRank's sentence similarity, words in common/(ln|a| + ln|b|), float64 [rows, columns] (M&T 2004, §4.1).

    Each sentence is its list of tokens: |a| is its length, and common words are counted as types. Where the
    denominator is 0 (two sentences of one word) the formula has no value; this takes 0.
    """
    from scipy.sparse import csr_array

    place = {token: k for k, token in enumerate(dict.fromkeys(chain(*rows, *columns)))}

    def table(sentences: Sequence[Sequence[str]]) -> "csr_array":
        types = [sorted({place[token] for token in sentence}) for sentence in sentences]
        found = np.fromiter(chain(*types), dtype=np.int64)
        ends = np.cumsum([0, *map(len, types)])
        return csr_array((np.ones(len(found)), found, ends), shape=(len(sentences), max(len(place), 1)))

    common = (table(rows) @ table(columns).T).toarray()
    logs = [np.log(np.maximum([len(sentence) for sentence in side], 1)) for side in (rows, columns)]
    scale = logs[0][:, None] + logs[1][None, :]
    return np.divide(common, scale, out=np.zeros_like(common), where=scale > 0)


def importances(document: Sequence[Sequence[str]]) -> np.ndarray:
    """Compute TextRank of each sentence (a list of tokens) × the number of sentences, float64 [n]: 1 is average.

    The graph joins every two different sentences with their similarity as weight.
    """
    return pagerank(_document_edges(document)) * len(document)


def _document_edges(document: Sequence[Sequence[str]]) -> np.ndarray:
    edges = similarities(document, document)
    np.fill_diagonal(edges, 0.0)
    return edges


def inserted_importances(edges: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """Compute the importance of m summary sentences put into the graph of n document sentences, float64 [m]; 1 is average.

    ``edges`` [n, n]: similarities of the document's sentences, 0 on the diagonal; ``cross`` [m, n]: of the summary's
    with the document's. No edge joins two sentences of the summary, so that it cannot vote for itself.
    """
    m, n = cross.shape
    weights = np.zeros((n + m, n + m))
    weights[:n, :n] = edges
    weights[n:, :n] = cross
    weights[:n, n:] = cross.T
    return pagerank(weights)[n:] * (n + m)


@metric("textrank", needs={"document"})
def textrank() -> Score:
    """``textrank``: importance of the summary's sentences among the document's; above 0, 1 is the average sentence.

    Scialom et al. say only that they use TextRank's importance scores "to assess the quality of abstractive summaries".
    Reading: the summary's sentences stand in the document's graph, joined with its sentences but not with each other, and
    their mean is taken. Importance is PageRank
    (damping 0.85) × the number of sentences in the graph. Missing where a text has no words, or the two together have
    more than 4,000 sentences. Time and memory: quadratic in the number of sentences.
    """

    def read(text: str) -> list[list[str]]:
        return [found for sentence in split_sentences(text) if (found := word_tokens(sentence))]

    def score(items: Sequence[Item]) -> Results:
        sentences_of = cache(read)
        # Matrices are large, so only those of the last few documents are kept.
        edges_of = lru_cache(maxsize=2)(lambda document: _document_edges(sentences_of(document)))
        for item in items:
            document, summary = sentences_of(item.document), sentences_of(item.summary)
            if not document or not summary:
                yield f"the {'summary' if document else 'document'} has no words that count"
            elif len(document) + len(summary) > MOST_SENTENCES:
                yield f"more than {MOST_SENTENCES} sentences"
            else:
                values = inserted_importances(edges_of(item.document), similarities(summary, document))
                yield float(values.mean())

    return score
