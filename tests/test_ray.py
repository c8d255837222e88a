"""Scoring on a local Ray of two workers: what one process gives, whatever is killed or damaged on the way."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests_support import story

from negsample import ray as on_ray
from negsample.commands.score import make_scorer
from negsample.errors import InputError
from negsample.io.write import write_table
from negsample.ray import SUMMARY, score_on_ray
from negsample.scoring.files import Settings, table, write_scores
from negsample.scoring.scorer import Scorer, collect
from negsample.scoring.tally import Tally

ray = pytest.importorskip("ray", reason="the extra [ray] is not installed")

WORDS = partial(make_scorer, None, "words")
SKIP = Settings(on_bad="skip")
STOP = Settings()
# For whatever another process has to do on a machine that has much else to do.
PATIENCE = 240


def words_of(before: Callable[[list[str]], None] = lambda documents: None) -> Scorer:
    """Words of the summary; ``before`` sees the documents first."""

    def score(items):
        before([item.document for item in items])
        return collect(float(len(item.summary.split())) for item in items)

    return Scorer("words", "words of the summary", True, frozenset({"document"}), score)


def deadly(document: str, marker: Path | None = None) -> Scorer:
    """Ends its process by SIGKILL when it meets ``document``, once (``marker``) or always."""

    def kill(documents):
        if document in documents and not (marker and marker.exists()):
            if marker:
                marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return words_of(kill)


def gone(once: Path) -> Scorer:
    """A scorer that can be made once."""
    if once.exists():
        raise InputError("no such model")
    once.touch()
    return words_of()


# A driver to be killed: in its scorer the fifth part and those after it take for ever.
DRIVER = """
import sys, time
from pathlib import Path
from negsample.ray import score_on_ray
from negsample.scoring.files import Settings
from negsample.scoring.scorer import Scorer, collect

def score(items):
    if any(f"week {number}." in item.document for item in items for number in range(8, 20)):
        time.sleep(3600)
    return collect(float(len(item.summary.split())) for item in items)

def load():
    return Scorer("words", "words of the summary", True, frozenset({"document"}), score)

