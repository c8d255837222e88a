"""Baselines that no metric should lose to: length, copying, term recall, the lead, the untrained alignment; novelty; TextRank.

One more, the cosine of whole texts, is in ``cosine``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from negsample.eval.metrics.base import Results, Score, choice, content_words, metric, ngrams, number
from negsample.models.align.aspects import ASPECTS
from negsample.scoring.scorer import Item, Scorer
from negsample.sentences import split_sentences
from negsample.text import word_count, word_tokens

if TYPE_CHECKING:
    from negsample.models.features.align import AlignFeatures

DAMPING = 0.85  # Mihalcea & Tarau (2004), §2
# A graph of n sentences takes n² numbers: 128 MB at this limit.
MOST_SENTENCES = 4000
_BATCH = 64


@metric("words")
def words() -> Score:
    """``words``: number of words of the summary (``text.word_count``). Needs nothing; 0 for a blank summary."""
    return lambda items: [float(word_count(item.summary)) for item in items]


@metric("copied", needs={"document"})
def copied(*, n: int = 1) -> Score:
    """``copied``: share of the summary's n-grams (tokens, so repeats count) that stand in the document, in [0, 1].

    ``n`` from 1 (the default: the share of copied words) to 9. Words are compared in lower case without punctuation.
    Missing where the summary has fewer than n words.
    """
    number("n", n, 1, 9)

    def score(items: Sequence[Item]) -> Results:
        grams_of = cache(lambda text: frozenset(ngrams(word_tokens(text), n)))
        for item in items:
            tokens, source = word_tokens(item.summary), grams_of(item.document)
            shared = sum(gram in source for gram in ngrams(tokens, n))
            yield shared / (len(tokens) - n + 1) if len(tokens) >= n else f"the summary has fewer than {n} words"

    return score


@metric("tf-recall", needs={"document"})
def tf_recall() -> Score:
    """``tf-recall``: how much of the document's content words, by frequency, the summary names, in [0, 1].

    Σ over the content-word types of the summary of tf_document / Σ over all content-word types of tf_document.
    Content words are those outside ``base.STOP_WORDS``. Missing where the document has none, or the summary no word.
    """

    def score(items: Sequence[Item]) -> Results:
        frequencies_of = cache(lambda text: Counter(content_words(text)))
        for item in items:
            frequencies = frequencies_of(item.document)
            if not frequencies:
                yield "the document has no content words"
            elif not word_tokens(item.summary):
                yield "the summary has no words"
            else:
                named = set(content_words(item.summary)) & frequencies.keys()
                yield sum(frequencies[word] for word in named) / frequencies.total()

    return score


@metric("lead-overlap", needs={"document"})
def lead_overlap() -> Score:
    """``lead-overlap``: share of the words of the document's first three sentences that the summary has, in [0, 1].

    Words in lower case without punctuation, clipped counts. Missing where the lead or the summary has no words.
    """

    def score(items: Sequence[Item]) -> Results:
        lead_of = cache(lambda text: Counter(word_tokens(" ".join(split_sentences(text)[:3]))))
        for item in items:
            lead, summary = lead_of(item.document), Counter(word_tokens(item.summary))
            if not lead:
                yield "the document has no words in its first sentences"
            else:
                yield (lead & summary).total() / lead.total() if summary else "the summary has no words"

    return score


def _novelty(n: int) -> Callable[..., Scorer]:
    def make(*, length: Literal["auto", "none"] = "auto") -> Score:
        def score(items: Sequence[Item]) -> Results:
            grams_of = cache(lambda text: frozenset(ngrams(word_tokens(text), n)))
            words_in = cache(lambda text: len(word_tokens(text)))
            for item in items:
                tokens = word_tokens(item.summary)
                if not (grams := frozenset(ngrams(tokens, n))):
                    yield f"the summary has fewer than {n} words"
                    continue
                share = len(grams - grams_of(item.document)) / len(grams)
                lengths = [known for known in map(words_in, item.references) if known] if length == "auto" else []
                yield share * len(tokens) * len(lengths) / sum(lengths) if lengths else share

        return score

    make.__name__ = make.__qualname__ = f"novelty{n}"
    make.__doc__ = f"""``novelty{n}``: share of distinct {n}-grams not in the document (Scialom et al. 2019, §2.1).

    Higher is more novel; Scialom et al. find it slightly negative against people. ``length``: ``auto`` multiplies by the
    summary's length over the mean length of the references, where the record has any, so that a short summary gains
    nothing; ``none`` never does. Missing where the summary has fewer than {n} words.
    """
    return metric(f"novelty{n}", needs={"document"})(make)


novelty1, novelty2, novelty3, novelty4 = (_novelty(n) for n in range(1, 5))


@metric("align-untrained", needs={"document"})
def align_untrained(*, aspect: str = "score", encoder: str = "sentence-transformer") -> Score:
    """``align-untrained``: head ``align`` as it is before training, without a judge; in [0, 1].

    ``aspect``: ``score`` (all of them), ``coverage``, ``support``, ``coherence`` or ``form``. ``encoder``: any
    sentence-transformer (``negsample.models.encoders``). Missing where a text has no word. Nothing random is in it but
    hidden units whose weight is next to nothing, drawn from a fixed seed.
    """
    column = ("score", *ASPECTS).index(choice("aspect", aspect, ("score", *ASPECTS)))

    def score(items: Sequence[Item]) -> Results:
        import torch

        from negsample.models.features.align import stack

        features, network = _untrained(encoder)
        # Summaries of one document together, so that it is read once.
        order = sorted(range(len(items)), key=lambda i: items[i].document)
        results: list[float | str] = [""] * len(items)
        for batch in (order[start : start + _BATCH] for start in range(0, len(order), _BATCH)):
            compared = features.compare([items[i].document for i in batch], [items[i].summary for i in batch])
            with torch.inference_mode():
                scores = torch.sigmoid(network(**stack(compared))).numpy()
            for i, row, found in zip(batch, scores, compared, strict=True):
                why = features.reason(items[i].document, items[i].summary) or "no aspect can be judged"
                results[i] = float(row[column]) if found.present.all() else why
        return results

    return score


@lru_cache(maxsize=2)
def _untrained(encoder: str) -> tuple["AlignFeatures", Any]:
    from negsample.models.encoders import make_encoder
    from negsample.models.features.align import AlignFeatures
    from negsample.models.heads.align import untrained

    return AlignFeatures(make_encoder(encoder)), untrained()


# --- TextRank (Scialom et al. 2019, §2.1; Mihalcea & Tarau 2004)


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
