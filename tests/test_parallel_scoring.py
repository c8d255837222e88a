"""One input scored by several processes gives what one process gives, byte for byte, or one clear error."""

import gzip
import json
import sys
import threading
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from processes import launch, side_by_side
from tests_support import story

from negsample import parallel_scoring as sharing
from negsample import scoring
from negsample.cli import main
from negsample.errors import InputError, RecordError
from negsample.io.files import appears
from negsample.processes import Crew
from negsample.scored import Scored


class Wire:
    """What threads that stand for processes tell each other."""

    def __init__(self, size):
        self.size = size
        self.values = [0] * size
        self.barrier = threading.Barrier(size, timeout=60)


class ThreadCrew(Crew):
    """A crew of threads."""

    def __init__(self, wire, rank):
        self.rank, self.size = rank, wire.size
        self._wire = wire
        self._stderr = sys.stderr

    def _gather(self, value):
        self._wire.values[self.rank] = value
        self._wire.barrier.wait()
        found = list(self._wire.values)
        self._wire.barrier.wait()
        return found


@dataclass
class Lengths:
    """Words of the summary / 7, and how many pairs it was asked for at a time."""

    signature: str = "lengths"
    calls: list = field(default_factory=list)

    def score_pairs(self, documents, summaries, *, batch_size=32):
        self.calls.append(len(documents))
        return Scored(
            np.array([len(text.split()) / 7 for text in summaries], np.float32), np.zeros(len(documents), bool)
        )


