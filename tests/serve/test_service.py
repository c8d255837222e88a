"""The service: answers, refusals, what is computed together and what goes first, clients who mean ill, and its end."""

import gc
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests_support import story

from negsample.serve.page import without_paths

PAIR = {"document": "the cat sat", "summary": "the dog sat"}
LONG = {"document": "a cat. " * 5000, "summary": "a cat"}
HALF = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = json.dumps({"pairs": [PAIR]}).encode()
WHOLE = HALF + f"Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY


@contextmanager
def lines(service: Any, *sent: bytes) -> Iterator[list[socket.socket]]:
    """A connection for each of ``sent``, on which it has been sent."""
    made = [socket.create_connection(("127.0.0.1", service.port), timeout=60) for _ in sent]
    try:
        for line, data in zip(made, sent, strict=True):
            line.sendall(data)
        yield made
    finally:
        for line in made:
            line.close()


def status(line: socket.socket) -> int:
    """What is answered on ``line`` before it is closed; 0 for nothing."""
    data = b""
    with suppress(ConnectionError):
        while more := line.recv(4096):
            data += more
    return int(data.split()[1]) if data else 0


@contextmanager
def asked(service: Any, *requests: list[dict[str, str]]) -> Iterator[list[Any]]:
    """Ask each of ``requests`` in a thread, in this order, while the readers stand still; their answers once they go on."""
    for reader in (service.reader, service.slow):
        reader.go.clear()
    answers: list[Any] = [None] * len(requests)

    def ask(place: int, pairs: list[dict[str, str]]) -> None:
        answers[place] = service.ask("/v1/score", {"pairs": pairs})

    threads = []
    for place, pairs in enumerate(requests):
        before = service.batcher.waiting + len(pairs)
        threads.append(threading.Thread(target=ask, args=(place, pairs)))
        threads[-1].start()
        service.wait(lambda before=before: service.batcher.waiting == before)
        service.wait(lambda: service.reader.batches or service.slow.batches)
    yield answers
    for reader in (service.reader, service.slow):
        reader.go.set()
    for thread in threads:
        thread.join()


def test_pairs_are_answered_in_order(start: Any) -> None:
    service = start()
    code, _, told = service.ask("/v1/score", {"pairs": [PAIR, {"document": "a b", "summary": "b a"}]})
    assert (code, told["signature"]) == (200, "model:stand-in")
    assert told["scores"] == [
        {
            "score": pytest.approx(2 / 3, abs=1e-6),
            "percentile": pytest.approx(1 / 3, abs=1e-4),
            "aspects": {"support": pytest.approx(2 / 3, abs=1e-6)},
            "aspect_percentiles": {"support": None},
        },
        {"score": 1.0, "percentile": 0.5, "aspects": {"support": 1.0}, "aspect_percentiles": {"support": None}},
    ]
    _, _, told = service.ask("/v1/score", {"pairs": [PAIR, {**PAIR, "domain": "news"}, {**PAIR, "domain": "\ud800"}]})
    assert [one["percentile"] for one in told["scores"]] == pytest.approx([1 / 3, 0, 1 / 3], abs=1e-4)
    code, _, told = service.ask("/v1/explain", {"pairs": [PAIR]})
    (explanation,) = told["explanations"]
    assert (code, explanation["summary"][0]["unsupported_at"]) == (200, [[4, 7]])
    # Half a letter is answered as one that can't be read.
    body = b'{"pairs": [{"document": "a \\ud800 \\ud83d\\ude00.", "summary": "a."}]}'
    code, _, told = service.ask("/v1/explain", body)
    assert (code, told["explanations"][0]["document"][0]["sentence"]) == (200, "a \ufffd \U0001f600.")
    assert service.ask("/healthz")[2]["waiting"] == 0
    # Several documents are read as one text, in which they can be told apart.
    code, _, told = service.ask("/v1/score", {"pairs": [{"documents": ["a b", "c"], "summary": "b a"}]})
    assert (code, told["scores"]) == (
        200,
        service.ask("/v1/score", {"pairs": [{"document": "a b\n\x1d\nc", "summary": "b a"}]})[2]["scores"],
    )


def test_a_model_without_aspects_scores_and_does_not_explain(start: Any) -> None:
    service = start(aspects=())
    assert service.ask("/v1/score", {"pairs": [PAIR]})[0] == 200
    code, _, told = service.ask("/v1/explain", {"pairs": [PAIR]})
    assert (code, told["error"][-13:]) == (422, "ask /v1/score")


