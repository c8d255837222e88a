"""What ``negsample select`` is worth: people's mean mark of the summary picked for each document, by who picks.

    python benchmarks/selection.py ../shared/data/human/summeval.jsonl.gz [--model DIR]

Chance is the mean over the candidates, ``people`` the best that any choice could reach. The interval is that of the
score's lead over chance, documents resampled.
"""

import argparse
from collections import defaultdict

import numpy as np

from negsample import Estimator
from negsample.eval.judgments import load_sources
from negsample.resampling import resampled_interval
from negsample.seeds import generator
from negsample.terminal import interval
from negsample.text import word_count


def main() -> None:
    """Print a table for each human score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("judgments", help="judged summaries, several to a document")
    parser.add_argument("--model", help="model folder; by default the ready estimator")
    arguments = parser.parse_args()
    estimator = Estimator.load(arguments.model)
    (source,) = load_sources((arguments.judgments,), ())
    rows = sorted(source.rows, key=lambda row: row.documents[0])
    scored = estimator.score_pairs([row.documents[0] for row in rows], [row.summary for row in rows])
    pickers = scored.named()
    pickers["longest"] = np.array([word_count(row.summary) for row in rows])
    groups = defaultdict(list)
    for place, row in enumerate(rows):
        groups[row.documents[0]].append(place)
    documents = [np.array(places) for places in groups.values()]
    print(f"{len(documents)} documents, {len(rows)} candidates  {estimator.signature}")
    for name in rows[0].scores:
        human = np.array([row.scores[name] for row in rows])
        chance = np.array([human[d].mean() for d in documents])
        found = {by: np.array([human[d[np.argmax(values[d])]] for d in documents]) for by, values in pickers.items()}
        found = {"chance": chance, "first": np.array([human[d[0]] for d in documents]), **found}
        found["people"] = np.array([human[d].max() for d in documents])
        means = "  ".join(f"{by} {values.mean():.3f}" for by, values in found.items())
        lead = found["score"] - chance
        drawn = generator(0, "select", name).integers(0, len(lead), (10_000, len(lead)))
        low, high, _ = resampled_interval(lead[drawn].mean(1), len(lead))
        print(f"{name}: {means}  score − chance {lead.mean():.3f} ({interval(low, high)})")


if __name__ == "__main__":
    main()
