"""The records that flow through the project, plain frozen dataclasses; and what people hand in for them."""

import json
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

from negsample.errors import InputError, RecordError
from negsample.seeds import digest
from negsample.sentences import normalise
from negsample.text import is_blank

PEOPLE = "people"
LABELLED = "labelled"
"""The kind of an example whose label was given, not made by damage."""
# A group separator (ASCII) on a line of its own: white space to whatever reads text, and a line break.
_BETWEEN = "\n\x1d\n"
_KINDS = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}


def as_list(column: Any, what: str = "texts") -> list[Any]:
    """The values of a column by place: of a list, generator, array, Series or column of pandas, polars, pyarrow, datasets.

    Raises InputError, which names ``what`` belongs there, for anything that is no column.
    """
    if isinstance(column, Mapping | Set) or hasattr(column, "columns"):
        raise InputError(f"a {type(column).__name__} in place of a list of {what}; give one column of it")
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow's values are objects of its own until then
        if hasattr(column, method):
            column = getattr(column, method)()
            break
    if isinstance(column, str | bytes):
        raise InputError(f"a single text in place of a list of {what}; put it into a list")
    try:
        return list(column)
    except TypeError:
        raise InputError(f"{kind_of(column)} in place of a list of {what}; give a list") from None


def texts_of(value: Any) -> list[Any]:
    """What a field for several texts holds: a column of them, its JSON text, or one text; [] where it is missing or blank.

    Raises InputError as ``as_list``.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            return as_list(json.loads(value))
    if isinstance(value, str):
        return [] if is_blank(value) else [value]
    return [] if is_missing(value) else as_list(value)


def is_missing(value: Any) -> bool:
    """Whether there is nothing: None, NaN, pandas' NA or NaT."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # NA is neither true nor false, nor is an array
        return type(value).__name__ == "NAType"


def text_fault(value: Any) -> str | None:
    """Why ``value`` can't be read as a text: it "is missing", "is not text (a list)", "is blank"; None where it can."""
    if is_missing(value):
        return "is missing"
    if not isinstance(value, str):
        return f"is not text ({kind_of(value)})"
    return "is blank" if is_blank(value) else None


def kind_of(value: Any) -> str:
    """What a value is called in messages."""
    return "null" if is_missing(value) else _KINDS.get(type(value), f"a {type(value).__name__}")


def joined(documents: Any) -> Any:
    """One text of several ``documents``, which ``documents_of`` takes apart: to all else a blank line is between them.

    What is no list of texts that aren't blank is returned as it is.
    """
    several = isinstance(documents, list | tuple) and documents and not any(map(text_fault, documents))
    return _BETWEEN.join(documents) if several else documents


def documents_of(text: str) -> list[str]:
    """The documents that ``joined`` put together; a text of its own alone."""
    return text.split(_BETWEEN)


def in_one(text: str) -> str:
    """``text`` with no more than a blank line between its documents."""
    return text.replace(_BETWEEN, "\n\n")


def domain_of(value: Any) -> str:
    """The kind of text that ``value`` names, as in ``"news"``, in small letters; ``""`` for what is no text of one line."""
    name = value.strip() if isinstance(value, str) else ""
    return name.casefold() if name.isprintable() else ""


def told_document(fields: Mapping[str, Any], name: str = "document") -> Any:
    """What a record has in the field ``name``; where there is nothing, its ``documents``."""
    own = fields.get(name)
    return fields.get("documents") if is_missing(own) or own == "" else own


def document_key(text: str) -> str:
    """Key of a document's text: equal for texts that ``normalise`` holds to be the same. 32 hex digits."""
    return digest(normalise(text)).hex()


@dataclass(frozen=True)
class Source:
    """A document to summarize; ``references`` may be empty."""

    id: str
    document: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One record of an input file, as it was read.

    ``where`` names file and place, 1-based: ``"pairs.jsonl, line 3"`` (the line a record begins on) or
    ``"pairs.parquet, row 7"``. ``fields`` is ``{}`` where nothing could be read. ``error`` is set where the record as a
    whole is broken; ``text_field`` and ``number_field`` (``negsample.io.read``) raise it.
    """

    where: str
    fields: dict[str, Any] = field(default_factory=dict)
    error: RecordError | None = None

    @property
    def domain(self) -> str:
        """What kind of text it says it is (``domain_of``)."""
        return domain_of(self.fields.get("domain"))


@dataclass(frozen=True, slots=True)
class Pair:
    """A document and a summary that a person (or at least the corpus) holds to be good.

    ``id`` is unique in its corpus (the corpus' own, else made from the texts); ``corpus`` names where it came from, ``domain``
    what kind of text it is.
    """

    id: str
    document: str
    summary: str
    corpus: str = ""
    domain: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """One training or test example: a document, a summary, and how good the summary is.

    ``label`` lies in [0, 1]; ``kind`` is ``"original"`` or the name of the negative's kind; ``document_id`` is the id
    of the source pair; ``change`` says what was done to the summary, readable by a person; ``{}`` for an original.
    ``aspects``: labels of aspects, also in [0, 1], where they were given; ``domain``: that of the pair.
    """

    id: str
    document_id: str
    document: str
    summary: str
    label: float
    kind: str
    change: Mapping[str, Any] = field(default_factory=dict)
    aspects: Mapping[str, float] = field(default_factory=dict)
    domain: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The example as it is written to JSON lines; ``aspects`` and ``domain`` where there are any."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: value for name, value in values.items() if value or name not in ("aspects", "domain")}


@dataclass(frozen=True, slots=True)
class Judged:
    """One summary that people (or a judge in their place) have judged.

    ``documents`` has one text (of several documents where they were ``joined``), or those of a docset as it was published, over
    which a score is the mean;
    ``scores`` maps the name of a human score to its value, higher is better; ``half`` is ``"tune"``, ``"report"`` or
    ``""``. ``ratings``: of a score that several annotators gave, what each of them gave, where that is known; None in the
    place of one who gave none. ``choices``: another summary of the document → how many preferred this one, that one and
    neither. ``by``: who gave the scores, ``PEOPLE`` or ``"judge:NAME"``.
    """

    document_id: str
    system: str
    documents: tuple[str, ...]
    summary: str
    references: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    dataset: str = ""
    half: str = ""
    ratings: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    choices: Mapping[str, Sequence[int]] = field(default_factory=dict)
    by: str = PEOPLE
