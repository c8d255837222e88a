"""Peak memory of ``generate`` and ``train`` as the corpus grows tenfold; flat is a ratio near 1.

    python benchmarks/memory.py [--pairs 3000 30000] [--negatives 5] [--work generate fc cls] [--words 100]

Pairs are made by rule: every document and summary is different, and their words are drawn, unevenly, from 4,900 made-up
ones. ``fc`` trains over packaged GloVe words and ``cls`` over a random BERT of two layers and width 32, one epoch each.
Each command is a process of its own, whose peak (``ru_maxrss``: what it has in memory, files mapped into it included) is
told by the kernel when it ends. Where a run takes longer than you have, name fewer pairs.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"

# This process stays small: a child's peak, as the kernel counts it, begins with that of the process it was started by.
TINY_BERT = """
import sys
from pathlib import Path
from transformers import BertConfig, BertModel, BertTokenizerFast
folder = Path(sys.argv[1])
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *sys.stdin.read().split()]
folder.mkdir(parents=True)
(folder / "vocab.txt").write_text("\\n".join(words) + "\\n", encoding="utf-8")
BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True, model_max_length=128).save_pretrained(folder)
sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=128, **sizes)).save_pretrained(folder)
"""


def vocabulary() -> list[str]:
    """4,900 words of four letters, all different."""
    syllables = [c + v for c in CONSONANTS for v in VOWELS]
    return [one + other for one in syllables for other in syllables]


def text(words: list[str], length: int, rng: random.Random) -> str:
    """``length`` words in sentences of at most twelve."""
    drawn = [words[int(len(words) * rng.random() ** 3)] for _ in range(length)]
    sentences = [" ".join(drawn[i : i + 12]).capitalize() + "." for i in range(0, length, 12)]
    return " ".join(sentences)


def pairs(count: int, length: int) -> Iterator[dict[str, str]]:
    """``count`` pairs: documents of ``length`` words, give or take a fifth, and summaries of a fifth of that."""
    words = vocabulary()
    for number in range(count):
        rng = random.Random(number)
        size = int(length * (0.8 + 0.4 * rng.random()))
        yield {
            "id": f"pair-{number}",
            "document": text(words, size, rng),
            "summary": text(words, max(2, size // 5), rng),
        }


def write_pairs(path: Path, count: int, length: int) -> None:
    """Write them as JSON lines."""
    with open(path, "w", encoding="utf-8") as stream:
        for pair in pairs(count, length):
            stream.write(json.dumps(pair) + "\n")


def peak(arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Peak memory in MB and CPU seconds of ``negsample`` with ``arguments``, its own processes included."""
    with tempfile.TemporaryFile() as told:
        command = [sys.executable, "-m", "negsample.cli", *arguments]
        process = subprocess.Popen(command, stdout=told, stderr=told, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            told.seek(0)
            raise SystemExit(f"negsample {' '.join(arguments)}: failed\n{told.read().decode()[-2000:]}")
    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def arguments_of(work: str, corpus: Path, folder: Path, negatives: int) -> list[str]:
    """The command line of one measurement, which writes to ``folder``/out."""
    out = str(folder / "out")
    if work == "generate":
        return ["generate", f"corpus={corpus}", f"negatives={negatives}", "--out", out]
    common = ["train", f"corpus={corpus}", f"negatives={negatives}", "epochs=1", "--out", out]
    if work == "fc":
        return [*common, "head=fc", "encoder=glove"]
    return [*common, "head=cls", f"encoder={folder / 'bert'}", "max_length=64", "batch_size=64"]


def main() -> None:
    """Print the peaks, their ratio, and what each further example adds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[3_000, 30_000])
    parser.add_argument("--negatives", type=int, default=5)
    parser.add_argument("--words", type=int, default=100, help="words of a document")
    parser.add_argument("--work", nargs="+", default=["generate", "fc", "cls"], choices=["generate", "fc", "cls"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "cls" in given.work:
            command = [sys.executable, "-c", TINY_BERT, str(folder / "bert")]
            subprocess.run(command, input=" ".join(vocabulary()), text=True, check=True, capture_output=True)
        for count in given.pairs:
            write_pairs(folder / f"{count}.jsonl", count, given.words)
        for work in given.work:
            peaks = []
            for count in given.pairs:
                environment = {**os.environ, "NEGSAMPLE_CACHE": str(folder / "cache")}
                corpus = folder / f"{count}.jsonl"
                memory, seconds = peak(arguments_of(work, corpus, folder, given.negatives), environment)
                peaks.append(memory)
                print(f"{work:<9}{count:>9} pairs {memory:8.1f} MB  {seconds:7.1f} CPU s", flush=True)
                shutil.rmtree(folder / "out")
                shutil.rmtree(folder / "cache", ignore_errors=True)
            examples = (given.pairs[-1] - given.pairs[0]) * (1 + given.negatives)
            each = f", {(peaks[-1] - peaks[0]) * 2**20 / examples:.0f} bytes an example" if examples else ""
            print(f"{work:<9}ratio {peaks[-1] / peaks[0]:.3f}{each}", flush=True)


if __name__ == "__main__":
    main()
