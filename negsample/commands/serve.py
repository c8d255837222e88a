"""``negsample serve``."""

import os
import tempfile
from typing import Annotated

import typer

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import say


def serve(
    model: options.Model = None,
    host: Annotated[str, typer.Option("--host", help="Where to listen: this machine alone, or 0.0.0.0.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: a free one.")] = 8000,
    token: Annotated[
        str | None, typer.Option("--token", help="Ask for it; better in the environment.", envvar="NEGSAMPLE_TOKEN")
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option("--cors", help="Let pages of this origin ask; may be repeated.", metavar="ORIGIN"),
    ] = None,
    max_body: Annotated[int, typer.Option("--max-body", min=1, help="MiB of a request.")] = 8,
    max_pairs: Annotated[int, typer.Option("--max-pairs", min=1, help="Pairs of a request.")] = 64,
    max_characters: Annotated[int, typer.Option("--max-characters", min=1, help="Characters of a text.")] = 200_000,
    max_work: Annotated[
        int, typer.Option("--max-work", min=1, help="Millions: words of a document times words of its summary.")
    ] = 100,
    max_queue: Annotated[int, typer.Option("--max-queue", min=1, help="Pairs that may wait for their answers.")] = 1024,
) -> None:
    """A page and a service that score and explain, until Ctrl-C or SIGTERM (docs/serve.md)."""
    try:
        from negsample.serve.door import Door, Server, address, is_loopback, listen
    except ModuleNotFoundError as error:
        raise InputError(f"the package {error.name} is not installed; pip install 'negsample[serve]'") from None
    from starlette.middleware.cors import CORSMiddleware

    from negsample.models import load
    from negsample.serve import Limits
    from negsample.serve.app import make_app
    from negsample.serve.batcher import Batcher
    from negsample.serve.page import service_page, without_paths

    if max_queue < max_pairs:
        raise InputError(f"--max-queue {max_queue} holds no request of --max-pairs {max_pairs}; raise it")
    if token is not None and not token.strip():
        raise InputError("--token is blank; give one, or leave it out")
    limits = Limits(max_body << 20, max_pairs, max_characters, max_work * 10**6, max_queue)
    bound = listen(host, port)
    # Vectors of visitors' texts do not go into the user's own cache.
    with bound, tempfile.TemporaryDirectory(prefix="negsample-serve-") as folder:
        os.environ["NEGSAMPLE_CACHE"] = folder
        estimator, second = load(model), load(model)
        for one in (estimator, second):
            one.stay_in_memory()
        signature = without_paths(estimator.signature)
        batcher = Batcher(estimator, second, limits.waiting)
        page = service_page(signature, limits, estimator.aspects, token is not None)
        app = make_app(batcher, signature, limits, page, bool(estimator.aspects))
        here = is_loopback(bound.getsockname()[0])
        door = Door(app, limits, token, here)
        outer = CORSMiddleware(door, allow_origins=cors, allow_headers=["*"], allow_methods=["*"]) if cors else door
        say(f"{address(bound)}   documentation: {address(bound)}/docs   Ctrl-C ends it")
        say(signature)
        if token is None and not here:
            say("negsample: whoever reaches this address can use it; --token asks for one", error=True)
        Server(outer).run(sockets=[bound])