def crew_run(size, chunks, write, target, **options):
    """What each of ``size`` threads returns or raises, and the scorer of each; ``write(scorer, outcomes)``."""
    wire, scorers = Wire(size), [Lengths() for _ in range(size)]
    ends = [None] * size

    def work(rank):
        scorer = scorers[rank]
        try:
            ends[rank] = sharing.score_together(
                ThreadCrew(wire, rank),
                chunks,
                partial(scoring.score_rows, scorer, **options),
                lambda outcomes: write(scorer, outcomes),
                target,
            )
        except BaseException as error:
            ends[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return ends, scorers


def crew_scores(size, source, target, **options):
    """``crew_run`` over a table."""
    source, target = str(source), str(target)

    def write(scorer, outcomes):
        return scoring.score_table(scorer, source, target, outcomes=outcomes, **options)

    return crew_run(size, lambda: scoring.table_chunks(source), write, target, **options)


def write(path, count, bad=()):
    lines = []
    for number in range(count):
        document, summary = story(number)
        lines.append(json.dumps({"id": number, "document": document, "summary": " " if number in bad else summary}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(scoring.chunks, "__defaults__", (4,))


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("count", [1, 4, 21])
def test_equal_to_one_process(size, ending, count, tmp_path):
    source = write(tmp_path / "in.jsonl", count, bad={2, 9} & set(range(count)))
    one, two = tmp_path / f"one.{ending}", tmp_path / f"two.{ending}"
    tally = scoring.score_table(Lengths(), str(source), str(one), on_bad="skip")
    ends, scorers = crew_scores(size, source, two, on_bad="skip")
    assert one.read_bytes() == two.read_bytes()
    assert ends[0] == tally
    assert ends[1:] == [None] * (size - 1)
    # Chunks 0, size, 2·size … for the first process, and so on; the bad records are not asked for.
    sizes = [sum(n not in (2, 9) for n in range(start, min(start + 4, count))) for start in range(0, count, 4)]
    assert [scorer.calls for scorer in scorers] == [sizes[rank::size] for rank in range(size)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.jsonl", one.name, two.name])


@pytest.mark.parametrize("to_file", [True, False])
def test_line_aligned_files(to_file, tmp_path, monkeypatch):
    (tmp_path / "d.txt").write_text("".join(f"document {n}\n" for n in range(11)))
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("".join(f"{name} {'word ' * (n % 5)}\n" for n in range(11)))
    files = [str(tmp_path / name) for name in ("d.txt", "a.txt", "b.txt")]
    one, two = (str(tmp_path / name) if to_file else None for name in ("one.jsonl", "two.jsonl"))
    (tmp_path / "temporary").mkdir()
    # Eight summaries at a time, of four documents.
    monkeypatch.setattr(scoring, "CHUNK", 8)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    tallies = scoring.score_lines(Lengths(), files[0], files[1:], one)

    def write(scorer, outcomes):
        return scoring.score_lines(scorer, files[0], files[1:], two, outcomes=outcomes)

    ends, scorers = crew_run(3, lambda: scoring.line_chunks(files[0], files[1:]), write, two)
    assert ends == [tallies, None, None]
    assert [scorer.calls for scorer in scorers] == [[8], [8], [6]]
    if to_file:
        assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(("bad", "first"), [({19, 6}, 6), ({5, 3}, 3), ({20}, 20)])
def test_the_first_bad_record_is_told_once(bad, first, tmp_path):
    source = write(tmp_path / "in.jsonl", 21, bad)
    ends, _ = crew_scores(3, source, tmp_path / "out.jsonl")
    owner = first // 4 % 3
    assert isinstance(ends[owner], RecordError)
    assert f"line {first + 1}" in str(ends[owner])
    assert [end.code for rank, end in enumerate(ends) if rank != owner] == [2, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_an_input_that_breaks_off(tmp_path):
    whole = gzip.compress(write(tmp_path / "in.jsonl", 400).read_bytes())
    (tmp_path / "in.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    ends, _ = crew_scores(2, tmp_path / "in.jsonl.gz", tmp_path / "out.jsonl")
    # Both meet it at the same record; the first one speaks.
    assert isinstance(ends[0], InputError)
    assert "cut short" in str(ends[0])
    assert ends[1].code == 2
    assert not (tmp_path / "out.jsonl").exists()


def test_a_file_system_that_is_not_shared(tmp_path, monkeypatch):
    source = write(tmp_path / "in.jsonl", 8)
    monkeypatch.setattr("pathlib.Path.mkdir", lambda *_, **__: None)
    monkeypatch.setattr(sharing, "appears", partial(appears, seconds=0.3))
    ends, _ = crew_scores(2, source, tmp_path / "out.jsonl")
    assert "put the output on a file system that all machines share" in str(ends[0])
    assert ends[1].code == 2


def test_an_output_folder_that_is_not_there(tmp_path):
    ends, scorers = crew_scores(2, write(tmp_path / "in.jsonl", 8), tmp_path / "none" / "out.jsonl")
    assert isinstance(ends[0], InputError)
    assert str(tmp_path / "none") in str(ends[0])
    assert ends[1].code == 2
    # Told before the work, not after it.
    assert [scorer.calls for scorer in scorers] == [[], []]


# --- real processes


@pytest.fixture(scope="module")
def model(tiny_bert, tmp_path_factory):
    """An estimator that was not trained: its scores are as different as any."""
    from negsample.models.build import new_parts
    from negsample.models.folder import save_folder

    folder = tmp_path_factory.mktemp("model") / "m"
    save_folder(new_parts("cls", str(tiny_bert), max_length=64), folder, {"recipe": "none", "loss": "none"}, "")
    return folder


def test_launched_by_accelerate(model, negsample, tmp_path, monkeypatch):
    import torch

    source = write(tmp_path / "in.jsonl", 2100)
    done = launch("-m", "negsample.score", "--model", model, source, "-o", tmp_path / "two.csv")
    assert done.returncode == 0, done.stderr[-2000:]
    # In the real size of chunks, and with as many threads as each of the two.
    monkeypatch.setattr(scoring.chunks, "__defaults__", (scoring.CHUNK,))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        alone = negsample("score", "--model", model, source, "-o", tmp_path / "one.csv")
    finally:
        torch.set_num_threads(threads)
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
    assert done.stdout == alone.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "one.csv", "two.csv"]


def test_one_mistake_ends_both(tmp_path):
    # Record 1,500 is in the second chunk, which is the second process'.
    source = write(tmp_path / "in.jsonl", 1600, bad={1500})
    first, second = side_by_side("-m", "negsample.score", "--metric", "words", source, "-o", tmp_path / "out.jsonl")
    assert (first.returncode, second.returncode) == (2, 2)
    told = [line for line in (first.stderr + second.stderr).splitlines() if line.startswith("negsample:")]
    assert len(told) == 1
    assert "line 1501" in told[0]
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_standard_input_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["score", "--metric", "words", "-", "-o", "out.jsonl"], ThreadCrew(Wire(2), 0))
    assert ended.value.code == 2
    assert "name a file that all of them can read" in capsys.readouterr().err
