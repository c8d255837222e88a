"""A map of two sets of texts: their vectors by PCA, then t-SNE, in the plane (Moeed et al. 2020 §2.2.2, Figure 1)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.report import plots
from negsample.seeds import generator, seed_from

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

FORMATS = ("svg", "png")
COMPONENTS = 50
# The usual default of t-SNE; with few points it must be smaller than their number.
PERPLEXITY = 30.0
_FEWEST = 5
_COLOURS = ("#6a3d9a", "#e6a100")


@dataclass(frozen=True, eq=False)
class EmbeddingMap:
    """``first`` [n, 2] and ``second`` [m, 2]: places in the plane, of no unit. ``left_out``: vectors of each side that
    were not drawn because of the limit."""

    first: np.ndarray
    second: np.ndarray
    left_out: tuple[int, int] = (0, 0)


def project(
    first: np.ndarray,
    second: np.ndarray,
    *,
    components: int = COMPONENTS,
    perplexity: float = PERPLEXITY,
    limit: int = 1000,
    seed: int = 0,
) -> EmbeddingMap:
    """Lay out vectors ``first`` [n, d] and ``second`` [m, d] together: PCA to ``components``, then t-SNE to two.

    Distances between far groups of a t-SNE map mean little; who is next to whom does. At most ``limit`` vectors a side
    are drawn, chosen at random by ``seed``. ``perplexity`` is lowered to a third of the points where they are few;
    under five points the map is PCA's first two components, and where all vectors are one, a single place. Equal calls
    give equal maps.
    Raises InputError for an empty side, unequal widths, or values that are not finite.
    """
    sides = [np.asarray(side, dtype=np.float64) for side in (first, second)]
    if any(side.ndim != 2 or not len(side) for side in sides) or sides[0].shape[1] != sides[1].shape[1]:
        raise InputError("an embedding map needs at least one vector a side, all by one encoder")
    if not all(np.isfinite(side).all() for side in sides):
        raise InputError("an embedding map got vectors that are not finite; check the encoder's weights")
    drawn = [_sample(side, limit, seed, number) for number, side in enumerate(sides)]
    places = _reduce(np.concatenate(drawn), components, perplexity, seed)
    left_out = (len(sides[0]) - len(drawn[0]), len(sides[1]) - len(drawn[1]))
    return EmbeddingMap(places[: len(drawn[0])], places[len(drawn[0]) :], left_out)


def _sample(rows: np.ndarray, limit: int, seed: int, number: int) -> np.ndarray:
    if len(rows) <= limit:
        return rows
    rng = generator(seed, "embedding map", number)
    return rows[np.sort(rng.choice(len(rows), size=limit, replace=False))]


def _reduce(rows: np.ndarray, components: int, perplexity: float, seed: int) -> np.ndarray:
    centred = rows - rows.mean(axis=0)
    if np.abs(centred).max() <= 1e-9 * max(1.0, float(np.abs(rows).max())):
        return np.zeros((len(rows), 2))
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    few = len(rows) < _FEWEST
    kept = min(2 if few else max(2, components), *centred.shape)
    reduced = PCA(n_components=kept, svd_solver="full").fit_transform(centred)
    reduced = np.pad(reduced, ((0, 0), (0, max(0, 2 - kept))))
    if few:
        return reduced
    with warnings.catch_warnings():
        # scikit-learn warns about its own change of threads on small machines.
        warnings.simplefilter("ignore")
        tsne = TSNE(
            perplexity=min(perplexity, (len(rows) - 1) / 3),
            # As small as t-SNE wants its start.
            init=(reduced[:, :2] / reduced[:, 0].std() * 1e-4).astype(np.float32),
            random_state=seed_from(seed, "t-SNE") % (1 << 32),
            n_jobs=1,
        )
        return np.asarray(tsne.fit_transform(reduced.astype(np.float32)), dtype=np.float64)


def draw(
    layout: EmbeddingMap, names: tuple[str, str] = ("generated", "reference"), *, format: str = "svg", title: str = ""
) -> bytes:
    """Draw the map as a picture, ``svg`` or ``png``; equal maps give equal bytes with one version of Matplotlib.

    Raises InputError for another format.
    """
    if format not in FORMATS:
        raise InputError(f"an embedding map can't be written as {format!r}; choose {' or '.join(FORMATS)}")
    from matplotlib.figure import Figure

    with plots.style(plots.NO_FORMULAS):
        figure = Figure(figsize=(6, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for places, name, colour, out, marker in zip(
            (layout.first, layout.second), names, _COLOURS, layout.left_out, "o^", strict=True
        ):
            label = f"{name} ({len(places)} of {len(places) + out})" if out else f"{name} ({len(places)})"
            x, y = places.T
            axes.scatter(x, y, s=14, c=colour, marker=marker, alpha=0.6, linewidths=0, label=label)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.legend(frameon=False, loc="best")
        if title:
            axes.set_title(title)
        return plots.picture(figure, format, dpi=120)


def map_texts(
    first: Sequence[str],
    second: Sequence[str],
    encoder: "Encoder",
    *,
    names: tuple[str, str] = ("generated", "reference"),
    format: str = "svg",
    pool: str = "mean",
    title: str = "",
    limit: int = 1000,
    seed: int = 0,
) -> bytes:
    """Draw two sets of texts by ``encoder``: their vectors (``pool`` as in the metric ``cosine``), laid out in the
    plane. Texts without a vector are left out, and counted among those not drawn.

    Raises InputError where no text of a side has a vector.
    """
    from negsample.eval.metrics.vectors import text_vectors

    vector_of = text_vectors([*first, *second], encoder, pool)
    sides = []
    for name, texts in zip(names, (first, second), strict=True):
        rows = [vector for text in texts if (vector := vector_of[text]) is not None]
        if not rows:
            raise InputError(
                f"none of the {len(texts)} {name} texts has a vector; give texts that {encoder.name} reads"
            )
        sides.append(np.array(rows))
    layout = project(sides[0], sides[1], limit=limit, seed=seed)
    left_out = (len(first) - len(layout.first), len(second) - len(layout.second))
    return draw(EmbeddingMap(layout.first, layout.second, left_out), names, format=format, title=title)
