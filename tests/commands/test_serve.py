"""``negsample serve`` as a process over a small untrained model, and what it refuses before it begins."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests_support import story

pytest.importorskip("fastapi", reason="the extra [serve] is not installed: pip install 'negsample[serve]'")
pytest.importorskip("uvicorn", reason="the extra [serve] is not installed: pip install 'negsample[serve]'")


def test_answers_are_those_of_the_estimator_and_none_is_lost_at_the_end(align_model: Path, tmp_path: Path) -> None:
    from negsample import Estimator

    pairs = [story(number) for number in range(60)]
    cache = tmp_path / "cache"
    answers: dict[int, Any] = {}
    sent: list[int] = []
    refused: list[int] = []

    def ask(port: int, number: int) -> None:
        own = [{"document": d, "summary": s} for d, s in pairs[number : number + 10]]
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        body = json.dumps({"pairs": own}).encode()
        try:
            line.request("POST", "/v1/score", body, {"Content-Type": "application/json"})
            sent.append(number)
            answer = line.getresponse()
            answers[number] = answer.status, json.loads(answer.read())
        except OSError:
            refused.append(number)
        line.close()

    command = [sys.executable, "-m", "negsample.cli", "serve", "--model", str(align_model), "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NEGSAMPLE_CACHE": str(cache)},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            port = int(process.stdout.readline().split()[0].rpartition(":")[2])
            signature = process.stdout.readline().strip()
            threads = [threading.Thread(target=ask, args=(port, number)) for number in range(0, 60, 10)]
            for thread in threads:
                thread.start()
            while len(sent) < 6 or len(answers) < 2:
                threads[0].join(0.01)
            process.send_signal(signal.SIGTERM)
            for thread in threads:
                thread.join()
            assert process.wait(600) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()
    # What it had not yet read was refused or its connection closed; each of the others has its scores.
    assert {200} <= {status for status, _ in answers.values()} <= {200, 503}
    assert len(answers) + len(refused) == 6
    scored = Estimator.load(align_model).score(*zip(*pairs, strict=True))
    for number, told in ((number, told) for number, (status, told) in answers.items() if status == 200):
        own = np.array([one["score"] for one in told["scores"]])
        assert own == pytest.approx(scored[number : number + 10], abs=1e-6)
        assert told["signature"] == signature
    assert "/" not in signature
    assert not cache.exists()


def test_what_can_not_be_served_is_refused_in_a_line(
    negsample: Any, align_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = negsample("serve", "--model", align_model, "--port", port, check=2).stderr
    assert f"can't listen at 127.0.0.1, port {port}" in told
    assert "can't listen at nowhere.invalid" in negsample("serve", "--host", "nowhere.invalid", check=2).stderr
    assert "raise it" in negsample("serve", "--max-queue", 8, check=2).stderr
    assert "--token is blank" in negsample("serve", "--token", " ", check=2).stderr
    assert "no such folder" in negsample("serve", "--model", align_model / "x", "--port", 0, check=2).stderr
    monkeypatch.delitem(sys.modules, "negsample.serve.door", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    told = negsample("serve", check=2).stderr
    assert told == "negsample: the package uvicorn is not installed; pip install 'negsample[serve]'\n"
