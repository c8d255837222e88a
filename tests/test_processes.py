"""How a launch is looked at: what is refused, what is told."""

import pytest
from thread_processes import together

from negsample.processes import refuse_sharding, warn_of_lone_process


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