BAD: list[tuple[Any, int, str]] = [
    ({"pairs": []}, 422, "no pairs; send"),
    ({"pairs": [{"document": "a"}]}, 422, "pairs[0].summary: field required"),
    ({"pairs": [{"document": "a", "summary": 3}]}, 422, "pairs[0].summary: input should be"),
    ({"pairs": [PAIR, {"document": " \n", "summary": "a"}]}, 422, "pairs[1].document is blank; leave"),
    ({"pairs": [{"documents": ["a", " "], "summary": "a"}]}, 422, "pairs[0].document is blank; leave"),
    ([PAIR], 422, "send {"),
    (b'{"pairs": [', 422, "the body is no JSON"),
    (b"", 422, "the body: field required"),
    (b'{"pairs": "\xff\xfe"}', 400, "byte 11 of the body is not UTF-8; send {"),
    (b'{"pairs": [' + b"1," * 30_000 + b"1]}", 422, "pairs[0]: input should be"),
    (b'{"pairs": ' + b"9" * 5000 + b"}", 400, "a number of too many digits; send {"),
    ({"pairs": [PAIR] * 9}, 413, "9 pairs; send at most 8 at a time"),
    ({"pairs": [{"document": "a" * 1001, "summary": "a"}]}, 413, "document has 1001 characters; at most 1000"),
    # One letter that is read as eighteen, in four words.
    ({"pairs": [{"document": "\ufdfa" * 60, "summary": "a"}]}, 413, "pairs[0] has a text of 1080 characters, as it is"),
    # 40 words and the 20 sentences that they are, times 41.
    ({"pairs": [PAIR, {"document": "Go on. " * 20, "summary": "a " * 40}]}, 413, "pairs[1]: 60 words and sentences of"),
    ({"pairs": [PAIR], "more": "a" * 70_000}, 413, "more than 65536 bytes; send fewer"),
    (iter([b"a" * 5000] * 20), 413, "more than 65536 bytes; send fewer"),
]


def test_what_is_refused_says_what_to_do(start: Any) -> None:
    service = start(body=1 << 16, pairs=8, characters=1000, work=2000)
    for body, expected, told in BAD:
        code, _, answer = service.ask("/v1/score", body)
        assert code == expected, told
        assert told in answer["error"]
        assert "\n" not in answer["error"]
    packed = service.ask("/v1/score", b"\x1f\x8b\x08", Content_Encoding="gzip")
    assert (packed[0], packed[2]["error"][:28]) == (400, "the body is packed (gzip), a")
    # From Python 3.14 on the stack alone bounds how deep JSON may be.
    deep = start(body=1 << 20).ask("/v1/score", b"[" * 1_000_000)
    assert (deep[0], deep[2]["error"][:37]) == (400, "the body is nested too deeply; send {")
    assert service.ask("/v1/nothing", {})[0] == 404
    assert service.ask("/v1/score", {"pairs": [PAIR]}, Content_Type="text/plain")[0] == 422
    # None of them has harmed the service, or waits in it.
    assert service.ask("/v1/score", {"pairs": [PAIR]})[0] == 200
    service.wait(lambda: service.batcher.waiting == 0)


def test_methods_and_hosts(start: Any) -> None:
    service = start()
    for path in ("/", "/docs", "/openapi.json", "/healthz"):
        assert service.ask(path, method="HEAD")[0] == 200
        code, headers, _ = service.ask(path, {}, method="DELETE")
        assert (code, headers["allow"]) == (405, "GET, HEAD")
    code, headers, told = service.ask("/v1/score")
    assert (code, headers["allow"]) == (405, "POST")
    assert "send POST" in told["error"]
    for host in ("localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8000", "a.localhost"):
        assert service.ask("/healthz", Host=host)[0] == 200
    # A page of the web whose name was made to lead here.
    for host in ("evil.example", "127.0.0.1.evil.example", "[::1", "localhost.evil.example:8000", "10.0.0.1", ""):
        code, _, told = service.ask("/v1/score", {"pairs": [PAIR]}, Host=host)
        assert (code, "127.0.0.1 or localhost" in told["error"]) == (400, True)


def test_what_arrives_together_is_computed_together(start: Any) -> None:
    service = start(waiting=20, pairs=8)
    with asked(service, *([PAIR] * count for count in (2, 8, 3, 7))) as answers:
        code, headers, told = service.ask("/v1/score", {"pairs": [PAIR]})
        assert (code, told["error"][:17]) == (429, "the queue is full")
        assert int(headers["retry-after"]) >= 1
    assert service.reader.batches == [2, 18]
    assert [len(told["scores"]) for _, _, told in answers] == [2, 8, 3, 7]


def test_one_that_fails_leaves_the_others_alone_and_tells_nothing_of_the_machine(start: Any) -> None:
    service = start()
    with asked(service, *([{"document": "a b", "summary": summary}] for summary in ("a", "fail", "b", "c"))) as answers:
        pass
    assert [code for code, _, _ in answers] == [200, 500, 200, 200]
    assert list(answers[1][2]) == ["error"]
    assert "/" not in answers[1][2]["error"]
    assert service.ask("/v1/score", {"pairs": [PAIR]})[0] == 200


