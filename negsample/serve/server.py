"""Listening, and ending: SIGTERM and Ctrl-C finish what was accepted and refuse the rest."""

import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from negsample.errors import InputError
from negsample.serve.door import Door

# Tenths of a second for which those who come too late are told so at least.
_LINGER = 3


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
    """Serves ``app``, whose requests all come in through ``door``, until a signal ends it; a second one does not wait."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none"
        )
        super().__init__(config)
        self._door = door
        self._lingered = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Refuse what comes from now on; what signals do."""
        if self._door.closing:
            super().handle_exit(sig, frame)
            self.force_exit = True
        self._door.closing = True

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether it is time to end, which is when all that was accepted has its answer."""
        if self._door.closing:
            self._lingered += 1
            # Connections that waited to be accepted learn first that it is over.
            if self._lingered > _LINGER and not self._door.busy:
                self.should_exit = True
        return await super().on_tick(counter)