score_on_ray(load, [sys.argv[1]], Path(sys.argv[2]), Settings(), address=sys.argv[3], workers=2, size=4)
"""


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Two workers on this machine, which find this file's classes; the cluster's address."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    for trial in range(4):
        try:
            ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=80 << 20, log_to_driver=False)
            break
        except Exception as error:
            # Ray gives its own processes half a minute to start.
            ray.shutdown()
            if trial == 3:
                pytest.skip(f"Ray can't be started here: {error}")
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


def write(path: Path, numbers, bad=()) -> str:
    """Records of ``numbers``, two for each document, in a file of any format; a blank summary where ``bad``."""
    path.parent.mkdir(exist_ok=True)
    rows = [{"id": n, "document": story(n // 2)[0], "summary": " " if n in bad else story(n)[1]} for n in numbers]
    write_table(path, rows, ["id", "document", "summary"])
    return str(path)


def records(out: Path) -> list[dict]:
    return sorted(pq.read_table(out).to_pylist(), key=lambda record: record["id"])


def summary(out: Path) -> dict:
    return json.loads((out / SUMMARY).read_text())


def test_equal_to_one_process(cls_model, tmp_path):
    names = [
        write(tmp_path / "in" / "a.parquet", range(21), bad={3}),
        write(tmp_path / "in" / "b.jsonl.gz", range(21, 30)),
    ]
    load = partial(make_scorer, str(cls_model), None)
    done = score_on_ray(load, [str(tmp_path / "in")], tmp_path / "out", SKIP, workers=2, size=8)
    scorer = load()
    whole = Tally()
    expected = []
    for number, name in enumerate(names):
        write_scores(
            scorer, table(name), str(tmp_path / f"{number}.parquet"), SKIP, see=lambda _, columns: whole.add(columns)
        )
        expected += records(tmp_path / f"{number}.parquet")
    found = records(tmp_path / "out")
    assert [record["id"] for record in found] == list(range(30))
    for record, other in zip(found, expected, strict=True):
        assert record == other | {"score": pytest.approx(other["score"], abs=1e-6)}
    one = pq.read_schema(next((tmp_path / "out").glob("*.parquet"))).remove_metadata()
    assert one == pq.read_schema(tmp_path / "0.parquet")
    told = summary(tmp_path / "out")
    assert told["n"] == whole.n == done.tallies[str(tmp_path / "in")].n == 29
    assert told["mean"] == pytest.approx(whole.mean, abs=1e-6)
    assert told["interval"] == pytest.approx(whole.interval, abs=1e-6)
    assert told["without_score"] == dict(whole.bad) == {"field 'summary' is blank": 1}
    assert told["signature"] == done.signature == scorer.signature
    assert told["versions"]["negsample"]
    # 8 and, of the same document, none more; of the first file then 8 and 5, of the second 9.
    assert told["parts"] == len(list((tmp_path / "out").glob("*.parquet"))) == 4


def test_a_worker_that_is_killed_is_replaced(tmp_path):
    source = write(tmp_path / "in.jsonl", range(24))
    load = partial(deadly, story(6)[0], tmp_path / "killed")
    done = score_on_ray(load, [source], tmp_path / "out", STOP, workers=2, size=4)
    assert (tmp_path / "killed").exists()
    assert done.tallies[source].n == 24
    found = records(tmp_path / "out")
    assert [record["id"] for record in found] == list(range(24))
    assert [record["score"] for record in found] == [len(story(number)[1].split()) for number in range(24)]
    assert not list((tmp_path / "out").glob(".*"))


def test_a_driver_that_is_killed_and_a_second_start(cluster, tmp_path):
    source, out = write(tmp_path / "in.jsonl", range(40)), tmp_path / "out"
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, source, str(out), cluster])
    deadline = time.monotonic() + PATIENCE
    try:
        while len(first := list(out.glob("*.parquet"))) < 4:
            assert driver.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        driver.kill()
        driver.wait()
    assert not (out / SUMMARY).exists()
    times = {path: path.stat().st_mtime_ns for path in first}
    done = score_on_ray(words_of, [source], out, STOP, workers=2, size=4)
    assert done.tallies[source].n == 40
    assert [record["id"] for record in records(out)] == list(range(40))
    assert {path: path.stat().st_mtime_ns for path in first} == times
    assert summary(out)["parts"] == 10
    with pytest.raises(InputError, match="part was 4, is 5"):
        score_on_ray(words_of, [source], out, STOP, size=5)
    # A file that has changed is scored anew, and what was made of it before goes.
    write(tmp_path / "in.jsonl", range(9))
    score_on_ray(words_of, [source], out, STOP, workers=2, size=4)
    assert [record["id"] for record in records(out)] == list(range(9))


def test_parts_have_the_columns_of_a_file_that_came_later(tmp_path):
    write(tmp_path / "in" / "b.jsonl", range(4))
    score_on_ray(words_of, [str(tmp_path / "in")], tmp_path / "out", STOP, workers=1)
    write_table(tmp_path / "in" / "a.jsonl", [{"id": 9, "document": "d", "summary": "s", "more": 1}], [])
    score_on_ray(words_of, [str(tmp_path / "in")], tmp_path / "out", STOP, workers=1)
    assert [record["more"] for record in records(tmp_path / "out")] == [None] * 4 + [1]
    assert len({str(pq.read_schema(path).names) for path in (tmp_path / "out").glob("*.parquet")}) == 1


def test_a_damaged_file_among_good_ones(tmp_path, negsample):
    write(tmp_path / "in" / "a.parquet", range(6))
    write(tmp_path / "b.jsonl", range(6, 300))
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(gzip.compress((tmp_path / "b.jsonl").read_bytes())[:-400])
    (tmp_path / "in" / "c.parquet").write_bytes(b"PAR1")
    (tmp_path / "in" / "d.jsonl").write_text("")
    arguments = ["score", "--on", "ray", "--metric", "words", tmp_path / "in", "-o"]
    told = negsample(*arguments, tmp_path / "stop", check=2).stderr.splitlines()
    assert [line for line in told if line.startswith("negsample:")] == told[-1:]
    assert f"{tmp_path / 'in' / 'c.parquet'}: not a sound Parquet file" in told[-1]
    assert not (tmp_path / "stop").exists()
    (tmp_path / "in" / "c.parquet").unlink()
    done = negsample(*arguments, tmp_path / "skip", "--on-bad", "skip")
    assert f"{tmp_path / 'in' / 'b.jsonl.gz'}: not read to its end: " in done.stdout
    found = [record["id"] for record in records(tmp_path / "skip")]
    assert found == list(range(len(found)))
    assert 6 < len(found) < 300
    assert summary(tmp_path / "skip")["n"] == len(found)
    assert list(summary(tmp_path / "skip")["unread"]) == [str(tmp_path / "in" / "b.jsonl.gz")]


def test_mistakes_are_one_line(tmp_path, negsample):
    source = write(tmp_path / "bad.jsonl", range(6), bad={4})
    (tmp_path / "none.jsonl").write_text("")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path)
    out = ("-o", tmp_path / "out")
    for words, told in (
        ((source, *out), f"{source}, line 5: field 'summary' is blank"),
        ((tmp_path / "none.jsonl", *out), "none.jsonl: no records"),
        (("-", *out), "not -"),
        ((source, *out, "--on", "spark"), "--on spark: give ray"),
        ((source,), "give INPUT… (files or folders, not -)"),
        ((source, tmp_path, *out), "is given twice"),
        ((tmp_path, "-o", tmp_path / "in" / "link" / "out"), "which is an input"),
        ((source, *out, "--limit", "3"), "--limit"),
    ):
        lines = negsample("score", "--on", "ray", "--metric", "words", *words, check=2).stderr.splitlines()
        assert lines[-1].startswith("negsample: ")
        assert told in lines[-1]
        assert not any("Traceback" in line for line in lines)
    # On the other machines the model may be another, or none.
    with pytest.raises(InputError, match="no such model"):
        score_on_ray(partial(gone, tmp_path / "once"), [write(tmp_path / "in.jsonl", range(3))], tmp_path / "out", STOP)


def test_what_kills_every_worker_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(on_ray, "_RETRIES", 1)
    source = write(tmp_path / "in.jsonl", range(2))
    with pytest.raises(InputError, match=r"Ray failed: .*start the same command again"):
        score_on_ray(partial(deadly, story(0)[0]), [source], tmp_path / "out", STOP, workers=1)
