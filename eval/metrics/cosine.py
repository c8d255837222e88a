"""Cosine of the vectors of two texts, by one encoder or averaged over several (Sun & Nenkova 2019).

Their measures: ``enc-2``, ``enc-3``: ``cosine(encoder=use,pool=whole)``, ``use-large``; InferSent likewise; ``avg``,
``max``: ``cosine(encoder=(word2vec:path=PATH),pool=whole)`` with that encoder's ``pool=mean`` or ``pool=max``; ELMo's
``-a`` and ``-m``: ``hf:pool=mean``, ``hf:pool=max``; ``enc-avg``: the metric of that name, or ``encoder=A+B+C``.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from negsample.errors import InputError
from negsample.eval.metrics.base import number, pair_metric
from negsample.eval.metrics.targets import compare_with_targets, needs_of, target_options, targets_of
from negsample.eval.metrics.vectors import NO_VECTOR, pooled_encoder, unit_vectors, weights_of
from negsample.scoring.scorer import Columns, Item, Scorer, collect
from negsample.spec import split_outside, unquote

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

# The packaged encoders in the place of the paper's seven: two of sentences, word and token vectors by mean and by max.
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
) -> Scorer:
    """``cosine``: cosine of the vectors of the summary and of the document or reference, in [−1, 1], higher is better.

    ``encoder``: any specification that ``make_encoder`` knows; several joined by ``+`` (one with commas or a ``+`` of
    its own in parentheses) give the mean of their cosines (their enc-avg). ``pool``: ``mean`` (default) or ``max`` over
    the vectors of a text's sentences (of its words for a word encoder), or ``whole``, the text encoded as one, as they
    do. ``first``: read only the document's first tokens (white-space separated; they try 400 and 750), 0 for all.
    ``against``: ``document`` (default: a reference-free baseline), ``references``, or ``auto``, references
    where the record has any. ``references``: ``max`` or ``mean`` over several (reading: they have one).
    Missing where a text has no vector by one of the encoders.
    """
    options = {"encoder": encoder, **target_options(against, references), "pool": pool, "first": _tokens(first)}
    return _metric("cosine", cosine, options)


def enc_avg(
    *, encoder: str = OFFLINE, against: str = "document", references: str = "max", first: int | str = 0
) -> Scorer:
    """``enc-avg``: the mean of the cosines by several encoders of whole texts, in [−1, 1], higher is better.

    Sun & Nenkova 2019, §2. Options as for ``cosine``. The default encoders are the packaged ones; theirs are USE
    (both), word2vec and ELMo by mean and by max, InferSent. A text longer than an encoder reads loses its end, with a
    warning.
    """
    options = {"encoder": encoder, **target_options(against, references), "first": _tokens(first)}
    return _metric("enc-avg", enc_avg, options)


def _tokens(first: int | str) -> int:
    return number("first", first, 0, 10**9)


def _metric(name: str, factory: Callable[..., Scorer], options: dict[str, Any]) -> Scorer:
    given = {"pool": "whole", **options}
    encoders = [pooled_encoder(spec, given["pool"]) for spec in split_encoders(given.pop("encoder"))]
    score = partial(score_cosine, encoders=encoders, **given)
    return pair_metric(name, factory, options, needs_of(given["against"]), score, more=weights_of(*encoders))


def split_encoders(text: str) -> list[str]:
    """Split ``A+B+(C:option=value,option=value)`` into its specifications, their parentheses taken off.

    Raises InputError for an empty one or a parenthesis without its partner.
    """
    pieces = split_outside(text, "+")
    if pieces is None or not all(pieces):
        raise InputError(f"encoder={text}: write one specification, or several as A+B+(C:option=value,…)")
    return [unquote(piece) for piece in pieces]


def score_cosine(
    items: Sequence[Item],
    *,
    encoders: Sequence["Encoder"],
    against: str = "document",
    references: str = "max",
    pool: str = "mean",
    first: int = 0,
) -> Columns:
    """Compute ``cosine`` with encoders that are made already."""
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

    return collect(compare_with_targets(item, against, references, problem, similarity) for item in items)


def first_tokens(text: str, count: int) -> str:
    """Return ``text`` up to the end of its ``count``-th white-space-separated token, line breaks kept."""
    for place, match in enumerate(re.finditer(r"\S+", text), start=1):
        if place == count:
            return text[: match.end()]
    return text
