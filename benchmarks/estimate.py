"""Estimates from a few judgments: how often the intervals hold people's mean, how narrow they are, and what choosing saves.

python benchmarks/estimate.py JUDGMENTS… [--model ready | --metric NAME] [--by NAME] [--draws 400] [--share 0.5]

Everything is judged in JUDGMENTS, so that people's mean of all documents is known. A draw takes as many documents as there are,
with replacement, so that they are a sample of a population with that mean, and hides the judgments of all but ``--share`` of
them. (Halves without replacement would be half of the population: any interval for new documents would hold too often.) The
systems judged on all documents are taken; an interval that there is not (all judged alike) is counted apart.

What to have judged is drawn without replacement, a quarter of the documents: at random, by ``--choose``, or those on which the
systems' scores lie furthest apart; the error is that against people's mean of all.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from negsample.eval.agreement.columns import make_scorers, score_columns
from negsample.eval.agreement.estimate import choose, estimate_means
from negsample.eval.judgments import load_judgments
from negsample.seeds import generator
from negsample.terminal import aligned, number


def tables(
    path: str, model: str | None, metric: str | None, by: str
) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Data set, human score, people [D, S] and scores [D, S] of the systems that all documents have."""
    rows = load_judgments(path)
    scorers, _ = make_scorers([model] if model else [], [metric] if metric else [], baselines=False)
    columns = {column.name.rpartition(".")[2]: column.values for column in score_columns(scorers, rows)}
    values = columns[by] if by else next(iter(columns.values()))
    documents, d = np.unique([row.document_id for row in rows], return_inverse=True)
    systems, s = np.unique([row.system for row in rows], return_inverse=True)
    for human in rows[0].scores:
        people, scores = np.full((2, len(documents), len(systems)), np.nan)
        people[d, s], scores[d, s] = [row.scores.get(human, np.nan) for row in rows], values
        whole = ~np.isnan(people + scores).any(axis=0)
        yield rows[0].dataset, human, people[:, whole], scores[:, whole]


def coverage(people: np.ndarray, scores: np.ndarray, draws: int, share: float) -> list[str]:
    """Means, then differences: intervals that hold (with the score, plain), their width beside the plain ones, saved; none."""
    count, systems = people.shape
    truth = people.mean(axis=0)
    truth = np.append(truth, truth[1:] - truth[0])
    held, plain, widths, gains, missing = ([] for _ in range(5))
    for draw in range(draws):
        rows = generator("halves", draw).integers(count, size=count)
        given = np.where(np.arange(count)[:, None] < round(share * count), people[rows], np.nan)
        found = estimate_means("h", [str(s) for s in range(systems)], given, scores[rows], 0.9)
        missing.append([each.low is None for each in found])
        ends = np.array([[each.low, each.high, each.plain_low, each.plain_high] for each in found], dtype=float)
        gone = np.isnan(ends[:, 0])
        held.append(np.where(gone, np.nan, (ends[:, 0] <= truth + 1e-9) & (truth - 1e-9 <= ends[:, 1])))
        plain.append(np.where(gone, np.nan, (ends[:, 2] <= truth + 1e-9) & (truth - 1e-9 <= ends[:, 3])))
        widths.append(np.stack([ends[:, 1] - ends[:, 0], ends[:, 3] - ends[:, 2]]))
        gains.append([np.nan if each.saved is None else each.saved for each in found])
    told = []
    for part in (slice(0, systems), slice(systems, None)):
        own, other = np.nanmean(np.array(widths)[:, :, part], axis=(0, 2))
        shares = [100 * np.nanmean(np.array(each)[:, part]) for each in (held, plain)]
        told += [
            f"{shares[0]:.1f} ({shares[1]:.1f})",
            number(own / other),
            number(np.nanmedian(np.array(gains)[:, part]), 1),
        ]
    return [*told, f"{100 * np.mean(np.array(missing)[:, :systems]):.1f} %"]


def choosing(people: np.ndarray, scores: np.ndarray, draws: int) -> list[str]:
    """Mean squared error of means, then differences, by each way to choose; that of the plain mean of a random choice is 1."""
    count, systems = people.shape
    size, free = max(2, count // 4), np.ones(count, dtype=bool)
    spread = np.argsort(-(scores - scores.mean(axis=0)).std(axis=1), kind="stable")[:size]
    truth = people.mean(axis=0)
    truth = np.append(truth, truth[1:] - truth[0])
    errors = {}
    for draw in range(draws):
        drawn = generator("choose", draw).permutation(count)[:size]
        for way, chosen in (("random", drawn), ("choose", choose(scores, free, size, draw)), ("apart", spread)):
            given = np.full(people.shape, np.nan)
            given[chosen] = people[chosen]
            found = estimate_means("h", [str(s) for s in range(systems)], given, scores, 0.9)
            both = np.array([[each.plain, each.value] for each in found], dtype=float).T
            errors.setdefault(way, []).append((both - truth) ** 2)
    mean = {way: np.mean(found, axis=0) for way, found in errors.items()}
    parts = slice(0, systems), slice(systems, None)
    base = [mean["random"][0, part].mean() for part in parts]
    ways = [("random", 1), ("choose", 0), ("choose", 1), ("apart", 1)]
    return [
        number(mean[way][k, part].mean() / one, 2) for part, one in zip(parts, base, strict=True) for way, k in ways
    ]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("judgments", nargs="+")
    parser.add_argument("--model")
    parser.add_argument("--metric")
    parser.add_argument("--by", default="")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--share", type=float, default=0.5)
    options = parser.parse_args()
    held = [
        ("set", "human", "judged", *("mean: held %", "width", "saved", "difference: held %", "width", "saved"), "none")
    ]
    error = [("set", "human", *("random + score", "choose", "choose + score", "apart + score") * 2)]
    for path in options.judgments:
        for name, human, people, scores in tables(path, options.model, options.metric, options.by):
            judged = f"{round(options.share * len(people))} of {len(people)}"
            held.append((name, human, judged, *coverage(people, scores, options.draws, options.share)))
            error.append((name, human, *choosing(people, scores, options.draws)))
    print("\n".join([*aligned(held), "", *aligned(error)]))


if __name__ == "__main__":
    main()
