"""The service's routes: pairs in, scores or explanations out."""

import asyncio
import json
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, FailFast, Field
from starlette.exceptions import HTTPException

import negsample
from negsample.models.align.words import count_words
from negsample.records import domain_of, joined
from negsample.scoring.scorer import Item
from negsample.sentences import split_sentences
from negsample.serve import Limits
from negsample.serve.batcher import Batcher
from negsample.serve.page import Page, docs_page
from negsample.text import is_blank, readable

T = TypeVar("T")

_SHAPE = '{"pairs": [{"document": "…", "summary": "…"}]}'


class Pair(BaseModel):
    """A document, or several, and a summary of it."""

    document: str = Field("", description="Not blank; or documents.")
    documents: list[str] = Field(
        [], description="In place of document; which of them bear a sentence out is told apart."
    )
    summary: str = Field(description="Not blank; of any length, as the document.")
    domain: str | None = Field(None, description="What kind of text it is; percentiles are of it where it is known.")

    @property
    def read(self) -> str:
        """The document, or the documents in one text; "" where one of them is blank."""
        text = self.document or joined(self.documents)
        return text if isinstance(text, str) else ""


class Pairs(BaseModel):
    """Pairs, each answered for itself; those of one document read it once."""

    # A body of nothing but faults must not be told them all.
    pairs: Annotated[list[Pair], FailFast()]


class Score(BaseModel):
    """What a pair scores, as ``negsample score --aspects`` writes it; what does not apply is left out."""

    score: float = Field(description="In [0, 1], higher is better.")
    percentile: float | None = Field(None, description="The share of real summaries that score lower, in [0, 1].")
    aspects: dict[str, float | None] | None = Field(
        None, description="Each in [0, 1], a target on people's scale; null where it can't be judged."
    )
    aspect_percentiles: dict[str, float | None] | None = Field(None, description="As percentile, of each aspect.")
    intervals: dict[str, list[float]] | None = Field(None, description="Of each target: where people's score lies.")
    reason: str | None = Field(None, description="Why an aspect can't be judged.")


class Scores(BaseModel):
    """The scores of the pairs, in order, and from what they come."""

    scores: list[Score]
    signature: str = Field(description="From this line another person gets the same numbers.")


class Explanations(BaseModel):
    """The explanations of the pairs, in order; places are counted from 0, those of letters in Unicode characters.

    Each has score, aspects, the percentile of both, targets (of a model fitted to people's scores: value, interval, what
    each input adds) and reason; document: of each sentence how far it is covered, whether that is enough (said), by which
    summary sentence, and its weight; missing: the weighty ones that are left out; summary: of each sentence its support,
    the document sentence that it rests_on, the unsupported words, where they stand (unsupported_at), its own_words that are
    borne out (own_words_at), the support judge's doubt (null without one; .5 is usual, more than .8 speaks against it), where
    repeated runs stand (repeated_at), and faults; repetitions: alike sentences, and runs of words that come again.
    """

    explanations: list[dict[str, Any]]
    signature: str


class Refusal(BaseModel):
    """What is wrong, and what to do."""

    error: str


class Health(BaseModel):
    """The state of the service."""

    status: str
    version: str
    waiting: int = Field(description="Pairs without an answer yet.")


_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": told}
    for status, told in {
        400: "Not HTTP, another Host than this machine's, not UTF-8, packed, nested too deeply, or a number of too many digits.",
        401: "No token, or another one.",
        408: "The request took over a minute to arrive.",
        413: "Too many bytes or pairs, a text that is too long, or two that are too long to be compared.",
        422: "Not what is asked for.",
        429: "The queue is full; Retry-After tells when to try again.",
        503: "The service is ending, or has as many connections as it can hold.",
    }.items()
}


def make_app(batcher: Batcher, signature: str, limits: Limits, page: Page, explains: bool = True) -> FastAPI:
    """The service over ``batcher``, whose answers come from what ``signature`` names, and which ``explains`` or does not."""
    app = FastAPI(
        title="negsample",
        version=negsample.__version__,
        description="Scores summaries without a reference, and tells why.",
        docs_url=None,
        redoc_url=None,
    )

    # Long texts are counted here, one request after another, while short ones go by.
    counting = ThreadPoolExecutor(1, "negsample-count")

    async def computed(given: Pairs, explain: bool) -> list[str]:
        items = [
            Item(_sendable(pair.read), _sendable(pair.summary), (), domain_of(pair.domain)) for pair in given.pairs
        ]
        if any(_may_be_too_much(item, limits) for item in items):
            await asyncio.get_running_loop().run_in_executor(counting, _check_work, items, limits)
        return await batcher.answer(items, explain)

    async def answer(request: Request, given: Pairs, explain: bool) -> Response:
        _check(given, limits)
        told = await _unless_gone(request, computed(given, explain))
        name = "explanations" if explain else "scores"
        body = f'{{"{name}":[{",".join(told)}],"signature":{json.dumps(signature)}}}'
        return Response(body, media_type="application/json")

    answered: dict[str, Any] = {"responses": _REFUSALS, "response_description": "The answers, in order."}

    @app.post("/v1/score", summary="Score pairs", response_model=Scores, **answered)
    async def score(request: Request, given: Pairs) -> Response:
        return await answer(request, given, False)

    @app.post("/v1/explain", summary="Score pairs, and tell why they score so", response_model=Explanations, **answered)
    async def explain(request: Request, given: Pairs) -> Response:
        if not explains:
            raise HTTPException(422, "this model has no aspects, so nothing is to be explained; ask /v1/score")
        return await answer(request, given, True)

    @app.get("/healthz", response_description="It is up.", summary="Whether the service is up")
    async def healthz() -> Health:
        return Health(status="ok", version=negsample.__version__, waiting=batcher.waiting)

    @app.get("/", include_in_schema=False)
    async def root() -> Response:
        return HTMLResponse(page.html, headers=page.headers)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        shown = docs_page(app.openapi())
        return HTMLResponse(shown.html, headers=shown.headers)

    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)
    return app


