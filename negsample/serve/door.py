"""What stands before the service: where it listens, who may come in, how much a body may hold; and its end."""

import asyncio
import hmac
import socket
from types import FrameType

import uvicorn
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from negsample.errors import InputError
from negsample.serve import Limits

# Seconds that a whole request may take to arrive.
_PATIENCE = 60.0
# Bodies of full size that may be held at a time.
_HELD = 16


def listen(host: str, port: int) -> socket.socket:
    """A socket at ``host`` and ``port`` (0: a free one). Raises InputError where it can't be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        told = getattr(error, "strerror", None) or error
        raise InputError(f"can't listen at {host}, port {port} ({told}); give another --host or --port") from None


def address(bound: socket.socket) -> str:
    """The URL of what listens at ``bound``."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if bound.family == socket.AF_INET6 else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Serves ``app`` until a signal ends it, when what was accepted has its answer; a second one does not wait."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none")
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """What signals do; uvicorn's own would raise the signal again at the end."""
        self.force_exit = self.should_exit
        self.should_exit = True


class Door:
    """ASGI: lets in to ``inner`` those who know ``token`` (if there is one), with bodies of at most ``limits.body`` bytes."""

    def __init__(self, inner: ASGIApp, limits: Limits, token: str | None = None) -> None:
        self._inner = inner
        self._most = limits.body
        self._token = token
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and not self._knows(scope["path"], dict(scope["headers"])):
            told = {"error": "send the service's token: Authorization: Bearer TOKEN"}
            await JSONResponse(told, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        size, more, deadline = 0, True, asyncio.get_running_loop().time() + _PATIENCE

        async def bounded() -> Message:
            nonlocal size, more
            try:
                async with asyncio.timeout_at(deadline if more else None):
                    message = await receive()
            except TimeoutError:
                told = f"the request did not arrive within {_PATIENCE:.0f} seconds; send it again"
                raise HTTPException(408, told) from None
            more = message.get("more_body", False)
            size += len(message.get("body", b""))
            self._held += len(message.get("body", b""))
            if size > self._most:
                raise HTTPException(413, f"the body has more than {self._most} bytes; send fewer pairs at a time")
            if self._held > _HELD * self._most:
                told = "the service holds as many texts as it can; try again in a second"
                raise HTTPException(429, told, {"Retry-After": "1"})
            return message

        try:
            await self._inner(scope, bounded, send)
        finally:
            self._held -= size

    def _knows(self, path: str, headers: dict[bytes, bytes]) -> bool:
        # The page, its documentation and the state of health hold nothing that is anybody's.
        if self._token is None or not path.startswith("/v1/"):
            return True
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        return hmac.compare_digest(given.strip(), self._token.encode()) and kind.lower() == b"bearer"
