"""Gathering judged rows, counting by reason and place what could not be used; the plain mean of the human scores; files of a data
set as its publisher hands them out, packed or unpacked, read without unpacking to disk.
"""

import html
import io
import math
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import IO, Any

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.io.read import Row, text_field
from negsample.records import Judged, document_key

PLACES = 3  # how many places a reason names
# Rating scales in use, the narrowest first.
SCALES = ((0, 1), (-1, 1), (1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
_MEAN = "mean of "
# Spearman's correlation above which two scores are one, coded twice.
_SAME = 0.9


class Unusable(Counter[str]):
    """What could not be used, counted by reason, with the first few places of each.

    ``told``: lines on how the judgments were read. ``hints``: what to do about a reason, where that is known.
    """

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, list[str]] = {}
        self.told: list[str] = []
        self.hints: dict[str, str] = {}

    def note(self, reason: str, where: str, hint: str = "") -> None:
        """Count something that is missing or malformed at ``where``."""
        self[reason] += 1
        self.hints.setdefault(reason, hint)
        places = self.places.setdefault(reason, [])
        if len(places) < PLACES:
            places.append(where)

    def lines(self) -> list[str]:
        """Return what is told, then a line a reason, most frequent first: ``4 × no usable human score (a.jsonl, line 3; …)``."""
        shown = list(self.told)
        for reason, count in self.most_common():
            places = self.places.get(reason, [])
            more = "; …" if count > len(places) else ""
            shown.append(f"{count} × {reason}" + (f" ({'; '.join(places)}{more})" if places else ""))
        return shown


@dataclass
class Collector:
    """The rows read so far; what can't be used is noted in ``unusable``. ``unjudged``: rows without a score are of use."""

    unusable: Unusable
    unjudged: bool = False
    rows: list[Judged] = field(default_factory=list)
    _seen: set[tuple[str, ...]] = field(default_factory=set)
    _texts: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def note(self, reason: str, where: str) -> None:
        """Count something that is missing or malformed at ``where``."""
        self.unusable.note(reason, where)

    def read(self, found: Iterable[Any], judged: Callable[[Any], Judged]) -> list[Judged]:
        """Keep what ``judged`` makes of each of ``found``, which knows ``where`` it stood; a RecordError is noted."""
        for each in found:
            try:
                self.add(judged(each), each.where)
            except RecordError as error:
                self.unusable.note(error.reason, each.where, error.hint)
        return self.rows

    def add(self, row: Judged, where: str) -> None:
        """Keep ``row``, or count why not: no score, its document and system kept before, another text of its document."""
        key = (row.dataset, row.document_id, row.system or f"\n{row.summary}", row.by)
        texts = tuple(sorted(map(document_key, row.documents)))
        if key in self._seen:
            told = "system" if row.system else "summary"
            self.note(f"the same document and {told} again (the first row is kept)", where)
        elif not (row.scores or self.unjudged):
            self.note("no usable human score", where)
        elif self._texts.setdefault(key[:2], texts) != texts:
            self.note("the document has another text than in an earlier row of its id (the row is left out)", where)
        else:
            self._seen.add(key)
            self.rows.append(row)

    def mean_scores(self, ratings: Iterable[Mapping[str, Any]], names: Iterable[str], where: str) -> dict[str, float]:
        """Average the raters' scores of each name; a rating that is missing or not a number is counted, not used."""
        given: dict[str, list[float]] = {name: [] for name in names}
        for rating in ratings:
            for name, values in given.items():
                value = finite(rating.get(name) if isinstance(rating, Mapping) else None)
                if value is None:
                    self.note(f"a rating of {name!r} is missing or not a number", where)
                else:
                    values.append(value)
        return {name: math.fsum(values) / len(values) for name, values in given.items() if values}


def name_field(row: Row, name: str, *, other: str | None = None) -> str:
    """Read a field that names something: text, or a whole number; else as `text_field`."""
    value = row.fields.get(name if name in row.fields else str(other))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_field(row, name, other=other)


def finite(value: object) -> float | None:
    """Return ``value`` as a number within ±1e30, as float32 holds (text that spells one counts), else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) <= 1e30 else None


# --- the mean of the human scores


def is_mean(name: str) -> bool:
    """Whether the human score ``name`` is a mean that `with_means` has added."""
    return name.startswith(_MEAN) and name.removeprefix(_MEAN).isdecimal()


def with_means(rows: Sequence[Judged], unusable: Unusable) -> list[Judged]:
    """Return ``rows`` with the score ``mean of N`` beside the N ≥ 2 human scores of their data set, where scales agree.

    A score's scale is the narrowest of ``SCALES`` that holds all its values in the data set, which must take up more than
    half of it. The scales agree where all scores have the same one. The mean is over all N scores of a row; a row that
    lacks one has none. Where scales don't agree, or two scores are codings of one another (ρ > .9), no mean is made, which
    is told in ``unusable``, once for each data set.
    """
    import pandas as pd

    found = list(rows)
    for dataset in dict.fromkeys(row.dataset for row in rows):
        places = [place for place, row in enumerate(rows) if row.dataset == dataset]
        table = pd.DataFrame([rows[place].scores for place in places], dtype=float)
        names, mean = list(map(str, table)), f"{_MEAN}{table.shape[1]}"
        if len(names) < 2 or mean in names:
            continue
        no_mean = f"no mean of the human scores{f' of {dataset}' if dataset else ''}, for"
        ends = {name: (table[name].min(), table[name].max()) for name in names}
        scales = {_scale(*own) for own in ends.values()}
        rho = table.corr("spearman", min_periods=3).to_numpy()
        same = [(a, b) for a, b in combinations(range(len(names)), 2) if rho[a, b] > _SAME]
        if len(scales) > 1 or None in scales:
            told = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in ends.items())
            unusable.told.append(f"{no_mean} their scales differ or can't be told: {told}")
        elif same:
            (a, b), *_ = same
            unusable.told.append(f"{no_mean} {names[a]} and {names[b]} say the same (ρ {rho[a, b]:.2f})")
        else:
            for place in (place for place in places if len(rows[place].scores) == len(names)):
                scores, ratings = rows[place].scores, rows[place].ratings
                scores = {**scores, mean: float(np.mean(list(scores.values())))}
                if len(ratings) == len(names) and len({len(given) for given in ratings.values()}) == 1:
                    each = zip(*ratings.values(), strict=True)
                    own = tuple(None if None in given else math.fsum(given) / len(given) for given in each)
                    ratings = {**ratings, mean: own}
                found[place] = replace(rows[place], scores=scores, ratings=ratings)
    return found


def _scale(low: float, high: float) -> tuple[int, int] | None:
    """The narrowest scale that holds ``low`` and ``high``, if they are more than half of it apart; None where none does."""
    scale = next((scale for scale in SCALES if scale[0] <= low and high <= scale[1]), None)
    return scale if scale is not None and 2 * (high - low) > scale[1] - scale[0] else None


# --- files as they are handed out

_TAG = re.compile(r"<[^<>]*>")
_ARCHIVES = (".tar", ".tgz", ".tar.gz")


def files_below(root: Path, wanted: Callable[[str], bool], what: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file below ``root`` whose name is ``wanted``: unpacked files first, then archives' members.

    Archives inside archives are read too. Raises InputError where ``root`` is no folder (``what`` says which to give), and
    for a file that can't be read or an archive that is damaged.
    """
    if not root.is_dir():
        raise InputError(f"{root}: not a folder; give {what}")
    files = sorted(file for file in root.rglob("*") if file.is_file())
    for file in files:
        place = file.relative_to(root.parent).as_posix() if root.parent != root else file.as_posix()
        if wanted(place):
            try:
                yield place, file.read_bytes()
            except OSError as error:
                raise InputError(f"{file}: can't be read ({error.strerror}); check its permissions") from None
    for file in files:
        if file.name.lower().endswith(_ARCHIVES):
            with file.open("rb") as stream:
                yield from _members(stream, str(file), wanted)


def _members(stream: IO[bytes], name: str, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """The wanted files of an archive, and of the archives inside it."""
    try:
        with tarfile.open(fileobj=stream) as archive:
            for member in archive:
                inner = member.name.lower().endswith(_ARCHIVES)
                content = archive.extractfile(member) if member.isfile() and (inner or wanted(member.name)) else None
                if content is None:
                    continue
                if inner:
                    yield from _members(io.BytesIO(content.read()), f"{name}: {member.name}", wanted)
                else:
                    yield member.name, content.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise InputError(f"{name}: not a sound tar archive ({error}); get it again") from None


def decode(data: bytes) -> str:
    """The text of ``data``: UTF-8, else Windows' Latin-1, of which Latin-1 newswire is a part."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def without_tags(markup: str) -> str:
    """The text of a piece of SGML or HTML in one line: tags out, entities resolved."""
    return " ".join(html.unescape(_TAG.sub(" ", markup)).split())
