"""Cosine of the vectors of two texts, by one encoder or averaged over several (Sun and Nenkova, 2019: P1).

P1's measures: ``enc-2``, ``enc-3``: ``cosine:encoder=use,pool=whole``, ``use-large``; InferSent likewise; ``avg``,
``max``: ``cosine:encoder=(word2vec:path=PATH),pool=whole`` with that encoder's ``pool=mean`` or ``pool=max``; ELMo's
``-a`` and ``-m``: ``hf:pool=mean``, ``hf:pool=max``; ``enc-avg``: the metric of that name, or ``encoder=A+B+C``.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from negsample.errors import InputError
from negsample.eval.metrics.base import Item, Metric, Scores, choice, collect, describe, number
from negsample.eval.metrics.comparison import AGAINST, SEVERAL, compare, needs_of, targets_of
from negsample.eval.metrics.vectors import NO_VECTOR, POOLS, check_pool, unit_vectors

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

_MOST_TOKENS = 10**9
# The packaged encoders in the place of P1's seven: two of sentences, word vectors and token vectors by mean and by max.
OFFLINE = (
    "use-multilingual+sentence-transformer+(glove:unit=sentence,pool=mean)+(glove:unit=sentence,pool=max)"
    "+(hf:pool=mean)+(hf:pool=max)"
)


def cosine(
    *,
    encoder: str = "sentence-transformer",
    against: str = "document",
    references: str = "max",
    pool: str = "mean",
    first: int | str = 0,
) -> Metric:
    """``cosine``: cosine of the vectors of the summary and of the document or reference, in [−1, 1], higher is better.

    ``encoder``: any specification that ``make_encoder`` knows; several joined by ``+`` (one with commas or a ``+`` of
    its own in parentheses) give the mean of their cosines (P1's enc-avg). ``pool``: ``mean`` (default) or ``max`` over
    the vectors of a text's sentences (of its words for a word encoder), or ``whole``, the text encoded as one, as P1
    does. ``first``: read only the document's first tokens (white-space separated; P1 tries 400 and 750), 0 for all.
    ``against``: ``document`` (default: a reference-free baseline, SPEC §8), ``references``, or ``auto``, references
    where the record has any. ``references``: ``max`` or ``mean`` over several (reading: P1 has one).
    Missing where a text has no vector by one of the encoders.
    """
    options = {"against": (against, "document"), "references": (references, "max"), "pool": (pool, "mean")}
    return _metric("cosine", encoder, "sentence-transformer", {**options}, against, references, pool, first)


def enc_avg(
    *, encoder: str = OFFLINE, against: str = "document", references: str = "max", first: int | str = 0
) -> Metric:
    """``enc-avg``: the mean of the cosines by several encoders, whole texts (P1 §2), in [−1, 1], higher is better.

    Options as for ``cosine``. The default encoders are the packaged ones; P1's are USE (both), word2vec and ELMo by
    mean and by max, InferSent. A text longer than an encoder reads loses its end, with a warning.
    """
    options = {"against": (against, "document"), "references": (references, "max")}
    return _metric("enc-avg", encoder, OFFLINE, {**options}, against, references, "whole", first)


def _metric(
    name: str,
    encoder: str,
    default: str,
    options: dict[str, tuple[object, object]],
    against: str,
    references: str,
    pool: str,
    first: int | str,
) -> Metric:
    choice("against", against, AGAINST)
    choice("references", references, SEVERAL)
    choice("pool", pool, POOLS)
    tokens = number("first", first, 0, _MOST_TOKENS)
    from negsample.models.encoders import make_encoder

    encoders = [make_encoder(spec) for spec in split_encoders(encoder)]
    for made in encoders:
        check_pool(made, pool)
    canonical, signature = describe(name, {"encoder": (encoder, default), **options, "first": (tokens, 0)})
    weights = "+".join(made.fingerprint[:12] for made in encoders)
    score = partial(score_cosine, encoders=encoders, against=against, references=references, pool=pool, first=tokens)
    return Metric(canonical, f"{signature}|weights:{weights}", True, needs_of(against), score)


def split_encoders(text: str) -> list[str]:
    """The specifications in ``A+B+(C:option=value,option=value)``, their parentheses taken off.

    Raises InputError for an empty one or a parenthesis without its partner.
    """
    pieces, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if letter == "+" and depth == 0:
            pieces.append(text[start:place])
            start = place + 1
    pieces.append(text[start:])
    if depth or not all(pieces):
        raise InputError(f"encoder={text}: write one specification, or several as A+B+(C:option=value,…)")
    return [piece[1:-1] if piece.startswith("(") and piece.endswith(")") else piece for piece in pieces]


def score_cosine(
    items: Sequence[Item],
    *,
    encoders: Sequence["Encoder"],
    against: str = "document",
    references: str = "max",
    pool: str = "mean",
    first: int = 0,
) -> Scores:
    """What the metric ``cosine`` computes, with encoders that are made already."""
    if first:
        items = [Item(first_tokens(item.document, first), item.summary, item.references) for item in items]
    texts = sorted({text for item in items for text in (item.summary, *targets_of(item, against))})
    tables = [unit_vectors(texts, encoder, pool) for encoder in encoders]

    def problem(text: str) -> str | None:
        for encoder, table in zip(encoders, tables, strict=True):
            if table[text] is None:
                return NO_VECTOR if len(encoders) == 1 else f"{NO_VECTOR} by {encoder.name}"
        return None

    def similarity(summary: str, target: str) -> float:
        values = [float(table[summary] @ table[target]) for table in tables]  # type: ignore[operator]
        return sum(min(1.0, max(-1.0, value)) for value in values) / len(values)

    return collect(compare(item, against, references, problem, similarity) for item in items)


def first_tokens(text: str, count: int) -> str:
    """``text`` up to the end of its ``count``-th white-space-separated token, line breaks kept."""
    for place, match in enumerate(re.finditer(r"\S+", text), start=1):
        if place == count:
            return text[: match.end()]
    return text
