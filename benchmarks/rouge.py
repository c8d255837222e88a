"""ROUGE against the ``rouge-score`` package: the same 1,000 summaries, the same values, and how much faster.

``python benchmarks/rouge.py [JUDGMENTS.jsonl.gz] [--summaries 1000]``. Without a file, texts are made up: summaries of
about 60 words (as of 20 systems on 50 documents) with a reference of the same length, words drawn by Zipf's law. Prints,
for each kind, seconds of both (the best of three), the ratio and the largest difference; exits with 1 where one differs
by more than 1e-12.
"""

import argparse
import sys

import numpy as np
from common import best_of

from negsample.eval.judgments import load_judgments
from negsample.scoring.metrics import make_metric
from negsample.scoring.scorer import Item
from negsample.seeds import generator

KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def made_up(count: int) -> list[Item]:
    """``count`` summaries of about 60 words in four lines, and 50 references that they share."""
    rng = generator("benchmark", "rouge")
    weights = 1 / np.arange(1, 3001)
    vocabulary = [f"word{rank}" for rank in range(3000)]

    def text() -> str:
        lines = []
        for _ in range(4):
            ranks = rng.choice(3000, size=int(rng.integers(10, 21)), p=weights / weights.sum())
            lines.append(" ".join(vocabulary[rank] for rank in ranks) + ".")
        return "\n".join(lines)

    references = [text() for _ in range(50)]
    return [Item("", text(), (references[number % 50],)) for number in range(count)]


def main() -> int:
    """Print the table; 0 where all values agree."""
    from rouge_score.rouge_scorer import RougeScorer

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("judgments", nargs="?")
    parser.add_argument("--summaries", type=int, default=1000)
    options = parser.parse_args()
    if options.judgments:
        rows = load_judgments(options.judgments)[: options.summaries]
        # Publishers' " . " becomes a line break, so that both split Lsum's sentences in the same places.
        items = [
            Item("", row.summary.replace(" . ", " .\n"), (row.references[0].replace(" . ", " .\n"),)) for row in rows
        ]
    else:
        items = made_up(options.summaries)
    print(f"{len(items)} summaries; seconds, best of three")
    print(f"{'kind':18s} {'rouge-score':>12s} {'negsample':>10s} {'ratio':>7s} {'difference':>11s}")
    worst = 0.0
    totals = [0.0, 0.0]
    for stem in (False, True):
        for kind in KINDS:
            scorer = RougeScorer([kind], use_stemmer=stem)
            how = f"stem={str(stem).lower()}" + (",sentences=newline" if kind == "rougeLsum" else "")
            metric = make_metric(f"{kind}({how})")

            def theirs(scorer: RougeScorer = scorer, kind: str = kind) -> np.ndarray:
                return np.array([scorer.score(item.references[0], item.summary)[kind].fmeasure for item in items])

            slow, expected = best_of(3, theirs)
            fast, got = best_of(3, lambda metric=metric: metric.score(items).scores)  # type: ignore[misc]
            difference = float(np.abs(got - expected).max())
            worst = max(worst, difference)
            totals = [totals[0] + slow, totals[1] + fast]
            label = f"{kind}{' (stem)' if stem else ''}"
            print(f"{label:18s} {slow:12.3f} {fast:10.3f} {slow / fast:6.1f}x {difference:11.1e}")
    print(f"{'all':18s} {totals[0]:12.3f} {totals[1]:10.3f} {totals[0] / totals[1]:6.1f}x {worst:11.1e}")
    return int(worst > 1e-12)


if __name__ == "__main__":
    sys.exit(main())