def test_small_requests_do_not_wait_for_large_ones_nor_one_of_these_for_many(start: Any) -> None:
    service = start()
    pairs = [LONG | {"summary": f"a {number}"} for number in range(4)]
    with asked(service, pairs, [LONG | {"summary": "a cat"}]):
        service.reader.go.set()
        assert service.ask("/v1/score", {"pairs": [PAIR]})[0] == 200
        assert service.batcher.waiting == 5
    assert service.slow.batches == [1] * 5
    # The one that came last is computed where the second of the others would have been.
    assert service.slow.summaries.index("a cat") <= 2


def test_what_nobody_waits_for_any_more_is_not_computed(start: Any) -> None:
    service = start()
    with asked(service, [PAIR]):
        with lines(service, *[WHOLE] * 30):
            service.wait(lambda: service.batcher.waiting == 31)
        service.wait(lambda: service.batcher.waiting == 1)
    assert service.reader.batches == [1]
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one).__name__ == "_Job"]


KINDS = [HALF, b"", b"GET", HALF + b"Content-Length: 9\r\n\r\n{"]


def test_half_requests_and_lines_that_say_nothing_keep_nobody_out(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("negsample.serve.door._LINES", 40)
    service = start()
    with lines(service, *(KINDS * 30)) as made:
        assert service.ask("/healthz")[0] == 200
        # Those that have waited longest make room.
        codes = {status(line) for line in made[:60]}
        assert 503 in codes <= {503, 0}
        assert service.ask("/v1/score", {"pairs": [PAIR]})[0] == 200
    service.wait(lambda: not service.server.server_state.connections)


def test_a_request_has_a_time_to_arrive_in_and_bytes_that_drip_in_gain_none(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("negsample.serve.door._PATIENCE", 0.5)
    service = start()

    def gone(line: socket.socket) -> bool:
        try:
            line.sendall(b"a")
        except OSError:
            return True
        return False

    with lines(service, *KINDS, HALF) as made:
        service.wait(lambda: gone(made[-1]))
        assert [status(line) for line in made[:-1]] == [408] * 4
    service.wait(lambda: not service.server.server_state.connections)


def test_a_token_keeps_strangers_out(start: Any) -> None:
    service = start(token="sésame")
    code, headers, told = service.ask("/v1/score", {"pairs": [PAIR]})
    assert (code, headers["www-authenticate"]) == (401, "Bearer")
    assert "Authorization: Bearer TOKEN" in told["error"]
    for given in ("Bearer ", "Bearer sésam", "Basic sésame", "sésame"):
        assert service.ask("/v1/score", {"pairs": [PAIR]}, Authorization=given.encode().decode("latin-1"))[0] == 401
    known = "Bearer sésame".encode().decode("latin-1")
    assert service.ask("/v1/explain", {"pairs": [PAIR]}, Authorization=known)[0] == 200
    for path in ("/", "/docs", "/openapi.json", "/healthz"):
        assert service.ask(path)[0] == 200


@pytest.mark.parametrize("twice", [False, True])
def test_the_end_answers_what_was_accepted_and_a_second_signal_does_not_wait(start: Any, twice: bool) -> None:
    service = start()
    with asked(service, *[[PAIR]] * 5) as answers, lines(service, HALF, b"") as made:
        service.wait(lambda: len(service.server.server_state.connections) == 7)
        service.server.handle_exit(15, None)
        assert [status(line) for line in made] == [503, 503]
        if twice:
            service.server.handle_exit(15, None)
            service.wait(lambda: all(answers))
    assert [code for code, _, _ in answers] == [503 if twice else 200] * 5


def test_nothing_is_loaded_from_outside_and_no_other_origin_is_let_in(start: Any) -> None:
    service = start()
    for path in ("/", "/docs"):
        code, headers, text = service.ask(path, Origin="https://elsewhere.example")
        assert code == 200
        assert "access-control-allow-origin" not in headers
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe-inline" not in headers["content-security-policy"]
        assert "http://" not in text.replace("http://127.0.0.1:8000", "")
        assert "https://" not in text
    told = service.ask("/docs")[2]
    for name in ("POST /v1/score", "POST /v1/explain", "GET /healthz", "Retry-After", 'id="Scores"'):
        assert name in told
    schema = service.ask("/openapi.json")[2]
    responses = schema["paths"]["/v1/score"]["post"]["responses"]
    assert {"200", "400", "401", "408", "413", "422", "429", "503"} <= set(responses)
    assert json.dumps(schema).count("HTTPValidationError") == 0


def test_a_signature_does_not_tell_where_files_lie() -> None:
    long = "model:1f|encoder:sentence-transformer:/home/ann/my models/x,max_length=64|head:align|version:0.1"
    assert without_paths(long) == "model:1f|encoder:sentence-transformer:x,max_length=64|head:align|version:0.1"
    assert without_paths("encoder:~/models/x/|a:b") == "encoder:x|a:b"
    assert without_paths("encoder:../x") == "encoder:x"
    for harmless in ("encoder:org/name|head:cls", "encoder:hf:org/na.me,pool=mean", "encoder:minilm"):
        assert without_paths(harmless) == harmless


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
            while (len(sent) < 6 or len(answers) < 2) and process.poll() is None:
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
