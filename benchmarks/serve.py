"""The service under load: requests a second against one-by-one calls, in the same run.

python benchmarks/serve.py [--model DIR] [--requests 1000] [--clients 50] [--words 2000] [--alone 100] [--heavy 150000]

Starts ``negsample serve`` as a process of its own, on a free port. Documents have 20 to ``--words`` words (as many short
ones as long ones, on a log scale); one request in ten is malformed. Says how many answers were lost, how far good ones are
from ``negsample score`` of the same pairs, p50 and p95, and the memory of the process at each quarter; the same for a few
clients with short texts beside a request of ``--heavy`` characters and one of twenty such pairs; then ends another such
process by SIGTERM in the middle, and counts what became of the requests.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from common import made_text

from negsample.seeds import generator

MALFORMED: list[tuple[bytes, int]] = [
    (b'{"pairs": [', 422),
    (b'{"pairs": [{"document": "a"}]}', 422),
    (b'{"pairs": [{"document": " ", "summary": "a b"}]}', 422),
    (b'{"pairs": []}', 422),
    (b'{"pairs": "' + b"a" * (9 << 20) + b'"}', 413),
    (b'{"pairs": [{"document": "' + b"a " * 150_000 + b'", "summary": "a"}]}', 413),
]


_SYLLABLES = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
WORDS = [_SYLLABLES[n % 60] + _SYLLABLES[n // 60] + "rs"[n % 2] for n in range(3000)]


def made_requests(count: int, most: int) -> list[tuple[bytes, int, dict[str, str] | None]]:
    """Bodies, the status that each must get, and the pair of a good one."""
    made: list[tuple[bytes, int, dict[str, str] | None]] = []
    for number in range(count):
        rng = generator("benchmark", "serve", "size", number)
        if number % 10 == 9:
            made.append((*MALFORMED[number // 10 % len(MALFORMED)], None))
            continue
        document = made_text(round(float(np.exp(rng.uniform(np.log(20), np.log(most))))), WORDS, "serve", number)
        first = document.partition(".")[0]
        pair = {"document": document, "summary": f"{first}. {made_text(15, WORDS, 'serve', number, 'summary')}"}
        made.append((json.dumps({"pairs": [pair]}).encode(), 200, pair))
    return made


@contextmanager
def service(model: list[str]) -> Iterator[tuple[subprocess.Popen, int]]:
    """A process that serves, and its port."""
    command = [sys.executable, "-m", "negsample.cli", "serve", *model, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().split()[0].rpartition(":")[2])
            # It listens before it has loaded its model.
            ask(http.client.HTTPConnection("127.0.0.1", port), None)
            yield process, port
        finally:
            process.terminate()


def ask(line: http.client.HTTPConnection, body: bytes | None) -> tuple[int, Any]:
    """Status and JSON of one request; of ``/healthz`` without a body."""
    if body is None:
        line.request("GET", "/healthz")
    else:
        line.request("POST", "/v1/score", body, {"Content-Type": "application/json"})
    answer = line.getresponse()
    return answer.status, json.loads(answer.read())


def resident(process: subprocess.Popen) -> int:
    """MiB of memory."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) >> 10


