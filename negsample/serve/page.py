"""The page: of a service, with a form, or of records that were explained, to send to somebody. One file, nothing outside."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

import negsample
from negsample.serve import Limits

# A name of a folder or file in a signature: from a root, a home, or relative; a hub's id (org/name) is none.
_PATH = re.compile(r"(?<![\w.~-])(?:~|\.{1,2})?/[^|,]*?([^/|,]+)/*(?=[|,]|$)")


@dataclass(frozen=True)
class Page:
    """A page and the headers that keep it to itself."""

    html: str
    headers: Mapping[str, str]


def without_paths(signature: str) -> str:
    """``signature`` with the last part of each path alone: where a file lies on this machine is nobody's business."""
    return _PATH.sub(r"\1", signature)


def service_page(signature: str, limits: Limits, aspects: Sequence[str], token: bool) -> Page:
    """The page of a service; ``aspects`` are those that its model tells apart, ``token``: whether it asks for one."""
    taken = {"body": limits.body, "pairs": limits.pairs, "characters": limits.characters}
    return _page({"served": True, "signature": signature, "limits": taken, "explains": bool(aspects), "token": token})


def file_page(signature: str, records: Sequence[Mapping[str, Any]]) -> Page:
    """The page of ``records``: ``label``, ``document``, ``summary`` and ``explanation`` of each."""
    return _page({"served": False, "signature": without_paths(signature), "records": list(records)})


def docs_page(schema: Mapping[str, Any]) -> Page:
    """What an OpenAPI ``schema`` says, to read."""
    style = _read("page.css")
    html = _environment().get_template("docs.html.j2").render(style=style, schema=schema)
    return _secured(html, f"style-src {_hash(style)}; img-src data:")


def _page(data: dict[str, Any]) -> Page:
    style, script = _read("page.css"), _read("page.js")
    policy = f"style-src {_hash(style)}; script-src {_hash(script)}; img-src data:"
    policy += "; connect-src 'self'" if data["served"] else ""
    # Nothing in a text can end the element that holds it.
    embedded = json.dumps({**data, "version": negsample.__version__}, ensure_ascii=True).replace("<", "\\u003c")
    template = _environment().get_template("page.html.j2")
    html = template.render(style=style, script=script, policy=_policy(policy), data=embedded, **data)
    return _secured(html, policy)


def _policy(own: str) -> str:
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def _secured(html: str, own: str) -> Page:
    headers = {"Content-Security-Policy": f"{_policy(own)}; frame-ancestors 'none'", "Cache-Control": "no-store"}
    return Page(html, headers | {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"})


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def _read(name: str) -> str:
    return (files("negsample.serve") / name).read_text(encoding="utf-8")
