"""Word, sentence, and sentence-and-word mover's similarity (Clark, Celikyilmaz & Smith 2019).

similarity = exp(−EMD(A, B)), EMD the least Σ T_ij ‖v_i − v_j‖₂ over T ≥ 0 whose row sums are the weights of A and whose
column sums are the weights of B (their eq. 2–3). In (0, 1], 1 for equal texts, symmetric. Stop words and punctuation
are left out (A.1), and so are words that the encoder does not know; |A| counts the words that remain (reading).

- ``wms``: word types, weight count/|A| (eq. 1). - ``sms``: sentences, weight |i|/|A| (eq. 4).
- ``s+wms``: both, weights halved (eq. 5).

Cost: time grows with the cube of the number of distinct words, memory with its square; weight that both texts have on
one word is not moved, so copied words cost nothing.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.bags import Bag, make_space, reads_tokens
from negsample.eval.metrics.base import Against, Score, Several, compare_with_targets, metric, targets_of
from negsample.eval.metrics.vectors import weights_of
from negsample.scoring.scorer import Columns, Item, collect

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

# Characters of text whose vectors are in memory at a time: 250 MB of contextual vectors at 384 dimensions.
_BLOCK = 500_000
# Cost matrices up to 5,000 × 5,000 float64: 200 MB, and about half a minute of the solver.
MOST_CELLS = 25_000_000
_PIVOTS = 10**8
# Below this share of the largest squared lengths, |x|² + |y|² − 2xy has lost too many digits.
_NEAR = 1e-4
_PAIRS_AT_A_TIME = 1 << 16
# So few numbers are subtracted faster than a matrix product is set up: sentences of short texts.
_FEW = 1 << 13
# Weights are ratios of whole numbers; a difference this small is rounding.
_NO_WEIGHT = 1e-14


@metric("wms")
def wms(*, encoder: str = "glove", against: Against = "auto", references: Several = "max") -> tuple[Score, str]:
    """``wms``: word mover's similarity, exp(−WMD), in (0, 1], higher is better (Clark et al. 2019, eq. 1–3).

    ``encoder``: word vectors (``glove``, ``word2vec(path=…,unit=word)``), one for a word type; or ``hf``, one for each
    token in its sentence. ``against``: ``references``, ``document``, or ``auto``, references where the record has any.
    ``references``: ``max`` or ``mean`` over several (reading: the paper has one). Missing where a text has no content
    word that the encoder knows, or where the two have more than 25,000,000 distances between words that they don't
    share. Raises InputError for an encoder of sentences.
    """
    return _by_moving("wms", encoder, against, references, words=True, sentences=False)


@metric("sms")
def sms(*, encoder: str = "glove", against: Against = "auto", references: Several = "max") -> tuple[Score, str]:
    """``sms``: sentence mover's similarity, in (0, 1], higher is better (Clark et al. 2019, eq. 4).

    Options as for ``wms``; a sentence's vector is the mean of its words' vectors. ``encoder`` may also be an encoder of
    sentences, whose own vectors are then used.
    """
    return _by_moving("sms", encoder, against, references, words=False, sentences=True)


@metric("s+wms")
def s_wms(*, encoder: str = "glove", against: Against = "auto", references: Several = "max") -> tuple[Score, str]:
    """``s+wms``: sentence and word mover's similarity, in (0, 1], higher is better (Clark et al. 2019, eq. 5).

    Options as for ``wms``. Weight may move between words and sentences, so both must live in one space: an encoder of
    sentences won't do.
    """
    return _by_moving("s+wms", encoder, against, references, words=True, sentences=True)


def _by_moving(
    name: str, encoder: str, against: str, references: str, *, words: bool, sentences: bool
) -> tuple[Score, str]:
    from negsample.models.encoders import make_encoder

    made = make_encoder(encoder)
    if words and made.unit != "word" and not reads_tokens(made):
        raise InputError(
            f"{name} moves words, and encoder {encoder!r} gives vectors of sentences; "
            "give glove, word2vec(path=PATH,unit=word), or hf (or use sms)"
        )

    options: dict[str, Any] = {"words": words, "sentences": sentences, "against": against, "references": references}
    return lambda items: score_moved(items, encoder=made, **options), weights_of(made)


def score_moved(
    items: Sequence[Item],
    *,
    encoder: "Encoder",
    words: bool,
    sentences: bool,
    against: str = "auto",
    references: str = "max",
) -> Columns:
    """Compute a mover's similarity with an encoder that is made already, over ``words``, ``sentences`` or both."""
    results: list[float | str] = [""] * len(items)
    for block in _blocks(items, against):
        texts = {text for row in block for text in (items[row].summary, *targets_of(items[row], against))}
        space = make_space(sorted(texts), encoder, words=words, sentences=sentences)

        def problem(text: str, space=space) -> str | None:  # type: ignore[no-untyped-def]
            bag = space.bags[text]
            return bag if isinstance(bag, str) else None

        def similarity(summary: str, target: str, space=space) -> float | str:  # type: ignore[no-untyped-def]
            distance = mover_distance(space.vectors, space.bags[summary], space.bags[target])
            return distance if isinstance(distance, str) else float(np.exp(-distance))

        for row in block:
            results[row] = compare_with_targets(items[row], against, references, problem, similarity)
    return collect(results)


