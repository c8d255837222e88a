"""What stands before the service: where it listens, who may come in, what may be held of a request; and its end."""

import asyncio
import hmac
import ipaddress
import json
import socket
from asyncio import TimerHandle, Transport
from types import FrameType
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from negsample.errors import InputError
from negsample.serve import Limits

# Seconds that a whole request may take to arrive, and its answer to be taken.
_PATIENCE = 60.0
# Bodies of full size that may be held at a time, beside small ones (a sixteenth), of which a connection has one.
_HELD = 16
# Connections that are held at most.
_LINES = 512
_ENDING = "the service is ending; ask again in a while"


def listen(host: str, port: int) -> socket.socket:
    """A socket at ``host`` and ``port`` (0: a free one). Raises InputError where it can't be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_backlog())
    except (OSError, OverflowError) as error:
        told = getattr(error, "strerror", None) or error
        raise InputError(f"can't listen at {host}, port {port} ({told}); give another --host or --port") from None


def address(bound: socket.socket) -> str:
    """The URL of what listens at ``bound``."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if bound.family == socket.AF_INET6 else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether ``host``, a name or an address, is this machine, for itself alone."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _most_lines() -> int:
    """Connections held at a time: half of the files that the process may have open at most; what comes at once is beside."""
    try:
        from resource import RLIMIT_NOFILE, getrlimit
    except ImportError:  # not on Windows
        return _LINES
    files = getrlimit(RLIMIT_NOFILE)[0]
    return _LINES if files < 0 else min(_LINES, files // 2)


def _backlog() -> int:
    """Connections that wait to be accepted, and then are in one go."""
    return max(64, _most_lines() // 2)


class Line(H11Protocol):
    """A connection, on which a request must arrive, and its answer be taken, within a minute; uvicorn has no such bound.

    Where there are too many, the one that has waited longest without a request goes.
    """

    _timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > _most_lines():
            lines = [line for line in self.connections if isinstance(line, Line) and line._timer is not None]
            oldest = min(lines, key=lambda line: line._timer.when() if line._timer else 0.0)
            oldest._end(503, "the service has as many connections as it can hold; ask again in a second")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def shutdown(self) -> None:
        """Called when the service ends: what has arrived is answered."""
        if self._timer is None:
            super().shutdown()
        else:
            self._end(503, _ENDING)

    def send_400_response(self, msg: str) -> None:
        """Called where what arrives is no HTTP."""
        self._end(400, "this is no HTTP request that can be read")

    def _watch(self) -> None:
        """Time runs but while an answer is computed."""
        computing = self.conn.our_state is h11.SEND_RESPONSE and self.conn.their_state in (h11.DONE, h11.MUST_CLOSE)
        if computing:
            self._stop_timer()
        elif self._timer is None:
            told = f"the request did not arrive within {_PATIENCE:.0f} seconds; send it again"
            self._timer = self.loop.call_later(_PATIENCE, self._end, 408, told)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _end(self, status: int, told: str) -> None:
        """Refuse what has not arrived, and close; give up an answer that is not taken."""
        if self.transport.is_closing() or self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        body = json.dumps({"error": told}).encode()
        head = (
            f"HTTP/1.1 {status} \r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close"
        )
        self.transport.write(head.encode() + b"\r\n\r\n" + body)
        self.transport.close()
        self._stop_timer()
        self._timer = self.loop.call_later(_PATIENCE, self.transport.abort)


class Server(uvicorn.Server):
    """Serves ``app`` until a signal ends it, when what was accepted has its answer; a second one does not wait."""

    def __init__(self, app: ASGIApp) -> None:
        # What clients do wrong is told to them, and not logged.
        super().__init__(
            uvicorn.Config(
                app, http=Line, log_level="error", access_log=False, server_header=False, lifespan="off", ws="none",
                backlog=_backlog(),
            )
        )  # fmt: skip

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's own, which from Python 3.12 on waits for open connections whatever the second signal says."""
        ending = asyncio.ensure_future(super().shutdown(sockets))
        while not (await asyncio.wait([ending], timeout=0.1))[0]:
            if self.force_exit:
                return
        ending.result()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """What signals do; uvicorn's own would raise the signal again at the end."""
        self.force_exit = self.should_exit
        self.should_exit = True


class Door:
    """ASGI: lets in to ``inner`` those who know ``token`` (if there is one), with bodies of at most ``limits.body`` bytes.

    ``loopback``: it listens for this machine alone, so that a request for another host is one that a page of the web has
    a browser send. HEAD is answered as GET (without the body, which the server leaves out).
    """

    def __init__(self, inner: ASGIApp, limits: Limits, token: str | None = None, loopback: bool = False) -> None:
        self._inner = inner
        self._most = limits.body
        self._token = token
        self._loopback = loopback
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = dict(scope["headers"])
        if self._loopback and not _is_here(headers.get(b"host", b"localhost").decode("latin-1")):
            told = "this service is for this machine alone: ask for 127.0.0.1 or localhost (a proxy sets Host to that)"
            return await _refuse(400, told)(scope, receive, send)
        if not self._knows(scope["path"], headers):
            told = "send the service's token: Authorization: Bearer TOKEN"
            return await _refuse(401, told, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
        size = 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            more = len(message.get("body", b""))
            size += more
            self._held += more
            if size > self._most:
                raise HTTPException(413, f"the body has more than {self._most} bytes; send fewer pairs at a time")
            if size > self._most // _HELD and self._held > _HELD * self._most:
                told = "the service holds as many texts as it can; try again in a second"
                raise HTTPException(429, told, {"Retry-After": "1"})
            return message

        try:
            await self._inner({**scope, "method": scope["method"].replace("HEAD", "GET")}, bounded, send)
        except asyncio.CancelledError:
            await _refuse(503, _ENDING)(scope, receive, send)
        finally:
            self._held -= size

    def _knows(self, path: str, headers: dict[bytes, bytes]) -> bool:
        # The page, its documentation and the state of health hold nothing that is anybody's.
        if self._token is None or not path.startswith("/v1/"):
            return True
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        return hmac.compare_digest(given.strip(), self._token.encode()) and kind.lower() == b"bearer"


def _refuse(status: int, told: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": told}, status, headers)


def _is_here(host: str) -> bool:
    """Whether a Host header names this machine."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
