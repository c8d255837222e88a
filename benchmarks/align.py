"""``python benchmarks/align.py [--documents 8] [--systems 16]``: head ``align`` against a CrossEncoder, in one run.

Both use the packaged MiniLM. The CrossEncoder is sentence-transformers' over the same pairs (512 tokens, batches of 32).
Pairs are SummEval's where that lies beside the project, else made up. Prints pairs a CPU second, the better of ``--rounds``
turns, and the ratio, and with ``--bf16`` the same at bf16; the time of a single new pair; and, for the data beside the
project, the time and memory of a meeting of 20,000 words.
"""

import argparse
import gzip
import json
import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import made_text, timed

from negsample.models import ready
from negsample.models.align.judge import new_judge
from negsample.models.align.reader import Reader
from negsample.models.align.support import load_support
from negsample.models.embedding_cache import EmbeddingCache
from negsample.models.encoders import make_encoder
from negsample.models.features.align import AlignFeatures, stack
from negsample.models.heads.align import untrained
from negsample.models.language.model_files import minilm_folder
from negsample.models.precision import has_bf16, to_bf16
from negsample.seeds import generator

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
MEETINGS, JUDGED = DATA / "pairs" / "qmsum.jsonl.gz", DATA / "human" / "summeval.jsonl.gz"


def text(words: int, *seed: object) -> str:
    """A text of ``words`` words of the encoder's own vocabulary."""
    vocabulary = [w for w in (minilm_folder() / "vocab.txt").read_text(encoding="utf-8").split() if w.isalpha()]
    return made_text(words, vocabulary[2000:10_000], *seed)


def made_pairs(documents: int, systems: int, words: int) -> tuple[list[str], list[str]]:
    """Each document with ``systems`` summaries; half of a summary's sentences are the document's, as systems' are."""
    sources, summaries = [], []
    for number in range(documents):
        document = text(words, number)
        sentences = document.split(". ")
        for system in range(systems):
            rng = generator("benchmark", "systems", number, system)
            copied = [sentences[int(i)].rstrip(".") + "." for i in rng.integers(min(8, len(sentences)), size=2)]
            sources.append(document)
            summaries.append(" ".join([*copied, text(20, number, system)]))
    return sources, summaries


def read_rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def judged_pairs(path: Path, documents: int, systems: int) -> tuple[list[str], list[str]]:
    """The first documents of judged summaries, each with as many of its systems."""
    found: dict[str, list[str]] = {}
    for row in read_rows(path):
        found.setdefault(row["document"], []).append(row["summary"])
    pairs = [(document, summary) for document in list(found)[:documents] for summary in found[document][:systems]]
    return [document for document, _ in pairs], [summary for _, summary in pairs]


def align_scorer(judges: str, folder: Path, *, bf16: bool = False) -> tuple[AlignFeatures, torch.nn.Module]:
    """Fresh features with an empty cache, and the head; ``judges``: "none", "ready" (of support), "both"."""
    encoder: Any = make_encoder("sentence-transformer")
    judge = new_judge(encoder, "sdpa", 0) if judges == "both" else None
    support = load_support(ready.SUPPORT, encoder) if judges != "none" else None
    if bf16:
        encoder = encoder.in_bf16()
        for network in (judge.network if judge else None, support.network if support else None):
            if network is not None:
                to_bf16(network.encoder)
    features = AlignFeatures(encoder, judge, support=support)
    features.to(torch.device("cpu"))
    features.reader = Reader(encoder)
    features.reader.cache = EmbeddingCache(features.reader.states, folder)  # type: ignore[arg-type]
    return features, untrained(features.sources)


def score(features: AlignFeatures, network: torch.nn.Module, documents: list[str], summaries: list[str]) -> np.ndarray:
    """Scores in batches of 64."""
    with torch.inference_mode():
        parts = [
            network(**stack(features.compare(documents[i : i + 64], summaries[i : i + 64])))[:, 0].sigmoid().numpy()
            for i in range(0, len(documents), 64)
        ]
    return np.concatenate(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument("--systems", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--words", type=int, default=600, help="of a document; 4/3 of it in the single pair")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--judged", type=Path, default=JUDGED, help="judged summaries; made ones without it")
    parser.add_argument("--meetings", type=Path, default=MEETINGS, help="pairs, the longest of which is scored")
    chosen = parser.parse_args()
    if chosen.judged.is_file():
        documents, summaries = judged_pairs(chosen.judged, chosen.documents, chosen.systems)
    else:
        documents, summaries = made_pairs(chosen.documents, chosen.systems, chosen.words)
    print(f"{len(documents)} pairs, {torch.get_num_threads()} threads")
    from sentence_transformers import CrossEncoder

    peer = CrossEncoder(str(minilm_folder()), num_labels=1, max_length=512)
    pairs = list(zip(documents, summaries, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        rows = [("align", "both", False), ("ready", "ready", False), ("align, no judges", "none", False)]
        if chosen.bf16 and has_bf16("cpu"):
            rows.append(("align, bf16", "both", True))
        took: dict[str, float] = {}
        found: dict[str, np.ndarray] = {}
        for turn in range(chosen.rounds):
            for name, judges, bf16 in rows:
                features, network = align_scorer(judges, Path(folder) / f"{name}{turn}", bf16=bf16)
                seconds, found[name] = timed(partial(score, features, network, documents, summaries))
                took[name] = min(seconds, took.get(name, seconds))
            seconds, _ = timed(partial(peer.predict, pairs, batch_size=32, show_progress_bar=False))
            took["CrossEncoder"] = min(seconds, took.get("CrossEncoder", seconds))
        for name, seconds in took.items():
            ratio = took["CrossEncoder"] / seconds
            print(f"{name}: {len(documents) / seconds:.1f} pairs a CPU second, {ratio:.1f} times CrossEncoder")
        if "align, bf16" in found:
            apart = np.abs(found["align, bf16"] - found["align"]).max()
            faster = took["align"] / took["align, bf16"]
            print(f"bf16 is {faster:.2f} times as fast as float32; scores at most {apart:.5f} apart")
        features, network = align_scorer("ready", Path(folder) / "single")
        words = chosen.words * 4 // 3
        best = [float("inf")] * 2
        for turn in range(1 + 3 * chosen.rounds):
            given = [text(words, "one", turn)], [text(60, "one", turn, 1)]
            start = time.perf_counter()
            seconds, _ = timed(partial(score, features, network, *given))
            # The first warms it up.
            if turn:
                best = [min(best[0], seconds), min(best[1], time.perf_counter() - start)]
        print(f"a single new pair of {words} + 60 words: {best[0]:.3f} CPU seconds, {best[1]:.3f} s")

        path = chosen.meetings
        if not path.is_file():
            print(f"{path} is missing: meetings are left out", file=sys.stderr)
            return
        longest = max(read_rows(path), key=lambda row: len(row["document"].split()))
        start = time.perf_counter()
        score(features, network, [longest["document"]], [longest["summary"]])
        took = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"a meeting of {len(longest['document'].split())} words: {took:.1f} s, peak {memory:.2f} GB in all")


if __name__ == "__main__":
    main()
