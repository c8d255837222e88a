"""People's judgments of summaries: one loader a published data set, and the project's own layout.

``FILE`` is the project's own layout (``files``); ``NAME:PATH`` a published one, ``NAME`` from ``JUDGMENTS``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from negsample.errors import InputError
from negsample.eval.judgments.collect import Unusable, with_means
from negsample.eval.judgments.files import HALVES
from negsample.io.read import is_saved
from negsample.records import PEOPLE, Judged, document_key
from negsample.registry import Registry

# name → load(path, unusable) -> list[Judged]
JUDGMENTS = Registry(
    "set of judgments",
    {
        "asap": "negsample.eval.judgments.clark:load_asap",
        "chaganty": "negsample.eval.judgments.clark:load_chaganty",
        "duc2001": "negsample.eval.judgments.nist:load_2001",
        "duc2002": "negsample.eval.judgments.nist:load_2002",
        "files": "negsample.eval.judgments.files:load",
        "newsroom": "negsample.eval.judgments.published:load_newsroom",
        "qags": "negsample.eval.judgments.published:load_qags",
        "realsumm": "negsample.eval.judgments.realsumm:load",
        "summeval": "negsample.eval.judgments.published:load_summeval",
        "tac2010": "negsample.eval.judgments.nist:load_tac2010",
    },
    plural="judgments",
)

__all__ = ["JUDGMENTS", "Source", "Unusable", "load_judgments", "load_sources", "parted"]


@dataclass(frozen=True)
class Source:
    """The judged rows of one data set. ``missing``: a line for each reason why judgments could not be used. ``tuning``: rows of
    the half that was not asked for, by which limits are chosen.
    """

    name: str
    spec: str
    rows: tuple[Judged, ...]
    missing: tuple[str, ...]
    tuning: tuple[Judged, ...] = ()

    @property
    def by(self) -> str:
        """Who gave the scores: as of ``Judged``."""
        return self.rows[0].by


def parted(spec: str) -> tuple[str, str]:
    """Return name and path of ``NAME:PATH``; of a ``FILE`` the name is ``files``."""
    name, colon, path = spec.partition(":")
    return ("files", spec) if not colon or Path(spec).exists() else (name, path)


def load_judgments(
    spec: str, unusable: Unusable | None = None, columns: Sequence[str] = (), *, judges: bool = False
) -> list[Judged]:
    """Load the judged rows that ``spec`` names: ``FILE``, or ``NAME:PATH`` with NAME from ``JUDGMENTS``.

    What is missing or malformed is counted in ``unusable``, which is empty before, and is not in the result. Every row
    has at least one human score, and all scores are finite. ``columns``: the fields that hold the human scores of a FILE
    in which each has a field of its own (by default those with numbers).
    Raises InputError for an unknown name, a missing file or folder, where not one row is usable, for a document that stands in
    both halves, and for scores that a judge gave in people's place unless ``judges`` is set.
    """
    name, path = parted(spec)
    if not path:
        raise InputError(f"{spec!r}: the path is missing; give {name}:PATH")
    load = JUDGMENTS.get(name)
    if not Path(path).exists():
        raise InputError(f"{path}: no such file or folder; check the path of the judgments")
    if name == "files" and Path(path).is_dir() and not is_saved(path):
        known = ", ".join(own for own in JUDGMENTS if own != "files")
        raise InputError(f"{path}: is a folder; give a file of judgments, or NAME:{path} (NAME: {known})")
    unusable = Unusable() if unusable is None else unusable
    if columns and name != "files":
        raise InputError(f"{spec}: its scores have their places; --scores-columns is for files of your own")
    rows: list[Judged] = load(path, unusable, columns) if columns else load(path, unusable)
    if not rows:
        why = "; ".join(unusable.lines()[:3]) or "it holds none"
        hint = next((unusable.hints[reason] for reason, _ in unusable.most_common(1)), "")
        raise InputError(f"{path}: no usable judgment: {why}" + (f"; {hint}" if hint else ""))
    if not judges and (other := next((row.by for row in rows if row.by != PEOPLE), None)):
        raise InputError(
            f"{path}: has scores by {other}, which are not people's; negsample train labels={path} learns from them, and "
            "correlate measures agreement with them"
        )
    texts = ({text for row in rows if row.half == half for text in row.documents} for half in HALVES)
    if both := set.intersection(*({document_key(text) for text in own} for own in texts)):
        of = sorted({row.document_id for row in rows if both.intersection(map(document_key, row.documents))})
        raise InputError(
            f"{path}: {len(of)} documents stand in both halves (such as document_id {of[0]!r}); put all rows of a document "
            "into one half"
        )
    return rows


def load_sources(specs: Sequence[str], columns: Sequence[str] = (), *, judges: bool = False) -> list[Source]:
    """Load the data sets of all ``--judgments``; one source may hold several, and names are made to differ.

    The mean of a data set's human scores is one more, as `with_means` has it.
    """
    found: list[Source] = []
    for spec in specs:
        unusable = Unusable()
        groups: dict[str, list[Judged]] = {}
        for row in load_judgments(spec, unusable, columns, judges=judges):
            name = row.dataset or Path(spec.rpartition(":")[2]).name
            groups.setdefault(name if row.by == PEOPLE else f"{name} by {row.by}", []).append(row)
        groups = {name: with_means(rows, unusable) for name, rows in groups.items()}
        # What could not be read has no data set of its own, so it is told of once for each source.
        lines = tuple(unusable.lines())
        for name, rows in groups.items():
            names = (name, *(f"{name}-{number}" for number in range(2, len(found) + 2)))
            own = next(own for own in names if own not in {source.name for source in found})
            found.append(Source(own, spec, tuple(rows), lines))
            lines = ()
    return found
