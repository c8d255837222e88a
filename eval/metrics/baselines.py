"""Baselines that no metric should lose to: length, copying, term recall, the lead, the untrained alignment; and novelty.

One more, the cosine of whole texts, is in ``cosine``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from negsample.eval.metrics.base import Results, Score, choice, content_words, metric, ngrams, number
from negsample.models.align.aspects import ASPECTS
from negsample.scoring.scorer import Item, Scorer
from negsample.sentences import split_sentences
from negsample.text import word_count, word_tokens

if TYPE_CHECKING:
    from negsample.models.features.align import AlignFeatures

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
    Content words are those outside ``tokens.STOP_WORDS``. Missing where the document has none, or the summary no word.
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