def _check(given: Pairs, limits: Limits) -> None:
    """Raises HTTPException where there are no pairs or too many, or a text is blank or too long."""
    if not given.pairs:
        raise HTTPException(422, f"no pairs; send {_SHAPE}")
    if len(given.pairs) > limits.pairs:
        raise HTTPException(413, f"{len(given.pairs)} pairs; send at most {limits.pairs} at a time")
    for number, pair in enumerate(given.pairs):
        for name, text in (("document", pair.read), ("summary", pair.summary)):
            if is_blank(text):
                raise HTTPException(422, f"pairs[{number}].{name} is blank; leave the pair out")
            if len(text) > limits.characters:
                told = f"has {len(text)} characters; at most {limits.characters} are read: shorten it"
                raise HTTPException(413, f"pairs[{number}].{name} {told}")


def _may_be_too_much(item: Item, limits: Limits) -> bool:
    """Whether a pair has to be counted: a letter beyond ASCII may stand for eighteen."""
    most = [len(text) if text.isascii() else 18 * len(text) for text in (item.document, item.summary)]
    return max(most) > limits.characters or most[0] * most[1] > limits.work


def _check_work(items: Sequence[Item], limits: Limits) -> None:
    """Raises HTTPException where what is read of a text is too long, or a pair would be too much work."""
    for place, item in enumerate(items):
        if not _may_be_too_much(item, limits):
            continue
        texts = [readable(text) for text in (item.document, item.summary)]
        if (longest := max(map(len, texts))) > limits.characters:
            told = f"a text of {longest} characters, as it is read; at most {limits.characters} are read"
            raise HTTPException(413, f"pairs[{place}] has {told}: shorten it")
        document, summary = (count_words(text) + len(split_sentences(text)) for text in texts)
        if document * summary > limits.work:
            told = f"{document} words and sentences of the document times {summary} of the summary"
            raise HTTPException(413, f"pairs[{place}]: {told} is more than {limits.work}; shorten one of them")


async def _unless_gone(request: Request, answer: Coroutine[Any, Any, T]) -> T:
    """What ``answer`` gives; where the client closes its connection before that, ``answer`` is cancelled."""
    computing, gone = asyncio.create_task(answer), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait([computing, gone], return_when=asyncio.FIRST_COMPLETED)
        if not computing.done():
            raise HTTPException(499, "the client has closed its connection")
        return computing.result()
    finally:
        computing.cancel()
        gone.cancel()


def _sendable(text: str) -> str:
    """``text`` with U+FFFD for each half of a surrogate pair, which JSON may hold and no answer can."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        told = f"the body is no JSON ({first['ctx']['error']}, character {first['loc'][-1]}); send {_SHAPE}"
        return JSONResponse({"error": told}, 422)
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"][1:])
    where = place.lstrip(".") or "the body"
    hint = " with Content-Type: application/json" if where == "the body" else ""
    told = f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}; send {_SHAPE}{hint}"
    return JSONResponse({"error": told}, 422)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        allowed = set(headers["Allow"].split(", "))
        headers["Allow"] = ", ".join(sorted(allowed | {"HEAD"} if "GET" in allowed else allowed))
    told = {
        400: f"{_unread(request, error.__cause__)}; send {_SHAPE} in UTF-8",
        404: "nothing is here; /docs tells what the service has",
        405: f"not with this method; send {headers.get('Allow')}, /docs tells more",
    }
    return JSONResponse({"error": told.get(error.status_code, error.detail)}, error.status_code, headers)


def _unread(request: Request, cause: BaseException | None) -> str:
    """Why a body can't be read."""
    packed = request.headers.get("content-encoding", "identity")
    if packed != "identity":
        return f"the body is packed ({packed}), and packed ones are not read"
    if isinstance(cause, UnicodeDecodeError):
        return f"byte {cause.start} of the body is not {cause.encoding.upper()}"
    if isinstance(cause, RecursionError):
        return "the body is nested too deeply"
    return "the body has a number of too many digits" if isinstance(cause, ValueError) else "the body can't be read"


async def _failed(_: Request, __: Exception) -> JSONResponse:
    return JSONResponse({"error": "the service failed at this request; its own log tells why"}, 500)
