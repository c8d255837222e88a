"""A service on the loopback address that answers as a language model does, or fails to, as a test says."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any


class Reply:
    """What the service does with a request: ``text`` as tokens with log probabilities (``likely``: those at the last one)."""

    def __init__(
        self,
        text: str = "4",
        *,
        likely: Mapping[str, float] | None = None,
        probabilities: bool = True,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        drop: bool = False,
    ) -> None:
        self.text, self.likely, self.probabilities = text, likely, probabilities
        self.status, self.headers, self.raw, self.drop = status, headers or {}, raw, drop

    def body(self, request: Mapping[str, Any]) -> bytes:
        if self.raw is not None:
            return self.raw
        choice: dict[str, Any] = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": self.text},
        }
        if request.get("logprobs") and self.probabilities:
            words = [self.text[k : k + 1] for k in range(len(self.text))]
            content = [{"token": word, "logprob": 0.0, "bytes": None, "top_logprobs": []} for word in words]
            for token in content[-1:] if self.likely else []:
                shares = {word: math.log(share) for word, share in (self.likely or {}).items()}
                token["logprob"] = shares[token["token"]]
                token["top_logprobs"] = [{"token": word, "logprob": log, "bytes": None} for word, log in shares.items()]
            choice["logprobs"] = {"content": content, "refusal": None}
        usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
        told = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"], "usage": usage}
        return json.dumps({**told, "choices": [choice]}).encode()


class JudgeServer:
    """``replies(request, number)`` says what becomes of each request, counted from 0; ``asked``: all requests it had."""

    def __init__(self, replies: Callable[[dict[str, Any], int], Reply]) -> None:
        self.replies, self.asked, self.headers = replies, list[dict[str, Any]](), list[dict[str, str]]()
        self.lock = Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with owner.lock:
                    number = len(owner.asked)
                    owner.asked.append(request)
                    owner.headers.append({name.lower(): value for name, value in self.headers.items()})
                reply = owner.replies(request, number)
                self.close_connection = True
                if reply.drop:
                    return
                body = reply.body(request)
                self.send_response(reply.status)
                for name, value in {
                    "Content-Type": "application/json",
                    "Connection": "close",
                    "Content-Length": str(len(body)),
                    **reply.headers,
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):  # whoever asked may have gone
                    self.wfile.write(body)

        class Server(ThreadingHTTPServer):
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        Thread(target=self.server.serve_forever, daemon=True).start()


@contextmanager
def serving(replies: Callable[[dict[str, Any], int], Reply]) -> Iterator[JudgeServer]:
    """A service that runs within the block."""
    server = JudgeServer(replies)
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()
