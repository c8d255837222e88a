"""``python benchmarks/recipes.py --judgments FILE… --scores PARQUET…``: agreement on each half of the judgments, as tables.

Takes the ``scores.parquet`` of ``negsample correlate`` runs over the whole files, and gives the figures for the rows with
``half: tune`` (on which a recipe may be chosen) and ``half: report`` apart: summary level, where a document has several
systems, else pooled; Spearman with a 95 % bootstrap interval, and the same given the number of words.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from negsample.eval.agreement.figures import AgreementFigure, agreement
from negsample.eval.agreement.levels import ScoreTable, judged_table
from negsample.eval.judgments import load_judgments
from negsample.records import Judged


def named_scores(paths: Sequence[Path]) -> pd.DataFrame:
    """dataset, document_id, system → a column for each model, aspect and metric; the first file that has one counts."""
    frames = [pd.read_parquet(path) for path in paths]
    every = pd.concat([frame[frame["kind"] != "human"] for frame in frames])
    every["system"] = every["system"].fillna("")
    every = every.drop_duplicates(["dataset", "document_id", "system", "name"])
    return every.pivot(index=["dataset", "document_id", "system"], columns="name", values="score")


def half_table(name: str, rows: Sequence[Judged], scores: pd.DataFrame) -> ScoreTable:
    """The table of one half; a summary that a file of scores lacks is missing, not dropped."""
    own = scores.loc[name].reindex([(row.document_id, row.system or "") for row in rows]).dropna(axis=1, how="all")
    human = sorted({score for row in rows for score in row.scores})
    return judged_table(name, rows, human, {metric: own[metric].to_numpy(float) for metric in own.columns})


def figures(table: ScoreTable, bootstrap: int) -> Iterator[AgreementFigure]:
    """Spearman at the level that the data have."""
    level = "summary" if np.median(np.bincount(table.documents)) > 2 else "pooled"
    yield from agreement(table, levels=[level], coefficients=["spearman"], bootstrap=bootstrap)


def cell(figure: AgreementFigure | None) -> str:
    """ρ [interval] / ρ given the number of words."""
    if figure is None or figure.value is None:
        return "–"
    interval = "" if figure.low is None else f" [{figure.low:.2f}, {figure.high:.2f}]"
    given = "" if figure.given_length is None else f" / {figure.given_length:.3f}"
    return f"{figure.value:.3f}{interval}{given}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judgments", nargs="+", required=True)
    parser.add_argument("--scores", nargs="+", type=Path, required=True)
    parser.add_argument("--names", nargs="*", help="Only these rows, in this order.")
    parser.add_argument("--bootstrap", type=int, default=1000)
    chosen = parser.parse_args()
    scores = named_scores(chosen.scores)
    found: dict[tuple[str, str], dict[str, dict[str, AgreementFigure]]] = {}
    for path in chosen.judgments:
        rows = load_judgments(path)
        name = rows[0].dataset or Path(path).name.split(".")[0]
        for half in ("tune", "report"):
            table = half_table(name, [row for row in rows if row.half == half], scores)
            for figure in figures(table, chosen.bootstrap):
                found.setdefault((name, figure.human), {}).setdefault(half, {})[figure.metric] = figure
    for half in ("tune", "report"):
        columns = list(found)
        print(f"\n## half: {half}\n")
        print("| scorer | " + " | ".join(f"{name} {human}" for name, human in columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        known = list(dict.fromkeys(metric for halves in found.values() for metric in halves[half]))
        for metric in chosen.names or sorted(known):
            print(f"| {metric} | " + " | ".join(cell(found[key][half].get(metric)) for key in columns) + " |")


if __name__ == "__main__":
    main()
