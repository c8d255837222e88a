"""How a launch is looked at: what is refused, what is told."""

import pytest
from thread_processes import together

from negsample.errors import InputError
from negsample.processes import refuse_sharding, warn_of_lone_process


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


def test_train_refuses_it(negsample, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    done = negsample("train", "corpus=sample", "encoder=glove", "--out", tmp_path / "m", check=2)
    assert "launched with FSDP" in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_lone_process_is_told(capsys, monkeypatch):
    for name in ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    warn_of_lone_process()
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    warn_of_lone_process()
    assert "--multi_gpu --num_processes N -m negsample VERB" in capsys.readouterr().err
    monkeypatch.setenv("WORLD_SIZE", "2")
    warn_of_lone_process()
    assert capsys.readouterr().err == ""


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