def processor(process: subprocess.Popen) -> float:
    """Seconds of processor time, which other programs on the machine do not change much."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Load:
    """``clients`` threads that send ``bodies``, each on a connection of its own that it keeps."""

    def __init__(self, port: int, bodies: Iterable[bytes], clients: int) -> None:
        self.port = port
        self.left = iter(list(enumerate(bodies)))
        self.lock = threading.Lock()
        self.answers: dict[int, tuple[int, Any]] = {}
        self.seconds: list[float] = []
        self.lost: Counter[str] = Counter()
        self.threads = [threading.Thread(target=self._client) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def _client(self) -> None:
        line = http.client.HTTPConnection("127.0.0.1", self.port)
        while True:
            with self.lock:
                number, body = next(self.left, (None, b""))
            if number is None:
                return
            begin = time.monotonic()
            try:
                answer = ask(line, body)
            except (OSError, http.client.HTTPException) as error:
                line.close()
                with self.lock:
                    self.lost[type(error).__name__] += 1
            else:
                with self.lock:
                    self.answers[number] = answer
                    self.seconds.append(time.monotonic() - begin)

    def join(self) -> "Load":
        """Wait for all answers."""
        for thread in self.threads:
            thread.join()
        return self


def scores_by_command(model: list[str], pairs: list[dict[str, str]]) -> np.ndarray:
    """What ``negsample score`` gives ``pairs``."""
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "pairs.jsonl", Path(name) / "scored.jsonl"
        source.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
        command = [sys.executable, "-m", "negsample.cli", "score", *model, str(source), "-o", str(target)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return np.array([json.loads(line)["score"] for line in target.read_text(encoding="utf-8").splitlines()])


def under_load(
    model: list[str], made: list[tuple[bytes, int, dict[str, str] | None]], clients: int, alone: int
) -> None:
    """Send all, and say how it went."""
    with service(model) as (process, port):
        memory, spent = [resident(process)], processor(process)
        quarter = -(-len(made) // 4)
        answers, seconds, lost = {}, [], Counter[str]()
        begin = time.monotonic()
        for start in range(0, len(made), quarter):
            load = Load(port, [body for body, _, _ in made[start : start + quarter]], clients).join()
            answers.update({start + number: answer for number, answer in load.answers.items()})
            seconds += load.seconds
            lost += load.lost
            memory.append(resident(process))
        wall, spent = time.monotonic() - begin, processor(process) - spent
    good = [(answers[n][1]["scores"][0]["score"], pair) for n, (_, _, pair) in enumerate(made) if pair and n in answers]
    wrong = sum(answers[n][0] != status for n, (_, status, _) in enumerate(made) if n in answers)
    print(f"{len(made)} requests by {clients} clients: {len(answers)} answers, {lost.total()} lost {dict(lost)}, "
          f"{wrong} with another status than due")  # fmt: skip
    print(f"memory before and after each quarter: {' '.join(map(str, memory))} MiB")
    apart = np.abs(scores_by_command(model, [pair for _, pair in good]) - np.array([score for score, _ in good]))
    print(f"furthest from negsample score: {apart.max():.1e} of {len(good)} good ones")
    rate = len(answers) / wall
    print(
        f"together: {rate:.1f} requests a second, p50 {np.median(seconds):.2f} s, p95 {np.quantile(seconds, 0.95):.2f} s"
    )
    if not alone:
        return
    with service(model) as (_, port):
        begin = time.monotonic()
        single = Load(port, [body for body, _, _ in made[:alone]], 1).join()
        one = len(single.answers) / (time.monotonic() - begin)
    print(
        f"one by one ({alone}): {one:.1f} requests a second, p50 {np.median(single.seconds):.2f} s; ratio {rate / one:.2f}"
    )


def beside_heavy(model: list[str], clients: int, heavy: int) -> None:
    """Short texts beside a slow request, and a huge one."""
    pair = {
        "document": made_text(heavy // 5, WORDS, "serve", "heavy"),
        "summary": made_text(300, WORDS, "serve", "slow"),
    }
    large = [json.dumps({"pairs": [pair | {"summary": f"{n}. {pair['summary']}"}] * n}).encode() for n in (1, 20)]
    # What has been read once would be known the second time.
    bodies = [body for body, status, _ in made_requests(20 * clients, 200) if status == 200]
    with service(model) as (process, port):
        alone = Load(port, bodies[::2], clients).join().seconds
        # They are not waited for: with the service they end.
        Load(port, large, len(large))
        time.sleep(0.5)
        beside = Load(port, bodies[1::2], clients).join()
        told = {name: f"p50 {np.median(one):.2f} s, p95 {np.quantile(one, 0.95):.2f} s"
                for name, one in (("alone", alone), ("beside", beside.seconds))}  # fmt: skip
        print(f"{clients} clients with short texts: {told['alone']}; beside a request of {len(large[0])} bytes and one of "
              f"{len(large[1])}: {told['beside']}, {beside.lost.total()} lost; memory {resident(process)} MiB")  # fmt: skip


def ended(model: list[str], made: list[tuple[bytes, int, dict[str, str] | None]], clients: int) -> None:
    """SIGTERM in the middle."""
    with service(model) as (process, port):
        load = Load(port, [body for body, status, _ in made if status == 200], clients)
        while len(load.answers) < clients:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        code = process.wait()
        took = time.monotonic() - begin
        load.join()
    counts = Counter(status for status, _ in load.answers.values())
    print(f"SIGTERM: ended with code {code} after {took:.1f} s; answers by status {dict(counts)}; "
          f"connections refused or broken {dict(load.lost)}")  # fmt: skip


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    for name, value in (("requests", 1000), ("clients", 50), ("words", 2000), ("alone", 100), ("heavy", 150_000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    model = ["--model", options.model] if options.model else []
    made = made_requests(options.requests, options.words)
    under_load(model, made, options.clients, options.alone)
    if options.heavy:
        beside_heavy(model, min(5, options.clients), options.heavy)
    ended(model, made, options.clients)


if __name__ == "__main__":
    main()
