"""Two real processes that share their work on CPUs, as ``accelerate launch`` starts them."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

# One thread each, so that sums are added up in the same order however many processes there are.
# A process that the system ends (SIGABRT, SIGSEGV) says where each of its threads was.
ENVIRONMENT = {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}


# So long may what hangs take on the slowest machine.
_PATIENCE = 1800


def launch(*arguments: object, cwd: Path | None = None, processes: int = 2) -> subprocess.CompletedProcess:
    """``processes`` of ``accelerate launch ARGUMENTS``, ended.

    Accelerate's --cpu starts one process whatever number is asked for (its issue 2741); --multi_gpu starts them all, and
    the variable keeps them off a GPU.
    """
    command = [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", str(processes)]
    command += ["--multi_gpu"] if processes > 1 else ["--cpu"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    environment = {**os.environ, **ENVIRONMENT}
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=_PATIENCE, env=environment, cwd=cwd
    )


def _port() -> int:
    """A free one that the system gives to nobody who asks for any, so that it is still free when torch comes to take it."""
    for port in range(20_000 + 37 * os.getpid() % 10_000, 32_000):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def side_by_side(
    *arguments: object, cwd: Path | None = None, **variables: str
) -> tuple[subprocess.CompletedProcess, subprocess.CompletedProcess]:
    """Two processes of ``python ARGUMENTS`` with the variables that the launcher sets, each with its own exit code."""
    shared = {**os.environ, **ENVIRONMENT, **variables, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_port())}
    started = [
        subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env={**shared, "RANK": rank, "LOCAL_RANK": rank},
        )
        for rank in ("0", "1")
    ]
    try:
        # Both are read at once: who has filled a pipe waits, and the other one for it.
        with ThreadPoolExecutor() as pool:
            texts = list(pool.map(partial(subprocess.Popen.communicate, timeout=_PATIENCE), started))
    finally:
        for process in started:
            process.kill()
    first, second = (
        subprocess.CompletedProcess(process.args, process.returncode, *text)
        for process, text in zip(started, texts, strict=True)
    )
    return first, second
