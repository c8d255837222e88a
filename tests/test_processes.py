"""How a launch is looked at: what is refused, what is told."""

import sys
import threading

import pytest

from negsample.errors import InputError
from negsample.processes import Crew, refuse_sharding, warn_of_lone_process


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("FSDP", "ACCELERATE_USE_FSDP"),
        ("DeepSpeed", "ACCELERATE_USE_DEEPSPEED"),
        ("Megatron-LM", "ACCELERATE_USE_MEGATRON_LM"),
    ],
)
def test_a_launch_that_splits_the_model(name, variable, monkeypatch):
    refuse_sharding()
    monkeypatch.setenv(variable, "false")
    refuse_sharding()
    monkeypatch.setenv(variable, "true")
    with pytest.raises(InputError, match=f"launched with {name}.*--multi_gpu"):
        refuse_sharding()


def test_train_refuses_it(negsample, pairs_file, tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    done = negsample("train", f"corpus={pairs_file}", f"encoder={tiny_bert}", "--out", tmp_path / "m", check=2)
    assert "launched with FSDP" in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_lone_process_is_told(capsys, monkeypatch):
    for name in ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    warn_of_lone_process("negsample.score")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    warn_of_lone_process("negsample.score")
    assert "--multi_gpu --num_processes N -m negsample.score" in capsys.readouterr().err
    monkeypatch.setenv("WORLD_SIZE", "2")
    warn_of_lone_process("negsample.score")
    assert capsys.readouterr().err == ""


def test_the_first_failure_speaks():
    ends, values, barrier = [None] * 3, [0] * 3, threading.Barrier(3, timeout=60)

    class ThreadCrew(Crew):
        def __init__(self, rank):
            self.rank, self.size = rank, 3
            self._stderr = sys.stderr

        def _gather(self, value):
            values[self.rank] = value
            barrier.wait()
            found = list(values)
            barrier.wait()
            return found

    def job(rank):
        if rank != 1:
            raise ValueError(f"process {rank}")
        return rank

    def work(rank, places):
        try:
            ends[rank] = ThreadCrew(rank).together(lambda: job(rank), lambda: places[rank])
        except BaseException as error:
            ends[rank] = error

    def run(places):
        threads = [threading.Thread(target=work, args=(rank, places)) for rank in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return [str(end) if isinstance(end, ValueError) else getattr(end, "code", end) for end in ends]

    # By how far the work was, then by rank; the others end with code 2.
    assert run([5, 0, 5]) == ["process 0", 2, 2]
    assert run([5, 0, 4]) == [2, 2, "process 2"]
