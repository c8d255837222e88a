"""The service: answers, refusals, what is computed together, and its end."""

import json
import threading
from typing import Any

import pytest

from negsample.serve.page import without_paths

PAIR = {"document": "the cat sat", "summary": "the dog sat"}


def test_pairs_are_answered_in_order(start: Any) -> None:
    service = start()
    status, _, told = service.ask("/v1/score", {"pairs": [PAIR, {"document": "a b", "summary": "b a"}]})
    assert status == 200
    assert told["signature"] == "model:stand-in"
    assert told["scores"] == [
        {
            "score": pytest.approx(2 / 3, abs=1e-6),
            "percentile": pytest.approx(1 / 3, abs=1e-4),
            "aspects": {"support": pytest.approx(2 / 3, abs=1e-6)},
            "aspect_percentiles": {"support": None},
        },
        {"score": 1.0, "percentile": 0.5, "aspects": {"support": 1.0}, "aspect_percentiles": {"support": None}},
    ]
    status, _, told = service.ask("/v1/explain", {"pairs": [PAIR]})
    (explanation,) = told["explanations"]
    assert (status, explanation["summary"][0]["unsupported_at"]) == (200, [[4, 7]])
    assert service.ask("/healthz")[2]["waiting"] == 0


def test_a_model_without_aspects_scores_and_does_not_explain(start: Any) -> None:
    service = start(aspects=())
    assert service.ask("/v1/score", {"pairs": [PAIR]})[0] == 200
    status, _, told = service.ask("/v1/explain", {"pairs": [PAIR]})
    assert (status, told["error"][-13:]) == (422, "ask /v1/score")


def test_half_a_letter_is_answered_as_one_that_cannot_be_read(start: Any) -> None:
    body = b'{"pairs": [{"document": "a \\ud800 \\ud83d\\ude00.", "summary": "a."}]}'
    status, _, told = start().ask("/v1/explain", body)
    assert (status, told["explanations"][0]["document"][0]["sentence"]) == (200, "a \ufffd \U0001f600.")


BAD = {
    "no pairs": ({"pairs": []}, 422, "no pairs; send"),
    "no field": ({"pairs": [{"document": "a"}]}, 422, "pairs[0].summary: field required"),
    "another type": ({"pairs": [{"document": "a", "summary": 3}]}, 422, "pairs[0].summary: input should be"),
    "blank": ({"pairs": [PAIR, {"document": " \n", "summary": "a"}]}, 422, "pairs[1].document is blank; leave"),
    "a list": ([PAIR], 422, "send {"),
    "no JSON": (b'{"pairs": [', 422, "the body is no JSON"),
    "nothing": (b"", 422, "the body: field required"),
    "no UTF-8": (b'{"pairs": "\xff\xfe"}', 400, "send {"),
    "deep": (b"[" * 30_000, 400, "send {"),
    "too many": ({"pairs": [PAIR] * 9}, 413, "9 pairs; send at most 8 at a time"),
    "too long": (
        {"pairs": [{"document": "a" * 1001, "summary": "a"}]},
        413,
        "document has 1001 characters; at most 1000",
    ),
    "too large": ({"pairs": [PAIR], "more": "a" * 70_000}, 413, "more than 65536 bytes; send fewer"),
    "too large in pieces": (iter([b"a" * 5000] * 20), 413, "more than 65536 bytes; send fewer"),
}


def test_what_is_refused_says_what_to_do(start: Any) -> None:
    service = start(body=1 << 16, pairs=8, characters=1000)
    for name, (body, expected, told) in BAD.items():
        status, _, answer = service.ask("/v1/score", body)
        assert status == expected, name
        assert told in answer["error"], name
        assert "\n" not in answer["error"]
    assert service.ask("/v1/score")[0] == 405
    assert service.ask("/v1/nothing", {})[0] == 404
    assert service.ask("/v1/score", {"pairs": [PAIR]}, Content_Type="text/plain")[0] == 422
    # None of them has harmed the service, or waits in it.
    assert service.ask("/v1/score", {"pairs": [PAIR]})[0] == 200
    service.wait(lambda: service.batcher.waiting == 0)


