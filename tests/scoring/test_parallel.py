"""One input scored by several processes gives what one process gives, byte for byte, or one clear error."""

import gzip
import json

import pytest
from fake_scorer import Lengths
from processes import launch, side_by_side
from tests_support import story
from thread_processes import together

from negsample.cli import main
from negsample.errors import InputError, RecordError
from negsample.processes import refuse_sharding, warn_of_lone_process
from negsample.scoring import files as scoring


def table_scores(size, source, target, settings=scoring.DEFAULTS):
    """What scoring a table returns or raises in each of ``size`` threads, and the scorer of each."""
    scorers = [Lengths(7) for _ in range(size)]
    ends = together(
        size,
        lambda processes: scoring.write_scores(
            scorers[processes.rank], scoring.table(str(source)), str(target), settings, processes
        ),
    )
    return ends, scorers


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
    tallies = scoring.write_scores(Lengths(7), scoring.table(str(source)), str(one), scoring.Settings(on_bad="skip"))
    ends, scorers = table_scores(size, source, two, scoring.Settings(on_bad="skip"))
    assert one.read_bytes() == two.read_bytes()
    assert ends == [tallies] * size
    # Chunks 0, size, 2·size … for the first process, and so on; the bad records are not asked for.
    sizes = [sum(n not in (2, 9) for n in range(start, min(start + 4, count))) for start in range(0, count, 4)]
    assert [scorer.calls for scorer in scorers] == [sizes[rank::size] for rank in range(size)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.jsonl", one.name, two.name])


def test_line_aligned_files(tmp_path, monkeypatch):
    (tmp_path / "d.txt").write_text("".join(f"document {n}\n" for n in range(11)))
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("".join(f"{name} {'word ' * (n % 5)}\n" for n in range(11)))
    files = [str(tmp_path / name) for name in ("d.txt", "a.txt", "b.txt")]
    # Eight summaries at a time, of four documents.
    monkeypatch.setattr(scoring, "CHUNK", 8)
    tallies = scoring.write_scores(Lengths(7), scoring.lines(files[0], files[1:]))
    scorers = [Lengths(7) for _ in range(3)]
    ends = together(3, lambda p: scoring.write_scores(scorers[p.rank], scoring.lines(files[0], files[1:]), processes=p))
    assert ends == [tallies] * 3
    assert [scorer.calls for scorer in scorers] == [[8], [8], [6]]


@pytest.mark.parametrize(("bad", "first"), [({19, 6}, 6), ({5, 3}, 3), ({20}, 20)])
def test_the_first_bad_record_is_told_once(bad, first, tmp_path):
    source = write(tmp_path / "in.jsonl", 21, bad)
    ends, _ = table_scores(3, source, tmp_path / "out.jsonl")
    owner = first // 4 % 3
    assert isinstance(ends[owner], RecordError)
    assert f"line {first + 1}" in str(ends[owner])
    assert [end.code for rank, end in enumerate(ends) if rank != owner] == [2, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize(
    ("fault", "told"), [("cut", "cut short"), ("no folder", "there is no folder"), ("full", "full")]
)
def test_one_process_tells_what_is_wrong_and_nobody_goes_on_for_long(fault, told, tmp_path, monkeypatch):
    def full(*_):
        raise InputError("the disk is full")

    source, target = write(tmp_path / "in.jsonl", 400), tmp_path / "out.jsonl"
    if fault == "cut":
        whole = gzip.compress(source.read_bytes())
        source.write_bytes(whole[: len(whole) // 2])
    elif fault == "no folder":
        target = tmp_path / "none" / "out.jsonl"
    else:
        monkeypatch.setattr("negsample.io.write.Writer.write", full)
    ends, scorers = table_scores(3, source, target)
    (speaks,) = [end for end in ends if isinstance(end, InputError)]
    assert told in str(speaks)
    assert [end.code for end in ends if end is not speaks] == [2, 2]
    assert fault == "cut" or all(len(scorer.calls) <= 2 for scorer in scorers)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


# --- real processes


def test_launched_by_accelerate(cls_model, negsample, tmp_path, monkeypatch):
    import torch

    source = write(tmp_path / "in.jsonl", 1100)
    done = launch("-m", "negsample", "score", "--model", cls_model, source, "-o", tmp_path / "two.csv")
    assert done.returncode == 0, done.stderr
    # In the real size of chunks, and with as many threads as each of the two.
    monkeypatch.setattr(scoring.chunks, "__defaults__", (scoring.CHUNK,))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        alone = negsample("score", "--model", cls_model, source, "-o", tmp_path / "one.csv")
    finally:
        torch.set_num_threads(threads)
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
    assert done.stdout == alone.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "one.csv", "two.csv"]


def test_one_mistake_ends_both(tmp_path):
    # Record 1,500 is in the second chunk, which is the second process'.
    source = write(tmp_path / "in.jsonl", 1600, bad={1500})
    first, second = side_by_side("-m", "negsample", "score", "--metric", "words", source, "-o", tmp_path / "out.jsonl")
    assert (first.returncode, second.returncode) == (2, 2)
    told = [line for line in (first.stderr + second.stderr).splitlines() if line.startswith("negsample:")]
    assert len(told) == 1
    assert "line 1501" in told[0]
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_standard_input_is_refused(capsys):
    def work(processes):
        main(["score", "--metric", "words", "-", "-o", "out.jsonl"], processes)

    assert [end.code for end in together(2, work)] == [2, 2]
    told = capsys.readouterr().err
    assert "name a file that all of them can read" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "last"), [("FSDP", "FSDP"), ("DeepSpeed", "DEEPSPEED"), ("Megatron-LM", "MEGATRON_LM")]
)
def test_a_launch_that_splits_the_model(name, last, negsample, tmp_path, monkeypatch):
    monkeypatch.setenv(f"ACCELERATE_USE_{last}", "false")
    refuse_sharding()
    monkeypatch.setenv(f"ACCELERATE_USE_{last}", "true")
    done = negsample("train", "corpus=sample", "encoder=glove", "--out", tmp_path / "m", check=2)
    assert f"launched with {name}" in done.stderr
    assert "--multi_gpu" in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_lone_process_is_told(capsys, monkeypatch):
    for name in ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    told = []
    for name, value in (("ACCELERATE_USE_CPU", "true"), ("MASTER_ADDR", "127.0.0.1"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
        warn_of_lone_process()
        told.append(capsys.readouterr().err)
    assert (told[0], "--multi_gpu --num_processes N -m negsample VERB" in told[1], told[2]) == ("", True, "")


def test_the_lowest_rank_that_fails_speaks():
    def job(processes, failing):
        for step in range(3):
            if processes.rank in failing[step]:
                raise ValueError(f"process {processes.rank}")
            assert processes.gather((step, processes.rank)) == [(step, rank) for rank in range(3)]
        return "done"

    def run(*failing):
        ends = together(3, lambda processes: job(processes, failing))
        return [str(end) if isinstance(end, ValueError) else getattr(end, "code", end) for end in ends]

    assert run((), (), ()) == ["done"] * 3
    assert run((), (1, 2), (0,)) == [2, "process 1", 2]
    assert run((0, 2), (), ()) == ["process 0", 2, 2]


def test_a_failure_after_the_last_step_is_told_at_the_end():
    def job(processes):
        processes.gather(1)
        if processes.rank == 1:
            raise ValueError("late")

    first, second = together(2, job)
    assert first.code == 2
    assert str(second) == "late"
