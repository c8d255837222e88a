"""The records that flow through the project: plain frozen dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from negsample.errors import RecordError
from negsample.seeds import digest
from negsample.sentences import normalise


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


@dataclass(frozen=True, slots=True)
class Pair:
    """A document and a summary that a person (or at least the corpus) holds to be good.

    ``id`` is unique in its corpus (the corpus' own, else made from the texts); ``corpus`` names where it came from.
    """

    id: str
    document: str
    summary: str
    corpus: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """One training or test example: a document, a summary, and how good the summary is.

    ``label`` lies in [0, 1]; ``kind`` is ``"original"`` or the name of the negative's kind; ``document_id`` is the id
    of the source pair; ``change`` says what was done to the summary, readable by a person; ``{}`` for an original.
    """

    id: str
    document_id: str
    document: str
    summary: str
    label: float
    kind: str
    change: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The example as it is written to JSON lines."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


@dataclass(frozen=True, slots=True)
class Judged:
    """One summary that people have judged.

    ``documents`` has one text, or several for a multi-document set (an estimator's score is then the mean over them);
    ``scores`` maps the name of a human score to its value, higher is better; ``half`` is ``"tune"``, ``"report"`` or
    ``""``. ``ratings``: of a score that several annotators gave, what each of them gave, where that is known.
    """

    document_id: str
    system: str
    documents: tuple[str, ...]
    summary: str
    references: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    dataset: str = ""
    half: str = ""
    ratings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