def test_what_arrives_together_is_computed_together(start: Any) -> None:
    service = start(waiting=20, pairs=8)
    service.reader.go.clear()
    answers: list[Any] = []

    def ask(pairs: list[dict[str, str]]) -> None:
        answers.append(service.ask("/v1/score", {"pairs": pairs}))

    threads = [threading.Thread(target=ask, args=([PAIR] * count,)) for count in (2, 8, 3, 7)]
    threads[0].start()
    service.wait(lambda: service.reader.batches == [2])
    for thread in threads[1:]:
        thread.start()
    service.wait(lambda: service.batcher.waiting == 20)
    status, headers, told = service.ask("/v1/score", {"pairs": [PAIR]})
    assert (status, told["error"][:17]) == (429, "the queue is full")
    assert int(headers["retry-after"]) >= 1
    service.reader.go.set()
    for thread in threads:
        thread.join()
    assert service.reader.batches == [2, 18]
    assert sorted(len(told["scores"]) for _, _, told in answers) == [2, 3, 7, 8]


def test_one_that_fails_leaves_the_others_alone_and_tells_nothing_of_the_machine(start: Any) -> None:
    service = start()
    service.reader.go.clear()
    answers: dict[str, Any] = {}

    def ask(summary: str) -> None:
        answers[summary] = service.ask("/v1/score", {"pairs": [{"document": "a b", "summary": summary}]})

    threads = [threading.Thread(target=ask, args=(summary,)) for summary in ("a", "fail", "b", "c")]
    threads[0].start()
    service.wait(lambda: service.reader.batches == [1])
    for thread in threads[1:]:
        thread.start()
    service.wait(lambda: service.batcher.waiting == 4)
    service.reader.go.set()
    for thread in threads:
        thread.join()
    assert [answers[summary][0] for summary in "abc"] == [200] * 3
    assert answers["fail"][0] == 500
    assert list(answers["fail"][2]) == ["error"]
    assert "/" not in answers["fail"][2]["error"]
    assert service.ask("/v1/score", {"pairs": [PAIR]})[0] == 200


def test_a_token_keeps_strangers_out(start: Any) -> None:
    service = start(token="sésame")
    status, headers, told = service.ask("/v1/score", {"pairs": [PAIR]})
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert "Authorization: Bearer TOKEN" in told["error"]
    for given in ("Bearer ", "Bearer sésam", "Basic sésame", "sésame"):
        assert service.ask("/v1/score", {"pairs": [PAIR]}, Authorization=given.encode().decode("latin-1"))[0] == 401
    known = "Bearer sésame".encode().decode("latin-1")
    assert service.ask("/v1/explain", {"pairs": [PAIR]}, Authorization=known)[0] == 200
    for path in ("/", "/docs", "/openapi.json", "/healthz"):
        assert service.ask(path)[0] == 200


def test_the_end_answers_what_was_accepted(start: Any) -> None:
    service = start()
    service.reader.go.clear()
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda: answers.append(service.ask("/v1/score", {"pairs": [PAIR]}))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    service.wait(lambda: service.batcher.waiting == 20)
    service.stop()
    for thread in threads:
        thread.join()
    assert [status for status, _, _ in answers] == [200] * 20


def test_nothing_is_loaded_from_outside_and_no_other_origin_is_let_in(start: Any) -> None:
    service = start()
    for path in ("/", "/docs"):
        status, headers, text = service.ask(path, Origin="https://elsewhere.example")
        assert status == 200
        assert "access-control-allow-origin" not in headers
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe-inline" not in headers["content-security-policy"]
        assert "http://" not in text.replace("http://127.0.0.1:8000", "")
        assert "https://" not in text
    told = service.ask("/docs")[2]
    for name in ("POST /v1/score", "POST /v1/explain", "GET /healthz", "Retry-After", 'id="Scores"'):
        assert name in told
    schema = service.ask("/openapi.json")[2]
    assert {"200", "401", "413", "422", "429"} <= set(schema["paths"]["/v1/score"]["post"]["responses"])
    assert json.dumps(schema).count("HTTPValidationError") == 0


def test_a_signature_does_not_tell_where_files_lie() -> None:
    long = "model:1f|encoder:sentence-transformer:/home/ann/my models/x,max_length=64|head:align|version:0.1"
    assert without_paths(long) == "model:1f|encoder:sentence-transformer:x,max_length=64|head:align|version:0.1"
    assert without_paths("encoder:~/models/x/|a:b") == "encoder:x|a:b"
    assert without_paths("encoder:../x") == "encoder:x"
    for harmless in ("encoder:org/name|head:cls", "encoder:hf:org/na.me,pool=mean", "encoder:minilm"):
        assert without_paths(harmless) == harmless
