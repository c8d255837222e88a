"""Pairs scored a second, against sentence-transformers' CrossEncoder with the same weights on the same pairs; peak memory.

    python benchmarks/score.py [--pairs N] [--rounds R] [--memory PAIRS …]

The peer is a BERT sequence classifier whose encoder has the weights of our ``cls`` model (packaged MiniLM, not
trained: speed does not depend on it), read at the same 512 tokens. Rounds alternate, so that a noisy machine hits both.
Texts are drawn from the embedded sample: news-sized documents (4 sample documents joined), each with several
summaries, as when systems are compared. Peak memory is that of a process that scores a file of 1,000 and 10,000 pairs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from negsample import Estimator
from negsample.corpora import load_pairs
from negsample.models.build import new_parts
from negsample.models.folder import save_folder

SYSTEMS = 4


def texts(count: int) -> tuple[list[str], list[str]]:
    """``count`` pairs: each document stands with SYSTEMS summaries."""
    sample = list(load_pairs("sample"))
    documents, summaries = [], []
    for number in range(count):
        base = number // SYSTEMS
        parts = [sample[(base * 3 + k * (1 + base // len(sample))) % len(sample)].document for k in range(4)]
        documents.append(f"{base}. " + "\n".join(parts))
        summaries.append(sample[(base * 3 + number % SYSTEMS) % len(sample)].summary)
    return documents, summaries


def save_peer(model: Path, folder: Path) -> None:
    """A sequence classifier with the encoder of ``model``."""
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification

    config = AutoConfig.from_pretrained(model / "encoder", num_labels=1)
    peer = BertForSequenceClassification(config)
    weights = load_file(str(model / "model.safetensors"))
    peer.bert.load_state_dict(
        {name[8:]: value for name, value in weights.items() if name.startswith("encoder.")}, strict=False
    )
    peer.save_pretrained(folder)
    AutoTokenizer.from_pretrained(model / "encoder").save_pretrained(folder)


def peak(model: Path, count: int, folder: Path) -> float:
    """Peak memory in MB of ``negsample score`` on ``count`` pairs."""
    path = folder / f"{count}.jsonl"
    with open(path, "w", encoding="utf-8") as stream:
        for document, summary in zip(*texts(count), strict=True):
            # Short documents: this measures memory, not speed.
            stream.write(json.dumps({"document": document[:300], "summary": summary[:100]}) + "\n")
    code = (
        "import resource, sys; from negsample.models import load; from negsample.scoring.files import table, write_scores\n"
        "write_scores(load(sys.argv[1]).scorer(), table(sys.argv[2]), sys.argv[3])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(model), str(path), str(folder / "out.jsonl")],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main() -> None:
    """Print the ratio and the peaks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--memory", type=int, nargs="*", default=[1_000, 10_000], help="pairs whose peak memory is measured"
    )
    arguments = parser.parse_args()
    from sentence_transformers import CrossEncoder

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_folder(new_parts("cls", "minilm"), folder / "model", {"recipe": "none", "loss": "none"}, "")
        save_peer(folder / "model", folder / "peer")
        estimator, peer = Estimator.load(folder / "model"), CrossEncoder(str(folder / "peer"), max_length=512)
        documents, summaries = texts(arguments.pairs)
        pairs = list(zip(documents, summaries, strict=True))
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            start = time.perf_counter()
            estimator.score(documents, summaries)
            ours.append(time.perf_counter() - start)
            start = time.perf_counter()
            peer.predict(pairs, batch_size=32, show_progress_bar=False)
            theirs.append(time.perf_counter() - start)
        ratios = np.array(theirs) / np.array(ours)
        print(f"negsample     {arguments.pairs / np.median(ours):8.1f} pairs/s")
        print(f"CrossEncoder  {arguments.pairs / np.median(theirs):8.1f} pairs/s")
        print(f"ratio         {np.median(ratios):8.2f}  (rounds: {', '.join(f'{r:.2f}' for r in ratios)})")
        for count in arguments.memory:
            print(f"peak memory, {count:>6} pairs: {peak(folder / 'model', count, folder):.0f} MB")


if __name__ == "__main__":
    main()
