"""What stands before the service: who may come in, how much a body may hold, and when it closes."""

import asyncio
import hmac

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from negsample.serve.limits import Limits

# Seconds that a whole request may take to arrive.
_PATIENCE = 60.0
# Of a body that is too large as much is read and thrown away, as a multiple of what is allowed, so that its sender reads
# the answer in place of a broken connection.
_DISCARDED = 16
# Bodies of full size that may be held at a time.
_HELD = 16


def refusal(status: int, message: str, retry_after: int | None = None) -> JSONResponse:
    """A JSON line that says what is wrong and what to do."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": message}, status, headers)


class Door:
    """ASGI: ``inner`` gets whole bodies of at most ``limits.body`` bytes, from those who know ``token`` (if there is one).

    Once ``closing`` is set, what has come in is answered and everything else refused; ``busy`` counts the former.
    """

    def __init__(self, inner: ASGIApp, limits: Limits, token: str | None = None) -> None:
        self._inner = inner
        self._limits = limits
        self._token = token
        self._held = 0
        self.closing = False
        self.busy = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        if self.closing:
            await refusal(503, "the service is shutting down; ask another, or again later", 5)(scope, receive, send)
            return
        self.busy += 1
        size = 0
        try:
            headers = dict(scope["headers"])
            if not self._knows(scope["path"], headers):
                body: bytes | JSONResponse = refusal(401, "send the service's token: Authorization: Bearer TOKEN")
            else:
                body = await self._read(headers, receive)
            if not isinstance(body, bytes):
                await body(scope, receive, send)
                return
            size = len(body)
            self._held += size
            await self._inner(scope, _replay(body, receive), send)
        finally:
            self._held -= size
            self.busy -= 1

    def _knows(self, path: str, headers: dict[bytes, bytes]) -> bool:
        # The page, its documentation and the state of health hold nothing that is anybody's.
        if self._token is None or not path.startswith("/v1/"):
            return True
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        return hmac.compare_digest(given.strip(), self._token.encode()) and kind.lower() == b"bearer"

    async def _read(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | JSONResponse:
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._read_all(headers, receive)
        except TimeoutError:
            return refusal(408, f"the request did not arrive within {_PATIENCE:.0f} seconds; send it again")

    async def _read_all(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | JSONResponse:
        most = self._limits.body
        given = headers.get(b"content-length", b"")
        size, kept = 0, bytearray()
        too_large = given.isdigit() and int(given) > most
        more = True
        while more and size <= _DISCARDED * most:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            chunk = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(chunk)
            too_large = too_large or size > most
            if too_large:
                kept.clear()
            else:
                kept += chunk
            if self._held + len(kept) > _HELD * most:
                return refusal(429, "the service holds as many texts as it can; try again in a second", 1)
        if too_large:
            return refusal(413, f"the body has more than {most} bytes; send fewer pairs at a time")
        return bytes(kept)


def _replay(body: bytes, receive: Receive) -> Receive:
    """What receives ``body``, then what comes after it."""
    waiting = True

    async def again() -> Message:
        nonlocal waiting
        if waiting:
            waiting = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again
