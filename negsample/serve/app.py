"""The service's routes: pairs in, scores or explanations out."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

import negsample
from negsample.scoring.scorer import Item
from negsample.serve import Limits
from negsample.serve.batcher import Answers, Batcher
from negsample.serve.page import Page, docs_page
from negsample.text import is_blank

_SHAPE = '{"pairs": [{"document": "…", "summary": "…"}]}'


class Pair(BaseModel):
    """A document and a summary of it."""

    document: str = Field(description="Not blank.")
    summary: str = Field(description="Not blank; of any length, as the document.")


class Pairs(BaseModel):
    """Pairs, each answered for itself; those of one document read it once."""

    pairs: list[Pair]


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
    each input adds) and reason; document: for each of its sentences how far it
    is covered, whether that is enough (said), by which summary sentence, and its weight; missing: the weighty ones
    that are left out; summary: for each of its sentences its support, the document sentence that it rests_on, the
    unsupported words, where they stand (unsupported_at), where repeated runs stand (repeated_at), and faults;
    repetitions: alike sentences, and runs of words that come again.
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
        401: "No token, or another one.",
        413: "Too many bytes or pairs, or a text that is too long.",
        422: "Not what is asked for.",
        429: "The queue is full; Retry-After tells when to try again.",
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

    async def answers(given: Pairs, explain: bool) -> Answers:
        _check(given, limits)
        items = [Item(_sendable(pair.document), _sendable(pair.summary)) for pair in given.pairs]
        return await batcher.answer(items, explain)

    answered: dict[str, Any] = {"responses": _REFUSALS, "response_description": "The answers, in order."}

    @app.post("/v1/score", summary="Score pairs", response_model_exclude_unset=True, **answered)
    async def score(given: Pairs) -> Scores:
        return Scores(scores=[Score(**told) for told in await answers(given, False)], signature=signature)

    @app.post("/v1/explain", summary="Score pairs, and tell why they score so", **answered)
    async def explain(given: Pairs) -> Explanations:
        if not explains:
            raise HTTPException(422, "this model has no aspects, so nothing is to be explained; ask /v1/score")
        return Explanations(explanations=await answers(given, True), signature=signature)

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
        for name, text in (("document", pair.document), ("summary", pair.summary)):
            if is_blank(text):
                raise HTTPException(422, f"pairs[{number}].{name} is blank; leave the pair out")
            if len(text) > limits.characters:
                raise HTTPException(
                    413,
                    f"pairs[{number}].{name} has {len(text)} characters; at most {limits.characters} are read: shorten it",
                )


def _sendable(text: str) -> str:
    """``text`` with U+FFFD for each half of a surrogate pair, which JSON may hold and no answer can."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refusal(status: int, told: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A JSON line that says what is wrong and what to do."""
    return JSONResponse({"error": told}, status, headers)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        told = f"the body is no JSON ({first['ctx']['error']}, character {first['loc'][-1]}); send {_SHAPE}"
        return _refusal(422, told)
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"][1:])
    where = place.lstrip(".") or "the body"
    hint = " with Content-Type: application/json" if where == "the body" else ""
    return _refusal(422, f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}; send {_SHAPE}{hint}")


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    told = {
        400: f"the body can't be read; send {_SHAPE} in UTF-8",
        404: "nothing is here; /docs tells what the service has",
        405: "not with this method; /docs tells which",
    }
    return _refusal(error.status_code, told.get(error.status_code, error.detail), error.headers)


async def _failed(_: Request, __: Exception) -> JSONResponse:
    return _refusal(500, "the service failed at this request; its own log tells why")
