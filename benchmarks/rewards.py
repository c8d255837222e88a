"""What different rewards make of one extractor: trained apart, tested on the same documents, within one number of words.

python benchmarks/rewards.py CORPUS --out DIR [--words 60] [--limit N] [--test-share 0.3] [--epochs 15]
                             [--reward NAME=SPEC[@length]] …

For each reward an extractor is trained from the same weights by the reward alone (no maximum likelihood before), with the
same batches and samples. Beside them stand the untrained
extractor, the lead, TextRank and the best extract by ROUGE-L (found greedily, with the reference). All are compared with
the lead on the test documents: means, bootstrap intervals, paired tests (``negsample compare``); the differences between
rewards are in ``DIR/comparison``. Goes on where it was stopped.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

from negsample.commands.compare import print_comparison
from negsample.commands.reinforce import make_summarizer
from negsample.eval.agreement.compare import Settings, compare
from negsample.eval.report.compare import write_comparison
from negsample.io.run_record import Stopwatch
from negsample.io.write import open_writer
from negsample.rewards import Reward
from negsample.settings import make_settings
from negsample.terminal import interval
from negsample.train.reinforce import reinforce
from negsample.train.reinforce.config import ReinforceConfig

REWARDS = {
    "rougeL": "rougeL(against=references)",
    "s+wms": "s+wms(against=references)",
    "ready": "ready",
    "coverage+support": "ready.coverage=1,ready.support=1@partial",
}
METRICS = (
    "rouge1", "rouge2", "rougeL", "s+wms", "align-untrained", "align-untrained(aspect=coverage)",
    "align-untrained(aspect=support)", "align-untrained(aspect=coherence)", "align-untrained(aspect=form)", "words",
)  # fmt: skip


def train(corpus: str, out: Path, spec: str, words: int, arguments: argparse.Namespace, seed: int) -> list[dict]:
    """Train by one reward, where that is not done, and return its test summaries."""
    name, _, length = spec.partition("@")
    settings = make_settings(ReinforceConfig, {
            "corpus": corpus, "limit": arguments.limit, "test_share": arguments.test_share, "words": words,
            "reward": name, "length": length or "free", "ml_epochs": 0, "gamma": 1.0, "epochs": arguments.epochs,
            "learning_rate": arguments.learning_rate, "samples": arguments.samples, "patience": arguments.epochs, "seed": seed,
        }, "settings").resolved()  # fmt: skip
    made = Reward(name, length=settings.length, undefined="lowest")
    reinforce(settings, made, Reward(settings.oracle).score, out, resume=True)
    return [json.loads(line) for line in (out / "summaries.jsonl").read_text("utf-8").splitlines()]


def main() -> None:
    """Train, summarize, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--test-share", type=float, default=0.3)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--learning-rate", type=float, default=0.003)
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument(
        "--reward", action="append", default=[], help="NAME=SPEC[@length]; default: the four of REWARDS"
    )
    parser.add_argument("--metric", action="append", default=[], help="compared by these; default: those of METRICS")
    arguments = parser.parse_args()
    rewards = dict(one.split("=", 1) for one in arguments.reward) or REWARDS
    systems: dict[str, list[dict]] = defaultdict(list)
    for name, spec in rewards.items():
        print(f"--- {name}: {spec}", flush=True)
        rows = train(arguments.corpus, arguments.out / name, spec, arguments.words, arguments, 0)
        for row in rows:
            if row["system"] == "trained":
                systems[name].append({**row, "system": name})
            elif name == next(iter(rewards)):
                systems["untrained" if row["system"] == "start" else row["system"]].append(row)
    leads = systems.pop("lead")
    by_rank = make_summarizer("textrank", arguments.words, None)([row["document"] for row in leads])
    systems["textrank"] = [{**row, "summary": text} for row, text in zip(leads, by_rank, strict=True)]
    with open_writer(arguments.out / "summaries.jsonl") as writer:
        for name, rows in {"lead": leads, **systems}.items():
            for row in rows:
                writer.write({**row, "system": name})
    watch = Stopwatch()
    result = compare(
        Settings(metrics=tuple(arguments.metric) or METRICS, inputs=(str(arguments.out / "summaries.jsonl"),))
    )
    print_comparison(result)
    names = [section.column.name for section in result.sections]
    print("| system | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for place, system in enumerate(result.systems.names):
        cells = [
            f"{one.mean:.3f} ({interval(one.low, one.high)}){'*' if (one.p_holm or 1) < 0.05 else ''}"
            for one in (section.systems[place] for section in result.sections)
        ]
        print(f"| {system} | " + " | ".join(cells) + " |")
    comparison = arguments.out / "comparison"
    if not comparison.exists():
        write_comparison(result, str(comparison), watch)


if __name__ == "__main__":
    main()
