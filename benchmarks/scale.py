"""Pairs a second and peak memory: one process, two of Accelerate's, two Ray actors; and the memory of Ray's driver.

    python benchmarks/scale.py [--pairs 20000] [--driver 2000 200000] [--model DIR] [--source FILE] [--work one accelerate ray]

The pairs are those of ``--source`` (by default ``../shared/data/pairs/cnndm_sample.jsonl.gz``, else the embedded sample) over
and over, a tenth of their words changed each time. Without ``--model`` it is an untrained ``fc`` over packaged GloVe words,
for speed does not depend on training. Every process has one thread.

``pairs/s`` counts from start to end, loading and Ray's start with it; ``ratio`` is to one process per core: 1 is perfect.
Where others use the machine, ``CPU s`` (of all processes together) says more: its ``ratio`` is CPU seconds of one process
over those of both. ``driver`` is the peak resident memory of the process that was started, ``all`` that of it and all that
it has started, pages that several share counted for each.
"""

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "pairs" / "cnndm_sample.jsonl.gz"
# An fc that has learned nothing.
MODEL = """
import sys
from pathlib import Path
import numpy as np
from negsample.models.build import make_network, new_parts
from negsample.models.folder import save_folder
parts = new_parts("fc", "glove")
parts.features.fit(np.array([40]), np.array([40]))
make_network(parts, 0)
save_folder(parts, Path(sys.argv[1]), {"recipe": "none", "loss": "none"}, "")
"""


def pairs(source: str | None) -> list[tuple[str, str]]:
    """The pairs that are repeated."""
    if source is None and not SHARED.is_file():
        from negsample.corpora import load_pairs

        return [(pair.document, pair.summary) for pair in load_pairs("sample")]
    path = Path(source or SHARED)
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as stream:
        return [(record["document"], record["summary"]) for record in map(json.loads, stream)]


def changed(known: list[tuple[str, str]], count: int) -> Iterator[dict[str, str]]:
    """``count`` pairs, all different."""
    words = [word for document, _ in known for word in document.split()]
    for number in range(count):
        rng = random.Random(number)
        texts = [text.split(" ") for text in known[number % len(known)]]
        for own in texts:
            for _ in range(len(own) // 10):
                own[rng.randrange(len(own))] = rng.choice(words)
        yield {"id": str(number), "document": " ".join(texts[0]), "summary": " ".join(texts[1])}


def write(path: Path, known: list[tuple[str, str]], count: int) -> Path:
    """A file of ``count`` pairs."""
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(pair) + "\n" for pair in changed(known, count))
    return path


@dataclass
class Seen:
    """Seconds, CPU seconds of all processes, peak megabytes of the first one and of all together."""

    seconds: float
    cpu: float
    driver: float
    everything: float


def watch(command: list[str]) -> Seen:
    """Run ``command`` and look at its processes five times a second."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    start = time.perf_counter()
    driver, everything, spent = 0.0, 0.0, {}
    with tempfile.TemporaryFile() as told:
        process = psutil.Popen(command, stdout=told, stderr=told, env=environment)
        while process.poll() is None:
            sizes = [0.0]
            with suppress(psutil.Error):
                for each in [process, *process.children(recursive=True)]:
                    with suppress(psutil.Error):
                        sizes.append(each.memory_info().rss / 2**20)
                        times = each.cpu_times()
                        spent[each.pid] = times.user + times.system
                        if each.pid == process.pid:
                            driver = max(driver, sizes[-1])
            everything = max(everything, sum(sizes))
            time.sleep(0.2)
        seconds = time.perf_counter() - start
        if process.returncode:
            told.seek(0)
            raise SystemExit(f"{' '.join(command)}: failed\n{told.read().decode()[-3000:]}")
    return Seen(seconds, sum(spent.values()), driver, everything)


def command_of(work: str, scorer: list[str], source: Path, out: Path) -> list[str]:
    """The command line of one way to score ``source``."""
    if work == "ray":
        how = ["--on", "ray", "--workers", "2", *scorer, str(source), "-o", str(out)]
        return [sys.executable, "-m", "negsample", "score", *how]
    how = [*scorer, str(source), "-o", f"{out}.parquet"]
    if work == "one":
        return [sys.executable, "-m", "negsample", "score", *how]
    launch = ["accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    return [sys.executable, "-m", *launch, "-m", "negsample", "score", *how]


def main() -> None:
    """Print a line for each way, then the driver's peaks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--source")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--driver", type=int, nargs="*", default=[2_000, 200_000])
    parser.add_argument("--work", nargs="*", default=["one", "accelerate", "ray"], choices=["one", "accelerate", "ray"])
    given = parser.parse_args()
    known = pairs(given.source)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.model is None and given.work:
            subprocess.run([sys.executable, "-c", MODEL, str(folder / "model")], check=True)
        source = write(folder / "pairs.jsonl", known, given.pairs) if given.work else folder
        one = None
        for work in given.work:
            scorer = ["--model", given.model or str(folder / "model")]
            seen = watch(command_of(work, scorer, source, folder / work))
            one = one or seen
            print(
                f"{work:<10} {given.pairs} pairs {given.pairs / seen.seconds:8.1f} pairs/s {seen.seconds:8.1f} s "
                f"{seen.cpu:8.1f} CPU s  driver {seen.driver:5.0f} MB  all {seen.everything:5.0f} MB"
                + (
                    f"  ratio {one.seconds / seen.seconds / 2:.2f}, CPU {one.cpu / seen.cpu:.2f}"
                    if work != "one"
                    else ""
                ),
                flush=True,
            )
        for count in given.driver:
            # What the driver holds does not depend on the scorer.
            source = write(folder / "driver.jsonl", known, count)
            seen = watch(command_of("ray", ["--metric", "words"], source, folder / "driver"))
            print(f"driver     {count} pairs {seen.driver:8.1f} MB {seen.seconds:8.1f} s", flush=True)
            shutil.rmtree(folder / "driver")


if __name__ == "__main__":
    main()
