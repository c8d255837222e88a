"""A map of two sets of texts: their vectors by PCA, then t-SNE, in the plane (Moeed et al. 2020 §2.2.2, Figure 1)."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.report import plots
from negsample.seeds import generator, seed_from

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

COMPONENTS = 50
# The usual default of t-SNE; with few points it must be smaller than their number.
PERPLEXITY = 30.0
_FEWEST = 5
# Vectors of a side that are drawn.
LIMIT = 1000
_COLOURS = ("#6a3d9a", "#e6a100")


def map_texts(
    first: Sequence[str],
    second: Sequence[str],
    encoder: "Encoder",
    *,
    names: tuple[str, str] = ("generated", "reference"),
    format: str = "svg",
    pool: str = "mean",
    seed: int = 0,
) -> bytes:
    """Draw two sets of texts by ``encoder``: their vectors (``pool`` as in the metric ``cosine``), laid out in the plane.

    At most ``LIMIT`` of a side are drawn, chosen at random by ``seed``; texts without a vector are left out, and counted
    among those not drawn. ``format``: ``svg`` or ``png``; equal calls give equal bytes with one version of Matplotlib.
    Raises InputError where no text of a side has a vector, and for another format.
    """
    from negsample.eval.metrics.vectors import text_vectors

    vector_of = text_vectors([*first, *second], encoder, pool)
    sides = []
    for side, (name, texts) in enumerate(zip(names, (first, second), strict=True)):
        rows = [vector for text in texts if (vector := vector_of[text]) is not None]
        if not rows:
            told = f"none of the {len(texts)} {name} texts has a vector"
            raise InputError(f"{told}; give texts that {encoder.name} reads")
        if len(rows) > LIMIT:
            chosen = generator(seed, "embedding map", side).choice(len(rows), size=LIMIT, replace=False)
            rows = [rows[place] for place in sorted(chosen)]
        sides.append(np.array(rows))
    labels = [
        f"{name} ({len(side)})" if len(side) == len(texts) else f"{name} ({len(side)} of {len(texts)})"
        for name, side, texts in zip(names, sides, (first, second), strict=True)
    ]
    return draw(project(sides[0], sides[1], seed), labels, format)


def project(first: np.ndarray, second: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lay out vectors ``first`` [n, d] and ``second`` [m, d] together, in [n, 2] and [m, 2] of no unit.

    PCA to ``COMPONENTS``, then t-SNE to two. Distances between far groups of a t-SNE map mean little; who is next to whom
    does. The perplexity is lowered to a third of the points where they are few; under five points the map is PCA's first
    two components, and where all vectors are one, a single place. Equal calls give equal maps.
    Raises InputError for an empty side, unequal widths, or values that are not finite.
    """
    sides = [np.asarray(side, dtype=np.float64) for side in (first, second)]
    if any(side.ndim != 2 or not len(side) for side in sides) or sides[0].shape[1] != sides[1].shape[1]:
        raise InputError("an embedding map needs at least one vector a side, all by one encoder")
    if not all(np.isfinite(side).all() for side in sides):
        raise InputError("an embedding map got vectors that are not finite; check the encoder's weights")
    places = _reduce(np.concatenate(sides), seed)
    return places[: len(sides[0])], places[len(sides[0]) :]


def _reduce(rows: np.ndarray, seed: int) -> np.ndarray:
    centred = rows - rows.mean(axis=0)
    if np.abs(centred).max() <= 1e-9 * max(1.0, float(np.abs(rows).max())):
        return np.zeros((len(rows), 2))
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    few = len(rows) < _FEWEST
    kept = min(2 if few else COMPONENTS, *centred.shape)
    reduced = PCA(n_components=kept, svd_solver="full").fit_transform(centred)
    reduced = np.pad(reduced, ((0, 0), (0, max(0, 2 - kept))))
    if few:
        return reduced
    with warnings.catch_warnings():
        # scikit-learn warns about its own change of threads on small machines.
        warnings.simplefilter("ignore")
        tsne = TSNE(
            perplexity=min(PERPLEXITY, (len(rows) - 1) / 3),
            # As small as t-SNE wants its start.
            init=(reduced[:, :2] / reduced[:, 0].std() * 1e-4).astype(np.float32),
            random_state=seed_from(seed, "t-SNE") % (1 << 32),
            n_jobs=1,
        )
        return np.asarray(tsne.fit_transform(reduced.astype(np.float32)), dtype=np.float64)


def draw(sides: Sequence[np.ndarray], labels: Sequence[str], format: str = "svg") -> bytes:
    """Draw the places of two ``sides``, [n, 2] and [m, 2], as a picture, ``svg`` or ``png``. Raises InputError for another."""
    if format not in ("svg", "png"):
        raise InputError(f"an embedding map can't be written as {format!r}; choose svg or png")
    from matplotlib.figure import Figure

    with plots.style(plots.NO_FORMULAS):
        figure = Figure(figsize=(6, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for places, label, colour, marker in zip(sides, labels, _COLOURS, "o^", strict=True):
            axes.scatter(
                places[:, 0], places[:, 1], s=14, c=colour, marker=marker, alpha=0.6, linewidths=0, label=label
            )
        axes.set_xticks([])
        axes.set_yticks([])
        axes.legend(frameon=False, loc="best")
        return plots.picture(figure, format, dpi=120)