def _blocks(items: Sequence[Item], against: str) -> Iterator[list[int]]:
    """Numbers of ``items``, those with the same targets side by side, in blocks of about ``_BLOCK`` characters."""
    targets = [targets_of(item, against) for item in items]
    block: list[int] = []
    seen: set[str] = set()
    size = 0
    for row in sorted(range(len(items)), key=lambda row: targets[row]):
        new = {items[row].summary, *targets[row]} - seen
        if block and size + sum(map(len, new)) > _BLOCK:
            yield block
            block, seen, size = [], set(), 0
            new = {items[row].summary, *targets[row]}
        block.append(row)
        seen |= new
        size += sum(map(len, new))
    if block:
        yield block


# --- exact transport, Euclidean cost (Clark et al. 2019, eq. 2; Kusner et al. 2015)


def distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Euclidean distances of the rows of ``x`` [n, d] and ``y`` [m, d]; float64 [n, m], exactly 0 for equal rows.

    |x − y|² = |x|² + |y|² − 2xy by one matrix product; the few pairs where that cancels are computed by difference.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) * y.size <= _FEW:
        return np.sqrt(np.square(x[:, None] - y[None]).sum(axis=2))
    centre = y.mean(axis=0)
    x, y = x - centre, y - centre
    of_x, of_y = np.einsum("nd,nd->n", x, x), np.einsum("md,md->m", y, y)
    squares = x @ y.T
    squares *= -2
    squares += of_x[:, None]
    squares += of_y
    near = np.flatnonzero(squares.ravel() < _NEAR * (of_x.max(initial=0) + of_y.max(initial=0)))
    for start in range(0, len(near), _PAIRS_AT_A_TIME):
        places = near[start : start + _PAIRS_AT_A_TIME]
        rows, columns = np.divmod(places, len(y))
        squares.ravel()[places] = ((x[rows] - y[columns]) ** 2).sum(axis=1)
    return np.sqrt(squares, out=squares)


def exact_cost(a: np.ndarray, b: np.ndarray, costs: np.ndarray) -> float | None:
    """Least Σ T·costs over T ≥ 0 with row sums ``a`` [n] and column sums ``b`` [m] (each of sum 1); None unsolved.

    Network simplex of POT (Bonneel et al., 2011), exact; its result is used only if it says that it is optimal.
    """
    import ot

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cost, log = ot.emd2(a, b, costs, numItermax=_PIVOTS, log=True, center_dual=False, check_marginals=False)
    return float(cost) if log["warning"] is None else None


def mover_distance(vectors: np.ndarray, a: Bag, b: Bag) -> float | str:
    """The mover's distance of two bags over the rows of ``vectors`` [p, d], or the reason why it can't be computed.

    Weight that both bags have on one point stays there: distances obey the triangle inequality, so no plan gains by
    moving it, and the optimum depends on the difference of the bags alone (Kantorovich and Rubinstein). What is left
    goes to the solver. The reason is a cost matrix of more than ``MOST_CELLS`` cells.
    """
    points = np.union1d(a.points, b.points)
    surplus = np.zeros(len(points))
    surplus[np.searchsorted(points, a.points)] = a.weights
    surplus[np.searchsorted(points, b.points)] -= b.weights
    givers, takers = np.flatnonzero(surplus > _NO_WEIGHT), np.flatnonzero(surplus < -_NO_WEIGHT)
    if not len(givers) or not len(takers):
        return 0.0
    if len(givers) * len(takers) > MOST_CELLS:
        return f"the texts are too long for exact transport ({len(givers)} × {len(takers)} > {MOST_CELLS:,} distances)"
    given, taken = surplus[givers], -surplus[takers]
    moved = float(given.sum())
    costs = distances(vectors[points[givers]], vectors[points[takers]])
    cost = exact_cost(given / moved, taken / taken.sum(), costs)
    return "the transport solver did not reach the optimum" if cost is None else max(0.0, cost * moved)
