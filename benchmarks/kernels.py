"""``python benchmarks/kernels.py [--sentences 512] [--rounds 5] [--lm packaged]``: packed linear layers against PyTorch's own.

MiniLM over sentences of the embedded sample as they come, one thread, CPU seconds, in turns; with ``--lm`` also evidence
of a language model, 8 summaries of one document of 800 words. Prints the least time of each, the ratio, and how far the
answers differ.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from language_model import texts

from negsample.corpora import load_pairs
from negsample.models.align.evidence import new_evidence
from negsample.models.encoders import make_encoder
from negsample.models.features.align import AlignFeatures
from negsample.models.kernels import VARIABLE
from negsample.sentences import split_sentences


def in_turns(name: str, make: Callable[[], Callable[[], np.ndarray]], rounds: int) -> None:
    """Make and time what answers under each kind of kernels, and print a line."""
    ways, best, answers = {}, {}, {}
    for kernels in ("torch", "onednn"):
        os.environ[VARIABLE] = kernels
        ways[kernels] = make()
    for _ in range(rounds):
        for kernels, way in ways.items():
            os.environ[VARIABLE] = kernels
            begin = time.process_time()
            answers[kernels] = way()
            best[kernels] = min(time.process_time() - begin, best.get(kernels, float("inf")))
    ratio, apart = best["torch"] / best["onednn"], np.abs(answers["torch"] - answers["onednn"]).max()
    print(
        f"{name}: torch {best['torch']:.2f} s, packed {best['onednn']:.2f} s, {ratio:.2f}x; at most {apart:.1e} apart"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lm", default="")
    given = parser.parse_args()
    torch.set_num_threads(1)
    told = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    print(next((line.partition(": ")[2] for line in told.splitlines() if line.startswith("model name")), "a processor"))
    sentences = [s for pair in load_pairs("sample") for s in split_sentences(pair.document)][: given.sentences]
    in_turns("MiniLM", lambda: partial(make_encoder("sentence-transformer").encode, sentences), given.rounds)
    if given.lm:
        sources, summaries = texts(1, 8)
        encoder = make_encoder("sentence-transformer")
        with tempfile.TemporaryDirectory() as folder:
            os.environ["NEGSAMPLE_CACHE"] = os.environ.get("NEGSAMPLE_CACHE", folder)
            pairs = AlignFeatures(encoder).view_pairs(sources, summaries)
            in_turns(given.lm, lambda: partial(new_evidence(given.lm, encoder).compute, pairs), given.rounds)


if __name__ == "__main__":
    main()
